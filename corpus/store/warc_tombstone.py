"""What takes the place of a record that was taken down: a gzip member of exactly the same length, so every offset stays valid.

The member holds one whole metadata record (WARC/1.1) that keeps the old record's id and date, says which order removed it,
and is blank otherwise. Any reader of WARC steps over it; nothing of the old bytes is in it.
"""

from __future__ import annotations

import re
import struct
import zlib

from corpus.errors import StoreError
from corpus.store.warc_stream import RawRecord

FIELD = "corpus-taken-down"
_ID = re.compile(r"<urn:uuid:[0-9a-f-]{36}>\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z\Z")
_NO_ID, _NO_DATE = "<urn:uuid:00000000-0000-8000-8000-000000000000>", "1970-01-01T00:00:00Z"
_BLOCK = 65_535
"""Most bytes of a stored deflate block."""
_FRAME = 18
"""Bytes of a gzip member's header and trailer."""
_SLACK = 16
"""Lengths that stored blocks alone cannot meet are met with a comment of at most so many bytes in the gzip header."""


def tombstone(length: int, record_id: str, date: str, order: int) -> bytes:
    """A gzip member of `length` bytes that says order `order` removed this record. Raises StoreError when none is that short.

    Blank text fills it, in stored blocks, so that readers see an ordinary record and no exotic header field.
    """
    named = record_id if _ID.match(record_id) else _NO_ID
    dated = date if _DATE.match(date) else _NO_DATE
    for comment in range(_SLACK + 1):
        record = _filled(length - _FRAME - comment, named, dated, order)
        if record is not None:
            return _checked(_member(_stored(record), record, comment), length)
    for chosen, when in ((named, dated), (named, _NO_DATE), (_NO_ID, _NO_DATE)):
        record = _record(chosen, when, order, 0)
        packed = zlib.compressobj(9, zlib.DEFLATED, -15)
        data = packed.compress(record) + packed.flush()
        spare = length - _FRAME - len(data)
        if spare >= 0:
            return _checked(_member(data, record, spare), length)
    raise StoreError(f"a record of {length} bytes is too short to be replaced in place", hint="report it, with the file")


def is_tombstone(record: RawRecord) -> bool:
    """Whether a record stands for one that was taken down."""
    return record.kind == "metadata" and says_taken_down(record.block)


def says_taken_down(block: bytes) -> bool:
    """Whether a metadata record's block is a tombstone's."""
    return block.startswith(FIELD.encode() + b":")


def _filled(size: int, record_id: str, date: str, order: int) -> bytes | None:
    """A record whose stored blocks take exactly `size` bytes; None when there is none of that size."""
    blocks = max(-(-size // (_BLOCK + 5)), 1)
    wanted = size - 5 * blocks
    if wanted > blocks * _BLOCK or wanted <= (blocks - 1) * _BLOCK:
        return None
    least = len(_record(record_id, date, order, 0))
    for digits in range(6):  # every digit that Content-Length gains takes a blank away
        blanks = wanted - least - digits
        if blanks >= 0:
            record = _record(record_id, date, order, blanks)
            if len(record) == wanted:
                return record
    return None


def _record(record_id: str, date: str, order: int, blanks: int) -> bytes:
    block = f"{FIELD}: {order}{' ' * blanks}\r\n"
    head = (
        f"WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: {record_id}\r\nWARC-Date: {date}\r\n"
        f"Content-Type: application/warc-fields\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return f"{head}{block}\r\n\r\n".encode("ascii")


def _stored(record: bytes) -> bytes:
    """Raw deflate without compression."""
    parts = []
    for at in range(0, len(record), _BLOCK):
        piece = record[at : at + _BLOCK]
        last = at + _BLOCK >= len(record)
        parts.append(struct.pack("<BHH", last, len(piece), len(piece) ^ 0xFFFF) + piece)
    return b"".join(parts)


def _member(deflated: bytes, record: bytes, comment: int) -> bytes:
    """A gzip member; `comment` bytes of its header are a comment with its closing NUL (none: no comment)."""
    head = b"\x1f\x8b\x08" + (b"\x10" if comment else b"\0") + b"\0\0\0\0\0\xff"
    said = b" " * (comment - 1) + b"\0" if comment else b""
    return head + said + deflated + struct.pack("<II", zlib.crc32(record), len(record) & 0xFFFFFFFF)


def _checked(member: bytes, length: int) -> bytes:
    assert len(member) == length, "a tombstone has the length of what it replaces"
    return member
