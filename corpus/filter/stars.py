"""Greedy star clustering over verified pairs: no chaining, and one answer for any order of the pairs.

Repeatedly the node with the most unclaimed verified neighbours (tie: the smallest row, that is the smallest id) becomes
a centre and claims them. Every member is therefore verified against its centre; being alike through a third document
never puts two into one cluster unless that document is the centre.
"""

from __future__ import annotations

import heapq

import numpy as np
import numpy.typing as npt

from corpus.filter.bands import Pairs, Rows
from corpus.filter.verify_pairs import Edges

Counts = npt.NDArray[np.int64]

_32 = np.uint64(32)


def stars(nodes: int, edges: Edges, weight: Counts) -> Rows:
    """The centre of each node (itself where it stands alone). `weight[node]` counts its exact copies, itself included.

    A neighbour counts with its copies, so collapsing exact copies into a node changes nothing.
    """
    centre = np.arange(nodes, dtype=np.int32)
    if not len(edges.a):
        return centre
    # a byte a node, and one array of numbers: most have no neighbour, and counts of all would be larger than the edges
    several, local = _met(nodes, edges.a, edges.b)
    couple = ~(several[edges.a] | several[edges.b])
    centre[edges.b[couple]] = edges.a[couple]  # two that know only each other: the tie goes to the smaller id
    a, b = edges.a[~couple], edges.b[~couple]
    several[a] = several[b] = True
    active = np.flatnonzero(several)
    local[active] = np.arange(len(active), dtype=np.int32)
    near, degree = _neighbours(local[a], local[b]), np.bincount(local[a], minlength=len(active))
    degree += np.bincount(local[b], minlength=len(active))
    del several, couple, local
    _claim(centre, active, near, np.concatenate(([0], np.cumsum(degree))), weight[active])
    return centre


def _met(nodes: int, a: Rows, b: Rows) -> tuple[npt.NDArray[np.bool_], Rows]:
    """Which nodes have more than one neighbour; and room for a number of each."""
    last = np.full(nodes, -1, dtype=np.int32)
    ends = np.concatenate((a, b))
    times = np.arange(len(ends), dtype=np.int32)
    last[ends] = times
    several = np.zeros(nodes, dtype=bool)
    several[ends[last[ends] != times]] = True
    return several, last


def _neighbours(a: Rows, b: Rows) -> Rows:
    """The neighbours of node 0, then of node 1 …, each list ascending."""
    packed: Pairs = np.empty(2 * len(a), dtype=np.uint64)
    for half, source, target in ((packed[: len(a)], a, b), (packed[len(a) :], b, a)):
        half[:] = source
        half <<= _32
        half |= target.astype(np.uint64)
    packed.sort()
    return packed.astype(np.uint32).astype(np.int32)  # the low word


def _claim(centre: Rows, active: Counts, near: Rows, starts: Counts, mass: Counts) -> None:
    """Claim neighbours in place, largest star first. Stars only shrink, so a stale count is put back with its new one."""
    size = mass - 1 + np.add.reduceat(mass[near], starts[:-1]) if len(active) else mass
    order = np.argsort(-size, kind="stable")
    claimed = np.zeros(len(active), dtype=bool)
    again: list[tuple[int, int]] = []
    at = 0
    while at < len(order) or again:
        fresh = (-int(size[order[at]]), int(order[at])) if at < len(order) else None
        if fresh is None or (again and again[0] < fresh):
            stated, node = heapq.heappop(again)
        else:
            stated, node = fresh
            at += 1
        if claimed[node]:
            continue
        known = near[starts[node] : starts[node + 1]]
        free = known[~claimed[known]]
        true = -int(mass[node] - 1 + mass[free].sum())
        if true > stated and len(free):
            heapq.heappush(again, (true, node))
            continue
        claimed[node] = True
        claimed[free] = True
        centre[active[free]] = active[node]
