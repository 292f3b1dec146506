"""Candidate pairs judged: the exact Jaccard of their shingles, or its estimate from their signatures.

Reads only what a chunk of pairs needs, in bounded memory. A pair is verified when its similarity reaches the threshold;
an estimate alone refuses only what is four standard errors below it, when shingles have the last word.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from corpus.errors import StoreError
from corpus.filter.bands import PairRuns, Pairs, Rows

Shingles = npt.NDArray[np.uint64]
Similarity = npt.NDArray[np.float64]

_CHUNK_PAIRS = 16_384
_GAP_ROWS, _RUN_ROWS = 16, 4096
"""Rows of a mapped table that are read along rather than skipped, and that are read at once."""
_CHUNK_SHINGLES = 4_000_000
_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)


def split(pairs: Pairs) -> tuple[Rows, Rows]:
    """The two row numbers of each packed pair."""
    return (pairs >> _32).astype(np.int32), (pairs & _LOW).astype(np.int32)


@dataclass(frozen=True, slots=True)
class Edges:
    """Verified pairs: rows a[i] < b[i] are alike to the degree similarity[i]. Sorted by (a, b), each once."""

    a: Rows
    b: Rows
    similarity: Similarity

    @staticmethod
    def gather(parts: Iterable[tuple[Pairs, Similarity]]) -> Edges:
        """One table of parts that rise in (a, b)."""
        left: list[Rows] = []
        right: list[Rows] = []
        similarity: list[Similarity] = []
        for pairs, values in parts:
            a, b = split(pairs)
            left.append(a)
            right.append(b)
            similarity.append(values)
        return Edges(_joined(left, np.int32), _joined(right, np.int32), _joined(similarity, np.float64))


def _joined(parts: list[Any], kind: type) -> Any:
    """One array of the parts, which are let go."""
    whole = np.concatenate([*parts, np.empty(0, dtype=kind)])
    parts.clear()
    return whole


def estimate(signatures: npt.NDArray[np.uint32], slot_of: Rows, pairs: Pairs) -> Similarity:
    """The share of equal signature values of each pair. `slot_of[row]` is a row's place in `signatures`."""
    values = np.empty(len(pairs), dtype=np.float64)
    width = signatures.shape[1]
    for start in range(0, len(pairs), _CHUNK_PAIRS):
        a, b = split(pairs[start : start + _CHUNK_PAIRS])
        rows = _gather(signatures, slot_of[np.concatenate((a, b))])  # together: what is near in the file is read once
        equal = rows[: len(a)] == rows[len(a) :]
        values[start : start + _CHUNK_PAIRS] = np.count_nonzero(equal, axis=1) / width
    return values


def _gather(signatures: npt.NDArray[np.uint32], slots: Rows) -> npt.NDArray[np.uint32]:
    """`signatures[slots]`. Of a mapped table the rows are read from its file: touching a page of a mapping may bring in
    two megabytes around it, and a few thousand scattered rows then count as the whole table."""
    name = getattr(signatures, "filename", None)
    if name is None or not isinstance(getattr(signatures, "base", None), mmap.mmap):  # in memory, or a part of a mapping
        return signatures[slots]
    wanted, place = np.unique(slots, return_inverse=True)
    rows = np.empty((len(wanted), signatures.shape[1]), dtype=np.uint32)
    apart = (np.diff(wanted) > _GAP_ROWS) | (np.diff(wanted // _RUN_ROWS) != 0)
    starts = np.concatenate(([0], np.flatnonzero(apart) + 1))
    stops = np.append(starts[1:], len(wanted))
    along = np.empty((_RUN_ROWS, signatures.shape[1]), dtype=np.uint32)
    bounds = zip(starts.tolist(), stops.tolist(), wanted[starts].tolist(), wanted[stops - 1].tolist(), strict=True)
    with Path(name).open("rb", buffering=0) as file:
        for start, stop, first, last in bounds:
            dense = last - first == stop - start - 1
            target = rows[start:stop] if dense else along[: last - first + 1]
            file.seek(first * signatures.strides[0])
            if file.readinto(target.data) != target.nbytes:
                raise StoreError("is cut off", name, "run the same command again")
            if not dense:
                rows[start:stop] = target[wanted[start:stop] - first]
    return rows[place]


def give_back(table: npt.NDArray[np.uint32]) -> None:
    """Return the pages of a memory-mapped table to the system: they stay in its cache, and out of this process's size."""
    mapped = getattr(table, "_mmap", None)
    if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def slack(threshold: float, width: int) -> float:
    """Four standard errors of an estimate from `width` values at the threshold: what a prefilter must let through."""
    return float(4.0 * (threshold * (1.0 - threshold) / width) ** 0.5)


def jaccard(left: Shingles, right: Shingles) -> float:
    """Exact Jaccard of two sorted sets; two empty sets are not alike, they say nothing."""
    total = len(left) + len(right)
    if total == 0:
        return 0.0
    both = np.concatenate((left, right))
    both.sort()
    shared = int(np.count_nonzero(both[1:] == both[:-1]))
    return shared / (total - shared)


def exact(pairs: Pairs, sizes: npt.NDArray[np.int64], read: Callable[[Rows], Sequence[Shingles]], threshold: float) -> Similarity:
    """The exact Jaccard of each pair, 0 where the sizes alone exclude the threshold.

    `sizes[row]` counts a row's shingles; `read(rows)` returns the sorted sets of ascending rows.
    """
    values = np.zeros(len(pairs), dtype=np.float64)
    a, b = split(pairs)
    low, high = np.minimum(sizes[a], sizes[b]), np.maximum(sizes[a], sizes[b])
    open_ = np.flatnonzero((low > 0) & (low >= threshold * high))
    for chunk in _by_weight(open_, (sizes[a] + sizes[b])[open_]):
        rows = np.unique(np.concatenate((a[chunk], b[chunk])))
        sets = read(rows)
        left, right = np.searchsorted(rows, a[chunk]), np.searchsorted(rows, b[chunk])
        values[chunk] = [jaccard(sets[i], sets[j]) for i, j in zip(left.tolist(), right.tolist(), strict=True)]
    return values


def _by_weight(items: npt.NDArray[np.int64], weight: npt.NDArray[np.int64]) -> Iterator[npt.NDArray[np.int64]]:
    """Runs of items whose weights sum to about `_CHUNK_SHINGLES`; a single heavy item is a run of its own."""
    if not len(items):
        return
    turn = np.cumsum(weight) // _CHUNK_SHINGLES
    yield from np.split(items, np.flatnonzero(turn[1:] != turn[:-1]) + 1)


def prefilter(candidates: PairRuns, kept: PairRuns, judge: Callable[[Pairs], npt.NDArray[np.bool_]]) -> None:
    """Move the candidates that `judge` lets through into `kept`, part by part."""
    for pairs in candidates.parts():
        kept.add(pairs[judge(pairs)])


def verified(candidates: PairRuns, judge: Callable[[Pairs], Similarity], threshold: float) -> Iterator[tuple[Pairs, Similarity]]:
    """The candidates that reach the threshold, with their similarity, part by part."""
    for pairs in candidates.parts():
        values = judge(pairs)
        passed = values >= threshold
        yield pairs[passed], values[passed]


class ShingleFile:
    """Shingle sets of candidate rows in one scratch file: written once in any order, read back by row."""

    def __init__(self, path: Path, rows: int) -> None:
        self.sizes = np.zeros(rows, dtype=np.int64)
        self._at = np.zeros(rows, dtype=np.int64)
        self._end = 0
        self._file: BinaryIO = path.open("w+b")

    def write(self, rows: Rows, sets: Sequence[Shingles]) -> None:
        for row, values in zip(rows.tolist(), sets, strict=True):
            ordered = np.unique(np.asarray(values, dtype=np.uint64))
            self._at[row], self.sizes[row] = self._end, len(ordered)
            self._file.write(ordered.tobytes())
            self._end += ordered.nbytes

    def read(self, rows: Rows) -> list[Shingles]:
        self._file.flush()
        found: list[Shingles] = []
        for row in rows.tolist():
            self._file.seek(int(self._at[row]))
            found.append(np.frombuffer(self._file.read(int(self.sizes[row]) * 8), dtype=np.uint64))
        return found

    def close(self) -> None:
        self._file.close()
