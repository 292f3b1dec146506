"""Older versions of pages, of a snapshot: compared once after its clusters, where `export.versions = "major"` asks for them.

The same documents and near-duplicate settings give the same file, so a later snapshot over them takes it over.
"""

from __future__ import annotations

from pathlib import Path

from corpus.app.host_lines import Scratch, taken_over
from corpus.app.project import Project
from corpus.app.snapshot import Snapshot, cluster_key
from corpus.errors import NonDeterministicStage
from corpus.filter.settings import DedupSettings
from corpus.filter.versions import write_versions
from corpus.observe.runlog import Reporter
from corpus.store.commits import CommitRecord, file_sha256, stage_key
from corpus.store.local_objects import sealed

STAGE = "versions"
FILE = "versions.parquet"


def takes_versions(snapshot: Snapshot) -> bool:
    """Whether releases of this snapshot hold older versions."""
    return str(snapshot.facts["settings"]["export"]["versions"]) == "major"


def versions_file(project: Project, snapshot: Snapshot) -> Path | None:
    """The file that a release of a snapshot reads; None where the snapshot asks for none."""
    return project.file(project.layout.relative(snapshot.folder / FILE)) if takes_versions(snapshot) else None


def versions_key(snapshot: Snapshot) -> str:
    """What the file depends on."""
    return stage_key(clusters=cluster_key(snapshot))


def page_versions(project: Project, snapshot: Snapshot, scratch: Scratch, report: Reporter) -> Path | None:
    """The file of a snapshot, compared or taken over; None where the snapshot asks for none."""
    if not takes_versions(snapshot):
        return None
    out, key = snapshot.folder / FILE, versions_key(snapshot)
    record = project.commits.get(STAGE, key)
    if record is not None and taken_over(project, record, out):
        return out
    with scratch(project) as folder, sealed(out) as part:
        major = compare(project, snapshot, part, folder)
    report("versions", major=major)
    digest = file_sha256(out)
    if record is None:
        project.commits.put(CommitRecord(STAGE, key, outputs={project.layout.relative(out): digest}, rows={"major": major}))
    elif digest not in record.outputs.values():
        raise NonDeterministicStage("the same documents gave other versions", str(out), "report it, with both files")
    return out


def compare(project: Project, snapshot: Snapshot, out: Path, scratch: Path) -> int:
    """Write the file; returns how many older versions are major."""
    documents, signatures = (
        {
            path: str(digest)
            for facts in snapshot.segments
            for path, digest in facts["outputs"].items()
            if path.startswith(f"{family}/")
        }
        for family in ("documents", "signatures")
    )
    settings = DedupSettings.model_validate(snapshot.facts["settings"]["dedup"] | {"memory": project.config.dedup.memory})
    return write_versions(project.files.all_local(documents), project.files.all_local(signatures), settings, out, scratch=scratch)
