"""WARC and ARC records out of a source, dirty input included: every record and every fault with its offset.

A fault never ends the reading: it goes on at the next gzip member, or in a plain file at the next line that looks like
the head of a record. In a file of one member per record only a member's first line may open a record, so text inside a
page cannot pose as one. Blocks are held up to a cap and cut beyond it; headers have a cap too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from corpus.store.warc_source import BrokenInput, Source

MAX_BLOCK = 64 * 2**20
"""Bytes of a block that are kept; six times the default page limit of a crawl."""
_MAX_HEAD = 64 * 1024
_MAX_SKIP = 16 * 2**30
"""A Content-Length beyond this is damage, not a record."""
_ARC_LINE = re.compile(rb"(\S.*?) (\S+) (\d{12,14}) (\S+)(?: \d{3} \S+ \S+ -?\d+ \S+)? (\d{1,12})\r?\n\Z")
_ARC_LIKE = re.compile(rb"\S.* \S+ \d{12,20} \S+ \S+\r?\n\Z")
_BLANK = re.compile(rb"\n\r*\n")
"""The end of a head: a line with nothing on it."""
_HEAD = re.compile(rb"(?:\A|\n)(?=WARC/\d|(?:https?|filedesc|dns)://?\S[^\r\n]* \d{12,20} [^\r\n]*\d\r?\n)")


@dataclass(frozen=True, slots=True)
class Fault:
    """Something unreadable: `offset` in the file, `reason` in one phrase."""

    offset: int
    reason: str


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as it lies in the file. `length` is 0 where a record has no place of its own in a compressed unit."""

    offset: int
    length: int
    headers: tuple[tuple[str, str], ...]
    block: bytes
    cut: bool = False
    """The block was longer than the cap; the rest was skipped."""
    missing: int = 0
    """Bytes that Content-Length promised and the file does not hold; a fault at the same offset came before."""

    def get(self, name: str) -> str:
        """The first value of a WARC header; empty when absent."""
        low = name.lower()
        for key, value in self.headers:
            if key.lower() == low:
                return value
        return ""

    @property
    def kind(self) -> str:
        return self.get("WARC-Type").lower()


class _BadRecordError(Exception):
    """A record that cannot be read, in a stream that can."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(offset, reason)
        self.fault = Fault(offset, reason)


def read_records(source: Source, *, max_block: int = MAX_BLOCK) -> Iterator[RawRecord | Fault]:
    """All that can be read, in file order; faults between. Never raises for what is in the file."""
    by_chance = False  # we stand at a magic number found by search: if nothing opens here, that is no second fault
    while True:
        opened, single = False, source.splits
        try:
            if not _skip_blank(source):
                return
            single, at = source.at_start(), source.mark()
            head = _read_head(source, at)
            opened = True
            record = _read_body(source, at, single, head, max_block)
        except BrokenInput as broken:
            if opened or not by_chance:
                yield Fault(broken.offset, broken.reason)
            by_chance = True
            if not source.next_unit(broken.offset):
                return
        except _BadRecordError as bad:
            if opened or not by_chance:
                yield bad.fault
            by_chance = single and source.next_unit(bad.fault.offset)
            if not by_chance and not _scan(source):
                return
        else:
            by_chance = False
            if record.missing:
                yield Fault(at, f"Content-Length says {head.length} bytes, and {head.length - record.missing} are there")
            yield record


@dataclass(frozen=True, slots=True)
class _Head:
    headers: tuple[tuple[str, str], ...]
    length: int


def _skip_blank(source: Source) -> bool:
    """Stand at the first byte of a record; False at the end of the file."""
    while True:
        if source.buf and source.buf[0] in b"\r\n":  # seldom, and stripping copies the whole buffer
            blank = len(source.buf) - len(source.buf.lstrip(b"\r\n"))
            del source.buf[:blank]
        if source.buf:
            return True
        if not source.pull():
            return False


def _read_head(source: Source, at: int) -> _Head:
    line = _read_line(source, at)
    if line.startswith(b"WARC/"):
        return _warc_head(source, at)
    if match := _ARC_LINE.match(line):
        return _arc_head(match)
    if _ARC_LIKE.match(line):
        raise _BadRecordError(at, f"an ARC record with an unusable head: {_show(line)}")
    raise _BadRecordError(at, f"neither a WARC nor an ARC record: {_show(line)}")


def _warc_head(source: Source, at: int) -> _Head:
    headers: list[tuple[str, str]] = []
    for text in _head_lines(source, at):
        name, colon, value = text.partition(":")
        if text[0] in " \t" and headers:
            headers[-1] = (headers[-1][0], f"{headers[-1][1]} {text.strip()}")
        elif colon:
            headers.append((name.strip(), value.strip()))
    lengths = [value for name, value in headers if name.lower() == "content-length"]
    if not lengths or not lengths[0].isascii() or not lengths[0].isdigit() or int(lengths[0][:20]) > _MAX_SKIP:
        raise _BadRecordError(at, f"no usable Content-Length: {lengths[0][:40]!r}" if lengths else "no Content-Length")
    return _Head(tuple(headers), int(lengths[0]))


def _head_lines(source: Source, at: int) -> Iterable[str]:
    """The lines before the next blank one, which is consumed too. A head that is all at hand, as nearly always, is cut out at once."""
    blank = _BLANK.search(source.buf, 0, _MAX_HEAD)
    if blank is None or source.buf[0] in b"\r\n":
        return _lines_one_by_one(source, at)
    lines = source.buf[: blank.start()].decode("utf-8", "replace").split("\n")
    del source.buf[: blank.end()]
    return [line.rstrip("\r") for line in lines]


def _lines_one_by_one(source: Source, at: int) -> Iterator[str]:
    """The same from a head that goes on behind what is at hand, or that has no lines."""
    size = 0
    while line := _read_line(source, at).rstrip(b"\r\n"):
        size += len(line)
        if size > _MAX_HEAD:
            raise _BadRecordError(at, "a record head without end")
        yield line.decode("utf-8", "replace")


def _arc_head(match: re.Match[bytes]) -> _Head:
    """An ARC line in WARC's words, so that one reader serves both."""
    url, ip, date, content_type = (part.decode("utf-8", "replace") for part in match.groups()[:4])
    kind = "warcinfo" if url.startswith("filedesc:") else "response"
    date = date.ljust(14, "0")
    iso = f"{date[:4]}-{date[4:6]}-{date[6:8]}T{date[8:10]}:{date[10:12]}:{date[12:14]}Z"
    headers = (
        ("WARC-Type", kind),
        ("WARC-Target-URI", url),
        ("WARC-Date", iso),
        ("WARC-IP-Address", ip),
        ("ARC-Content-Type", content_type),
    )
    return _Head(headers, int(match[5]))


def _read_body(source: Source, at: int, single: bool, head: _Head, max_block: int) -> RawRecord:
    block, missing = _take(source, min(head.length, max_block))
    cut = head.length > max_block and not missing
    missing += _drop(source, head.length - max_block) if cut else max(head.length - max_block, 0)
    alone = _end_record(source) and single and source.splits
    return RawRecord(at, source.mark() - at if alone else 0, head.headers, block, cut, missing)


def _take(source: Source, size: int) -> tuple[bytes, int]:
    """The next `size` bytes, and how many of them are missing."""
    buf = source.buf
    if len(buf) >= size:  # the usual case, one copy
        return _pop(buf, size), 0
    parts, have = [], 0
    while have < size and _more(source):
        parts.append(_pop(buf, size - have))
        have += len(parts[-1])
    return b"".join(parts), size - have


def _drop(source: Source, size: int) -> int:
    """Skip bytes; how many were missing."""
    while size and _more(source):
        size -= len(_pop(source.buf, size))
    return size


def _more(source: Source) -> bool:
    """Have bytes of this block. A member that begins like a record is the next record, whatever Content-Length says."""
    if source.buf or source.refill():
        return True
    return source.pull() and not source.buf.startswith(b"WARC/")


def _pop(buf: bytearray, size: int) -> bytes:
    with memoryview(buf) as view:
        data = bytes(view[:size])
    del buf[:size]
    return data


def _end_record(source: Source) -> bool:
    """Consume the blank lines behind a block; whether its unit ends here (in a plain file it always does)."""
    for _ in range(4):
        if not source.buf and not source.refill():
            return True
        if source.buf[0] not in b"\r\n":
            break
        del source.buf[:1]
    return source.at_start() or not (source.buf or source.refill())


def _read_line(source: Source, at: int) -> bytes:
    """The next line with its end; the last one of a file may lack it."""
    seen = 0
    while (end := source.buf.find(b"\n", seen)) < 0:
        seen = len(source.buf)
        if seen > _MAX_HEAD:
            raise _BadRecordError(at, "a line without end where a record should begin")
        if not source.pull():
            end = len(source.buf) - 1
            break
    return _pop(source.buf, end + 1)


def _scan(source: Source) -> bool:
    """In a stream without members to go by: stand at the next line that looks like the head of a record."""
    while True:
        if match := _HEAD.search(source.buf):
            del source.buf[: match.end()]
            return True
        if len(source.buf) > _MAX_HEAD:
            del source.buf[:-_MAX_HEAD]
        try:
            if not source.pull():
                return False
        except BrokenInput:
            source.buf.clear()
            return True  # the reader meets it again at once, and names it


def _show(line: bytes) -> str:
    return repr(line[:80])[1:]
