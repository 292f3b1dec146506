"""Older versions of pages, of a snapshot: compared once after its clusters, where `export.versions = "major"` asks for them.

The same documents and near-duplicate settings give the same file, so a later snapshot over them takes it over.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corpus.app.project import Project
from corpus.app.reduced import Scratch, reduced
from corpus.app.snapshot import Snapshot, cluster_key
from corpus.filter.settings import DedupSettings
from corpus.filter.versions import write_versions
from corpus.observe.runlog import Reporter
from corpus.store.commits import stage_key

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
    out = snapshot.folder / FILE

    def make(parts: Sequence[Path], folder: Path) -> dict[str, int]:
        major = compare(project, snapshot, parts[0], folder)
        report("versions", major=major)
        return {"major": major}

    reduced(project, STAGE, versions_key(snapshot), [out], scratch, make)
    return out


def compare(project: Project, snapshot: Snapshot, out: Path, scratch: Path) -> int:
    """Write the file; returns how many older versions are major."""
    documents, signatures = (project.files.all_local(snapshot.family(family)) for family in ("documents", "signatures"))
    settings = DedupSettings.model_validate(snapshot.facts["settings"]["dedup"] | {"memory": project.config.dedup.memory})
    return write_versions(documents, signatures, settings, out, scratch=scratch)
