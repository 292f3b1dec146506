"""Archive bytes as a stream that knows where it is: gzip members, plain files, lz4 and zstd frames.

A source fills `buf` piece by piece and tells the offset in the file of the next byte not yet consumed, so that every
record and every fault has an address. A broken gzip member is a `BrokenInput` with its offset; reading can go on at the
next member. Memory is bounded by one piece plus what the reader leaves in `buf`.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Protocol

try:
    from zlib_ng import zlib_ng as _fast
except ImportError:  # a platform without a wheel
    import zlib as _fast  # type: ignore[no-redef]

_zlib: Any = _fast
_READ = 256 * 1024
_FEED = 16 * 1024
"""Compressed bytes offered to one member at a time: what a short member leaves over is copied back."""
_PIECE = 1 << 20
_FRAME_READ = 4096
"""Small, because the frame that a reader names is the one at the end of what was read."""
_MAGIC = b"\x1f\x8b\x08"


class BrokenInput(Exception):
    """The bytes cannot be decompressed from this member on. Never leaves the readers."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(offset, reason)
        self.offset, self.reason = offset, reason


class Source(Protocol):
    """`buf` holds decoded bytes not yet consumed; consumers delete from its front."""

    buf: bytearray
    splits: bool
    """Whether units are found exactly, so that a record alone in one has a place that can be opened."""

    def pull(self) -> bool:
        """Add at least one byte to `buf`; False at the end of the file. Raises BrokenInput."""
        ...

    def mark(self) -> int:
        """Offset in the file of the next unconsumed byte; inside a compressed unit, of the unit's start."""
        ...

    def at_start(self) -> bool:
        """Whether the next unconsumed byte is the first of a compressed unit (always, in a plain file)."""
        ...

    def refill(self) -> bool:
        """Like `pull`, but only bytes of the unit (in a plain file: of the file) that the consumed ones belong to."""
        ...

    def next_unit(self, after: int) -> bool:
        """Drop everything and stand at the first unit that begins behind the offset; False when there is none."""
        ...

    def close(self) -> None: ...


class PlainSource:
    """An uncompressed file."""

    splits = True

    def __init__(self, file: BinaryIO, start: int = 0) -> None:
        self.buf = bytearray()
        self._file, self._at = file, start
        file.seek(start)

    def pull(self) -> bool:
        piece = self._file.read(_READ)
        self.buf += piece
        self._at += len(piece)
        return bool(piece)

    def mark(self) -> int:
        return self._at - len(self.buf)

    def at_start(self) -> bool:
        return True

    def refill(self) -> bool:
        return self.pull()

    def next_unit(self, after: int) -> bool:
        return False

    def close(self) -> None:
        self._file.close()


class GzipSource:
    """A file of gzip members. `_out` counts decoded bytes; `_starts` maps counts to the members that begin there."""

    splits = True

    def __init__(self, file: BinaryIO, start: int = 0) -> None:
        self.buf = bytearray()
        self._file = file
        self._seek(start)

    def pull(self) -> bool:
        while True:
            if self._stream is None and not self._begin_member():
                return False
            if self._advance():
                return True

    def mark(self) -> int:
        if not self.buf and self._stream is None:
            return self._next_at()
        return self._member()[1]

    def at_start(self) -> bool:
        return (not self.buf and self._stream is None) or self._member()[0] == self._out - len(self.buf)

    def refill(self) -> bool:
        while self._stream is not None:
            if self._advance():
                return True
        return False

    def next_unit(self, after: int) -> bool:
        tail, at = b"", after + 1
        self._seek(at)
        while data := self._file.read(_READ):
            window = tail + data
            if (hit := window.find(_MAGIC)) >= 0:
                self._seek(at - len(tail) + hit)
                return True
            tail, at = window[-2:], at + len(data)
        self._seek(at)
        return False

    def close(self) -> None:
        self._file.close()

    def _seek(self, offset: int) -> None:
        self.buf.clear()
        self._stream: Any = None
        self._out = 0
        self._starts: deque[tuple[int, int]] = deque()
        self._in, self._pos, self._in_end = b"", 0, offset
        self._file.seek(offset)

    def _next_at(self) -> int:
        """Offset in the file of the next compressed byte to be fed."""
        return self._in_end - (len(self._in) - self._pos)

    def _member(self) -> tuple[int, int]:
        at = self._out - len(self.buf)
        while len(self._starts) > 1 and self._starts[1][0] <= at:
            self._starts.popleft()
        return self._starts[0]

    def _fill(self, want: int) -> int:
        """Have at least `want` compressed bytes at hand if the file has them; returns how many there are."""
        while (have := len(self._in) - self._pos) < want:
            data = self._file.read(_READ)
            if not data:
                return have
            self._in, self._pos = self._in[self._pos :] + data, 0
            self._in_end += len(data)
        return have

    def _begin_member(self) -> bool:
        have = self._fill(len(_MAGIC))
        while have and self._in[self._pos] == 0:  # padding behind the last member
            self._pos += 1
            have = self._fill(len(_MAGIC))
        if not have:
            return False
        if not self.buf:
            self._starts.clear()
        self._starts.append((self._out, self._next_at()))
        if not self._in.startswith(_MAGIC, self._pos):
            raise BrokenInput(self._next_at(), "not a gzip member")
        self._stream = _zlib.decompressobj(31)
        return True

    def _advance(self) -> bool:
        """Feed the current member once; True when bytes came out."""
        if not self._fill(1):
            raise BrokenInput(self._starts[-1][1], "the file ends inside a gzip member")
        feed = self._in[self._pos : self._pos + _FEED]
        try:
            out = self._stream.decompress(feed, _PIECE)
        except _zlib.error as error:
            raise BrokenInput(self._starts[-1][1], f"damaged gzip member: {' '.join(str(error).split())[:100]}") from None
        ended = self._stream.eof
        self._pos += len(feed) - len(self._stream.unused_data if ended else self._stream.unconsumed_tail)
        if ended:
            self._stream = None
        self.buf += out
        self._out += len(out)
        return bool(out)


class FrameSource:
    """lz4 or zstd through FastWARC's readers. Offsets are the frame starts that the reader tells; damage ends the file."""

    splits = False

    def __init__(self, path: Path, kind: str) -> None:
        from fastwarc import stream_io  # only foreign archives need it; fetch processes must not load it

        reader = {"lz4": stream_io.Lz4Reader, "zstd": stream_io.ZstdReader}[kind]
        self.buf = bytearray()
        self._reader: Any = reader(str(path), fsspec_args=False)
        self._kind, self._start = kind, 0

    def pull(self) -> bool:
        try:
            piece = self._reader.read(_FRAME_READ)
            start = self._reader.frame_start_position()
        except (OSError, ValueError) as error:
            raise BrokenInput(self._start, f"damaged {self._kind} frame: {' '.join(str(error).split())[:100]}") from None
        self._start = self._start if start is None else start
        self.buf += piece
        return bool(piece)

    def mark(self) -> int:
        return self._start

    def at_start(self) -> bool:
        return False

    def refill(self) -> bool:
        return self.pull()

    def next_unit(self, after: int) -> bool:
        return False

    def close(self) -> None:
        self._reader.close()


@contextlib.contextmanager
def open_source(path: Path, start: int = 0) -> Iterator[Source]:
    """An archive opened by its first bytes, not by its name: gzip, lz4, zstd, or plain. `start` is an offset in the file."""
    with path.open("rb") as file, source_of(file, path, start) as source:
        yield source


@contextlib.contextmanager
def source_of(file: BinaryIO, path: Path, start: int = 0) -> Iterator[Source]:
    """The same of a file that is open already; `path` is opened again only for lz4 and zstd, which foreign archives use."""
    head = file.read(4)
    if kind := {b"\x04\x22\x4d\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}.get(head):
        source: Source = FrameSource(path, kind)
    else:
        source = GzipSource(file, start) if head.startswith(_MAGIC[:2]) else PlainSource(file, start)
    try:
        yield source
    finally:
        source.close()
