"""Archives crawled by others become segments of ours: pages copied under their own crawl's label, origin `ingest`.

A segment's name and bytes follow from the archive's digest alone, so the same file twice adds nothing and an interrupted
ingest is simply done again. Faults are named, what is readable is kept, and one page at a time is held in memory.
The pages carry the consent of their own day: an export asks their hosts again first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from corpus.app.engines import engine_of
from corpus.app.index import index_segments
from corpus.app.ingest_files import archives, crawl_of
from corpus.app.period import crawl_label
from corpus.app.project import Project
from corpus.app.segments import STAGE as SEGMENT_STAGE
from corpus.app.segments import record_segment, segment_key
from corpus.model import Capture
from corpus.observe.runlog import Reporter
from corpus.store.commits import CommitRecord, file_sha256
from corpus.store.locks import stage_lock
from corpus.store.warc_copy import archive_name, encode_copy
from corpus.store.warc_ingest import Fault, RecordCount, ingest_captures
from corpus.store.warc_write import SealedSegment, SegmentWriter
from corpus.version import __version__

STAGE = "ingest"
ORIGIN = "ingest"
FAULTS_KEPT = 1000
"""Faults of one file that are written down one by one; further ones are only counted."""
SYNC_BYTES = 8 * 2**20
PROGRESS_PAGES = 500


@dataclass(slots=True)
class FileEnd:
    """What became of one file. `pages` were stored; `known`: it was taken in before, and nothing was added now."""

    file: str
    crawl_id: str = ""
    records: int = 0
    pages: int = 0
    revisits: int = 0
    """Records that say an address still held what an earlier record of it holds: no second page."""
    faults: list[Fault] = field(default_factory=list)
    faults_total: int = 0
    known: bool = False

    def fault(self, fault: Fault) -> None:
        self.faults_total += 1
        if len(self.faults) < FAULTS_KEPT:
            self.faults.append(fault)


def ingest(project: Project, names: Iterable[str], report: Reporter) -> list[FileEnd]:
    """Take in every archive the names stand for. Raises UsageError for names that stand for nothing, StoreError for our own disk."""
    files = archives(names)
    period = crawl_label(project.config, time.time())
    ends = []
    with stage_lock(project.layout.locks, "crawl"):  # one writer of segments at a time: a crawl would cut ours as torn
        project.clean()
        for number, path in enumerate(files, 1):
            report("ingest", file=path.name, number=number, of=len(files))
            ends.append(_file(project, path, period, report))
        index_segments(project, engine_of(project.config), report)
    return ends


def _file(project: Project, path: Path, period: str, report: Reporter) -> FileEnd:
    try:
        digest = file_sha256(path)
        record = project.commits.get(STAGE, digest[:32])
        if record is not None:
            return _told(path, record)
        crawl_id = crawl_of(path, archive_name(path), period)
    except OSError as error:
        return FileEnd(str(path), faults=[Fault(0, f"cannot be opened: {error.strerror or error}")], faults_total=1)
    folder = project.layout.warc_dir(crawl_id)
    _forget_unfinished(project, folder, digest)
    copy = _Copy(project, path, digest, folder)
    end = FileEnd(str(path), crawl_id)
    try:
        copy.run(end, report)
        sealed = copy.seal()
    finally:
        copy.close()
    for segment in sealed:
        record_segment(project, segment, kind="pages", crawl_id=crawl_id, origin=ORIGIN)
    info = {
        "file": path.name, "crawl_id": crawl_id, "faults": [[f.offset, f.reason] for f in end.faults], "faults_total": end.faults_total,
    }  # fmt: skip
    rows = {"records": end.records, "pages": end.pages, "revisits": end.revisits}
    outputs = {segment.name: segment.sha256 for segment in sealed}
    project.commits.put(CommitRecord(STAGE, digest[:32], inputs={"archive": digest}, outputs=outputs, rows=rows, info=info))
    return end


class _Copy:
    """One archive on its way into segments. Its clock is the date of the page at hand, so no byte depends on today's."""

    def __init__(self, project: Project, path: Path, digest: str, folder: Path) -> None:
        self._path, self._digest = path, digest
        self._down = project.control.tombstones()
        self._at = 0.0
        self._writer = SegmentWriter(
            project.layout, folder, lambda seq: f"{_prefix(digest)}{seq:06d}", clock=lambda: self._at,
            segment_bytes=project.config.store.segment_bytes, segment_age_s=math.inf,
            warcinfo={"software": f"corpus/{__version__}", "description": f"copied from {path.name}"}, identity=digest,
        )  # fmt: skip

    def run(self, end: FileEnd, report: Reporter) -> None:
        count = RecordCount()
        taken_down = 0
        for item in ingest_captures(self._path, count=count):
            if isinstance(item, Fault):
                end.fault(item)
            elif (order := self._down.blocks(url=item.url)) is not None and order.action == "takedown":
                taken_down += 1  # what was taken down is not taken in again
            elif item.near_original == item.url:
                end.revisits += 1
            else:
                self._put(item)
                end.pages += 1
                if end.pages % PROGRESS_PAGES == 0:
                    report("progress", file=self._path.name, pages=end.pages)
        end.records = count.records
        if taken_down:
            report("taken down", file=self._path.name, pages=taken_down)

    def _put(self, capture: Capture) -> None:
        self._at = capture.fetched_at
        self._writer.append_group(encode_copy(capture, source=self._path.name, source_digest=self._digest))
        if self._writer.pending_bytes >= SYNC_BYTES:
            self._writer.sync()
        self._writer.rotate()

    def seal(self) -> list[SealedSegment]:
        self._writer.sync()
        self._writer.rotate(force=True)
        return self._writer.take_sealed()

    def close(self) -> None:
        self._writer.close()


def _prefix(digest: str) -> str:
    return f"i{digest[:16]}-"


def _forget_unfinished(project: Project, folder: Path, digest: str) -> None:
    """Segments of this archive without its record: an ingest that was cut short. They come again, byte for byte."""
    for path in sorted(folder.glob(f"{_prefix(digest)}*.warc.gz*")):
        path.unlink()
        project.commits.drop(
            SEGMENT_STAGE, segment_key("pages", folder.name.removeprefix("crawl_id="), project.layout.relative(path))
        )


def _told(path: Path, record: CommitRecord) -> FileEnd:
    """What the first ingest of the same bytes found."""
    faults = [Fault(int(offset), str(reason)) for offset, reason in record.info["faults"]]
    return FileEnd(
        str(path), str(record.info["crawl_id"]), record.rows["records"], record.rows["pages"], record.rows["revisits"], faults,
        int(record.info["faults_total"]), known=True,
    )  # fmt: skip
