"""A look at everything a folder keeps: what of it orders cover. The same look before a takedown and, as its proof, after it.

Every record of every archive, every row of every family and release, every index line, every frontier row, and whatever
writers left behind. What else there is holds no page's text: logs, evidence, decisions and clusters (ids and URLs only).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from corpus.app.index_file import STAGE as INDEX
from corpus.app.process import map_records, poisoned_by_segment
from corpus.app.project import Project
from corpus.app.release import manifest_text, release_records
from corpus.app.segments import STAGE as SEGMENT
from corpus.app.segments import segment_of
from corpus.app.takedown_frontier import excluded_rows
from corpus.app.takedown_release import covered_shards
from corpus.app.takedown_segment import Look, SegmentTask
from corpus.app.takedown_targets import Targets
from corpus.engine.local import InlineEngine
from corpus.engine.tasks import Crashed, Done, Engine, Task
from corpus.errors import WorkerDied
from corpus.store.writers import lives

_FILES = "consent/files/"
_INLINE_BYTES = 32 * 2**20
"""Segments smaller than this together are looked through here: starting a worker would cost more."""
_QUERY = "duckdb_temp"
"""Spills of queries: they take no lock, so one that is there right after a tidy is of a query that is running."""
_WRITING_S = 60.0
_WRITER = re.compile(r"\.part-(\d+)-")
PLACES = ("warc_records", "captures", "documents", "release_rows", "index_lines", "frontier_rows", "leftovers")


@dataclass(slots=True)
class Scan:
    """Covered things by place, how many things were looked at, segments that hold some, places that cannot be read."""

    found: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PLACES, 0))
    seen: dict[str, int] = field(default_factory=lambda: {"segments": 0, "warc_records": 0, "release_rows": 0, "index_lines": 0})
    touched: set[str] = field(default_factory=set)
    faults: list[tuple[str, int, str]] = field(default_factory=list)
    live_rows: int = 0
    """Rows of the releases that are not withdrawn."""

    @property
    def remaining(self) -> int:
        return sum(self.found.values()) - self.found["captures"]  # a capture is counted by its records


def scan(project: Project, engine: Engine, targets: Targets, causes: dict[str, str]) -> Scan:
    """Look at everything. Files are read whole where they hold text, and by four columns where those tell."""
    told = Scan()
    tasks = segment_tasks(project, 0, targets)
    for item in run(project, engine, "look", tasks):
        assert isinstance(item, Look), "the task returns what it saw"
        told.seen["segments"] += 1
        told.seen["warc_records"] += item.total
        told.found["warc_records"] += item.records
        told.found["captures"] += item.captures
        told.found["documents"] += item.documents
        told.found["index_lines"] += item.lines
        told.seen["index_lines"] += item.indexed
        told.faults += [(item.file, *fault) for fault in item.faults]
        if item.found:
            told.touched.add(item.file)
    _releases(project, targets, told)
    told.found["frontier_rows"] = excluded_rows(project, targets, causes)
    told.found["leftovers"] = sum(not path.name.startswith(_QUERY) for path in leftovers(project))
    return told


def segment_tasks(project: Project, number: int, targets: Targets) -> list[SegmentTask]:
    """One task a recorded segment: pages, policy files, sealed pages."""
    evidence = frozenset(name.removeprefix(_FILES) for name in project.objects.list(_FILES))
    measured = {next(n for n in r.inputs if n.startswith("warc/")): r for r in map_records(project).values()}
    index = {next(iter(r.inputs)): r for r in project.commits.list(INDEX)}
    poisoned = poisoned_by_segment(project)
    tasks = []
    for record in project.commits.list(SEGMENT):
        (file,) = record.outputs
        bad = tuple(sorted(poisoned.get(segment_of(file), ())))
        kept = evidence if record.info["kind"] == "policy" else frozenset()
        tasks.append(SegmentTask(project.files, number, record, measured.get(file), index.get(file), targets, kept, bad))
    return tasks


def run(project: Project, engine: Engine, what: str, tasks: list[SegmentTask]) -> Iterator[object]:
    """Outcomes of a task function of `takedown_segment`; in this process where that is quicker."""
    size = sum(int(task.record.info["bytes"]) for task in tasks)
    chosen = engine if size > _INLINE_BYTES else InlineEngine()
    for outcome in chosen.run(f"corpus.app.takedown_segment:{what}", [Task(task.key, task) for task in tasks]):
        match outcome:
            case Done(value=value):
                yield value
            case Crashed(key=key, detail=detail):
                raise WorkerDied(f"a takedown kills its worker: {detail}", key, "run corpus verify on its segment")


def _releases(project: Project, targets: Targets, told: Scan) -> None:
    for record in release_records(project):
        text = manifest_text(project, record.key)
        if text:
            facts = json.loads(text)
            told.live_rows += 0 if facts["withdrawn"] else int(facts["rows"])
            told.seen["release_rows"] += sum(shard["rows"] for shard in facts["shards"])
            told.found["release_rows"] += sum(
                int(mask.sum()) for mask in covered_shards(project, record.key, facts, targets).values()
            )


def leftovers(project: Project) -> Iterator[Path]:
    """What writers and queries that are gone may have left of a text: temporary files, spills, half-built releases."""
    layout = project.layout
    for folder in (layout.spill, layout.local / "probe"):
        yield from sorted(folder.iterdir()) if folder.is_dir() else ()
    yield from sorted(path for path in layout.releases.glob(".*.part") if path.is_dir())
    roots = {layout.root} | ({layout.local} if not layout.local.is_relative_to(layout.root) else set())
    for root in sorted(roots):
        yield from sorted(path for path in root.rglob(".part-*") if path.is_file() and not _is_written(path))


def _is_written(path: Path) -> bool:
    """Whether another process is writing this temporary file this very minute: an order that is given right now, say."""
    match = _WRITER.match(path.name)
    if match is None or int(match[1]) == os.getpid():
        return False
    with suppress(OSError):  # it is gone by now
        return time.time() - path.stat().st_mtime < _WRITING_S and lives(int(match[1]))
    return False


def tidy(project: Project) -> int:
    """Remove the leftovers; returns how many there were. The caller holds every stage's lock."""
    found = list(leftovers(project))
    for path in found:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)  # a query that is running puts its spill there again
        else:
            path.unlink(missing_ok=True)
    return len(found)


def forget_catalog(project: Project) -> None:
    """Remove the catalog, which knows the ids of releases that are withdrawn: the next export, or `verify --rebuild`, makes it again."""
    for suffix in ("", "-wal", "-shm"):
        project.layout.catalog.with_name(project.layout.catalog.name + suffix).unlink(missing_ok=True)
