"""Laws of clustering: the answer is a function of the set of documents, and a star holds only what touches its centre."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.filter.bands import KeyColumns, PairRuns, band_keys, join
from corpus.filter.clusters import cluster
from corpus.filter.stars import stars
from corpus.filter.verify_pairs import Edges, jaccard, split
from tests import make_families as mf

LETTERS = "abcdefgh"


def _texts(draw_words: list[list[str]]) -> list[str]:
    return [" ".join(words) for words in draw_words]


documents = st.lists(st.lists(st.sampled_from(LETTERS), min_size=0, max_size=14), min_size=0, max_size=25).map(_texts)


def _groups(ids: list[str], table) -> set[frozenset[str]]:
    found = defaultdict(set)
    for name, group in zip(table["id"].to_pylist(), table["cluster_id"].to_pylist(), strict=True):
        found[group].add(name)
    return {frozenset(members) for members in found.values()}


@settings(max_examples=60, deadline=None)
@given(documents, st.randoms(use_true_random=False), st.booleans())
def test_clusters_do_not_depend_on_the_order_of_the_input(texts, random, exact):
    """Any permutation of the documents gives the same clusters, ids, sizes and kept members."""
    ids = [f"{i:04x}" for i in range(len(texts))]
    order = list(range(len(texts)))
    random.shuffle(order)
    signatures, sets = mf.minhash(texts), mf.shingles(texts)
    one = cluster(ids, signatures, sets if exact else None)
    other = cluster([ids[i] for i in order], signatures[order], [sets[i] for i in order] if exact else None)
    rows = {row["id"]: row for row in one.to_pylist()}
    assert [rows[ids[i]] for i in order] == other.to_pylist()


@settings(max_examples=60, deadline=None)
@given(documents)
def test_a_cluster_is_named_kept_and_counted_once(texts):
    """cluster_id is the smallest member id, that member alone is kept, and sizes count members."""
    ids = [f"{i:04x}" for i in range(len(texts))]
    table = cluster(ids, mf.minhash(texts), mf.shingles(texts))
    assert table["id"].to_pylist() == ids
    for members in _groups(ids, table):
        rows = [row for row in table.to_pylist() if row["id"] in members]
        assert {row["cluster_id"] for row in rows} == {min(members)}
        assert [row["id"] for row in rows if row["keep"]] == [min(members)]
        assert {row["cluster_size"] for row in rows} == {len(members)}


@settings(max_examples=60, deadline=None)
@given(documents)
def test_every_member_is_verified_against_one_centre(texts):
    """In each cluster some member is at least as similar as the threshold to every other: nothing is chained."""
    ids = [f"{i:04x}" for i in range(len(texts))]
    sets = dict(zip(ids, mf.shingles(texts), strict=True))
    for members in _groups(ids, cluster(ids, mf.minhash(texts), list(sets.values()))):
        alike = [all(a == b or jaccard(sets[a], sets[b]) >= 0.75 for b in members) for a in members]
        assert any(alike)


graphs = st.integers(1, 14).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]), max_size=40),
        st.lists(st.integers(1, 3), min_size=n, max_size=n),
    )
)


def _edges(pairs) -> Edges:
    ordered = sorted(pairs)
    a = np.array([p[0] for p in ordered], dtype=np.int32)
    b = np.array([p[1] for p in ordered], dtype=np.int32)
    return Edges(a, b, np.ones(len(ordered)))


def _greedy(n: int, pairs, weight) -> list[int]:
    """The definition, word for word."""
    near = defaultdict(set)
    for a, b in pairs:
        near[a].add(b)
        near[b].add(a)
    centre, left = list(range(n)), set(range(n))
    while left:
        chosen = min(left, key=lambda v: (-(weight[v] - 1 + sum(weight[u] for u in near[v] & left)), v))
        for member in near[chosen] & left:
            centre[member] = chosen
        left -= near[chosen] | {chosen}
    return centre


@settings(max_examples=300, deadline=None)
@given(graphs)
def test_stars_are_the_greedy_definition(graph):
    """The fast clustering equals: most unclaimed neighbours first, ties to the smallest id, members are its neighbours."""
    n, pairs, weight = graph
    assert stars(n, _edges(pairs), np.array(weight)).tolist() == _greedy(n, pairs, weight)


@settings(max_examples=100, deadline=None)
@given(graphs)
def test_collapsing_exact_copies_changes_no_star(graph):
    """A node of weight w clusters as w nodes that know each other and the same neighbours would."""
    n, pairs, weight = graph
    first = np.concatenate(([0], np.cumsum(weight)))
    copies = [list(range(first[v], first[v + 1])) for v in range(n)]
    wide = {(min(x, y), max(x, y)) for a, b in pairs for x in copies[a] for y in copies[b]}
    wide |= {pair for group in copies for pair in combinations(group, 2)}
    expanded = _greedy(int(first[-1]), wide, [1] * int(first[-1]))
    small = stars(n, _edges(pairs), np.array(weight)).tolist()
    assert [expanded[first[v]] for v in range(n)] == [first[small[v]] for v in range(n)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2), min_size=8, max_size=8), min_size=1, max_size=30), st.sampled_from([64, 10**6]))
def test_the_join_finds_every_pair_that_shares_a_band_and_no_other(rows, memory):
    """Small buckets yield exactly the pairs with an equal band, whatever the memory budget and its key ranges."""
    signatures = np.array(rows, dtype=np.uint32)
    columns = KeyColumns(4, 10**6, None)
    columns.append(band_keys(signatures, 4, 2))
    runs = PairRuns(len(rows), 10**6, None, "pairs")
    for pairs in join(columns, np.arange(len(rows), dtype=np.int32), memory):
        runs.add(pairs)
    found = {pair for part in runs.parts() for pair in zip(*(side.tolist() for side in split(part)), strict=True)}
    expected = {
        (i, j)
        for i, j in combinations(range(len(rows)), 2)
        if any(rows[i][k : k + 2] == rows[j][k : k + 2] for k in range(0, 8, 2))
    }
    assert found == expected
