"""The band join in pieces that share nothing but files: sorted keys of some segments, then the pairs of one key range of one band.

Pieces may run anywhere, in any order and twice: the same inputs give the same bytes, and the pairs of all pieces are those of the
join in one process (`bands.join`), whatever the number of ranges or the grouping of files. Never judges a pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow.parquet as pq

from corpus.errors import StoreError
from corpus.filter.bands import Pairs, Rows, band_keys, bucket_pairs, distinct, salted

BYTES_PER_ROW = 34
"""What a range costs while it is sorted and paired, for each of its rows."""
_BATCH = 16_384
_CHUNK = 1 << 20
_32 = np.uint64(32)


def ranges_for(rows: int, memory: int) -> int:
    """Into how many key ranges a band of so many rows is cut, so that one of them stays within `memory` bytes."""
    return max(1, -(-rows * BYTES_PER_ROW // max(memory, 1)))


def sort_keys(sources: Sequence[Path], node_of: Rows, crawl: Rows, shape: tuple[int, int], ranges: int, out: Path) -> int:
    """Write the band keys of some signatures files, sorted; returns how many rows have keys.

    `node_of` and `crawl` are theirs row by row (`numbering.part`), `shape` is (bands, rows). The file: offsets uint64
    [bands, ranges + 1], then per band `key << 32 | node` in rising order. 8 bytes a row and band. Raises StoreError where rows are missing.
    """
    bands = shape[0]
    keys = np.empty((bands, int((node_of >= 0).sum())), dtype=np.uint64)
    used = at = 0
    for source in sources:
        for batch in pq.ParquetFile(source).iter_batches(batch_size=_BATCH, columns=["minhash", "shingle_count"]):
            node, of_crawl = node_of[at : at + len(batch)], crawl[at : at + len(batch)]
            at += len(batch)
            if len(node) != len(batch):
                raise StoreError("signatures and documents differ in their rows", str(source), "run corpus verify --repair")
            chosen = (node >= 0) & (np.asarray(batch.column("shingle_count")) > 0)
            values = np.asarray(batch.column("minhash").flatten(), dtype=np.uint32).reshape(len(batch), -1)
            if values.shape[1] < bands * shape[1]:
                raise StoreError(
                    f"{values.shape[1]} signature values are too few", str(source), "lower dedup.bands or dedup.rows"
                )
            found = salted(band_keys(values[chosen], *shape), of_crawl[chosen]).astype(np.uint64)
            keys[:, used : used + found.shape[1]] = found << _32 | node[chosen].astype(np.uint64)
            used += found.shape[1]
    if at != len(node_of):
        raise StoreError("signatures and documents differ in their rows", str(out), "run corpus verify --repair")
    _write_keys(keys[:, :used], ranges, out)
    return used


def _write_keys(keys: Pairs, ranges: int, out: Path) -> None:
    cuts = np.array([_first_of(part, ranges) for part in range(1, ranges)], dtype=np.uint64)
    offsets = np.zeros((len(keys), ranges + 1), dtype=np.uint64)
    for band, column in enumerate(keys):
        column.sort()
        offsets[band, 1:-1] = np.searchsorted(column, cuts)
        offsets[band, -1] = len(column)
    with out.open("wb") as file:
        file.write(offsets.tobytes())
        for column in keys:
            file.write(column.tobytes())


def _first_of(part: int, ranges: int) -> int:
    """The smallest packed word of a range: range p holds the keys with `key * ranges >> 32 == p`."""
    return -(-(part << 32) // ranges) << 32


def join_range(sources: Iterable[BinaryIO], band: int, part: int, shape: tuple[int, int], out: Path) -> int:
    """Write the pairs of one key range of one band, as packed uint64, from the files of `sort_keys`; returns how many.

    `shape` is (bands, ranges). Only that range is read; memory is BYTES_PER_ROW for each of its rows.
    """
    parts = [_slice(source, band, part, shape) for source in sources]
    packed = np.concatenate(parts) if parts else np.empty(0, dtype=np.uint64)
    del parts
    packed.sort()
    count = 0
    with out.open("wb") as file:
        for pairs in bucket_pairs(packed):
            alone = distinct(pairs)
            file.write(alone.tobytes())
            count += len(alone)
    return count


def _slice(source: BinaryIO, band: int, part: int, shape: tuple[int, int]) -> Pairs:
    bands, ranges = shape
    header = np.frombuffer(source.read(bands * (ranges + 1) * 8), dtype=np.uint64).reshape(bands, ranges + 1)
    before = int(header[:band, -1].sum())
    start, stop = (int(header[band, place]) for place in (part, part + 1))
    source.seek(header.nbytes + (before + start) * 8)
    return np.frombuffer(source.read((stop - start) * 8), dtype=np.uint64)


def read_pairs(path: Path) -> Iterator[Pairs]:
    """The pairs of a file in bounded chunks."""
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK * 8):
            yield np.frombuffer(chunk, dtype=np.uint64).copy()
