"""From a snapshot to clusters and to a release; and the same release again, byte for byte.

Everything here is a pure function of a snapshot: the wiring hands `filter.reduce` and `export.build` their files, the
policy and the offline consent judge, and writes down what came out.
"""

from __future__ import annotations

import filecmp
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from corpus.app.clusters import CLUSTERS, PAIRS, cluster_again, clusters_of
from corpus.app.consent_judge import LogJudge, operator_list
from corpus.app.host_lines import FILE as HOST_LINES
from corpus.app.host_lines import host_lines, lines_file, measure
from corpus.app.idle import warn_idle_policy
from corpus.app.join import clear
from corpus.app.page_versions import FILE as VERSIONS
from corpus.app.page_versions import compare, page_versions, versions_file
from corpus.app.project import Project
from corpus.app.reduced import scratch_folder
from corpus.app.release_order import in_order
from corpus.app.replayable import not_as_measured, refuse_taken_down
from corpus.app.snapshot import Snapshot, frontier_table, load_snapshot, purged_table, tombstone_table
from corpus.config.check import configured_policy
from corpus.crawl.identity import user_agent
from corpus.errors import StoreError
from corpus.export.build import Parts, ReleaseResult, build_release, next_name
from corpus.export.ports import ReleaseOptions, Segment, SnapshotInputs
from corpus.export.tokens import token_counter
from corpus.filter.language import normalise_language
from corpus.filter.schema import ARROW_TYPES, SIGNALS_SCHEMA
from corpus.filter.signals_reduced import REDUCED
from corpus.filter.sources import Sources
from corpus.observe.runlog import Reporter
from corpus.optout.honoured import honoured
from corpus.optout.policy import policy_version
from corpus.optout.settings import OptoutSettings
from corpus.store.commits import CommitRecord, file_sha256, stage_key
from corpus.store.files import holds, remove_folder
from corpus.store.local_objects import sealed
from corpus.store.locks import stage_lock

DECISIONS = "decisions.parquet"
RELEASE_STAGE = "release"
SIGNAL_FIELDS = [(field.name, field.type) for field in SIGNALS_SCHEMA if field.name not in ("id", "language", "language_score")]
"""The `signals` struct of a release without signals of the operator's own."""


def signal_fields(project: Project) -> list[tuple[str, pa.DataType]]:
    """The `signals` struct: every measured and sourced signal, the operator's own by name, and what the snapshot was asked for."""
    own = Sources.of(project.config.filter, project.config.base).own
    reduced = REDUCED if project.config.filter.host_line_pages is not None else {}
    return [
        *SIGNAL_FIELDS,
        *((name, ARROW_TYPES[own[name]]) for name in sorted(own)),
        *((name, ARROW_TYPES[signal.type]) for name, signal in reduced.items()),
    ]


def release(project: Project, snapshot: Snapshot, name: str, report: Reporter, *, fixed: bool = True) -> ReleaseResult:
    """Build (or find) the release of a snapshot under a name.

    Releases are immutable. Where the name is taken by other content, a `fixed` one raises StoreError and another gives
    way to the next free name (`v1`, `v2` …). A release without rows is no obstacle: it is replaced.
    """
    with stage_lock(project.layout.locks, "export"):
        project.clean()
        if not fixed:
            name = free_name(project, snapshot, name)
        if _holds_other(project, snapshot, name) and _rows(project, name) == 0:
            project.commits.drop(RELEASE_STAGE, name)
            remove_folder(project.files, project.layout.relative(project.layout.release_dir(name)))
        return _release(project, snapshot, name, report)


def free_name(project: Project, snapshot: Snapshot, name: str) -> str:
    """The first of `name`, `name` counted on, … that is free, has no rows, or holds this very snapshot."""
    while _holds_other(project, snapshot, name) and _rows(project, name) != 0:
        name = next_name(name)
    return name


def _holds_other(project: Project, snapshot: Snapshot, name: str) -> bool:
    record = project.commits.get(RELEASE_STAGE, name)
    return record is not None and record.inputs["snapshot"] != snapshot.digest


def _rows(project: Project, name: str) -> int | None:
    text = manifest_text(project, name)
    return int(json.loads(text)["rows"]) if text else None


def _release(project: Project, snapshot: Snapshot, name: str, report: Reporter) -> ReleaseResult:
    host_lines(project, snapshot, clusters_of(project, snapshot, report), scratch_folder, report)
    clear(project)
    page_versions(project, snapshot, scratch_folder, report)
    decisions = snapshot.folder / DECISIONS
    previous = _previous(project, name)
    with scratch_folder(project) as scratch:
        draft = scratch / DECISIONS
        parts = _parts(project, snapshot)
        result = build_release(
            _snapshot_inputs(project, snapshot), parts, release_options(project, snapshot, name, previous),
            project.layout.releases, decisions_path=draft, scratch=_folder(scratch / "spill"),
        )  # fmt: skip
        warn_idle_policy(parts.policy, result.decisions, report)
        if draft.exists():
            with sealed(decisions) as part:
                shutil.copyfile(draft, part)
    if project.commits.get(RELEASE_STAGE, name) is None:  # also when a crash came between the folder and its record
        outputs = {project.layout.relative(p): file_sha256(p) for p in sorted(result.folder.rglob("*")) if p.is_file()}
        if decisions.exists():
            outputs[project.layout.relative(decisions)] = file_sha256(decisions)
        info = {
            "name": name,
            "snapshot": snapshot.digest,
            "previous": previous[0],
            "order": len(project.commits.keys(RELEASE_STAGE)) + 1,
        }
        project.commits.put(CommitRecord(RELEASE_STAGE, name, inputs={"snapshot": snapshot.digest}, outputs=outputs, info=info))
    return result


def replay(project: Project, name: str, report: Reporter) -> list[str]:
    """Build a release again from its snapshot, beside it, and compare every byte. Returns the files that differ."""
    record = project.commits.get(RELEASE_STAGE, name)
    if record is None:
        raise StoreError("there is no such release", name, 'see corpus sql "select * from releases"')
    refuse_taken_down(record)
    snapshot = load_snapshot(project, str(record.info["snapshot"]))
    for path, digest in _outputs(snapshot):
        if not holds(project.files, path, digest):
            raise not_as_measured(project, path)
    previous = str(record.info.get("previous") or "")
    text = manifest_text(project, previous)
    with scratch_folder(project) as scratch:
        (scratch / "spill").mkdir()
        clusters = scratch / CLUSTERS
        cluster_again(project, snapshot, clusters, scratch / PAIRS, _folder(scratch / "clusters"))
        inputs = replace(_snapshot_inputs(project, snapshot), clusters=clusters, pairs=scratch / PAIRS)
        if inputs.host_lines is not None:
            inputs = replace(inputs, host_lines=scratch / HOST_LINES)
            measure(project, snapshot, clusters, scratch / HOST_LINES, _folder(scratch / "lines"))
        if inputs.versions is not None:
            inputs = replace(inputs, versions=scratch / VERSIONS)
            compare(project, snapshot, scratch / VERSIONS, _folder(scratch / "versions"))
        options = release_options(project, snapshot, name, (previous, text))
        result = build_release(
            inputs,
            _parts(project, snapshot),
            options,
            scratch / "releases",
            decisions_path=scratch / DECISIONS,
            scratch=scratch / "spill",
        )
        ours, theirs = _files(result.folder), _files(release_folder(project, name))
        different = sorted(set(ours) ^ set(theirs))
        different += [
            file for file in sorted(set(ours) & set(theirs)) if not filecmp.cmp(ours[file], theirs[file], shallow=False)
        ]
    report("replay", release=name, files=len(theirs), different=len(different))
    return different


def _snapshot_inputs(project: Project, snapshot: Snapshot) -> SnapshotInputs:
    families = {family: project.files.all_local(snapshot.family(family)) for family in ("documents", "signals", "spans")}
    segments = tuple(
        Segment(f"{facts['crawl_id']}/{facts['name']}", d, s, p)
        for facts, d, s, p in zip(snapshot.segments, families["documents"], families["signals"], families["spans"], strict=True)
    )
    identity = {
        "snapshot": snapshot.digest,
        "code": str(snapshot.facts["code"]),
        "language_model": str(snapshot.facts["models"]["language"]),
        "policy": str(snapshot.facts["policy"]["digest"]),
        "config": stage_key(settings=snapshot.facts["settings"]),
        "consent_policy": policy_version(
            OptoutSettings.model_validate(snapshot.facts["settings"]["optout"]), str(snapshot.facts["settings"]["token"])
        ),
    }
    return SnapshotInputs(
        snapshot.digest, segments, snapshot.folder / CLUSTERS, snapshot.folder / PAIRS,
        host_lines=lines_file(project, snapshot), versions=versions_file(project, snapshot),
        frontier=frontier_table(project, snapshot), tombstones=tombstone_table(snapshot), purged=purged_table(snapshot),
        identity=identity,
        turned_away=snapshot.facts.get("turned_away"),
        protocols=honoured(OptoutSettings.model_validate(snapshot.facts["settings"]["optout"])),
    )  # fmt: skip


def _parts(project: Project, snapshot: Snapshot) -> Parts:
    policy = configured_policy(project.config)
    if policy.digest != snapshot.facts["policy"]["digest"]:
        raise StoreError("the policy has changed since this snapshot", policy.name, "put the old policy back, or export anew")
    return Parts(
        snapshot_judge(project, snapshot), policy, signal_fields(project), token_counter(tokenizer_of(project, snapshot))
    )


def snapshot_judge(project: Project, snapshot: Snapshot) -> LogJudge:
    """The offline judge of a snapshot: its watermark, its settings, its token, nothing of today."""
    settings = OptoutSettings.model_validate(snapshot.facts["settings"]["optout"])
    return LogJudge(
        project.consent_log(), snapshot.watermark, settings, str(snapshot.facts["settings"]["token"]),
        operator_list(str(snapshot.facts["operator"])), snapshot.stale,
    )  # fmt: skip


def tokenizer_of(project: Project, snapshot: Snapshot) -> str:
    """The tokenizer of a snapshot, as `token_counter` takes it."""
    name = str(snapshot.facts["settings"]["export"]["tokenizer"])
    return name if name in ("gpt2", "none") else str(project.config.base / name)


def release_options(project: Project, snapshot: Snapshot, name: str, previous: tuple[str, str]) -> ReleaseOptions:
    """How a release of a snapshot is cut, under a name."""
    settings = snapshot.facts["settings"]
    export = project.config.export.model_validate({**settings["export"], "name": name})
    return ReleaseOptions(
        name=name,
        languages=tuple(normalise_language(language) for language in settings["languages"]),
        shard_bytes=export.shard_bytes,
        validation=export.validation,
        versions=export.versions,
        gone=export.gone,
        by_language=export.by_language,
        keep=settings["dedup"]["keep"],
        threshold=settings["dedup"]["threshold"],
        cluster=settings["optout"]["cluster"],
        title=project.config.corpus.name,
        license=settings["license"],
        user_agent=user_agent(project.config.crawl),
        contact=project.config.crawl.contact,
        words=settings.get("card", {}),
        previous=previous[1],
        previous_shards=[Path(file) for file in release_files(project, previous[0])] if previous[0] else (),
        memory=project.config.engine.memory,
        threads=project.config.engine.workers or 2,
    )


def _previous(project: Project, name: str) -> tuple[str, str]:
    """Name and manifest of the release made before this one; empty for the first."""
    own = project.commits.get(RELEASE_STAGE, name)
    if own is not None:
        previous = str(own.info.get("previous") or "")
        return previous, manifest_text(project, previous)
    records = release_records(project)
    return (records[-1].key, manifest_text(project, records[-1].key)) if records else ("", "")


def release_records(project: Project) -> list[CommitRecord]:
    """Records of all releases, oldest first."""
    return in_order(project.commits.list(RELEASE_STAGE))


def manifest_text(project: Project, name: str) -> str:
    """The manifest of a release as it lies there; empty when there is none."""
    record = project.commits.get(RELEASE_STAGE, name) if name else None
    file = project.layout.relative(project.layout.release_dir(name) / "manifest.json") if record else ""
    if record is None or file not in record.outputs:
        return ""
    path = project.file(file, record.outputs[file])
    return path.read_text("utf-8") if path.is_file() else ""


def releases(project: Project) -> list[tuple[str, dict[str, Any]]]:
    """(name, manifest) of every release, oldest first."""
    return [(r.key, json.loads(text)) for r in release_records(project) if (text := manifest_text(project, r.key))]


def release_files(project: Project, name: str) -> list[str]:
    """Paths of a release's shards that hold rows."""
    text = manifest_text(project, name)
    return shard_files(project, name, json.loads(text)) if text else []


def shard_files(project: Project, name: str, manifest: dict[str, Any], *, empty: bool = False) -> list[str]:
    """Paths of the shards a manifest lists, on this disk; those without rows only where asked for."""
    folder = project.layout.relative(project.layout.release_dir(name))
    wanted = {f"{folder}/{shard['path']}": str(shard["sha256"]) for shard in manifest["shards"] if shard["rows"] or empty}
    return [str(path) for path in project.files.all_local(wanted)]


def release_folder(project: Project, name: str) -> Path:
    """The folder of a release on this disk, with all of its files in it."""
    record = project.commits.get(RELEASE_STAGE, name)
    folder = project.layout.release_dir(name)
    if record is not None and project.remote:
        beginning = f"{project.layout.relative(folder)}/"
        project.files.all_local({path: digest for path, digest in record.outputs.items() if path.startswith(beginning)})
    return folder


def _outputs(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for facts in snapshot.segments:
        yield from facts["outputs"].items()


def _files(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path
