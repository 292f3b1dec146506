"""From a snapshot to clusters and to a release; and the same release again, byte for byte.

Everything here is a pure function of a snapshot: the wiring hands `filter.reduce` and `export.build` their files, the
policy and the offline consent judge, and writes down what came out.
"""

from __future__ import annotations

import filecmp
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from corpus.app.consent_judge import LogJudge, operator_list
from corpus.app.idle import warn_idle_dedup, warn_idle_policy
from corpus.app.project import Project
from corpus.app.snapshot import Snapshot, cluster_key, frontier_table, load_snapshot, tombstone_table
from corpus.config.check import configured_policy
from corpus.crawl.identity import user_agent
from corpus.errors import NonDeterministicStage, StoreError
from corpus.export.build import Parts, ReleaseResult, build_release
from corpus.export.ports import ReleaseOptions, Segment, SnapshotInputs
from corpus.export.tokens import token_counter
from corpus.filter.language import normalise_language
from corpus.filter.reduce import cluster_snapshot
from corpus.filter.schema import ARROW_TYPES, SIGNALS_SCHEMA
from corpus.filter.settings import DedupSettings
from corpus.filter.signatures import shingles
from corpus.filter.sources import Sources
from corpus.observe.runlog import Reporter
from corpus.optout.policy import policy_version
from corpus.optout.settings import OptoutSettings
from corpus.store.commits import CommitRecord, file_sha256
from corpus.store.local_objects import sealed
from corpus.store.locks import stage_lock

CLUSTERS, PAIRS, DECISIONS = "clusters.parquet", "pairs.parquet", "decisions.parquet"
DEDUP_STAGE, RELEASE_STAGE = "dedup", "release"
SIGNAL_FIELDS = [(field.name, field.type) for field in SIGNALS_SCHEMA if field.name not in ("id", "language", "language_score")]

"""The `signals` struct of a release without signals of the operator's own."""


def signal_fields(project: Project) -> list[tuple[str, pa.DataType]]:
    """The `signals` struct: every measured and sourced signal, then the operator's own by name."""
    own = Sources.of(project.config.filter, project.config.base).own
    return [*SIGNAL_FIELDS, *((name, ARROW_TYPES[own[name]]) for name in sorted(own))]


def dedup(project: Project, snapshot: Snapshot, report: Reporter) -> Path:
    """Cluster a snapshot; clusters of an earlier snapshot over the same documents are taken over. Returns the file."""
    with stage_lock(project.layout.locks, "export"):
        return _dedup(project, snapshot, report)


def _dedup(project: Project, snapshot: Snapshot, report: Reporter) -> Path:
    out = snapshot.folder / CLUSTERS
    key = cluster_key(snapshot)
    record = project.commits.get(DEDUP_STAGE, key)
    if record is not None:
        for path, digest in record.outputs.items():
            source, target = project.layout.root / path, snapshot.folder / Path(path).name
            if source.is_file() and file_sha256(source) == digest and source != target:
                with sealed(target) as part:
                    shutil.copyfile(source, part)
        if all((snapshot.folder / Path(p).name).is_file() for p in record.outputs):
            return out
    settings = DedupSettings.model_validate(snapshot.facts["settings"]["dedup"] | {"memory": project.config.dedup.memory})
    with _scratch(project) as scratch, sealed(out) as part, sealed(snapshot.folder / PAIRS) as pairs:
        summary = cluster_snapshot(
            [project.layout.root / path for path in _family(snapshot, "documents")],
            [project.layout.root / path for path in _family(snapshot, "signatures")],
            settings,
            part,
            scratch=scratch,
            shingles=lambda texts: shingles(list(texts)),
            pairs_path=pairs,
        )
    warn_idle_dedup(summary, report)
    report(
        "dedup", documents=summary.documents, clusters=summary.clusters, candidates=summary.candidates, verified=summary.verified
    )
    outputs = {project.layout.relative(snapshot.folder / name): file_sha256(snapshot.folder / name) for name in (CLUSTERS, PAIRS)}
    if record is None:
        project.commits.put(
            CommitRecord(DEDUP_STAGE, key, outputs=outputs, rows={"documents": summary.documents, "clusters": summary.clusters})
        )
    elif sorted(record.outputs.values()) != sorted(outputs.values()):
        raise NonDeterministicStage("clustering the same documents gave other clusters", str(out), "report it, with both files")
    return out


def release(project: Project, snapshot: Snapshot, name: str, report: Reporter, *, fixed: bool = True) -> ReleaseResult:
    """Build (or find) the release of a snapshot under a name.

    Releases are immutable. Where the name is taken by other content, a `fixed` one raises StoreError and another gives
    way to the next free name (`v1`, `v2` …). A release without rows is no obstacle: it is replaced.
    """
    with stage_lock(project.layout.locks, "export"):
        if not fixed:
            name = free_name(project, snapshot, name)
        if _holds_other(project, snapshot, name) and _rows(project, name) == 0:
            shutil.rmtree(project.layout.release_dir(name))
            project.commits.drop(RELEASE_STAGE, name)
        return _release(project, snapshot, name, report)


def free_name(project: Project, snapshot: Snapshot, name: str) -> str:
    """The first of `name`, `name` counted on, … that is free, has no rows, or holds this very snapshot."""
    while _holds_other(project, snapshot, name) and _rows(project, name) != 0:
        stem = name.rstrip("0123456789")
        name = f"{stem}{int(name[len(stem) :] or 1) + 1}" if name != stem else f"{name}-2"
    return name


def _holds_other(project: Project, snapshot: Snapshot, name: str) -> bool:
    record = project.commits.get(RELEASE_STAGE, name)
    return record is not None and record.inputs["snapshot"] != snapshot.digest


def _rows(project: Project, name: str) -> int | None:
    text = _manifest_text(project, name)
    return int(json.loads(text)["rows"]) if text else None


def _release(project: Project, snapshot: Snapshot, name: str, report: Reporter) -> ReleaseResult:
    _dedup(project, snapshot, report)
    decisions = snapshot.folder / DECISIONS
    previous = _previous(project, name)
    with _scratch(project) as scratch:
        draft = scratch / DECISIONS
        parts = _parts(project, snapshot)
        result = build_release(
            _inputs(project, snapshot), parts, _options(project, snapshot, name, previous),
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
    snapshot = load_snapshot(project, str(record.info["snapshot"]))
    for path, digest in _outputs(snapshot):
        file = project.layout.root / path
        if not file.is_file() or file_sha256(file) != digest:
            hint = "put the configuration of that release back and run corpus process"
            raise StoreError("was measured again with other options, so this release cannot be made again", path, hint)
    previous = str(record.info.get("previous") or "")
    text = _manifest_text(project, previous)
    with _scratch(project) as scratch:
        (scratch / "spill").mkdir()
        clusters = scratch / CLUSTERS
        _recluster(project, snapshot, clusters, scratch / PAIRS, _folder(scratch / "clusters"))
        inputs = _inputs(project, snapshot, clusters=clusters, pairs=scratch / PAIRS)
        options = _options(project, snapshot, name, (previous, text))
        result = build_release(
            inputs,
            _parts(project, snapshot),
            options,
            scratch / "releases",
            decisions_path=scratch / DECISIONS,
            scratch=scratch / "spill",
        )
        ours, theirs = _files(result.folder), _files(project.layout.release_dir(name))
        different = sorted(set(ours) ^ set(theirs))
        different += [
            file for file in sorted(set(ours) & set(theirs)) if not filecmp.cmp(ours[file], theirs[file], shallow=False)
        ]
    report("replay", release=name, files=len(theirs), different=len(different))
    return different


def _recluster(project: Project, snapshot: Snapshot, out: Path, pairs: Path, scratch: Path) -> None:
    settings = DedupSettings.model_validate(snapshot.facts["settings"]["dedup"] | {"memory": project.config.dedup.memory})
    cluster_snapshot(
        [project.layout.root / path for path in _family(snapshot, "documents")],
        [project.layout.root / path for path in _family(snapshot, "signatures")],
        settings, out, scratch=scratch, shingles=lambda texts: shingles(list(texts)), pairs_path=pairs,
    )  # fmt: skip


def _inputs(project: Project, snapshot: Snapshot, *, clusters: Path | None = None, pairs: Path | None = None) -> SnapshotInputs:
    root = project.layout.root
    families = {family: _family(snapshot, family) for family in ("documents", "signals", "spans")}
    segments = tuple(
        Segment(f"{facts['crawl_id']}/{facts['name']}", root / d, root / s, root / p)
        for facts, d, s, p in zip(snapshot.segments, families["documents"], families["signals"], families["spans"], strict=True)
    )
    identity = {
        "snapshot": snapshot.digest,
        "code": str(snapshot.facts["code"]),
        "language_model": str(snapshot.facts["models"]["language"]),
        "policy": str(snapshot.facts["policy"]["digest"]),
        "consent_policy": policy_version(
            OptoutSettings.model_validate(snapshot.facts["settings"]["optout"]), str(snapshot.facts["settings"]["token"])
        ),
    }
    return SnapshotInputs(
        snapshot.digest, segments, clusters or snapshot.folder / CLUSTERS, pairs or snapshot.folder / PAIRS,
        frontier=frontier_table(snapshot), tombstones=tombstone_table(snapshot), identity=identity,
    )  # fmt: skip


def _parts(project: Project, snapshot: Snapshot) -> Parts:
    policy = configured_policy(project.config)
    if policy.digest != snapshot.facts["policy"]["digest"]:
        raise StoreError("the policy has changed since this snapshot", policy.name, "put the old policy back, or export anew")
    return Parts(snapshot_judge(project, snapshot), policy, signal_fields(project), token_counter(_tokenizer(project, snapshot)))


def snapshot_judge(project: Project, snapshot: Snapshot) -> LogJudge:
    """The offline judge of a snapshot: its watermark, its settings, its token, nothing of today."""
    settings = OptoutSettings.model_validate(snapshot.facts["settings"]["optout"])
    return LogJudge(
        project.consent_log(), snapshot.watermark, settings, str(snapshot.facts["settings"]["token"]),
        operator_list(str(snapshot.facts["operator"])), snapshot.stale,
    )  # fmt: skip


def _tokenizer(project: Project, snapshot: Snapshot) -> str:
    name = str(snapshot.facts["settings"]["export"]["tokenizer"])
    return name if name in ("gpt2", "none") else str(project.config.base / name)


def _options(project: Project, snapshot: Snapshot, name: str, previous: tuple[str, str]) -> ReleaseOptions:
    settings = snapshot.facts["settings"]
    export = project.config.export.model_validate({**settings["export"], "name": name})
    return ReleaseOptions(
        name=name,
        languages=tuple(normalise_language(language) for language in settings["languages"]),
        shard_bytes=export.shard_bytes,
        validation=export.validation,
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
        memory=project.config.engine.memory,
        threads=project.config.engine.workers or 2,
    )


def _previous(project: Project, name: str) -> tuple[str, str]:
    """Name and manifest of the release made before this one; empty for the first."""
    own = project.commits.get(RELEASE_STAGE, name)
    if own is not None:
        previous = str(own.info.get("previous") or "")
        return previous, _manifest_text(project, previous)
    records = sorted(project.commits.list(RELEASE_STAGE), key=lambda r: int(r.info["order"]))
    return (records[-1].key, _manifest_text(project, records[-1].key)) if records else ("", "")


def _manifest_text(project: Project, name: str) -> str:
    path = project.layout.release_dir(name) / "manifest.json" if name else None
    return path.read_text("utf-8") if path is not None and path.is_file() else ""


def releases(project: Project) -> list[tuple[str, dict[str, Any]]]:
    """(name, manifest) of every release, oldest first."""
    records = sorted(project.commits.list(RELEASE_STAGE), key=lambda r: int(r.info["order"]))
    return [(r.key, json.loads(text)) for r in records if (text := _manifest_text(project, r.key))]


def release_files(project: Project, name: str) -> list[str]:
    """Paths of a release's shards that hold rows."""
    text = _manifest_text(project, name)
    shards = json.loads(text)["shards"] if text else []
    return [str(project.layout.release_dir(name) / shard["path"]) for shard in shards if shard["rows"]]


def _family(snapshot: Snapshot, family: str) -> list[str]:
    return [next(path for path in facts["outputs"] if path.startswith(f"{family}/")) for facts in snapshot.segments]


def _outputs(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for facts in snapshot.segments:
        yield from facts["outputs"].items()


def _files(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


def _folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def _scratch(project: Project) -> Iterator[Path]:
    """An empty folder on local disk that is gone afterwards."""
    _folder(project.layout.spill)
    with tempfile.TemporaryDirectory(dir=project.layout.spill) as name:
        yield Path(name)


assert np.dtype(np.uint64).itemsize == 8, "shingles are 64-bit"
