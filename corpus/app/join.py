"""The band join of a snapshot as tasks: sorted keys of groups of segments, then the pairs of each band and key range.

Every task leaves one file under `joins/<key>/` and one create-only record, so Ray's nodes, ranks of a batch system and one process
may do any of them, twice or at the same time, and find what others have done. They are gone when the clusters are made. Never
judges a pair, and never makes the clusters: that is one process's, from the pairs of all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise

from corpus.app.project import Project
from corpus.app.snapshot import Snapshot, cluster_key
from corpus.engine.share import WHOLE, Share
from corpus.engine.tasks import Crashed, Done, Engine, Task
from corpus.errors import WorkerDied
from corpus.filter.bands import Pairs
from corpus.filter.join_files import join_range, ranges_for, read_pairs, sort_keys
from corpus.filter.numbering import Numbering, part
from corpus.filter.settings import DedupSettings
from corpus.observe.runlog import Reporter
from corpus.store.commits import CommitRecord, file_sha256, stage_key
from corpus.store.files import Files, remove_folder
from corpus.store.local_objects import sealed

STAGE = "join"
FOLDER = "joins"
GROUP_ROWS = 1_000_000
"""Rows whose keys one task sorts: about 120 bytes each; never less than a segment."""
FOR_OTHERS = 4
"""Tasks of other ranks that a rank takes on at once, to look in between whether they did them after all."""


@dataclass(frozen=True, slots=True)
class KeysTask:
    """Some signatures files, one after another: rows `rows` of the numbering. `shape` is (bands, rows of a band)."""

    files: Files
    key: str
    out: str
    numbering: tuple[str, str]
    sources: tuple[tuple[str, str], ...]
    rows: tuple[int, int]
    shape: tuple[int, int]
    ranges: int


@dataclass(frozen=True, slots=True)
class RangeTask:
    """One key range of one band, from the keys of all. `shape` is (bands, ranges)."""

    files: Files
    key: str
    out: str
    sources: tuple[tuple[str, str], ...]
    band: int
    part: int
    shape: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Progress:
    """Tasks of a join: of all ranks, done by this call, and still without a record."""

    tasks: int
    done: int
    left: int


class Join:
    """The join of one snapshot. `ranges`: into how many key ranges each band is cut; absent, as memory asks for."""

    def __init__(
        self,
        project: Project,
        snapshot: Snapshot,
        settings: DedupSettings,
        engine: Engine,
        report: Reporter,
        ranges: int | None = None,
    ) -> None:
        self._project, self._settings, self._engine, self._report, self._ranges = project, settings, engine, report, ranges
        self._documents, self._signatures = snapshot.family("documents"), snapshot.family("signatures")
        self._clusters = cluster_key(snapshot)

    @property
    def begun(self) -> bool:
        """Whether somebody has numbered the documents of this snapshot to join them."""
        return self._record("numbering") is not None

    def pairs(self, numbering: Numbering) -> Iterator[Pairs]:
        """All candidate pairs; whatever task is without a record is done first. For `cluster_snapshot`."""
        tasks, progress = self._tasks(WHOLE, numbering)
        self._report("join", tasks=progress.tasks, done=progress.done)
        for task in tasks:
            record = self._project.commits.get(STAGE, task.key)
            assert record is not None, "the join has done all of its tasks"
            yield from read_pairs(self._project.file(task.out, record.outputs[task.out]))

    def share(self, share: Share) -> Progress:
        """One rank's tasks, and before them the keys of all: what other ranks have not sorted yet is sorted here."""
        return self._tasks(share, None)[1]

    # ---- how

    def _tasks(self, share: Share, numbering: Numbering | None) -> tuple[Sequence[RangeTask], Progress]:
        numbered = self._numbered(numbering)
        keys = self._keys_tasks(numbered)
        done = self._run("corpus.app.join:sorted_keys", [task for task in keys if share.mine(task.key)])
        while missing := self._missing(keys):
            done += self._run("corpus.app.join:sorted_keys", missing[: None if share.whole else FOR_OTHERS])
        ranges = self._range_tasks(keys)
        done += self._run("corpus.app.join:joined_range", [task for task in ranges if share.mine(task.key)])
        return ranges, Progress(len(keys) + len(ranges), done, len(self._missing(ranges)))

    def _numbered(self, numbering: Numbering | None) -> CommitRecord:
        """The record of the numbering, which is made where it is missing."""
        have = self._record("numbering")
        if have is not None and self._project.files.size(self._name("numbering.npy")) is not None:
            return have
        if numbering is None:
            documents = self._project.files.all_local(self._documents)
            numbering = Numbering.from_documents(documents, apart=self._settings.scope == "crawl")
        name = self._name("numbering.npy")
        path = self._project.files.root / name
        with sealed(path) as out:
            numbering.save(out)
        starts = [int(start) for start in numbering.starts]
        record = CommitRecord(
            STAGE, self._key("numbering"), outputs={name: file_sha256(path)}, rows={"rows": starts[-1]}, info={"starts": starts}
        )
        self._project.commits.put(record)
        return record

    def _keys_tasks(self, numbered: CommitRecord) -> list[KeysTask]:
        starts = [int(start) for start in numbered.info["starts"]]
        sources = list(self._signatures.items())
        ranges = self._ranges or ranges_for(starts[-1], self._settings.memory // 2)
        cuts = [0]
        for at in range(1, len(starts)):
            if at == len(starts) - 1 or starts[at + 1] - starts[cuts[-1]] > GROUP_ROWS:
                cuts.append(at)
        ((name, digest),) = numbered.outputs.items()
        return [
            KeysTask(
                self._project.files, self._key("keys", f"{first}-{last}", ranges), self._name(f"keys-{ranges}-{first:06d}.u64"), (name, digest),
                tuple(sources[first:last]), (starts[first], starts[last]), (self._settings.bands, self._settings.rows), ranges,
            )
            for first, last in pairwise(cuts)
        ]  # fmt: skip

    def _range_tasks(self, keys: Sequence[KeysTask]) -> list[RangeTask]:
        if not keys:
            return []
        records = [self._project.commits.get(STAGE, task.key) for task in keys]
        sources = tuple(next(iter(record.outputs.items())) for record in records if record is not None)
        bands, ranges = self._settings.bands, keys[0].ranges
        return [
            RangeTask(
                self._project.files, self._key("pairs", f"{band}-{at}", ranges), self._name(f"pairs-{ranges}-{band:03d}-{at:04d}.u64"),
                sources, band, at, (bands, ranges),
            )
            for band in range(bands)
            for at in range(ranges)
        ]  # fmt: skip

    def _run(self, function: str, tasks: Sequence[KeysTask | RangeTask]) -> int:
        """Do what has no record yet, and record it; returns how many that were."""
        missing = self._missing(tasks)
        for outcome in self._engine.run(function, [Task(task.key, task) for task in missing]):
            match outcome:
                case Done(value=record):
                    self._project.commits.put(record)
                case Crashed(key=key, detail=detail):
                    raise WorkerDied(
                        f"joining bands kills the worker: {detail}", key, "lower dedup.memory, or raise engine.memory"
                    )
        return len(missing)

    def _missing(self, tasks: Sequence[KeysTask | RangeTask]) -> list[KeysTask | RangeTask]:
        have = set(self._project.commits.keys(STAGE))
        missing: list[KeysTask | RangeTask] = []
        for task in tasks:
            if task.key in have and self._project.files.size(task.out) is not None:
                continue
            if task.key in have:  # somebody has cleared the folder
                self._project.commits.drop(STAGE, task.key)
            missing.append(task)
        return missing

    def _record(self, *what: str | int) -> CommitRecord | None:
        return self._project.commits.get(STAGE, self._key(*what))

    def _key(self, *what: str | int) -> str:
        return stage_key(clusters=self._clusters, what=list(what))

    def _name(self, file: str) -> str:
        return f"{FOLDER}/{self._clusters}/{file}"


def clear(project: Project) -> None:
    """Remove what joins left, of whatever snapshot. For who has made clusters and is alone."""
    for key in project.commits.keys(STAGE):
        project.commits.drop(STAGE, key)
    remove_folder(project.files, FOLDER)


def sorted_keys(task: KeysTask) -> CommitRecord:
    """In a worker: the keys of a group of segments. Returns the record, not yet put."""
    node_of, crawl = part(task.files.local(*task.numbering), *task.rows)
    path = task.files.root / task.out
    with sealed(path) as out:
        rows = sort_keys(task.files.all_local(dict(task.sources)), node_of, crawl, task.shape, task.ranges, out)
    return CommitRecord(
        STAGE, task.key, inputs=dict([task.numbering]), outputs={task.out: file_sha256(path)}, rows={"rows": rows}
    )


def joined_range(task: RangeTask) -> CommitRecord:
    """In a worker: the pairs of one range. Reads that range of the keys only, wherever they lie."""
    path = task.files.root / task.out
    with ExitStack() as stack, sealed(path) as out:
        sources = (stack.enter_context(task.files.open_far(name)) for name, _ in task.sources)
        rows = join_range(sources, task.band, task.part, task.shape, out)
    return CommitRecord(STAGE, task.key, inputs=dict(task.sources), outputs={task.out: file_sha256(path)}, rows={"rows": rows})
