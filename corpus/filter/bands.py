"""Candidate pairs: documents that agree on all values of at least one band of their MinHash.

A columnar band join: per band the keys are sorted and equal neighbours paired; work beyond the memory budget goes to
files of a scratch folder and is taken up key range by key range. Rows are int32 numbers in id order, so the result
does not depend on input order, shards or workers. A candidate is never called a duplicate here: `verify_pairs` judges.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint32]
Rows = npt.NDArray[np.int32]
Pairs = npt.NDArray[np.uint64]
"""Two row numbers in one word: `a << 32 | b`, always a < b."""

SMALL_BUCKET = 32
"""Up to here every pair of a bucket is a candidate; beyond, 2 per member (see `_giant`), so a template that a
million pages share costs two million candidates and not half a trillion."""

_BLOCK = 4096
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SLICE = 1 << 20
_CACHED = 1 << 15
"""Words that one step takes through all of its passes, so that they stay in the processor's cache between them."""
_JOIN_BYTES_PER_ROW = 26
_PART_ROWS = 250_000


def band_keys(signatures: npt.NDArray[np.uint32], bands: int, rows: int) -> Keys:
    """Keys [bands, n] of uint32 signatures [n, >= bands * rows]: equal bands have equal keys.

    Unequal bands share a 32-bit key once in four billion: a false candidate, which verification refuses.
    """
    keys = np.empty((bands, len(signatures)), dtype=np.uint32)
    for start in range(0, len(signatures), _BLOCK):
        block = np.ascontiguousarray(signatures[start : start + _BLOCK, : bands * rows], dtype=np.uint32)
        words = block.view(np.uint64) if rows % 2 == 0 else block.astype(np.uint64)
        step = words.shape[1] // bands
        for band in range(bands):
            mixed = np.full(len(block), band + 1, dtype=np.uint64)
            for column in range(band * step, (band + 1) * step):
                mixed ^= words[:, column]
                mixed *= _MIX
                mixed ^= mixed >> _32
            keys[band, start : start + _BLOCK] = (mixed & _LOW).astype(np.uint32)
    return keys


def salted(keys: Keys, crawl: npt.NDArray[np.int32]) -> Keys:
    """Keys [bands, n] of different crawls kept apart (crawl 0 is left alone, so one crawl costs nothing)."""
    return keys ^ (crawl.astype(np.uint32) * np.uint32(0x9E3779B1))


def distinct(pairs: Pairs) -> Pairs:
    """The values of an array, sorted, each once (sorts its argument)."""
    pairs.sort()
    new = np.ones(len(pairs), dtype=bool)
    np.not_equal(pairs[1:], pairs[:-1], out=new[1:])
    return pairs[new]


class KeyColumns:
    """Band keys column by column: in memory up to `memory` bytes, then in one file per band under `scratch`."""

    def __init__(self, bands: int, memory: int, scratch: Path | None) -> None:
        self.bands, self._memory, self._scratch = bands, memory, scratch
        self._held: list[Keys] = []
        self._held_bytes = 0
        self._spilled = False

    def append(self, keys: Keys) -> None:
        self._held.append(keys)
        self._held_bytes += keys.nbytes
        if self._scratch is not None and self._held_bytes > self._memory:
            self._spill(self._scratch)

    def _spill(self, scratch: Path) -> None:
        for band in range(self.bands):
            with (scratch / f"band-{band:03d}.u32").open("ab") as file:
                for keys in self._held:
                    file.write(keys[band].data)
        self._held, self._held_bytes, self._spilled = [], 0, True

    def column(self, band: int) -> Iterator[Keys]:
        """The keys of one band in the order they were appended, in chunks."""
        if self._spilled and self._scratch is not None:
            with (self._scratch / f"band-{band:03d}.u32").open("rb") as file:
                while chunk := file.read(_SLICE * 4):
                    yield np.frombuffer(chunk, dtype=np.uint32)
        for keys in self._held:
            yield keys[band]


def join(columns: KeyColumns, row_of: Rows, memory: int) -> Iterator[Pairs]:
    """Candidate pairs of every band (with repeats between bands). `row_of[i]` is the row number of the i-th key."""
    passes = max(1, -(-len(row_of) * _JOIN_BYTES_PER_ROW // max(memory, 1)))
    room = np.empty(len(row_of), dtype=np.uint64)  # one for all: fresh pages cost as much as what is written into them
    for band in range(columns.bands):
        for part in range(passes):
            yield from bucket_pairs(_sorted_range(columns, band, row_of, (part, passes), room))


def _sorted_range(columns: KeyColumns, band: int, row_of: Rows, share: tuple[int, int], room: Pairs) -> Pairs:
    """`key << 32 | row` of the keys in one of some equal key ranges (`share`: which, of how many), sorted at the head of `room`:
    rows ascend inside a bucket."""
    part, passes = share
    at = used = 0
    for keys in columns.column(band):
        rows = row_of[at : at + len(keys)].view(np.uint32)
        at += len(keys)
        if passes > 1:
            inside = (keys.astype(np.uint64) * np.uint64(passes)) >> _32 == np.uint64(part)
            keys, rows = keys[inside], rows[inside]
        for start in range(0, len(keys), _CACHED):
            packed = room[used + start : used + min(start + _CACHED, len(keys))]
            packed[:] = keys[start : start + _CACHED]
            packed <<= _32
            packed |= rows[start : start + _CACHED]
        used += len(keys)
    room[:used].sort()
    return room[:used]


def bucket_pairs(packed: Pairs) -> Iterator[Pairs]:
    """Pairs of equal keys in a sorted `key << 32 | row` array, in bounded chunks."""
    if len(packed) < 2:
        return
    shared = np.zeros(len(packed), dtype=bool)
    for start in range(0, len(packed) - 1, _CACHED):
        block = packed[start : start + _CACHED + 1]
        same = (block[1:] ^ block[:-1]) <= _LOW
        shared[start + 1 : start + 1 + len(same)] = same
        shared[start : start + len(same)] |= same
    members = packed[shared]
    start = 0
    while start < len(members):
        stop = min(start + 4 * _CACHED, len(members))
        if stop < len(members):  # never cut inside a bucket
            edge = members[stop - 1] | _LOW
            stop = int(np.searchsorted(members, edge, side="right"))
        yield _pairs_of(members[start:stop])
        start = stop


def _pairs_of(members: Pairs) -> Pairs:
    key = members >> _32
    row = members & _LOW
    first = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
    size = np.diff(np.append(first, len(key)))
    giant = np.repeat(size > SMALL_BUCKET, size)
    found = [_giant(row, first, size)] if giant.any() else []
    key, row = key[~giant], row[~giant]
    for step in range(1, SMALL_BUCKET):
        together = key[step:] == key[:-step]
        if not together.any():
            break
        found.append(row[:-step][together] << _32 | row[step:][together])
    return np.concatenate(found) if found else np.empty(0, dtype=np.uint64)


def _giant(row: Pairs, first: npt.NDArray[np.int64], size: npt.NDArray[np.int64]) -> Pairs:
    """Giant buckets chain in id order, and every member is also paired with the bucket's smallest id.

    The chain alone would break one big cluster into stars of three; the smallest id gives it a centre.
    """
    found: list[Pairs] = []
    for start, count in zip(first[size > SMALL_BUCKET], size[size > SMALL_BUCKET], strict=True):
        bucket = row[start : start + count]
        found.append(bucket[:-1] << _32 | bucket[1:])
        found.append(bucket[0] << _32 | bucket[1:])
    return np.concatenate(found)


class PairRuns:
    """A set of pairs larger than memory: added in any order, read back sorted and once each, in parts of rising `a`."""

    def __init__(self, rows: int, memory: int, scratch: Path | None, name: str) -> None:
        self._memory, self._scratch, self._name = memory, scratch, name
        self._bounds = np.arange(_PART_ROWS, max(rows, 1), _PART_ROWS, dtype=np.uint64) << _32
        self._held: list[Pairs] = []
        self._held_bytes = 0
        self._spilled = False

    def add(self, pairs: Pairs) -> None:
        if not len(pairs):
            return
        self._held.append(pairs)
        self._held_bytes += pairs.nbytes
        if self._held_bytes > self._memory:
            self._held = [distinct(np.concatenate(self._held))]
            self._held_bytes = self._held[0].nbytes
            if self._scratch is not None and self._held_bytes > self._memory // 2:
                self._spill(self._scratch, self._held[0])

    def _file(self, scratch: Path, part: int) -> Path:
        return scratch / f"{self._name}-{part:05d}.u64"

    def _spill(self, scratch: Path, pairs: Pairs) -> None:
        cuts = np.concatenate(([0], np.searchsorted(pairs, self._bounds), [len(pairs)]))
        for part in range(len(cuts) - 1):
            if cuts[part] < cuts[part + 1]:
                with self._file(scratch, part).open("ab") as file:
                    file.write(pairs[cuts[part] : cuts[part + 1]].tobytes())
        self._held, self._held_bytes, self._spilled = [], 0, True

    def parts(self) -> Iterator[Pairs]:
        """All pairs, sorted and each once; what was spilled is deleted as it is read."""
        held = distinct(np.concatenate(self._held)) if self._held else np.empty(0, dtype=np.uint64)
        if not self._spilled or self._scratch is None:
            if len(held):
                yield held
            return
        self._spill(self._scratch, held)
        for part in range(len(self._bounds) + 1):
            path = self._file(self._scratch, part)
            if path.exists():
                yield _read_unique(path, self._memory)
                path.unlink()


def _read_unique(path: Path, memory: int) -> Pairs:
    """A part's pairs, merged chunk by chunk so that repeats never fill the memory."""
    merged = np.empty(0, dtype=np.uint64)
    with path.open("rb") as file:
        while chunk := file.read(max(memory // 64, 1 << 13) * 8):
            merged = distinct(np.concatenate((merged, np.frombuffer(chunk, dtype=np.uint64))))
    return merged
