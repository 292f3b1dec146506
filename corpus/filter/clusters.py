"""Near-duplicate clusters of documents in memory: the public `cluster`, and the steps the pipeline shares with it.

Exact copies are one node first; nodes are paired by band join, verified, and grouped into stars. The answer depends on
the set of documents alone, not on their order. Never elects the copy to keep by quality: a release does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpus.errors import UsageError
from corpus.filter.bands import KeyColumns, PairRuns, Pairs, Rows, band_keys, join
from corpus.filter.columns import call, flags, integers, numbers, texts
from corpus.filter.stars import stars
from corpus.filter.verify_pairs import Edges, Shingles, Similarity, estimate, exact, prefilter, slack, verified

CLUSTER_SCHEMA = pa.schema([("id", pa.string()), ("cluster_id", pa.string()), ("cluster_size", pa.int64()), ("keep", pa.bool_())])

_MEMORY = 2 * 10**9
_BLOCK = 65_536
_NO_SHINGLES = np.uint32(0xFFFFFFFF)


def cluster(
    ids: Sequence[str] | pa.Array | pa.ChunkedArray,
    signatures: npt.NDArray[np.uint32],
    shingles: Sequence[npt.NDArray[np.uint64]] | None = None,
    *,
    threshold: float = 0.75,
    bands: int = 14,
    rows: int = 8,
) -> pa.Table:
    """Near-duplicate clusters: a table (id, cluster_id, cluster_size, keep), one row per id in the order given.

    `signatures` is uint32 [n, >= bands * rows] from `minhash`; with `shingles` (from `shingles`) pairs are verified by
    exact Jaccard, without by its estimate. `cluster_id` is the smallest member id, and that member has `keep`; a document
    alone has size 1. A document without shingles is alone: short texts are duplicates by exact text, which is not asked here.
    Raises UsageError when the arguments do not fit together.
    """
    names, numbers = _ranks(ids)
    table = _checked(signatures, len(numbers), bands, rows)
    if shingles is not None and len(shingles) != len(numbers):
        raise UsageError(f"{len(numbers)} ids but {len(shingles)} shingle sets", "cluster")
    sets = None if shingles is None else [np.unique(np.asarray(s, dtype=np.uint64)) for s in shingles]
    first, node_of = _nodes(numbers, _copies(table, sets))
    table = table[first]
    sets = None if sets is None else [sets[i] for i in first.tolist()]
    weight = np.bincount(node_of, minlength=len(first))
    speaks = _speaks(table) if sets is None else np.array([len(s) > 0 for s in sets], dtype=bool)
    edges = _edges(table, sets, speaks, shape=(bands, rows), threshold=threshold)
    centre = stars(len(first), edges, weight)
    return _answer(names, numbers, centre[node_of], numbers[first])


def _ranks(ids: Sequence[str] | pa.Array | pa.ChunkedArray) -> tuple[pa.Array, Rows]:
    """The ids as an Arrow column, and the rank of each among the distinct ids (code-point order)."""
    column = ids if isinstance(ids, (pa.Array, pa.ChunkedArray)) else texts(list(ids))
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = array if array.type == pa.string() else array.cast(pa.string())
    if array.null_count:
        raise UsageError("an id is null", "cluster")
    coded = call("dictionary_encode", array)
    order = numbers(call("array_sort_indices", coded.dictionary))
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return array, rank[numbers(coded.indices)] if len(array) else np.empty(0, dtype=np.int32)


def _checked(signatures: npt.NDArray[np.uint32], count: int, bands: int, rows: int) -> npt.NDArray[np.uint32]:
    table = np.asarray(signatures)
    if table.ndim != 2 and count == 0:
        return np.empty((0, bands * rows), dtype=np.uint32)
    if table.ndim != 2 or table.shape[1] < bands * rows:
        raise UsageError(f"signatures of shape {table.shape} do not hold {bands} bands of {rows} values", "cluster")
    if len(table) != count:
        raise UsageError(f"{count} ids but {len(table)} signatures", "cluster")
    if table.dtype != np.uint32:
        raise UsageError(f"signatures are {table.dtype}, not uint32", "cluster", "use corpus.minhash")
    return table


def _copies(table: npt.NDArray[np.uint32], sets: Sequence[Shingles] | None) -> npt.NDArray[np.int64]:
    """A number per document, equal for exact copies: the same shingles, else the same signature. None: a number of its own."""
    own = np.arange(len(table), dtype=np.int64)
    if sets is not None:
        seen: dict[bytes, int] = {}
        marks = [seen.setdefault(hashlib.sha256(s.tobytes()).digest(), at) if len(s) else at for at, s in enumerate(sets)]
        return np.array(marks, dtype=np.int64)
    keys = band_keys(table, 1, table.shape[1])[0].astype(np.uint64) << np.uint64(32) | table[:, 0]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    head = first[inverse]
    later = np.flatnonzero(head != own)
    for start in range(0, len(later), _BLOCK):
        block = later[start : start + _BLOCK]
        same = (table[block] == table[head[block]]).all(axis=1) & _speaks(table[block])
        own[block[same]] = head[block[same]]
    return own


def _speaks(table: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Whether a signature was made from any shingle at all."""
    return np.asarray((table != _NO_SHINGLES).any(axis=1))


def _nodes(numbers: Rows, copies: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], Rows]:
    """Collapse exact copies, and repeats of an id. Returns the position of each node's smallest id, in id order, and each
    position's node."""
    order = np.argsort(numbers, kind="stable")
    head = np.concatenate(([True], numbers[order][1:] != numbers[order][:-1])) if len(order) else np.empty(0, dtype=bool)
    marks = copies[order[head]][np.cumsum(head) - 1]  # a repeated id speaks with its first occurrence
    _, first, inverse = np.unique(marks, return_index=True, return_inverse=True)
    by_id = np.argsort(first)
    rank = np.empty(len(first), dtype=np.int32)
    rank[by_id] = np.arange(len(first), dtype=np.int32)
    node_of = np.empty(len(numbers), dtype=np.int32)
    node_of[order] = rank[inverse]
    return order[first[by_id]], node_of


def _edges(
    table: npt.NDArray[np.uint32],
    sets: Sequence[Shingles] | None,
    speaks: npt.NDArray[np.bool_],
    *,
    shape: tuple[int, int],
    threshold: float,
) -> Edges:
    """Verified pairs of nodes (rows of `table`, in id order)."""
    slots = np.flatnonzero(speaks).astype(np.int32)
    columns = KeyColumns(shape[0], _MEMORY, None)
    columns.append(band_keys(table[slots], *shape))
    candidates = PairRuns(len(table), _MEMORY, None, "pairs")
    for pairs in join(columns, slots, _MEMORY):
        candidates.add(pairs)
    every = np.arange(len(table), dtype=np.int32)
    if sets is None:
        return Edges.gather(verified(candidates, lambda pairs: estimate(table, every, pairs), threshold))
    return _exact_edges(table, sets, candidates, threshold)


def _exact_edges(table: npt.NDArray[np.uint32], sets: Sequence[Shingles], candidates: PairRuns, threshold: float) -> Edges:
    every = np.arange(len(table), dtype=np.int32)
    floor = threshold - slack(threshold, table.shape[1])
    likely = PairRuns(len(table), _MEMORY, None, "likely")
    prefilter(candidates, likely, lambda pairs: estimate(table, every, pairs) >= floor)
    sizes = np.array([len(s) for s in sets], dtype=np.int64)

    def read(wanted: Rows) -> list[Shingles]:
        return [sets[i] for i in wanted.tolist()]

    def judge(pairs: Pairs) -> Similarity:
        return exact(pairs, sizes, read, threshold)

    return Edges.gather(verified(likely, judge, threshold))


def _answer(names: pa.Array, numbers: Rows, group: Rows, head_number: npt.NDArray[Any]) -> pa.Table:
    """Rows of the public table. `group` is each document's centre node; the smallest id of a group names it."""
    size = np.bincount(group, minlength=len(head_number))
    lowest = np.full(len(head_number), np.iinfo(np.int32).max, dtype=np.int32)
    np.minimum.at(lowest, group, numbers)
    position = np.empty(len(numbers), dtype=np.int64)  # of each id's first occurrence
    order = np.arange(len(numbers))[::-1]
    position[numbers[order]] = order
    named = position[lowest[group]] if len(group) else np.empty(0, dtype=np.int64)
    keep = named == np.arange(len(numbers))
    return pa.table(
        [names, call("take", names, integers(named)), integers(size[group]), flags(keep)],
        schema=CLUSTER_SCHEMA,
    )
