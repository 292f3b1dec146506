"""Segments under construction: captures in, sealed files out.

`append` only encodes and buffers, so the fetch loop never waits for a disk; `sync` writes the buffer and makes it
durable with one fdatasync; only then may a capture be acknowledged. An open segment is called `….warc.gz.open`; sealing
links it to its final name, create-only. A full disk leaves the segment as it was before the write, and the next
`sync` tries again; a failed fdatasync ends the writer, because nobody can know what reached the platter.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from corpus.crawl.ports import Original, Request
from corpus.errors import AlreadyExists, NoRoom, StoreError
from corpus.model import CaptureRef, Response
from corpus.store.disk import NO_ROOM, Disk, LocalDisk
from corpus.store.layout import OPEN_SUFFIX, Layout
from corpus.store.warc_groups import Group, encode_group, encode_linked, encode_revisit, encode_warcinfo

Lines = tuple[bytes, ...]
_LINES_MAX = 32_768
"""Captures of a segment up to which its index is kept in memory (10 MB); the index of a larger one is made from its file."""
_FULL = "free some space, then run the same command again: nothing acknowledged is lost"


@dataclass(frozen=True, slots=True)
class SealedSegment:
    """A finished segment. `name` is relative to the store's root; `sha256` is of the whole file; `pages` counts captures. `index`: its
    lines, sorted, as `cdxj.index_lines` would give them; None where the file must be read for that."""

    name: str
    sha256: str
    bytes: int
    pages: int
    records: int
    index: Lines | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class _Segment:
    """One file under construction. `size` counts what was handed in, `written` what the file system has taken."""

    path: Path
    name: str
    opened_at: float
    size: int = 0
    written: int = 0
    pages: int = 0
    records: int = 0
    chunks: list[bytes] = field(default_factory=list)
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)
    fd: int | None = None
    lines: list[bytes] | None = field(default_factory=list)

    @property
    def open_path(self) -> Path:
        return self.path.with_name(self.path.name + OPEN_SUFFIX)

    def add(self, data: bytes, records: int, pages: int) -> None:
        self.chunks.append(data)
        self.size += len(data)
        self.records += records
        self.pages += pages

    def index(self, group: Group, offset: int) -> None:
        """Note what an index says of the capture whose record lies there; nothing at all once that is not known of one."""
        if group.told is None or self.lines is None or len(self.lines) >= _LINES_MAX:
            self.lines = None
        else:
            self.lines += [told.line(group.length, offset, self.name) for told in group.told]


class SegmentWriter:
    """`CaptureSink` over a folder of segments; one writer per worker and folder.

    Thread rules: `append*` on one thread, `sync` and `rotate` on another; the lock between them is held for
    microseconds. `name(seq)` names the segments (it holds worker and epoch, so names never repeat); `clock` gives
    epoch seconds, only for the age of a segment and the date of its warcinfo record. `notes` stand in every metadata record.
    """

    def __init__(
        self, layout: Layout, folder: Path, name: Callable[[int], str], *, clock: Callable[[], float],
        segment_bytes: int = 128 * 2**20, segment_age_s: float = 600.0, warcinfo: Mapping[str, str] | None = None,
        notes: Mapping[str, str] | None = None, identity: str = "", disk: Disk | None = None,
    ) -> None:  # fmt: skip
        self._layout, self._folder, self._name, self._clock = layout, folder, name, clock
        self._segment_bytes, self._segment_age_s = segment_bytes, segment_age_s
        self._warcinfo, self._notes, self._identity = dict(warcinfo or {}), dict(notes or {}), identity
        self._disk: Disk = disk or LocalDisk()
        self._append_lock, self._io_lock = threading.Lock(), threading.Lock()
        self._seq = 0
        self._current: _Segment | None = None
        self._retiring: list[_Segment] = []
        self._sealed: list[SealedSegment] = []
        self._broken = ""

    # the loop's side

    def append(
        self, url: str, request: Request, response: Response, *, depth: int, via: str, metadata: dict[str, str], payload: bytes = b""
    ) -> tuple[CaptureRef, int]:  # fmt: skip
        """A whole capture. Returns the place of its response record and the end of its last member."""
        notes = metadata | self._notes
        return self.append_group(
            encode_group(url, request, response, depth=depth, via=via, metadata=notes, identity=self._identity, payload=payload)
        )

    def append_linked(
        self, url: str, request: Request, response: Response, *, depth: int, via: str, metadata: dict[str, str], original: str, distance: int
    ) -> tuple[CaptureRef, int]:  # fmt: skip
        """A near copy without its HTML; the ref is its metadata record."""
        group = encode_linked(
            url,
            request,
            response,
            depth=depth,
            via=via,
            metadata=metadata | self._notes,
            original=original,
            distance=distance,
            identity=self._identity,
        )
        return self.append_group(group)

    def append_revisit(
        self, url: str, request: Request, response: Response, *, depth: int, via: str, metadata: dict[str, str], original: Original
    ) -> tuple[CaptureRef, int]:  # fmt: skip
        """A 304 or an identical payload; the ref is the revisit record."""
        group = encode_revisit(
            url, request, response, depth=depth, via=via, metadata=metadata | self._notes, original=original, identity=self._identity
        )  # fmt: skip
        return self.append_group(group)

    def append_group(self, group: Group) -> tuple[CaptureRef, int]:
        """A capture that was encoded elsewhere (in a thread, for a large body), with this writer's `identity`."""
        with self._append_lock:
            self._refuse_if_broken()
            if self._current is None:
                self._current = self._open_segment()
            segment = self._current
            offset = segment.size + group.offset
            segment.add(group.data, group.records, 1)
            segment.index(group, offset)
            return CaptureRef(segment.name, offset, group.length), segment.size

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def pending_bytes(self) -> int:
        """Encoded bytes not yet handed to the disk."""
        with self._append_lock:
            return sum(segment.size - segment.written for segment in self._unsealed())

    # the store thread's side

    @property
    def due(self) -> bool:
        with self._append_lock:
            return bool(self._retiring) or (self._current is not None and self._is_due(self._current))

    def sync(self) -> None:
        """Everything appended before the call is durable when it returns. StoreError when the disk is full or failing."""
        with self._io_lock:
            self._refuse_if_broken()
            with self._append_lock:
                segments = self._unsealed()
            for segment in segments:
                self._flush(segment)

    def rotate(self, *, force: bool = False) -> list[str]:
        """Seal the open segment when it is big or old enough, or when forced; returns the names sealed."""
        with self._io_lock:
            self._refuse_if_broken()
            with self._append_lock:
                current = self._current
                if current is not None and (force or self._is_due(current)):
                    self._retiring.append(current)
                    self._current = None
            names = []
            while self._retiring:
                sealed = self._seal(self._retiring[0])
                self._retiring.pop(0)
                self._sealed.append(sealed)
                names.append(sealed.name)
            return names

    def take_sealed(self) -> list[SealedSegment]:
        """What has been sealed since the last call, in order."""
        with self._io_lock:
            sealed, self._sealed = self._sealed, []
            return sealed

    def close(self) -> None:
        """Let go of the open files as they are (a drain rotates first); what was not synced is lost, as in a crash."""
        with self._io_lock, self._append_lock:
            for segment in self._unsealed():
                if segment.fd is not None:
                    self._disk.close(segment.fd)
                    segment.fd = None
            self._broken = "the writer is closed"

    def _unsealed(self) -> list[_Segment]:
        return [*self._retiring, *([self._current] if self._current else [])]

    def _open_segment(self) -> _Segment:
        name = self._name(self._seq)
        self._seq += 1
        path = self._folder / f"{name}.warc.gz"
        segment = _Segment(path, self._layout.relative(path), self._clock())
        segment.add(encode_warcinfo(name, self._warcinfo, segment.opened_at, self._identity), 1, 0)
        return segment

    def _is_due(self, segment: _Segment) -> bool:
        return segment.size >= self._segment_bytes or self._clock() - segment.opened_at >= self._segment_age_s

    def _flush(self, segment: _Segment) -> None:
        """Write what is buffered, then one fdatasync (and the folder's, for a new file)."""
        with self._append_lock:
            chunks, segment.chunks = segment.chunks, []
        if not chunks:
            return
        data = b"".join(chunks)
        try:
            is_new = segment.fd is None
            fd = self._ensure_open(segment)
            self._disk.write(fd, data)
        except OSError as error:
            self._undo(segment, data)
            raise _refused("the disk refused", error, segment.name) from error
        segment.written += len(data)
        segment.digest.update(data)
        try:
            self._disk.sync(fd)
            if is_new:
                self._disk.sync_folder(self._folder)
        except OSError as error:
            self._broken = f"the disk failed to sync: {error.strerror or error}"
            raise StoreError(self._broken, segment.name, "check the disk, then run the same command again") from error

    def _ensure_open(self, segment: _Segment) -> int:
        if segment.fd is None:
            self._disk.make_folder(self._folder)
            segment.fd = self._disk.create(segment.open_path)
        return segment.fd

    def _undo(self, segment: _Segment, data: bytes) -> None:
        """Put the bytes back in front of the buffer and cut the file to what it held before."""
        with self._append_lock:
            segment.chunks.insert(0, data)
        if segment.fd is None:
            return
        try:
            self._disk.truncate(segment.fd, segment.written)
            if segment.written == 0:  # the folder entry is not durable yet: begin the file again next time
                self._disk.close(segment.fd)
                segment.fd = None
                self._disk.unlink(segment.open_path)
        except OSError as error:
            self._broken = f"the disk neither takes nor cuts the segment: {error.strerror or error}"

    def _seal(self, segment: _Segment) -> SealedSegment:
        self._flush(segment)
        try:
            if segment.fd is not None:
                self._disk.close(segment.fd)
                segment.fd = None
            seal_file(self._disk, segment.open_path, segment.path)
        except OSError as error:
            raise _refused("the disk refused to seal", error, segment.name) from error
        index = None if segment.lines is None else tuple(sorted(segment.lines))
        return SealedSegment(segment.name, segment.digest.hexdigest(), segment.written, segment.pages, segment.records, index)

    def _refuse_if_broken(self) -> None:
        if self._broken:
            raise StoreError(self._broken, str(self._folder), "run the same command again: what was acknowledged is kept")


def _refused(what: str, error: OSError, where: str) -> StoreError:
    kind = NoRoom if error.errno in NO_ROOM else StoreError
    return kind(f"{what}: {error.strerror or error}", where, _FULL)


def seal_file(disk: Disk, open_path: Path, path: Path) -> None:
    """Give a durable open file its final name, create-only; safe to repeat after a crash between the two steps.

    Raises AlreadyExists when another file has the name, OSError when the disk fails.
    """
    try:
        disk.link(open_path, path)
    except FileExistsError:
        if not open_path.samefile(path):
            raise AlreadyExists("another segment has this name already", str(path)) from None
    disk.sync_folder(path.parent)  # the new name before the old one goes
    with contextlib.suppress(FileNotFoundError):  # a repeated seal
        disk.unlink(open_path)
    disk.sync_folder(path.parent)
