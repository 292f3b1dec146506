"""Segments that a crash left open: cut to what was acknowledged, then sealed.

Whatever lies behind the last acknowledged byte was never counted and will be fetched again; whatever lies before it is
durable, and if it is not there or does not end where a gzip member ends, the disk has lost something: that is an error, never a cut.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from corpus.errors import StoreError
from corpus.store.disk import Disk, LocalDisk
from corpus.store.layout import OPEN_SUFFIX, Layout
from corpus.store.warc_source import open_source
from corpus.store.warc_stream import Fault, read_records
from corpus.store.warc_tombstone import is_tombstone
from corpus.store.warc_write import SealedSegment, seal_file

_CHUNK = 1 << 20


def recover_open(
    path_open: Path, acked_end: int, *, layout: Layout | None = None, disk: Disk | None = None
) -> SealedSegment | None:
    """Cut `….warc.gz.open` to its last acknowledged byte and seal it; None (and no file) when nothing was acknowledged.

    A seal that a crash cut short is finished as it stands. The returned name is relative to the layout's root (without
    a layout: the bare file name). Raises StoreError when acknowledged bytes are missing or damaged.
    """
    disk = disk or LocalDisk()
    path = path_open.with_name(path_open.name.removesuffix(OPEN_SUFFIX))
    try:
        if not (path.exists() and path.samefile(path_open)):
            if acked_end == 0:
                disk.unlink(path_open)
                disk.sync_folder(path_open.parent)
                return None
            _cut(disk, path_open, acked_end)
        seal_file(disk, path_open, path)
    except OSError as error:
        raise StoreError(
            f"the disk refused: {error.strerror or error}", str(path_open), "free some space, then run again"
        ) from error
    name = layout.relative(path) if layout else path.name
    return describe(path, name)


def describe(path: Path, name: str) -> SealedSegment:
    """Count and digest a whole segment. Raises StoreError at the first fault in it."""
    counted = _count(path, path.stat().st_size)
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return SealedSegment(name, digest.hexdigest(), counted.end, counted.pages, counted.records)


@dataclass(frozen=True, slots=True)
class _Counted:
    end: int
    records: int
    pages: int


def _cut(disk: Disk, path: Path, end: int) -> None:
    size = path.stat().st_size
    if size < end:
        raise StoreError(
            f"{end} bytes of it were acknowledged and only {size} are there",
            str(path),
            "check the disk, then run corpus verify --repair",
        )
    _count(path, end)
    fd = disk.open(path)
    try:
        if size > end:
            disk.truncate(fd, end)
        disk.sync(fd)
    finally:
        disk.close(fd)


def _count(path: Path, end: int) -> _Counted:
    """Walk members up to `end`, which must be where one ends."""
    records = pages = at = 0
    with open_source(path) as source:
        for item in read_records(source):
            if isinstance(item, Fault) or item.length == 0:
                reason = item.reason if isinstance(item, Fault) else "several records share one member"
                raise StoreError(
                    f"acknowledged bytes are damaged at {item.offset}: {reason}", str(path), "run corpus verify --repair"
                )
            records += 1
            pages += item.kind == "metadata" and not is_tombstone(item)  # exactly one per capture
            at = item.offset + item.length
            if at >= end:
                break
    if at != end:
        raise StoreError(
            f"its acknowledged end {end} is not the end of a record ({at} is)", str(path), "run corpus verify --repair"
        )
    return _Counted(at, records, pages)
