"""A segment of ours under audit: every record read, every digest recomputed, every page located. Streaming; never raises
for what is in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus.model import Capture, url_id
from corpus.store.warc_capture import Limits, capture_of
from corpus.store.warc_ingest import digest_faults
from corpus.store.warc_read import join
from corpus.store.warc_source import open_source
from corpus.store.warc_stream import Fault, RawRecord, read_records
from corpus.store.warc_tombstone import is_tombstone

_LIMITS = Limits(max_body=64 * 2**20, max_ratio=1_000_000)
"""What is stored was inside the limits of its day, which may have been wider than today's."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a capture lies, and whose it is. `url_id` is of its canonical URL."""

    offset: int
    length: int
    url_id: str


@dataclass(slots=True)
class SegmentCount:
    """Filled while a segment is read: records of every kind, captures (one metadata record each, tombstones aside), bytes up to the last record's end."""

    records: int = 0
    captures: int = 0
    end: int = 0


def check_segment(path: Path, count: SegmentCount) -> Iterator[Place | Fault]:
    """Places of captures and faults of a segment, in file order. Raises OSError when the file cannot be opened."""
    with open_source(path) as source:
        for item in join(_audited(read_records(source), count)):
            result = item if isinstance(item, Fault) else capture_of(item[0], item[1], path.name, _LIMITS)
            match result:
                case Fault():
                    yield result
                case Capture():
                    yield Place(result.ref.offset, result.ref.length, url_id(result.url))


def _audited(items: Iterator[RawRecord | Fault], count: SegmentCount) -> Iterator[RawRecord | Fault]:
    for item in items:
        if isinstance(item, RawRecord):
            count.records += 1
            count.captures += item.kind == "metadata" and not is_tombstone(item)
            count.end = max(count.end, item.offset + item.length)
            if item.length == 0:
                yield Fault(item.offset, "shares its gzip member with another record")
            elif not item.cut and not item.missing:
                yield from (Fault(item.offset, reason) for reason in digest_faults(item))
        yield item
