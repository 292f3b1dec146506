"""Every byte that a folder keeps, also inside gzip members, Parquet pages and SQLite files: for tests that look for what must be gone."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC = b"\x1f\x8b\x08"


def layers(data: bytes) -> Iterator[bytes]:
    """The bytes themselves, and whatever is packed in them: gzip members wherever they begin, cells of a Parquet file."""
    yield data
    at = data.find(_MAGIC)
    while at >= 0:
        stream = zlib.decompressobj(31)
        try:
            inner = stream.decompress(data[at:])
        except zlib.error:
            inner = b""
        if inner:
            yield inner
            yield from _coded(inner)
        at = data.find(_MAGIC, at + 3)
    if data.startswith(b"PAR1"):
        yield from _cells(data)


def _coded(record: bytes) -> Iterator[bytes]:
    """The body of a response that the server had packed."""
    at = record.find(_MAGIC)
    if at >= 0:
        stream = zlib.decompressobj(31)
        try:
            yield stream.decompress(record[at:])
        except zlib.error:
            return


def _cells(data: bytes) -> Iterator[bytes]:
    for batch in pq.ParquetFile(pa.BufferReader(data)).iter_batches():
        for column in batch.columns:
            for value in column.to_pylist():
                yield (value if isinstance(value, str) else repr(value)).encode("utf-8", "replace")


def found_in(folders: list[Path], needles: list[bytes]) -> list[tuple[str, bytes]]:
    """(file, needle) for every needle that some file of the folders still holds."""
    hits = []
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            hits += [(str(path), needle) for needle in held(path.read_bytes(), needles)]
    return hits


def held(data: bytes, needles: list[bytes]) -> list[bytes]:
    """The needles that some bytes hold, packed or not."""
    left = list(needles)
    found = []
    for layer in layers(data):
        for needle in [needle for needle in left if needle in layer]:
            found.append(needle)
            left.remove(needle)
    return found
