"""One segment, its index and its family files without what was taken down: made by a worker, put in place by the supervisor.

Everything new is made beside the old; one create-only step record names old digest → new digest of every file and the
commit records that speak of them from now on; then files are replaced, one by one; then the records. After any kill a
repeat finds the step record and brings each file and record to what it says.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corpus.app.index_file import STAGE as INDEX
from corpus.app.project import Project
from corpus.app.segments import STAGE as SEGMENT
from corpus.app.takedown_files import AGAIN, Measured, Records, covered_records, covered_rows, skipped_among, without
from corpus.app.takedown_open import STEP
from corpus.app.takedown_targets import Targets
from corpus.errors import NonDeterministicStage, StoreError
from corpus.store.cdxj import index_lines, parse
from corpus.store.commits import CommitRecord, Commits, file_sha256, stage_key
from corpus.store.files import Files
from corpus.store.local_objects import sealed
from corpus.store.warc_members import replaced

PART = ".part-takedown-"
DAMAGED = "damaged"
"""A count of a step record: 1 where the archive is damaged, and was left so apart from what was taken down."""


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """`number`: of this apply. `record`, `measured`, `index`: commit records of the segment, its measurement, its index."""

    files: Files
    number: int
    record: CommitRecord
    measured: CommitRecord | None
    index: CommitRecord | None
    targets: Targets
    evidence: frozenset[str]
    poisoned: tuple[str, ...] = ()
    again: bool = False
    """Everything is made again: a step record says what must come out."""
    damaged: bool = False
    """That step is of an archive that is damaged."""

    @property
    def file(self) -> str:
        return next(iter(self.record.outputs))

    @property
    def key(self) -> str:
        return f"{self.number:08d}.{self.record.key}"


@dataclass(frozen=True, slots=True)
class Look:
    """What orders cover of a segment, counted; `faults` are places that cannot be read."""

    file: str
    records: int
    captures: int
    documents: int
    lines: int
    total: int
    indexed: int
    faults: tuple[tuple[int, str], ...]

    @property
    def found(self) -> bool:
        return bool(self.records or self.documents or self.lines)


def look(task: SegmentTask) -> Look:
    """In a worker: what is covered now."""
    records = covered_records(task.files.local(task.file), task.targets, task.evidence)
    faults = tuple((fault.offset, fault.reason) for fault in records.faults)
    lines, indexed = _covered_lines(task, records.kept)
    documents = _covered_documents(task)
    return Look(task.file, len(records.gone), records.captures, documents, lines, records.total, indexed, faults)


def make(task: SegmentTask) -> CommitRecord | None:
    """In a worker: make the files anew beside the old ones. Returns what a step record must say; None when nothing is covered."""
    path = task.files.local(task.file)
    records = covered_records(path, task.targets, task.evidence)
    if task.damaged or (not task.again and file_sha256(path) != task.record.outputs[task.file]):
        return make_damaged(task, records)
    digests: dict[str, str] = {}
    lines = 0
    if records.gone or task.again or (task.index is not None and _covered_lines(task, records.kept)[0]):
        part = part_of(task.files.root / task.file)
        digests[task.file] = replaced(path, part, records.gone, task.targets.version)
        if task.index is not None:
            told = index_lines(part, task.file)
            lines = len(told)
            digests |= _put(task.files.root, next(iter(task.index.outputs)), b"".join(told))
    measured = None
    if task.measured is not None and (records.gone or task.again or _covered_documents(task)):
        measured = _measure(task, records)
        for family, data in measured.files.items():
            digests |= _put(task.files.root, _families(task.measured)[family], data)
    return _step(task, records, measured, digests, lines) if digests else None


def make_damaged(task: SegmentTask, records: Records) -> CommitRecord | None:
    """The same for an archive that is not what was recorded. What can be read of the orders goes, every other byte stays; the
    archive's own record stays too, so that its damage is found by every later look and a copy of it is known to be whole."""
    digests: dict[str, str] = {}
    said = []
    if records.gone:
        part = part_of(task.files.root / task.file)
        replaced(task.files.local(task.file), part, records.gone, task.targets.version)
    if task.index is not None:
        name = next(iter(task.index.outputs))
        left = _lines_left(task, records)
        digests |= _put(task.files.root, name, b"".join(left))
        index = replace(task.index, outputs={**task.index.outputs, **digests}, rows={**task.index.rows, "captures": len(left)})
        said.append({"record": value_of(index), "before": index.key})
    measured = _measure(task, records) if task.measured is not None else None
    if measured is not None and task.measured is not None:
        for family, data in measured.files.items():
            digests |= _put(task.files.root, _families(task.measured)[family], data)
        after = _map_record(task, task.record.outputs[task.file], measured, 0, 0, digests, damaged=True)
        said.append({"record": value_of(replace(after, key=task.measured.key)), "before": task.measured.key})
    before = {name: file_sha256(task.files.local(name)) for name in sorted(digests)}
    if not task.again:
        _expect(task, before)
    rows = {"records": len(records.gone), "captures": records.captures, "documents": measured.removed if measured else 0}
    info = {"number": task.number, "control": task.targets.version, "records": said}
    return CommitRecord(STEP, task.key, before, digests, {**rows, DAMAGED: 1}, info)


def _lines_left(task: SegmentTask, records: Records) -> list[bytes]:
    """Lines of the segment's index that tell of no covered capture."""
    assert task.index is not None, "only indexed segments have lines"
    left = []
    with task.files.local(next(iter(task.index.outputs))).open("rb") as file:
        for line in file:
            entry = parse(line)
            covered = entry.offset not in records.kept and task.targets.covers_found(entry.url, _dated(entry.timestamp))
            if not covered and entry.offset not in records.gone:
                left.append(line)
    return left


def part_of(path: Path) -> Path:
    """Where the new content of a file waits: under a name that no glob for segments or families finds."""
    return path.with_name(f"{PART}{path.name}.new")


def install(project: Project, step: CommitRecord, made: CommitRecord | None) -> None:
    """Bring files and records to what a step says. `made`: the step as it was made just now, None when every file is there."""
    if (
        made is not None
        and made.outputs != step.outputs
        and any(made.outputs.get(name) != digest for name, digest in step.outputs.items())
    ):
        raise NonDeterministicStage("the takedown made other bytes than before it was interrupted", step.key, "run corpus verify")
    if made is not None and made.rows.get(DAMAGED):
        _redact(project, step)
    for name, wanted in sorted(step.outputs.items()):
        path = project.layout.absolute(name)
        part = part_of(path)
        if part.is_file() and file_sha256(path) != wanted:
            with sealed(path) as new:
                part.replace(new)
        part.unlink(missing_ok=True)
        project.files.replace(name, wanted)
    supersede(project, step)


def _redact(project: Project, step: CommitRecord) -> None:
    """Put a damaged archive without what was taken down in its place. It comes before the files that the step speaks of."""
    segment = step.key.split(".", 1)[1]
    record = project.commits.get(SEGMENT, segment)
    assert record is not None, "its record stays"
    path = project.layout.absolute(next(iter(record.outputs)))
    part = part_of(path)
    if part.is_file():
        with sealed(path) as new:
            part.replace(new)


def announce(project: Project, step: CommitRecord) -> None:
    """Write a step down, before anything it speaks of is replaced (so nothing is published here)."""
    Commits(project.objects).put(step)


def installed(project: Project, step: CommitRecord) -> bool:
    """Whether every file is what a step says."""
    return all(file_sha256(project.files.local(name)) == digest for name, digest in step.outputs.items())


def supersede(project: Project, step: CommitRecord) -> None:
    """Put the commit records that a step names in the place of those they replace; safe to repeat."""
    commits = project.commits
    for value in step.info["records"]:
        record = CommitRecord(**value["record"])
        if commits.get(record.stage, record.key) != record:
            commits.drop(record.stage, record.key)
            commits.put(record)
        if value["before"] != record.key:
            commits.drop(record.stage, value["before"])


def value_of(record: CommitRecord) -> dict[str, Any]:
    """A commit record as a JSON value."""
    return {
        "stage": record.stage, "key": record.key, "inputs": dict(record.inputs), "outputs": dict(record.outputs),
        "rows": dict(record.rows), "info": dict(record.info),
    }  # fmt: skip


def _put(root: Path, name: str, data: bytes) -> dict[str, str]:
    part_of(root / name).write_bytes(data)
    return {name: hashlib.sha256(data).hexdigest()}


def _covered_documents(task: SegmentTask) -> int:
    if task.measured is None:
        return 0
    path = task.files.local(_families(task.measured)["documents"])
    return int(covered_rows(path, task.targets).sum()) if path.is_file() else 0


def _covered_lines(task: SegmentTask, kept: set[int]) -> tuple[int, int]:
    """Lines of the segment's index that tell of a covered capture (evidence aside), and all lines."""
    if task.index is None:
        return 0, 0
    lines = covered = 0
    with task.files.local(next(iter(task.index.outputs))).open("rb") as file:
        for line in file:
            lines += 1
            entry = parse(line)
            covered += entry.offset not in kept and task.targets.covers_found(entry.url, _dated(entry.timestamp))
    return covered, lines


def _dated(stamp: str) -> str:
    return f"{stamp[:4]}-{stamp[4:6]}-{stamp[6:8]}T{stamp[8:10]}:{stamp[10:12]}:{stamp[12:14]}Z"


def _measure(task: SegmentTask, records: Records) -> Measured:
    assert task.measured is not None, "only measured segments have families"
    paths = {family: task.files.local(name) for family, name in _families(task.measured).items()}
    lists = task.measured.info.get("url_list_hits", {})
    return without(paths, task.targets, {*records.gone, *records.blank}, lists)


def _step(task: SegmentTask, records: Records, measured: Measured | None, digests: dict[str, str], lines: int) -> CommitRecord:
    """Old and new digest of every file that changes, and the records that are true from then on."""
    gone = records.captures
    before = {name: file_sha256(task.files.local(name)) for name in sorted(digests)}
    if not task.again:
        _expect(task, before)
    segment = CommitRecord(
        task.record.stage, task.record.key, task.record.inputs, {**task.record.outputs, **_of(digests, task.record.outputs)},
        {**task.record.rows, "pages": task.record.rows["pages"] - gone}, task.record.info,
    )  # fmt: skip
    digest = segment.outputs[task.file]
    said = [{"record": value_of(segment), "before": task.record.key}]
    if task.index is not None and task.file in digests:
        outputs = _of(digests, task.index.outputs)
        index = CommitRecord(INDEX, task.index.key, {task.file: digest}, outputs, {"captures": lines})
        said.append({"record": value_of(index), "before": task.index.key})
    if measured is not None and task.measured is not None:
        skipped = skipped_among(task.files.local(task.file), records)
        said.append(
            {"record": value_of(_map_record(task, digest, measured, gone, skipped, digests)), "before": task.measured.key}
        )
    rows = {"records": len(records.gone), "captures": gone, "documents": measured.removed if measured else 0}
    return CommitRecord(
        STEP, task.key, before, digests, rows, {"number": task.number, "control": task.targets.version, "records": said}
    )


def _expect(task: SegmentTask, before: dict[str, str]) -> None:
    """Nothing is rewritten that is not what was recorded: a takedown must not bless damage."""
    known = {
        name: digest for record in (task.record, task.measured, task.index) if record for name, digest in record.outputs.items()
    }
    for name, digest in before.items():
        if known[name] != digest:
            raise StoreError("its bytes are not those that were recorded, so nothing was rewritten", name, AGAIN)


def _map_record(
    task: SegmentTask, digest: str, measured: Measured, gone: int, skipped: int, digests: dict[str, str], *, damaged: bool = False
) -> CommitRecord:
    """The record that measuring the segment as it is now would leave."""
    old = task.measured
    assert old is not None, "only measured segments have a map record"
    settings = {name: value for name, value in old.inputs.items() if name != task.file}
    key = stage_key(
        segment=old.info["segment"], digest=digest, origin=old.info["origin"], poisoned=sorted(task.poisoned), **settings
    )
    counted = sum(old.rows[name] for name in ("documents", "skipped", "repeats"))
    earlier = 0 if damaged else task.record.rows["pages"] - counted  # documents that went while the archive was damaged
    rows = dict(measured.rows) | {
        "skipped": old.rows["skipped"] - skipped,
        "repeats": old.rows["repeats"] - (0 if damaged else gone - skipped - measured.removed - earlier),
    }
    info = {**old.info, **({"url_list_hits": measured.hits} if "url_list_hits" in old.info else {})}
    return CommitRecord(old.stage, key, {task.file: digest, **settings}, {**old.outputs, **_of(digests, old.outputs)}, rows, info)


def _of(digests: dict[str, str], outputs: Any) -> dict[str, str]:
    return {name: digest for name, digest in digests.items() if name in outputs}


def _families(record: CommitRecord) -> dict[str, str]:
    return {name.split("/", 1)[0]: name for name in record.outputs}
