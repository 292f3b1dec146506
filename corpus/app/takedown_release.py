"""A release without what was taken down: `<name>.1` beside it, sharing every shard that is not touched.

The old release stays as a withdrawn manifest and the shards that never held the text; those that did are gone. Counts, card,
Croissant file and manifest of the new one are made from its own shards and from the decisions of the old one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.app.clusters import CLUSTERS
from corpus.app.project import Project
from corpus.app.reduced import scratch_folder
from corpus.app.release import DECISIONS, RELEASE_STAGE, manifest_text, release_folder, release_options
from corpus.app.snapshot import Snapshot, load_snapshot
from corpus.app.takedown_decided import candidates, decisions_now, load_decisions
from corpus.app.takedown_files import covered_rows
from corpus.app.takedown_open import STEP
from corpus.app.takedown_promote import promote
from corpus.app.takedown_segment import announce, supersede, value_of
from corpus.app.takedown_targets import Targets
from corpus.app.takedown_text import cut_kinds, delta, domains_after
from corpus.errors import CorpusError, StoreError
from corpus.export.build import publish, write_sides
from corpus.export.card import CardFacts
from corpus.export.manifest import manifest
from corpus.export.ports import ReleaseOptions, SnapshotInputs
from corpus.export.session import open_session
from corpus.export.shard import Written
from corpus.export.splits import TRAIN, VALIDATION
from corpus.export.summary import counts_of_shards
from corpus.export.supersede import Change, Key, StatedPolicy, first_key, rewrite_shard
from corpus.optout.honoured import honoured
from corpus.optout.settings import OptoutSettings
from corpus.store.commits import CommitRecord, file_sha256
from corpus.store.local_objects import sealed

_SPLIT_SHARES = 2**32


@dataclass(frozen=True, slots=True)
class Superseded:
    """What became of one release. `into` is empty where it was withdrawn before, and only lost shards now."""

    name: str
    into: str
    rows_before: int
    rows_after: int
    removed: int
    promoted: int
    shards: int


def covered_shards(project: Project, name: str, facts: dict[str, Any], targets: Targets) -> dict[str, npt.NDArray[np.bool_]]:
    """The shards of a release that hold covered rows, by path, with the rows that go."""
    found = {}
    for shard in facts["shards"]:
        path = project.layout.release_dir(name) / shard["path"]
        if shard["rows"] and (mask := covered_rows(project.file(project.layout.relative(path), shard["sha256"]), targets)).any():
            found[str(shard["path"])] = mask
    return found


def supersede_release(project: Project, record: CommitRecord, number: int, targets: Targets) -> Superseded | None:
    """Take covered rows out of a release. None when it holds none, and no interrupted apply left it half-way."""
    facts = json.loads(manifest_text(project, record.key))
    step = project.commits.get(STEP, _key(number, record.key))
    gone = {} if step is not None else covered_shards(project, record.key, facts, targets)
    if step is None and not gone:
        return None
    if step is None:
        made = None if facts["withdrawn"] else _successor(project, record, facts, number, targets, gone)
        step = _step(project, record, facts, number, targets, gone, made)
        announce(project, step)
    _withdraw(project, record.key, step)
    rows, into = step.rows, str(step.info["into"])
    return Superseded(record.key, into, rows["before"], rows["after"], rows["removed"], rows["promoted"], rows["shards"])


def _key(number: int, name: str) -> str:
    return f"{number:08d}.release.{name}"


def _successor(
    project: Project,
    record: CommitRecord,
    facts: dict[str, Any],
    number: int,
    targets: Targets,
    gone: dict[str, npt.NDArray[np.bool_]],
) -> dict[str, Any]:
    """Build and record the release that takes this one's place (or find it, after a kill); returns its manifest."""
    name = _free_name(project, record, number)
    final = project.layout.release_dir(name)
    if not final.exists():
        part = final.with_name(f".{name}.part")
        shutil.rmtree(part, ignore_errors=True)  # left by an apply that was killed
        part.mkdir(parents=True)
        try:
            with scratch_folder(project) as scratch:
                _build(project, record, facts, name, number, targets, gone, part, scratch)
            publish(part, final)
        finally:
            shutil.rmtree(part, ignore_errors=True)  # nothing half-built stays beside the releases
    made: dict[str, Any] = json.loads((final / "manifest.json").read_text("utf-8"))
    if project.commits.get(RELEASE_STAGE, name) is None:
        outputs = {project.layout.relative(path): file_sha256(path) for path in sorted(final.rglob("*")) if path.is_file()}
        info = {
            "name": name, "snapshot": record.info["snapshot"], "previous": record.key, "order": len(project.commits.keys(RELEASE_STAGE)) + 1,
            "supersedes": record.key, "control": targets.version,
        }  # fmt: skip
        project.commits.put(CommitRecord(RELEASE_STAGE, name, {"snapshot": record.inputs["snapshot"]}, outputs, info=info))
    return made


def _free_name(project: Project, record: CommitRecord, number: int) -> str:
    """The first of `<root>.1`, `<root>.2` … that is free, or that this very apply has made already."""
    root = record
    while (before := str(root.info.get("supersedes") or "")) and (
        found := project.commits.get(RELEASE_STAGE, before)
    ) is not None:
        root = found
    for count in range(1, 1_000_000):
        name = f"{root.key}.{count}"
        folder = project.layout.release_dir(name)
        if not folder.exists() and project.commits.get(RELEASE_STAGE, name) is None:
            return name
        if (folder / "manifest.json").is_file():
            made = json.loads((folder / "manifest.json").read_text("utf-8"))
            if (made.get("supersedes"), made.get("takedown")) == (record.key, number):
                return name
    raise StoreError("there is no free name for the release that takes its place", record.key)


def _build(
    project: Project, record: CommitRecord, facts: dict[str, Any], name: str, number: int, targets: Targets,
    gone: dict[str, npt.NDArray[np.bool_]], part: Path, scratch: Path,
) -> None:  # fmt: skip
    """Shards and side files of the successor, under `part`."""
    snapshot = load_snapshot(project, str(record.info["snapshot"]))
    old = release_folder(project, record.key)
    policy = StatedPolicy(
        str(facts["policy"]), str(facts["identity"]["policy"]), cut_kinds((old / "croissant.json").read_text("utf-8"))
    )
    options = release_options(project, snapshot, name, ("", ""))
    options = replace(options, **{key: value for key, value in _stated(facts).items() if key != "name"})
    schema = pq.ParquetFile(old / facts["shards"][0]["path"]).schema_arrow
    con = open_session(options.memory // 2, options.threads, scratch)
    try:
        path = project.file(project.layout.relative(snapshot.folder / DECISIONS))
        load_decisions(con, path, targets, facts.get("promoted", ()))
        extra = promote(project, snapshot, candidates(con), options, policy, schema, scratch)
        changes, shards = _shards(project, record.key, facts, gone, extra, options, part)
        before = set(
            con.execute("SELECT p.id FROM promoted p JOIN decided d ON d.id = p.id WHERE latest AND NOT covered").fetchall()
        )
        promoted = sorted({*extra["id"].to_pylist(), *(row[0] for row in before)})
        versions = options.versions == "major"
        decisions = decisions_now(con, promoted, path, versions=versions)
        found, tokens = counts_of_shards(con, shards, part, versions=versions)
        if found.rows != decisions.rows:
            raise CorpusError(
                f"{found.rows} rows are left where the decisions say {decisions.rows}", record.key, "run corpus verify"
            )
        inputs = _inputs(project, snapshot, facts, targets)
        key = hashlib.sha256(json.dumps([facts["key"], number, targets.version, name]).encode()).hexdigest()
        told = manifest(key, inputs, options, policy, str(facts["tokenizer"]), decisions, found, shards, tokens)
        told |= {"supersedes": record.key, "takedown": number, "control": targets.version, "promoted": promoted}
        types = {field.name: "struct" if str(field.type).startswith("struct") else str(field.type) for field in schema}
        rows = domains_after(con, _recorded_text(project, record, "domains.csv"), shards, part, changes)
        words = _words(record.key, facts, shards, changes, len(extra))
        card = CardFacts(inputs, options, policy, decisions, found, rows, shards, tokens, str(facts["tokenizer"]), types, words)
        write_sides(part, told, card, schema)
    finally:
        con.close()


def _recorded_text(project: Project, record: CommitRecord, name: str) -> str | None:
    """The text of a release's side file; None where it is not there or not what was recorded."""
    path = project.layout.release_dir(record.key) / name
    if not path.is_file() or file_sha256(path) != record.outputs.get(project.layout.relative(path)):
        return None
    return path.read_text("utf-8")


def _stated(facts: dict[str, Any]) -> dict[str, Any]:
    """The options a manifest states, as `ReleaseOptions` takes them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in facts["options"].items()}


def _inputs(project: Project, snapshot: Snapshot, facts: dict[str, Any], targets: Targets) -> SnapshotInputs:
    settings = OptoutSettings.model_validate(snapshot.facts["settings"]["optout"])
    return SnapshotInputs(
        snapshot.digest, (), snapshot.folder / CLUSTERS, tombstones=delta(project, targets.version), identity=facts["identity"],
        turned_away=snapshot.facts.get("turned_away"), protocols=honoured(settings),
    )  # fmt: skip


def _words(name: str, facts: dict[str, Any], shards: list[Written], changes: list[Change], promoted: int) -> list[str]:
    removed = sum(change.removed for change in changes)
    known = {shard["sha256"] for shard in facts["shards"]}
    shared = sum(shard.sha256 in known for shard in shards)
    return [
        f"Takes the place of `{name}`, which is withdrawn: {removed} pages were taken down, and {promoted} copies of them stand in their place.",
        f"{shared} of {len(shards)} shards are the same files as before.",
    ]


def _shards(
    project: Project, name: str, facts: dict[str, Any], gone: dict[str, npt.NDArray[np.bool_]], extra: pa.Table,
    options: ReleaseOptions, part: Path,
) -> tuple[list[Change], list[Written]]:  # fmt: skip
    """Link what is not touched, write the rest anew."""
    folder = project.layout.release_dir(name)
    old = [Written(**shard) for shard in facts["shards"]]
    added = _homes(folder, old, extra, options)
    shards, changes = [], []
    for shard in [*old, *(home for home in added if home not in old)]:
        source, target = folder / shard.path, part / shard.path
        target.parent.mkdir(parents=True, exist_ok=True)
        if shard.path in gone or shard in added:
            mask = gone.get(shard.path, np.zeros(shard.rows, dtype=bool))
            if not source.is_file():  # copies of a crawl that had no row in the release
                pq.write_table(extra.slice(0, 0), target)
                source = target.rename(target.with_name(f".{target.name}.empty"))
            change = rewrite_shard(source, target, shard, mask, added.get(shard))
            if source.parent == target.parent:
                source.unlink()
            changes.append(change)
            shards.append(change.written)
        else:
            _share(project.file(project.layout.relative(source), shard.sha256), target)
            shards.append(shard)
    return changes, shards


def _share(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)


def _homes(folder: Path, shards: list[Written], extra: pa.Table, options: ReleaseOptions) -> dict[Written, pa.Table]:
    """Which shard each promoted row belongs into, by (crawl, split, language) and then (domain, url, id)."""
    homes: dict[Written, list[int]] = {}
    limit = f"{round(options.validation * _SPLIT_SHARES):08x}"
    for n, row in enumerate(extra.select(["crawl_id", "url_id", "language", "domain", "url", "id"]).to_pylist()):
        split = VALIDATION if options.validation and row["url_id"][:8] < limit else TRAIN
        language = row["language"] if options.by_language else ""
        group = [shard for shard in shards if (shard.crawl_id, shard.split, shard.language) == (row["crawl_id"], split, language)]
        home = _home(folder, group, (row["domain"], row["url"], row["id"])) or _new_shard(row["crawl_id"], split, language)
        homes.setdefault(home, []).append(n)
    return {home: extra.take(rows) for home, rows in homes.items()}


def _home(folder: Path, group: Iterable[Written], key: Key) -> Written | None:
    chosen = None
    for shard in sorted(group, key=lambda shard: shard.path):
        first = first_key(folder / shard.path)
        if chosen is None or (first is not None and first <= key):
            chosen = shard
    return chosen


def _new_shard(crawl_id: str, split: str, language: str) -> Written:
    folder = f"data/crawl_id={crawl_id}/lang={language}" if language else f"data/crawl_id={crawl_id}"
    return Written(f"{folder}/{split}-00000-of-00001.parquet", crawl_id, split, language, "", 0, 0, 0, 0, "", "")


def _step(
    project: Project, record: CommitRecord, facts: dict[str, Any], number: int, targets: Targets,
    gone: dict[str, npt.NDArray[np.bool_]], made: dict[str, Any] | None,
) -> CommitRecord:  # fmt: skip
    """What the old release becomes: which of its files go, what its manifest says from now on, and its record."""
    folder = project.layout.relative(project.layout.release_dir(record.key))
    manifest_name = f"{folder}/manifest.json"
    lost = sorted({f"{folder}/{path}" for path in gone})
    withdrawn = _withdrawn(facts, sorted(gone), made)
    outputs = {name: digest for name, digest in record.outputs.items() if name not in lost}
    outputs[manifest_name] = hashlib.sha256(withdrawn.encode()).hexdigest()
    into = str(made["name"]) if made else str(facts.get("superseded_by", ""))
    after = CommitRecord(record.stage, record.key, record.inputs, outputs, record.rows, {**record.info, "superseded_by": into})
    removed = sum(int(mask.sum()) for mask in gone.values())
    rows_after = int(made["rows"]) if made else 0
    counted = {
        "before": 0 if facts["withdrawn"] else int(facts["rows"]), "after": rows_after, "removed": removed,
        "promoted": rows_after - (int(facts["rows"]) - removed) if made else 0, "shards": _new_shards(facts, made) if made else 0,
    }  # fmt: skip
    info = {
        "number": number, "control": targets.version, "into": "" if not made else into, "lost": lost, "manifest": withdrawn,
        "records": [{"record": value_of(after), "before": record.key}],
    }  # fmt: skip
    before = {name: record.outputs[name] for name in [manifest_name, *lost]}
    return CommitRecord(STEP, _key(number, record.key), before, {manifest_name: outputs[manifest_name]}, counted, info)


def _new_shards(facts: dict[str, Any], made: dict[str, Any]) -> int:
    known = {shard["sha256"] for shard in facts["shards"]}
    return sum(shard["sha256"] not in known for shard in made["shards"])


def _withdrawn(facts: dict[str, Any], lost: list[str], made: dict[str, Any] | None) -> str:
    """The manifest of a release that is withdrawn: what is left of it, and what stands in its place."""
    from corpus.export.manifest import to_text

    told = dict(facts)
    told["withdrawn"] = True
    told["shards"] = [shard for shard in facts["shards"] if shard["path"] not in lost]
    told["withdrawn_shards"] = facts.get("withdrawn_shards", []) + [
        {"path": shard["path"], "sha256": shard["sha256"], "rows": shard["rows"]}
        for shard in facts["shards"]
        if shard["path"] in lost
    ]
    if made:
        told["superseded_by"] = made["name"]
    return to_text(told)


def _withdraw(project: Project, name: str, step: CommitRecord) -> None:
    """Mark the old release withdrawn and remove the shards that held the text; safe to repeat."""
    (manifest_name,) = step.outputs
    path = project.layout.absolute(manifest_name)
    if not path.is_file() or file_sha256(path) != step.outputs[manifest_name]:
        with sealed(path) as part:
            part.write_text(str(step.info["manifest"]), encoding="utf-8", newline="\n")
    project.files.replace(manifest_name, step.outputs[manifest_name])
    for lost in step.info["lost"]:
        project.layout.absolute(lost).unlink(missing_ok=True)
    project.files.remove(step.info["lost"])
    supersede(project, step)
