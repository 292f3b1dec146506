"""Snapshots and releases under audit: digests, manifests, one row per url and id, and law C.

A release cannot be repaired from here: `corpus replay` says what differs, and a new export makes a new one.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.app.clusters import CLUSTERS, DEDUP_STAGE, PAIRS
from corpus.app.funnel import whole_funnel
from corpus.app.map_task import STAGE as MAP
from corpus.app.project import Project
from corpus.app.release import DECISIONS, RELEASE_STAGE
from corpus.app.release_order import in_order
from corpus.app.snapshot import Snapshot, cluster_key, load_snapshot
from corpus.app.verify_archive import check_file
from corpus.app.verify_faults import Findings, Kind, Mend
from corpus.app.verify_records import Records
from corpus.app.verify_refs import Places
from corpus.app.verify_sides import SIDE_FILES, check_sides
from corpus.errors import CorpusError, StoreError
from corpus.model import FUNNEL_STAGES, FunnelStep
from corpus.store.commits import CommitRecord, file_sha256

_TWICE = """
SELECT (SELECT count(*) FROM rows), (SELECT count(*) FROM (SELECT DISTINCT {column} FROM rows)),
    (SELECT {column} FROM rows GROUP BY 1 HAVING count(*) > 1 ORDER BY 1 LIMIT 1)
"""
_SIDE_FILES = frozenset({"snapshot.json", "frontier.parquet", CLUSTERS, PAIRS, DECISIONS, *SIDE_FILES})


def check_snapshots(project: Project, records: Records, findings: Findings) -> dict[str, Snapshot]:
    """Every snapshot against its own digest, and what was made of it against the records. Returns the whole ones."""
    found = {}
    dedup = {record.key: record for record in records.of(DEDUP_STAGE)}
    files = project.files.names("snapshots")
    for digest in sorted({file.split("/")[1] for file in files if file.count("/") > 1}):
        name = f"snapshots/{digest}"
        findings.count("snapshots")
        try:
            snapshot = load_snapshot(project, digest)
            clusters = cluster_key(snapshot)
        except (StoreError, ValueError, KeyError, TypeError) as error:
            what = error.what if isinstance(error, StoreError) else f"cannot be read: {error}"
            findings.add(Kind.SNAPSHOT, f"{name}/snapshot.json", what)
            continue
        found[digest] = snapshot
        check_file(project, f"{name}/frontier.parquet", str(snapshot.facts["frontier"]), findings)
        _clusters(project, name, set(files), dedup.get(clusters), findings)
        for file in files:
            if file.startswith(f"{name}/") and file.removeprefix(f"{name}/") not in _SIDE_FILES:
                findings.add(Kind.UNRECORDED, file, "no stage writes such a file here")
    of_snapshots = {cluster_key(snapshot): snapshot for snapshot in found.values()}
    for key, record in sorted(dedup.items()):
        mend = _recluster(project, key, [file for file in record.outputs if file in files])
        whole = [check_file(project, file, digest, findings, mend=mend) for file, digest in sorted(record.outputs.items())]
        if key not in of_snapshots:
            findings.add(Kind.RECORD, f"commits/{DEDUP_STAGE}/{key}.json", "it is of no snapshot there is", mend=mend)
        elif all(whole):
            _counts(project, of_snapshots[key], record, findings, mend)
    check_sides(project, records, found, set(files), findings)
    return found


def _clusters(project: Project, folder: str, files: set[str], record: CommitRecord | None, findings: Findings) -> None:
    """Clusters that lie with a snapshot and were taken over from one over the same documents, or have no record at all."""
    there = [file for name in (CLUSTERS, PAIRS) if (file := f"{folder}/{name}") in files]
    digests = {Path(path).name: digest for path, digest in record.outputs.items()} if record else {}
    for file in there:
        if record is None:
            findings.add(Kind.UNRECORDED, file, "clusters without a commit record", mend=_recluster(project, "", there))
        elif file not in record.outputs:
            check_file(project, file, digests.get(Path(file).name, ""), findings, mend=_recluster(project, "", there))


def _counts(project: Project, snapshot: Snapshot, record: CommitRecord, findings: Findings, mend: Mend) -> None:
    """What the record counted, counted again (where the documents of that time are still there, and what they were)."""
    names = list(snapshot.family("documents"))
    (clusters,) = (file for file in record.outputs if Path(file).name == CLUSTERS)
    if set(names) <= set(project.files.names("documents")) and {facts["map"] for facts in snapshot.segments} <= set(
        project.commits.keys(MAP)
    ):
        found = _counted(project.file(clusters), project.files.all_local(names))
        said = {name: record.rows.get(name) for name in found}
        if found != said:
            findings.add(Kind.ROWS, clusters, f"it has {found}, recorded were {said}", mend=mend)


def _counted(clusters: Path, documents: list[Path]) -> dict[str, int]:
    """Clusters, and the documents with a text among their members (linked copies are members too)."""
    query = (
        "SELECT count(*) FILTER (WHERE id IN (SELECT id FROM read_parquet(?, hive_partitioning = false) WHERE outcome = 'ok')),"
        " count(DISTINCT cluster_id) FROM read_parquet(?)"
    )
    with duckdb.connect(":memory:") as con:
        ((n_documents, n_clusters),) = con.execute(query, [[str(file) for file in documents], str(clusters)]).fetchall()
    return {"documents": int(n_documents), "clusters": int(n_clusters)}


def _recluster(project: Project, key: str, files: list[str]) -> Mend:
    def mend() -> str:
        if key:
            project.commits.drop(DEDUP_STAGE, key)
        project.files.remove(files)
        return "the clusters were removed: corpus dedup or corpus export makes them again"

    return mend


def check_releases(
    project: Project, records: Records, snapshots: dict[str, Snapshot], findings: Findings, places: Places
) -> None:
    """Every release: its record, its manifest, its shards and their rows."""
    files = project.files.names("releases")
    for record in records.of(RELEASE_STAGE):
        findings.count("releases")
        folder = project.layout.release_dir(record.key)
        name = project.layout.relative(folder)
        before = len(findings.faults)
        for file, digest in sorted(record.outputs.items()):
            check_file(project, file, digest, findings)
        for file in files:
            if file.startswith(f"{name}/") and file not in record.outputs:
                findings.add(Kind.UNRECORDED, file, "not a file of this release")
        if str(record.inputs.get("snapshot")) not in snapshots:
            findings.add(Kind.RELEASE, name, "its snapshot is missing or damaged, so it cannot be made again")
        manifest = _manifest(folder, name, findings)
        if manifest is not None:
            _manifest_says(project, folder, name, record, manifest, findings)
        if manifest is not None and len(findings.faults) == before:
            _rows(project, folder, name, manifest, findings, places)
    made = {record.key for record in records.of(RELEASE_STAGE)}
    for name in sorted({file.split("/")[1] for file in files} - made):
        findings.add(Kind.UNRECORDED, f"releases/{name}", "a release without a commit record: run corpus export again")


def _manifest(folder: Path, name: str, findings: Findings) -> dict[str, Any] | None:
    try:
        found = json.loads((folder / "manifest.json").read_text("utf-8"))
        assert isinstance(found["shards"], list), "a manifest lists its shards"
        steps, versions = ([_step(s) for s in told] for told in (found["funnel"], [v for v in [found.get("versions")] if v]))
        return {**found, "funnel": steps, "versions": versions[0] if versions else None}
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        findings.add(Kind.RELEASE, f"{name}/manifest.json", f"the manifest cannot be read: {error}")
        return None


def _step(told: dict[str, Any]) -> FunnelStep:
    return FunnelStep(told["stage"], told["in"], told["out"], dict(told["dropped"]))


def _manifest_says(
    project: Project, folder: Path, name: str, record: CommitRecord, manifest: dict[str, Any], findings: Findings
) -> None:
    """The manifest against the files it describes."""
    if manifest.get("identity", {}).get("snapshot") != record.inputs.get("snapshot") or manifest.get("name") != record.key:
        findings.add(Kind.RELEASE, f"{name}/manifest.json", "it is the manifest of another release or snapshot")
    described = {**{shard["path"]: shard for shard in manifest["shards"]}, **manifest.get("files", {})}
    for path, facts in sorted(described.items()):
        file = folder / path
        if not file.is_file():
            findings.add(Kind.RELEASE, f"{name}/{path}", "the manifest describes it, and it is not there")
        elif (file.stat().st_size, file_sha256(file)) != (facts["bytes"], facts["sha256"]):
            findings.add(Kind.RELEASE, f"{name}/{path}", "its size or digest is not what the manifest says")
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        if file.name != "manifest.json" and file.relative_to(folder).as_posix() not in described:
            findings.add(Kind.RELEASE, project.layout.relative(file), "the manifest does not describe it")
    rows = sum(shard["rows"] for shard in [*manifest["shards"], *manifest.get("withdrawn_shards", [])])
    funnel, versions = manifest["funnel"][-1].n_out, manifest["versions"]
    if rows != manifest["rows"] or rows != funnel + (versions.n_out if versions else 0):
        told = f"shards hold {rows} rows, the manifest says {manifest['rows']}, its funnel ends with {funnel}"
        told += f" and {versions.n_out} older versions" if versions else ""
        findings.add(Kind.RELEASE, f"{name}/manifest.json", told)
    check_steps(manifest["funnel"], f"{name}/manifest.json", findings)
    check_steps([versions] if versions else [], f"{name}/manifest.json", findings)


def _rows(project: Project, folder: Path, name: str, manifest: dict[str, Any], findings: Findings, places: Places) -> None:
    """Shards that are as recorded: their rows, one per url and id, each from a capture that is there."""
    files = []
    for shard in manifest["shards"]:
        file = folder / shard["path"]
        try:
            rows = pq.read_metadata(file).num_rows
        except (pa.ArrowException, OSError) as error:
            findings.add(Kind.RELEASE, f"{name}/{shard['path']}", f"cannot be read: {error}")
            continue
        findings.count("release_rows", rows)
        if rows != shard["rows"]:
            findings.add(Kind.ROWS, f"{name}/{shard['path']}", f"{rows} rows, the manifest says {shard['rows']}")
        files.append(file)
    if not files:
        return
    places.claim_files(f"release {manifest['name']}", files)
    with duckdb.connect(":memory:", config={"temp_directory": str(project.layout.spill)}) as con:
        con.execute(f"SET memory_limit = '{max(project.config.engine.memory // 4 // 2**20, 64)}MiB'")
        listed = ", ".join("'" + str(file).replace("'", "''") + "'" for file in files)
        con.execute(f"CREATE VIEW rows AS SELECT url, id FROM read_parquet([{listed}], hive_partitioning = false)")
        for column in ("url", "id") if manifest["versions"] is None else ("id",):
            told = con.execute(_TWICE.format(column=column)).fetchone()
            if told and told[0] != told[1]:
                findings.add(
                    Kind.UNIQUE, name, f"{told[0]} rows and {told[1]} values of {column}, for example {told[2]} more than once"
                )


def check_steps(steps: list[FunnelStep], file: str, findings: Findings) -> None:
    """Law C over some steps: in = out + Σ dropped, and out = the next one's in."""
    for step in steps:
        if not step.adds_up() or min(step.n_in, step.n_out, *step.dropped.values(), 0) < 0:
            findings.add(
                Kind.FUNNEL, file, f"{step.stage}: {step.n_in} in, {step.n_out} out, {sum(step.dropped.values())} dropped"
            )
    for before, after in pairwise(steps):
        if before.n_out != after.n_in:
            findings.add(Kind.FUNNEL, file, f"{before.n_out} come out of {before.stage}, {after.n_in} go into {after.stage}")


def check_funnel(project: Project, records: Records, snapshots: dict[str, Snapshot], findings: Findings) -> None:
    """The whole funnel of the folder. The newest release joins on only while nothing was measured since."""
    try:
        steps = whole_funnel(project)
    except (CorpusError, duckdb.Error) as error:
        findings.add(Kind.FUNNEL, "", f"cannot be counted: {error.what if isinstance(error, CorpusError) else error}")
        return
    newest = next(reversed(in_order(records.of(RELEASE_STAGE))), None)
    snapshot = snapshots.get(str(newest.inputs.get("snapshot"))) if newest else None
    current = snapshot is not None and {s["map"] for s in snapshot.segments} == {record.key for record in records.of(MAP)}
    check_steps(steps if current else steps[:2], "", findings)
    if tuple(step.stage for step in steps) != FUNNEL_STAGES:
        findings.add(Kind.FUNNEL, "", f"its steps are {', '.join(step.stage for step in steps)}")
    findings.count("funnel_steps", len(steps))
