"""Content-decoding of bodies: gzip, deflate, br and zstd, nested up to three deep.

Promise: whatever the bytes, the work and the memory are bounded by the caller's cap (plus one piece per coding and
the coder's own window), and a stream that breaks yields what was decoded before it broke, with the reason. Never
raises for a bad body. The fetch uses it on the way in and the archive readers on the way back, so both see the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import brotli
import zstandard

try:
    from zlib_ng import zlib_ng as _fast
except ImportError:  # a platform without a wheel: slower, same bytes out
    import zlib as _fast  # type: ignore[no-redef]

zlib: Any = _fast
MAX_CODINGS = 3
"""More nested codings than this is nobody's page."""
RATIO_FLOOR = 64 * 1024
"""`max_ratio` is judged only past this many decoded bytes: a short page of blanks compresses a thousandfold honestly."""
_IN = 16 * 1024
_OUT = 64 * 1024
_GZIP_MEMBERS = 1024
"""Members of one gzip body; a server that joins blocks needs some dozens, a body of empty members wants our time."""
_ZSTD_IN = 16
"""Bytes fed to zstd at once: its object has no output limit, and four bytes of input can mean a block of 128 kB."""
_ZSTD_WINDOW = 8 * 2**20
"""RFC 9659: a sender may not ask for more."""
_UNSUPPORTED = frozenset({"compress", "x-compress", "aes128gcm", "exi", "pack200-gzip", "dcb", "dcz"})


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded body. `truncated`: the cap cut it. `fault`: why decoding stopped early, empty when it did not."""

    body: bytes
    truncated: bool = False
    fault: str = ""


class _BadStreamError(Exception):
    """A coding's stream is broken; the message is one phrase. Never leaves this module."""


def content_codings(headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The values of every Content-Encoding header, in the order they were applied, lower case, `identity` left out."""
    found = (value for name, value in headers if name.lower() == "content-encoding")
    return _tokens(found)


def decode_body(encodings: Sequence[str], body: bytes, max_bytes: int, max_ratio: int) -> Decoded:
    """Undo content codings.

    `encodings` are tokens or raw header values in the order they were applied; `max_bytes` bounds the result,
    `max_ratio` bounds result : body (past `RATIO_FLOOR`). A name nobody registered is read as "not encoded", as
    browsers do; so is a body that claims gzip and does not begin like it. A registered coding that we cannot undo is a fault.
    """
    tokens = _tokens(encodings)
    if len(tokens) > MAX_CODINGS:
        return Decoded(b"", fault=f"{len(tokens)} nested content codings")
    if refused := [token for token in tokens if token in _UNSUPPORTED]:
        return Decoded(b"", fault=f"content coding {refused[0]!r} is not supported")
    stages = [_STAGES[token] for token in reversed(tokens) if token in _STAGES]
    if not stages or not body:
        return Decoded(body[:max_bytes], truncated=len(body) > max_bytes)
    pieces: Iterator[bytes] = (body[at : at + _IN] for at in range(0, len(body), _IN))
    for stage in stages:
        pieces = stage(pieces)
    return _collect(pieces, max_bytes, max(max_ratio * len(body), RATIO_FLOOR))


def _collect(pieces: Iterator[bytes], max_bytes: int, max_by_ratio: int) -> Decoded:
    """Gather pieces up to the lower limit. A BytesIO hands out its buffer without a second copy of the body."""
    out, size, limit = io.BytesIO(), 0, min(max_bytes, max_by_ratio)
    fault = ""
    try:
        for piece in pieces:
            out.write(piece[: limit - size] if size + len(piece) > limit else piece)
            size += len(piece)
            if size > limit:
                break
    except _BadStreamError as bad:
        fault = str(bad)
    if size > max_by_ratio:
        fault = "expands past max_ratio"
    return Decoded(out.getvalue(), size > limit, fault)


def _tokens(values: Iterable[str]) -> tuple[str, ...]:
    parts = (part.strip().lower() for value in values for part in value.split(","))
    return tuple(part for part in parts if part not in {"", "identity"})


class _Source:
    """Pieces of input that can be looked at and pushed back; flat, however many members a body has."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._front = pieces, b""

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._next():
            yield piece

    def _next(self) -> bytes:
        front, self._front = self._front, b""
        return front or next((piece for piece in self._pieces if piece), b"")

    def push(self, data: bytes) -> None:
        self._front = data + self._front

    def peek(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end."""
        head = b""
        while len(head) < size and (piece := self._next()):
            head += piece
        self._front = head
        return head[:size]


def _gunzip(pieces: Iterator[bytes]) -> Iterator[bytes]:
    source = _Source(pieces)
    if source.peek(2) != b"\x1f\x8b":
        yield from source  # mislabelled: archives and servers keep the header after they decoded the body
        return
    for _ in range(_GZIP_MEMBERS):
        yield from _inflate(source, 31, "gzip")
        if source.peek(2) != b"\x1f\x8b":
            return  # the end, or padding that every reader ignores
    raise _BadStreamError("gzip: too many members")


def _inflate_any(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """`deflate` is zlib by the letter and raw by half the servers; the first two bytes tell."""
    source = _Source(pieces)
    head = source.peek(2)
    wrapped = len(head) == 2 and head[0] & 0x0F == 8 and int.from_bytes(head, "big") % 31 == 0
    yield from _inflate(source, 15 if wrapped else -15, "deflate")


def _inflate(source: _Source, wbits: int, name: str) -> Iterator[bytes]:
    """One zlib stream; what lies behind it is pushed back."""
    stream = zlib.decompressobj(wbits)
    try:
        for piece in source:
            data = piece
            while data and not stream.eof:
                yield stream.decompress(data, _OUT)
                data = stream.unconsumed_tail
            if stream.eof:
                source.push(stream.unused_data)
                return
        while not stream.eof:  # output still held back by the limit
            out = stream.decompress(b"", _OUT)
            if not out:
                raise _BadStreamError(f"{name}: the stream ends early")
            yield out
    except zlib.error as error:
        raise _BadStreamError(f"{name}: {_phrase(error)}") from None


def _unbrotli(pieces: Iterator[bytes]) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    try:
        for piece in pieces:
            data = piece
            while True:
                yield stream.process(data, output_buffer_limit=_OUT)
                if stream.is_finished():
                    return
                if stream.can_accept_more_data():
                    break
                data = b""
        while out := stream.process(b"", output_buffer_limit=_OUT):  # held back by the limit
            yield out
        if stream.is_finished():
            return
    except brotli.error as error:
        raise _BadStreamError(f"br: {_phrase(error)}") from None
    raise _BadStreamError("br: the stream ends early")


def _unzstd(pieces: Iterator[bytes]) -> Iterator[bytes]:
    coder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    stream, begun = coder.decompressobj(), False
    try:
        for piece in pieces:
            for at in range(0, len(piece), _ZSTD_IN):
                data = piece[at : at + _ZSTD_IN]
                while data:
                    begun = True
                    yield stream.decompress(data)
                    data = b""
                    if stream.eof:
                        data, stream, begun = stream.unused_data, coder.decompressobj(), False
    except zstandard.ZstdError as error:
        raise _BadStreamError(f"zstd: {_phrase(error)}") from None
    if begun:
        raise _BadStreamError("zstd: the stream ends early")


def _phrase(error: Exception) -> str:
    return " ".join(str(error).split())[:120]


_STAGES: dict[str, Callable[[Iterator[bytes]], Iterator[bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate_any,
    "x-deflate": _inflate_any,
    "br": _unbrotli,
    "zstd": _unzstd,
}
