"""Lines that a host repeats, of a snapshot: measured once after its clusters, where `filter.host_line_pages` asks for them.

The same documents, clusters and setting give the same file, so a later snapshot over them takes it over.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from corpus.app.project import Project
from corpus.app.snapshot import Snapshot, cluster_key
from corpus.errors import NonDeterministicStage, StoreError
from corpus.filter.host_lines import VERSION, HostLinesSummary, write_host_lines
from corpus.observe.runlog import Reporter
from corpus.store.commits import CommitRecord, file_sha256, stage_key
from corpus.store.local_objects import sealed

STAGE = "host-lines"
FILE = "host_lines.parquet"

Scratch = Callable[[Project], AbstractContextManager[Path]]


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
    pages = pages_of(snapshot)
    if pages is None:
        return None
    out, key = snapshot.folder / FILE, lines_key(snapshot)
    record = project.commits.get(STAGE, key)
    if record is not None and taken_over(project, record, out):
        return out
    with scratch(project) as folder, sealed(out) as part:
        summary = measure(project, snapshot, clusters, part, folder)
    report("host_lines", texts=summary.texts, lines=summary.shared, touched=summary.touched, chars=summary.chars)
    digest = file_sha256(out)
    if record is None:
        rows = {"texts": summary.texts, "lines": summary.shared, "touched": summary.touched}
        project.commits.put(CommitRecord(STAGE, key, outputs={project.layout.relative(out): digest}, rows=rows))
    elif digest not in record.outputs.values():
        raise NonDeterministicStage("the same documents gave other host lines", str(out), "report it, with both files")
    return out


def measure(project: Project, snapshot: Snapshot, clusters: Path, out: Path, scratch: Path) -> HostLinesSummary:
    """Write the file of a snapshot that asks for it."""
    pages = pages_of(snapshot)
    assert pages is not None, "asked for host lines where none are wanted"
    files = {
        path: str(digest)
        for facts in snapshot.segments
        for path, digest in facts["outputs"].items()
        if path.startswith("documents/")
    }
    config = project.config
    return write_host_lines(
        project.files.all_local(files), clusters, pages, out,
        scratch=scratch, memory=config.dedup.memory, threads=config.engine.workers or 2,
    )  # fmt: skip


def taken_over(project: Project, record: CommitRecord, out: Path) -> bool:
    """Whether a record's one output is whole; then it stands at `out` as well."""
    ((path, digest),) = record.outputs.items()
    with suppress(StoreError):  # it is gone or damaged: made again
        source = project.file(path, digest)
        if source.is_file() and file_sha256(source) == digest:
            if source != out:
                with sealed(out) as part:
                    shutil.copyfile(source, part)
                project.files.publish({project.layout.relative(out): digest})
            return True
    return False
