"""The members of a segment at a glance: where each record lies, what kind it is and whose, without its body; and the same
file again with some of them replaced by tombstones.

For segments of our own making: one gzip member per record. Bodies pass through the decompressor and are dropped, so a
look at a segment holds one member's head in memory.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.store.warc_capture import parse_fields
from corpus.store.warc_stream import Fault
from corpus.store.warc_tombstone import says_taken_down, tombstone

try:
    from zlib_ng import zlib_ng as _fast
except ImportError:  # a platform without a wheel
    import zlib as _fast  # type: ignore[no-redef]

_zlib: Any = _fast
_MAGIC = b"\x1f\x8b\x08"
_FIRST = 16 * 1024
_FEED = 1 << 20
_PIECE = 1 << 22
_HEAD_MAX = 64 * 1024
_FIELDS_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Member:
    """One record. `target` is its WARC-Target-URI, `fields` what a metadata record says; `removed`: it is a tombstone."""

    offset: int
    length: int
    kind: str
    target: str
    record_id: str
    date: str
    concurrent_to: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    removed: bool = False


def read_members(path: Path) -> Iterator[Member | Fault]:
    """Every member of a segment, in file order; where bytes cannot be read a fault, and on with the next member.

    Raises OSError when the file cannot be opened.
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        if not size:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            at = 0
            while at < size:
                item = _member(data, at, size)
                yield item
                if isinstance(item, Member):
                    at += item.length
                    continue
                at = data.find(_MAGIC, at + 1)
                if at < 0:
                    return


def replaced(path: Path, out: Path, gone: Mapping[int, Member], order: int) -> str:
    """Write the segment `path` to `out` with the members in `gone` (by offset) as tombstones. SHA-256 (hex) of the new file."""
    digest = hashlib.sha256()
    with path.open("rb") as source, out.open("wb") as target:

        def put(piece: bytes) -> None:
            digest.update(piece)
            target.write(piece)

        at = 0
        for offset in sorted(gone):
            _copy(source, offset - at, put)
            member = gone[offset]
            put(tombstone(member.length, member.record_id, member.date, order))
            at = offset + member.length
            source.seek(at)
        _copy(source, path.stat().st_size - at, put)
    return digest.hexdigest()


def _copy(source: Any, size: int, put: Any) -> None:
    while size > 0:
        piece = source.read(min(size, _FEED))
        if not piece:
            return
        put(piece)
        size -= len(piece)


def _member(data: mmap.mmap, at: int, size: int) -> Member | Fault:
    """The member that begins at `at`."""
    stream = _zlib.decompressobj(31)
    head = b""
    fed, step = at, _FIRST
    try:
        while not stream.eof:
            piece = stream.unconsumed_tail or data[fed : fed + step]
            if not piece:
                return Fault(at, "the file ends inside a gzip member")
            if not stream.unconsumed_tail:
                fed, step = fed + len(piece), _FEED
            out = stream.decompress(piece, _PIECE)
            if len(head) < _HEAD_MAX + _FIELDS_MAX:
                head += out[: _HEAD_MAX + _FIELDS_MAX]
    except _zlib.error as error:
        return Fault(at, f"damaged gzip member: {' '.join(str(error).split())[:100]}")
    return _described(head, at, fed - len(stream.unused_data) - at)


def _described(head: bytes, at: int, length: int) -> Member | Fault:
    lines, blank, block = head.partition(b"\r\n\r\n")
    if not head.startswith(b"WARC/") or not blank or len(lines) > _HEAD_MAX:
        return Fault(at, "not a WARC record")
    headers: dict[str, str] = {}
    for line in lines.decode("utf-8", "replace").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        headers.setdefault(name.lower(), value.strip())
    kind = headers.get("warc-type", "").lower()
    said = block if kind == "metadata" else b""
    return Member(
        at, length, kind, headers.get("warc-target-uri", ""), headers.get("warc-record-id", ""), headers.get("warc-date", ""),
        headers.get("warc-concurrent-to", ""), parse_fields(said) if said else {}, bool(said) and says_taken_down(said),
    )  # fmt: skip
