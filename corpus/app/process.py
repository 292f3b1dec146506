"""The map stage over all sealed segments: those without a record under today's key are measured, the rest is done.

The key holds the segment's digest, the stage version, every option and the models' digests; a changed option measures
again and replaces the family files. A record that kills its worker is found, written down by digest, and costs one page:
`stuck` where its parser did it or took too much CPU, `poison` otherwise.
Shares of ranks need no coordination: a segment's record is create-only and its bytes follow from its key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from corpus.app.idle import warn_idle_lists
from corpus.app.index import index_segments
from corpus.app.map_task import STAGE, MapTask, map_key
from corpus.app.project import Project
from corpus.app.segments import SegmentInfo, page_segments, segment_key
from corpus.app.stuck import PAGE_CPU_S, record_stuck, stuck_bodies
from corpus.app.takedown_open import refuse_half_done
from corpus.app.unsealed import note_unsealed, nothing_to_process
from corpus.engine.page_watch import page_of
from corpus.engine.share import WHOLE, Share
from corpus.engine.tasks import Crashed, Done, Engine, Task
from corpus.errors import WorkerDied
from corpus.filter.map import MapSettings
from corpus.filter.sources import Sources, open_sources
from corpus.observe.runlog import Reporter
from corpus.store.commits import CommitRecord
from corpus.store.locks import stage_lock

POISON = "poison"
POISON_MAX = 64
"""Records of one segment, or stuck ones of one run, that may crash a worker before the run stops: past that the fault is ours,
not the pages'."""


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """Counts of one share (usually the whole); `unmeasured`: segments of all shares that are still without a record."""

    segments: int
    measured: int
    documents: int
    poisoned: int
    unmeasured: int


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


def map_records(project: Project) -> dict[str, CommitRecord]:
    """The record of each measured segment, by `crawl/segment`."""
    return {f"{r.info['crawl_id']}/{r.info['segment']}": r for r in project.commits.list(STAGE)}


class Follower(Protocol):
    """Hears which segments are measured, by the keys of their commit records."""

    def waiting(self, keys: Sequence[str]) -> None: ...

    def measured(self, key: str, documents: int, texts: int) -> None: ...


def process(
    project: Project, engine: Engine, report: Reporter, share: Share = WHOLE, *, follow: Follower | None = None
) -> ProcessEnd:
    """Measure what is not measured yet, or one rank's share of it. Raises NothingDone when there is nothing to measure at all.

    Shares may be worked on at the same time, by any number of machines, and the same share twice.
    """
    segments = page_segments(project)
    if not segments:
        raise nothing_to_process(project)
    settings = map_settings(project)
    mine = [segment for segment in segments if share.mine(_place(segment))]
    with stage_lock(project.layout.locks, "process", shared=not share.whole):
        project.clean()
        refuse_half_done(project)
        index_segments(project, engine, report, share)
        have = map_records(project)
        tasks = _unmeasured(project, mine, settings, have)
        report("process", segments=len(mine), to_measure=len(tasks))
        if follow is not None:
            follow.waiting([_record_key(task.segment) for task in tasks])
        if tasks:
            open_sources(settings.sources)  # a list or model that cannot be read stops here, not in a worker
        for task in tasks:
            stale = have.get(_place(task.segment))
            if stale is not None:
                project.commits.drop(STAGE, stale.key)
        _run(project, engine, tasks, report, follow, lambda: _unmeasured(project, mine, settings, map_records(project)))
    records = map_records(project)
    if share.whole:
        warn_idle_lists(records.values(), report)
        note_unsealed(project, report)
    poisoned = poisoned_by_segment(project)
    return ProcessEnd(
        len(mine), len(tasks), sum(record.rows["documents"] for place, record in records.items() if share.mine(place)),
        sum(len(poisoned.get(segment.name, ())) for segment in mine), len(_unmeasured(project, segments, settings, records)),
    )  # fmt: skip


def _place(segment: SegmentInfo) -> str:
    return f"{segment.crawl_id}/{segment.name}"


def _record_key(segment: SegmentInfo) -> str:
    return segment_key("pages", segment.crawl_id, segment.file)


def _unmeasured(
    project: Project, segments: Sequence[SegmentInfo], settings: MapSettings, have: Mapping[str, CommitRecord]
) -> list[MapTask]:
    """A task for each segment without a record under today's key."""
    poisoned, stuck, tasks = poisoned_by_segment(project), stuck_bodies(project), []
    for segment in segments:
        bad = poisoned.get(segment.name, frozenset())
        record = have.get(_place(segment))
        own = stuck.intersection(record.info.get("stuck", ())) if record is not None else frozenset()
        key = map_key(segment, settings, bad, own)
        if record is None or record.key != key:
            note = project.layout.local / "probe" / f"{segment.crawl_id}.{segment.name}.page"
            tasks.append(MapTask(project.files, segment, key, settings, bad, stuck, str(note), PAGE_CPU_S))
    return tasks


def _run(
    project: Project,
    engine: Engine,
    tasks: Sequence[MapTask],
    report: Reporter,
    follow: Follower | None,
    due: Callable[[], list[MapTask]],
) -> None:
    """Measure; where workers died, write down which pages it was, and measure what is `due` then."""
    done = verdicts = 0
    (project.layout.local / "probe").mkdir(parents=True, exist_ok=True)
    while tasks:
        by_key = {task.key: task for task in tasks}
        crashed: list[tuple[MapTask, bool]] = []
        for outcome in engine.run("corpus.app.map_task:measure", [Task(key, task, (task.note,)) for key, task in by_key.items()]):
            match outcome:
                case Done(key=key, value=record):
                    project.commits.put(record)
                    done += 1
                    if follow is not None:
                        follow.measured(
                            _record_key(by_key[key].segment), int(record.rows["documents"]), int(record.rows["signals"])
                        )
                    report("progress", measured=done, of=max(done, len(tasks)))
                case Crashed(key=key, overran=overran):
                    crashed.append((by_key[key], overran))
        for task, overran in crashed:
            verdicts += _settle(project, engine, task, report, overran, verdicts)
        tasks = due() if crashed else []


def _settle(project: Project, engine: Engine, task: MapTask, report: Reporter, overran: bool, verdicts: int) -> bool:
    """Find the page that ended the worker and write its outcome down; True where it is `stuck`, for every segment of the corpus."""
    note, probed = Path(task.note), ""
    if not overran:
        probed = _probed(project, engine, task)
        note = Path(f"{task.note}.probe")
    digest = page_of(note)
    note.unlink(missing_ok=True)
    if not (digest or probed) or len(task.poisoned) >= POISON_MAX or verdicts >= POISON_MAX:
        hint = "the worker's memory or the machine is to blame, not a page: try engine.workers = 1"
        raise WorkerDied("measuring it kills the worker, and no single record does", task.segment.file, hint)
    if digest:
        again = record_stuck(project, map_records(project).values(), digest, task.settings.profile)
        report("stuck", segment=task.segment.name, content_sha256=digest, other_segments=again)
        return True
    report("poison", segment=task.segment.name, content_sha256=probed)
    info = {"segment": task.segment.name, "content_sha256": probed}
    project.commits.put(CommitRecord(POISON, key=f"{task.segment.name}.{probed[:32]}", info=info))
    return False


def _probed(project: Project, engine: Engine, task: MapTask) -> str:
    """Digest of the record that kills the worker when records are measured one by one; "" where none does."""
    probe = project.layout.local / "probe" / f"{task.segment.name}.txt"
    probe.unlink(missing_ok=True)
    probed = replace(task, note=f"{task.note}.probe", probe=str(probe))
    outcome = next(iter(engine.run("corpus.app.map_task:probe", [Task(task.key, probed, (probed.note, probed.probe))])))
    digest = probe.read_text("ascii").strip() if probe.exists() else ""
    probe.unlink(missing_ok=True)
    return "" if isinstance(outcome, Done) else digest


def poisoned_by_segment(project: Project) -> dict[str, frozenset[str]]:
    """Content digests that killed a worker, by segment."""
    found: dict[str, set[str]] = {}
    for record in project.commits.list(POISON):
        found.setdefault(str(record.info["segment"]), set()).add(str(record.info["content_sha256"]))
    return {segment: frozenset(digests) for segment, digests in found.items()}
