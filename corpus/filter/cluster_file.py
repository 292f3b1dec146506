"""The two files a clustering leaves: `clusters.parquet` and, where asked for, the verified pairs inside its clusters.

Sorted by id, zstd, fixed schemas; the same grouping gives the same bytes. A linked near copy counts in its original's
cluster and bears its id; it has no text, so nobody can elect it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.filter.bands import Rows
from corpus.filter.hex_ids import Words, to_hex
from corpus.filter.representatives import Facts, Places
from corpus.filter.verify_pairs import Edges

CLUSTERS = pa.schema(
    [
        ("id", pa.string()),
        ("cluster_id", pa.string()),
        ("cluster_size", pa.int64()),
        ("center", pa.bool_()),
        ("similarity", pa.float64()),
    ]
)
"""`similarity` is to the centre: 1.0 for it and its exact copies, null for a linked copy whose body was never compared."""
PAIRS = pa.schema([("a", pa.string()), ("b", pa.string()), ("similarity", pa.float64())])
"""Verified pairs of one cluster that do not touch its centre's text; `a` and `b` are the smallest ids with those texts."""

_SLICE = 131_072
_ORDER = [("id", "ascending")]


@dataclass(frozen=True, slots=True)
class Grouping:
    """`texts` (documents rows in id order) belong to nodes, `heads[node]` is a node's place in `texts`, `centre[node]` its
    star's centre; `copies` (in id order) are linked to the row `original[i]` (-1: not in the snapshot) or name the URL
    `named[i]`."""

    facts: Facts
    texts: Places
    copies: Places
    original: Places
    named: Words
    node_of: Rows
    heads: Places
    centre: Rows
    edges: Edges


@dataclass(frozen=True, slots=True)
class _Groups:
    """Per centre node: its cluster's smallest id (a place in `texts`) and size; per node: its similarity to the centre."""

    lowest: Places
    size: Places
    to_centre: npt.NDArray[np.float64]


def write_clusters(grouping: Grouping, path: Path) -> int:
    """Write the file slice by slice; returns the number of clusters."""
    groups, of_copy = _groups(grouping)
    linked = _linked(grouping, groups, of_copy)
    high = grouping.facts.id[grouping.copies, 0]
    done = clusters = 0
    with pq.ParquetWriter(
        path, CLUSTERS, compression="zstd", compression_level=3, use_dictionary=False, write_page_index=True
    ) as writer:
        for start in range(0, max(len(grouping.texts), 1), _SLICE):
            table = _texts(grouping, groups, slice(start, start + _SLICE))
            last = start + _SLICE >= len(grouping.texts)
            upto = len(linked) if last else int(np.searchsorted(high, grouping.facts.id[grouping.texts[start + _SLICE], 0]))
            if upto > done:
                table = pa.concat_tables([table, linked.slice(done, upto - done)]).sort_by(_ORDER)
                done = upto
            clusters += table["center"].combine_chunks().true_count
            writer.write_table(table, row_group_size=2 * _SLICE)
    return clusters


def _groups(g: Grouping) -> tuple[_Groups, Rows]:
    """The clusters, and the centre node of each linked copy's original (-1 without one)."""
    nodes = len(g.heads)
    known = g.original >= 0
    of_copy = np.full(len(g.copies), -1, dtype=np.int32)
    if known.any():
        place = np.full(int(g.facts.starts[-1]), -1, dtype=np.int32)
        place[g.texts] = np.arange(len(g.texts), dtype=np.int32)
        of_copy[known] = g.node_of[place[g.original[known]]]
    size = np.bincount(g.node_of, minlength=nodes) + np.bincount(of_copy[known], minlength=nodes)
    lowest = g.heads.copy()
    np.minimum.at(lowest, g.centre, g.heads)
    total = np.zeros(nodes, dtype=np.int64)
    np.add.at(total, g.centre, size)
    value = np.ones(nodes, dtype=np.float64)
    for member, other in ((g.edges.a, g.edges.b), (g.edges.b, g.edges.a)):
        led = g.centre[member] == other
        value[member[led]] = g.edges.similarity[led]
    return _Groups(lowest, total, value), of_copy


def _texts(g: Grouping, groups: _Groups, part: slice) -> pa.Table:
    node = g.node_of[part]
    lead = g.centre[node]
    ids = g.facts.id[g.texts[part]]
    center = g.heads[lead] == np.arange(part.start, part.start + len(node))
    names = g.facts.id[g.texts[groups.lowest[lead]]]
    return _table(ids, names, groups.size[lead], center, groups.to_centre[node])


def _linked(g: Grouping, groups: _Groups, of_copy: Rows) -> pa.Table:
    """The rows of linked copies, in id order. Those whose original is not there form one cluster per URL they name."""
    known = of_copy >= 0
    ids = g.facts.id[g.copies]
    names, size = ids.copy(), np.ones(len(ids), dtype=np.int64)
    center, value = np.zeros(len(ids), dtype=bool), np.full(len(ids), np.nan)
    lead = g.centre[of_copy[known]]
    names[known] = g.facts.id[g.texts[groups.lowest[lead]]]
    size[known] = groups.size[lead]
    same = g.facts.content[g.copies[known]] == g.facts.content[g.original[known]]
    value[known] = np.where(same, groups.to_centre[of_copy[known]], np.nan)
    lost = np.flatnonzero(~known)
    _, first, group = np.unique(g.named[lost], axis=0, return_index=True, return_inverse=True)
    first = lost[first[group.reshape(-1)]]
    names[lost], size[lost] = ids[first], np.bincount(first, minlength=len(ids))[first]
    center[lost] = first == lost
    value[lost[center[lost]]] = 1.0
    return _table(ids, names, size, center, value)


def _table(ids: Words, names: Words, size: Places, center: npt.NDArray[np.bool_], value: npt.NDArray[np.float64]) -> pa.Table:
    arrays = [to_hex(ids), to_hex(names), pa.array(size, pa.int64()), pa.array(center), pa.array(value, mask=np.isnan(value))]
    return pa.table(arrays, schema=CLUSTERS)


def write_pairs(g: Grouping, path: Path) -> int:
    """Write the verified pairs inside clusters; returns their number."""
    e = g.edges
    inside = (g.centre[e.a] == g.centre[e.b]) & (g.centre[e.a] != e.a) & (g.centre[e.b] != e.b)
    chosen = np.flatnonzero(inside)  # edges are sorted by row, that is by id
    with pq.ParquetWriter(
        path, PAIRS, compression="zstd", compression_level=3, use_dictionary=False, write_page_index=True
    ) as writer:
        for start in range(0, len(chosen), _SLICE):
            part = chosen[start : start + _SLICE]
            names = [to_hex(g.facts.id[g.texts[g.heads[side[part]]]]) for side in (e.a, e.b)]
            writer.write_table(pa.table([*names, pa.array(e.similarity[part])], schema=PAIRS), row_group_size=_SLICE)
    return len(chosen)
