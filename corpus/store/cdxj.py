"""CDXJ: where each capture of an archive lies, one sorted text file beside each segment, as replay tools read it.

A line is `<surt> <14 digits> <JSON>` with the fields url, mime, status, digest, length, offset and filename (relative to
the store's root). Lines stand in byte order, so a look-up is a bisection of each file. Made while a segment is written or
from the segment alone: both give the same bytes. What has no bytes to replay (linked near copies, metadata, tombstones) has no line.
"""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from corpus.errors import StoreError
from corpus.store.warc_http import parse_answer
from corpus.store.warc_source import open_source
from corpus.store.warc_stream import RawRecord, read_records
from corpus.url.surt import surt

SUFFIX = ".cdxj"
FIELDS = ("url", "mime", "status", "digest", "length", "offset", "filename")
UNKNOWN = "-"
_REPLAYABLE = frozenset({"response", "revisit", "resource"})
_TYPE_END = re.compile(r"[;\s]")
_LINE_MAX = 1 << 20
"""Bytes of a line at most: a WARC head, which holds the address, has 64 kB."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line. `length` and `offset` are bytes in the file `filename`; `status` and `digest` are `-` where unknown."""

    key: str
    timestamp: str
    url: str
    mime: str
    status: str
    digest: str
    length: int
    offset: int
    filename: str


@dataclass(frozen=True, slots=True)
class Told:
    """What a line says of a record, whatever file it lies in."""

    key: str
    timestamp: str
    url: str
    mime: str
    status: str
    digest: str

    def line(self, length: int, offset: int, filename: str) -> bytes:
        """The line of the record that has this place, with its newline."""
        values = (self.url, self.mime, self.status, self.digest, str(length), str(offset), filename)
        told = json.dumps(dict(zip(FIELDS, values, strict=True)), ensure_ascii=True)
        return f"{self.key} {self.timestamp} {told}\n".encode("ascii")


def told(kind: str, target: str, date: str, digest: str, block: bytes, content_type: str = "") -> Told | None:
    """What there is to say of a record by its headers as read: WARC-Type, -Target-URI, -Date, -Payload-Digest. `block`: its block, of an
    HTTP answer at least the head; `content_type` counts for resources. None: nothing to replay."""
    url = target.strip().removeprefix("<").removesuffix(">")
    if kind not in _REPLAYABLE or not url:
        return None
    answer = None if kind == "resource" else parse_answer(block)
    mime = content_type if kind == "resource" else answer.header("content-type") if answer else ""
    return Told(
        surt(url), _timestamp(date), url,
        "warc/revisit" if kind == "revisit" else _TYPE_END.split(mime.strip(), maxsplit=1)[0] or "unk",
        str(answer.status) if answer else UNKNOWN, digest or UNKNOWN,
    )  # fmt: skip


def index_lines(path: Path, filename: str) -> list[bytes]:
    """The lines of one segment, sorted, each with its newline. Unreadable records have none: `verify` names them."""
    with open_source(path) as source:
        lines = [line for item in read_records(source) if isinstance(item, RawRecord) and (line := _line(item, filename))]
    return sorted(lines)


def _line(record: RawRecord, filename: str) -> bytes | None:
    get = record.get
    said = told(
        record.kind, get("WARC-Target-URI"), get("WARC-Date"), get("WARC-Payload-Digest"), record.block, get("Content-Type")
    )
    return None if said is None or record.length == 0 else said.line(record.length, record.offset, filename)


def _timestamp(date: str) -> str:
    """`2026-11-02T03:04:05.678901Z` as 20261102030405; what lacks digits is filled up with zeros."""
    return re.sub(r"\D", "", date)[:14].ljust(14, "0")


def find(files: Iterable[Path], url: str) -> Iterator[Entry]:
    """Every capture of an address (or of one that folds to the same key), oldest first. One bisection a file.

    Raises StoreError for a file that is no CDXJ.
    """
    key = surt(url).encode()
    found = heapq.merge(*(list(_lines_of(path, key)) for path in files))
    return (parse(line) for line in found)


def parse(line: bytes) -> Entry:
    """The entry of a line. Raises StoreError when it is none."""
    try:
        key, timestamp, told = line.decode("ascii").split(" ", 2)
        values = json.loads(told)
        url, mime, status, digest = (str(values[name]) for name in FIELDS[:4])
        return Entry(
            key, timestamp, url, mime, status, digest, int(values["length"]), int(values["offset"]), str(values["filename"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"not a CDXJ line: {line[:80]!r} ({error})", hint="run corpus verify --repair") from None


def _lines_of(path: Path, key: bytes) -> Iterator[bytes]:
    """The lines of one file whose key is `key`."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        low, high = 0, size
        while low < high:  # the first byte offset whose following line is not before the key
            middle = (low + high) // 2
            line = _line_at(file, middle)
            if line and line.split(b" ", 1)[0] < key:
                low = middle + 1
            else:
                high = middle
        file.seek(_start_after(file, low))
        while (line := file.readline(_LINE_MAX)) and line.split(b" ", 1)[0] == key:
            yield line


def _start_after(file: BinaryIO, at: int) -> int:
    """Where the first line begins that starts at `at` or later."""
    if at == 0:
        return 0
    file.seek(at - 1)
    file.readline(_LINE_MAX)
    return file.tell()


def _line_at(file: BinaryIO, at: int) -> bytes:
    """The first whole line that starts at `at` or later; empty at the end."""
    file.seek(_start_after(file, at))
    return file.readline(_LINE_MAX)
