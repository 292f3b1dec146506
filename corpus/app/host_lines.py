"""Lines that a host repeats, of a snapshot: measured once after its clusters, where `filter.host_line_pages` asks for them.

The same documents, clusters and setting give the same file, so a later snapshot over them takes it over.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from corpus.app.project import Project
from corpus.app.reduced import Scratch, reduced
from corpus.app.snapshot import Snapshot, cluster_key
from corpus.filter.host_lines import VERSION, HostLinesSummary, write_host_lines
from corpus.observe.runlog import Reporter
from corpus.store.commits import stage_key

STAGE = "host-lines"
FILE = "host_lines.parquet"


def pages_of(snapshot: Snapshot) -> int | None:
    """How many pages make a line a host line in this snapshot; None: it asks for none."""
    pages = snapshot.facts["settings"]["filter"].get("host_line_pages")
    return None if pages is None else int(pages)


def lines_key(snapshot: Snapshot) -> str:
    """What the file depends on."""
    return stage_key(clusters=cluster_key(snapshot), pages=pages_of(snapshot), version=VERSION)


def lines_file(project: Project, snapshot: Snapshot) -> Path | None:
    """The file of a snapshot that was released, on this disk; None where it asks for none."""
    return None if pages_of(snapshot) is None else project.file(project.layout.relative(snapshot.folder / FILE))


def host_lines(project: Project, snapshot: Snapshot, clusters: Path, scratch: Scratch, report: Reporter) -> Path | None:
    """The file of a snapshot, measured or taken over; None where the snapshot asks for none."""
    if pages_of(snapshot) is None:
        return None
    out = snapshot.folder / FILE

    def make(parts: Sequence[Path], folder: Path) -> dict[str, int]:
        summary = measure(project, snapshot, clusters, parts[0], folder)
        report("host_lines", texts=summary.texts, lines=summary.shared, touched=summary.touched, chars=summary.chars)
        return {"texts": summary.texts, "lines": summary.shared, "touched": summary.touched}

    reduced(project, STAGE, lines_key(snapshot), [out], scratch, make)
    return out


def measure(project: Project, snapshot: Snapshot, clusters: Path, out: Path, scratch: Path) -> HostLinesSummary:
    """Write the file of a snapshot that asks for it."""
    pages = pages_of(snapshot)
    assert pages is not None, "asked for host lines where none are wanted"
    config = project.config
    return write_host_lines(
        project.files.all_local(snapshot.family("documents")), clusters, pages, out,
        scratch=scratch, memory=config.dedup.memory, threads=config.engine.workers or 2,
    )  # fmt: skip
