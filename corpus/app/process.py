"""The map stage over all sealed segments: those without a record under today's key are measured, the rest is done.

The key holds the segment's digest, the stage version, every option and the models' digests; a changed option measures
again and replaces the family files. A record that kills its worker is found, written down by digest, and costs one page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corpus.app.idle import warn_idle_lists
from corpus.app.index import index_segments
from corpus.app.project import Project
from corpus.app.segments import SegmentInfo, page_segments
from corpus.app.takedown_open import refuse_half_done
from corpus.engine.tasks import Crashed, Done, Engine, Task
from corpus.errors import NothingDone, WorkerDied
from corpus.filter.map import MapSettings, measure_segment
from corpus.filter.sources import Sources, list_hits, open_sources
from corpus.filter.tables import SegmentTables, write_tables
from corpus.observe.runlog import Reporter
from corpus.store.commits import CommitRecord, stage_key
from corpus.store.files import Files
from corpus.store.local_objects import sealed
from corpus.store.locks import stage_lock
from corpus.store.warc_read import read_captures

STAGE = "map"
POISON = "poison"
POISON_MAX = 64
"""Records of one segment that may crash a worker before the run stops: past that the fault is ours, not the pages'."""


@dataclass(frozen=True, slots=True)
class MapTask:
    """One segment to measure. `probe` names a file that tells which record is being worked on."""

    files: Files
    segment: SegmentInfo
    key: str
    settings: MapSettings
    poisoned: frozenset[str]
    probe: str = ""


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    segments: int
    measured: int
    documents: int
    poisoned: int


def map_settings(project: Project) -> MapSettings:
    """What the map stage's output depends on, from the configuration."""
    config = project.config
    model = config.extract.language_model
    return MapSettings(
        profile=config.extract.profile,
        language_model=str(config.base / model) if model else None,
        robots_token=config.crawl.robots_token,
        optout=config.optout,
        sources=Sources.of(config.filter, config.base),
    )


def map_key(segment: SegmentInfo, settings: MapSettings, poisoned: frozenset[str]) -> str:
    """Key of one segment's measurement: everything its bytes depend on."""
    return stage_key(
        segment=segment.name, digest=segment.digest, origin=segment.origin, poisoned=sorted(poisoned), **settings.inputs()
    )


def map_records(project: Project) -> dict[str, CommitRecord]:
    """The record of each measured segment, by `crawl/segment`."""
    return {f"{r.info['crawl_id']}/{r.info['segment']}": r for r in project.commits.list(STAGE)}


def process(project: Project, engine: Engine, report: Reporter) -> ProcessEnd:
    """Measure what is not measured yet. Raises NothingDone when there is nothing to measure at all."""
    segments = page_segments(project)
    if not segments:
        raise NothingDone(
            "no page has been stored yet, so there is nothing to process", hint="run corpus crawl or corpus ingest first"
        )
    settings = map_settings(project)
    with stage_lock(project.layout.locks, "process"):
        refuse_half_done(project)
        index_segments(project, engine, report)
        poisoned = poisoned_by_segment(project)
        have = map_records(project)
        tasks = []
        for segment in segments:
            bad = poisoned.get(segment.name, frozenset())
            key = map_key(segment, settings, bad)
            record = have.get(f"{segment.crawl_id}/{segment.name}")
            if record is None or record.key != key:
                tasks.append(MapTask(project.files, segment, key, settings, bad))
        report("process", segments=len(segments), to_measure=len(tasks))
        if tasks:
            open_sources(settings.sources)  # a list or model that cannot be read stops here, not in a worker
        for task in tasks:
            stale = have.get(f"{task.segment.crawl_id}/{task.segment.name}")
            if stale is not None:
                project.commits.drop(STAGE, stale.key)
        _run(project, engine, tasks, report)
    records = map_records(project).values()
    warn_idle_lists(records, report)
    return ProcessEnd(
        len(segments), len(tasks), sum(r.rows["documents"] for r in records), sum(map(len, poisoned_by_segment(project).values()))
    )


def _run(project: Project, engine: Engine, tasks: Sequence[MapTask], report: Reporter) -> None:
    by_key = {task.key: task for task in tasks}
    done = 0
    while by_key:
        crashed: list[MapTask] = []
        for outcome in engine.run("corpus.app.process:measure", [Task(key, task) for key, task in by_key.items()]):
            match outcome:
                case Done(value=record):
                    project.commits.put(record)
                    done += 1
                    report("progress", measured=done, of=len(tasks))
                case Crashed(key=key):
                    crashed.append(by_key[key])
        by_key = {task.key: task for task in (_without_poison(project, engine, task, report) for task in crashed)}


def _without_poison(project: Project, engine: Engine, task: MapTask, report: Reporter) -> MapTask:
    """Find the record that kills the worker by asking which one it was at; it is poison from now on."""
    probe = project.layout.local / "probe" / f"{task.segment.name}.txt"
    probe.parent.mkdir(parents=True, exist_ok=True)
    probe.unlink(missing_ok=True)
    probed = MapTask(task.files, task.segment, task.key, task.settings, task.poisoned, str(probe))
    outcome = next(iter(engine.run("corpus.app.process:probe", [Task(task.key, probed)])))
    digest = probe.read_text("ascii").strip() if probe.exists() else ""
    if isinstance(outcome, Done) or not digest or len(task.poisoned) >= POISON_MAX:
        hint = "the worker's memory or the machine is to blame, not a page: try engine.workers = 1"
        raise WorkerDied("measuring it kills the worker, and no single record does", task.segment.file, hint)
    report("poison", segment=task.segment.name, content_sha256=digest)
    info = {"segment": task.segment.name, "content_sha256": digest}
    project.commits.put(CommitRecord(POISON, key=f"{task.segment.name}.{digest[:32]}", info=info))
    bad = task.poisoned | {digest}
    return MapTask(task.files, task.segment, map_key(task.segment, task.settings, bad), task.settings, bad)


def poisoned_by_segment(project: Project) -> dict[str, frozenset[str]]:
    """Content digests that killed a worker, by segment."""
    found: dict[str, set[str]] = {}
    for record in project.commits.list(POISON):
        found.setdefault(str(record.info["segment"]), set()).add(str(record.info["content_sha256"]))
    return {segment: frozenset(digests) for segment, digests in found.items()}


def measure(task: MapTask) -> CommitRecord:
    """In a worker: measure one segment and write its family files. Returns the record, not yet put."""
    segment = task.segment
    captures = read_captures(task.files.local(segment.file, segment.digest), segment.file)
    tables = measure_segment(
        captures,
        segment=segment.name,
        crawl_id=segment.crawl_id,
        settings=task.settings,
        origin=segment.origin,
        poisoned=task.poisoned,
    )

    def put(name: str, data: bytes) -> None:
        path = task.files.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with sealed(path) as part:
            part.write_bytes(data)

    written = write_tables(tables, put)
    return CommitRecord(
        STAGE,
        key=task.key,
        inputs={segment.file: segment.digest, **task.settings.inputs()},
        outputs={w.path: w.sha256 for w in written},
        rows={w.path.split("/", 1)[0]: w.rows for w in written} | {"skipped": tables.skipped, "repeats": tables.repeats},
        info={
            "segment": segment.name,
            "crawl_id": segment.crawl_id,
            "origin": segment.origin,
            **_hits(task.settings.sources, tables),
        },
    )


def _hits(sources: Sources, tables: SegmentTables) -> dict[str, dict[str, int]]:
    return {"url_list_hits": list_hits(sources, tables.signals)} if sources.url_lists else {}


def probe(task: MapTask) -> None:
    """In a worker: measure record by record, writing down each digest before it is touched."""
    note = Path(task.probe)
    for capture in read_captures(task.files.local(task.segment.file, task.segment.digest), task.segment.file):
        note.write_text(capture.content_sha256, "ascii")
        measure_segment([capture], segment="probe", crawl_id="probe", settings=task.settings, poisoned=task.poisoned)
    note.unlink(missing_ok=True)
