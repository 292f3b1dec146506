"""What a worker does with one segment: measure it, or find the record that ends the worker. Loads nothing but what that takes,
because every worker pays for it: no configuration, no database, no other stage.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from corpus.app.segments import SegmentInfo
from corpus.app.stuck import stuck_input
from corpus.engine.memory import GivenBack
from corpus.engine.page_watch import PageWatch
from corpus.filter.map import MapSettings, measure_segment
from corpus.filter.sources import Sources, list_hits
from corpus.filter.tables import SegmentTables, write_tables
from corpus.store.commits import CommitRecord, stage_key
from corpus.store.files import Files
from corpus.store.local_objects import sealed
from corpus.store.scratch import ScratchFile
from corpus.store.warc_read import read_captures

STAGE = "map"


@dataclass(frozen=True, slots=True)
class MapTask:
    """One segment to measure. `stuck`: of the whole corpus. `note` and `probe` name files that tell which page is being parsed, and
    which record is being worked on."""

    files: Files
    segment: SegmentInfo
    key: str
    settings: MapSettings
    poisoned: frozenset[str]
    stuck: frozenset[str]
    note: str
    page_cpu_s: float
    probe: str = ""


def map_key(segment: SegmentInfo, settings: MapSettings, poisoned: frozenset[str], stuck: frozenset[str] = frozenset()) -> str:
    """Key of one segment's measurement: everything its bytes depend on. `stuck`: those of its own bodies."""
    inputs = {**settings.inputs(), **stuck_input(stuck)}
    return stage_key(segment=segment.name, digest=segment.digest, origin=segment.origin, poisoned=sorted(poisoned), **inputs)


def measure(task: MapTask) -> CommitRecord:
    """In a worker: measure one segment and write its family files. Returns the record, not yet put."""
    segment = task.segment
    captures = read_captures(task.files.local(segment.file, segment.digest), segment.file)
    with ScratchFile(Path(task.note).parent) as scratch:
        with PageWatch(Path(task.note), task.page_cpu_s) as watch:
            tables = measure_segment(
                captures,
                segment=segment.name,
                crawl_id=segment.crawl_id,
                settings=task.settings,
                origin=segment.origin,
                poisoned=task.poisoned,
                stuck=task.stuck,
                watch=watch.page,
                scratch=scratch,
                parsed=GivenBack(),
            )
        written = write_tables(tables, lambda name: sealed(task.files.root / name))
        hits = _hits(task.settings.sources, tables)
    stuck = tables.stuck
    return CommitRecord(
        STAGE,
        key=map_key(segment, task.settings, task.poisoned, stuck),
        inputs={segment.file: segment.digest, **task.settings.inputs(), **stuck_input(stuck)},
        outputs={w.path: w.sha256 for w in written},
        rows={w.path.split("/", 1)[0]: w.rows for w in written} | {"skipped": tables.skipped, "repeats": tables.repeats},
        info={
            "segment": segment.name,
            "crawl_id": segment.crawl_id,
            "origin": segment.origin,
            **hits,
            **({"stuck": sorted(stuck)} if stuck else {}),
        },
    )


def _hits(sources: Sources, tables: SegmentTables) -> dict[str, dict[str, int]]:
    if not sources.url_lists:
        return {}
    hits = Counter[str]()
    for group in tables.groups("signals"):
        hits.update(list_hits(sources, group))
    return {"url_list_hits": dict(hits)}


def probe(task: MapTask) -> None:
    """In a worker: measure record by record, writing down each digest before it is touched."""
    note = Path(task.probe)
    with PageWatch(Path(task.note), task.page_cpu_s) as watch:
        for capture in read_captures(task.files.local(task.segment.file, task.segment.digest), task.segment.file):
            note.write_text(capture.content_sha256, "ascii")
            measure_segment(
                [capture],
                segment="probe",
                crawl_id="probe",
                settings=task.settings,
                poisoned=task.poisoned,
                stuck=task.stuck,
                watch=watch.page,
            )
    note.unlink(missing_ok=True)
