"""The index stage: a CDXJ file for every sealed segment of pages or policy files, under `cdxj/`, so that others can replay.

Runs after a crawl, an ingest and before measuring; a segment whose record is there is done (a fetch process writes most of them
with their segments, `app.index_file`). An index can always be made again from its segment, and never says more than the segment does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from corpus.app.index_file import INDEXED, STAGE, write_index
from corpus.app.project import Project
from corpus.app.segments import STAGE as SEGMENT
from corpus.engine.local import InlineEngine
from corpus.engine.share import WHOLE, Share
from corpus.engine.tasks import Crashed, Done, Engine, Task
from corpus.errors import WorkerDied
from corpus.observe.runlog import Reporter
from corpus.store.cdxj import Entry, find, index_lines
from corpus.store.commits import CommitRecord
from corpus.store.files import Files

_INLINE_BYTES = 32 * 2**20
"""Segments smaller than this together are indexed here: starting a worker would cost more."""


@dataclass(frozen=True, slots=True)
class IndexTask:
    """One segment: the key of its record, its file and digest."""

    files: Files
    key: str
    segment: str
    digest: str


def index_segments(project: Project, engine: Engine, report: Reporter, share: Share = WHOLE) -> int:
    """Index what has no index yet, or one rank's share of it; returns how many segments that were."""
    tasks, size = _missing(project, share)
    if not tasks:
        return 0
    report("index", segments=len(tasks))
    chosen = engine if size > _INLINE_BYTES else InlineEngine()
    for outcome in chosen.run("corpus.app.index:index_segment", [Task(task.key, task) for task in tasks]):
        match outcome:
            case Done(value=record):
                project.commits.put(record)
            case Crashed(key=key, detail=detail):
                raise WorkerDied(f"indexing it kills the worker: {detail}", key, "run corpus verify on its segment")
    return len(tasks)


def _missing(project: Project, share: Share) -> tuple[list[IndexTask], int]:
    """Tasks for the segments without an index record, and the bytes of their segments."""
    have = set(project.commits.keys(STAGE))
    if have >= {key for key in project.commits.keys(SEGMENT) if key.partition(".")[0] in INDEXED}:
        return [], 0
    tasks, size = [], 0
    for record in project.commits.list(SEGMENT):
        ((file, digest),) = record.outputs.items()
        if record.key not in have and record.info["kind"] in INDEXED and share.mine(record.key):
            tasks.append(IndexTask(project.files, record.key, file, digest))
            size += int(record.info["bytes"])
    return tasks, size


def index_segment(task: IndexTask) -> CommitRecord:
    """In a worker: write one index. Returns the record, not yet put."""
    lines = index_lines(task.files.local(task.segment, task.digest), task.segment)
    return write_index(task.files, task.key, task.segment, task.digest, lines)


def captures(project: Project, url: str) -> Iterable[Entry]:
    """Every capture of an address in the archive, oldest first. Raises StoreError for a damaged index."""
    files = [(name, digest) for record in project.commits.list(STAGE) for name, digest in record.outputs.items()]
    return find([project.file(name, digest) for name, digest in files], url)
