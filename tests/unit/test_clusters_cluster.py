"""The public `cluster`: its table, its refusals, and the stories that pipelines got wrong."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from corpus.errors import UsageError
from corpus.filter.clusters import CLUSTER_SCHEMA, cluster
from tests import make_families as mf


def _cluster(texts: dict[str, str], exact: bool = True) -> dict[str, dict]:
    bodies = list(texts.values())
    table = cluster(list(texts), mf.minhash(bodies), mf.shingles(bodies) if exact else None)
    return {row["id"]: row for row in table.to_pylist()}


def _words(seed: int, count: int) -> list[str]:
    return [f"s{seed}w{i}" for i in range(count)]


def test_nothing_gives_an_empty_table_of_the_same_columns():
    """No documents: no rows, and the schema of any other answer."""
    assert cluster([], np.empty((0, 112), dtype=np.uint32)).schema == CLUSTER_SCHEMA
    assert cluster([], np.empty(0, dtype=np.uint32), []).num_rows == 0


def test_arrow_ids_are_taken():
    """Ids may be an Arrow column, as the families hold them."""
    table = cluster(pa.chunked_array([["b"], ["a"]]), mf.minhash(["x y z u v w"] * 2))
    assert table["cluster_id"].to_pylist() == ["a", "a"]
    assert table["keep"].to_pylist() == [False, True]


@pytest.mark.parametrize(
    ("ids", "signatures", "shingles"),
    [
        (["a"], np.zeros((2, 112), np.uint32), None),
        (["a"], np.zeros((1, 100), np.uint32), None),
        (["a"], np.zeros((1, 112), np.int64), None),
        (["a"], np.zeros((1, 112), np.uint32), []),
        (["a", None], np.zeros((2, 112), np.uint32), None),
    ],
)
def test_arguments_that_do_not_fit_are_a_usage_error(ids, signatures, shingles):
    """Wrong lengths, widths, types and nulls are refused in plain words, never clustered."""
    with pytest.raises(UsageError):
        cluster(ids, signatures, shingles)


def test_a_repeated_id_is_one_document():
    """The same id twice shares a cluster, and is kept once."""
    table = cluster(["a", "a", "b"], mf.minhash(["one two three four five six", "x y z u v w q", "p q r s t u v"]))
    assert table["cluster_id"].to_pylist() == ["a", "a", "b"]
    assert table["keep"].to_pylist() == [True, False, True]


def test_texts_without_shingles_are_alone():
    """Short texts say nothing to MinHash: equal empty signatures never join (pipelines: unrelated pages merged)."""
    rows = _cluster({"a": "too short", "b": "also short", "c": ""}, exact=False)
    assert [row["cluster_size"] for row in rows.values()] == [1, 1, 1]
    assert [row["cluster_size"] for row in _cluster({"a": "too short", "b": "too short"}).values()] == [1, 1]


def test_many_identical_signatures_are_one_cluster():
    """Twenty thousand copies are one cluster, at once and without a square of pairs."""
    signatures = np.repeat(mf.minhash([" ".join(_words(1, 50))]), 20_000, axis=0)
    table = cluster([f"{i:05d}" for i in range(20_000)], signatures)
    assert set(table["cluster_size"].to_pylist()) == {20_000}


def test_a_big_bucket_of_near_copies_is_one_cluster():
    """A thousand near copies of one page, no two equal, are one cluster: the bucket's smallest id is their centre."""
    random = np.random.default_rng(1)
    signatures = np.repeat(mf.minhash([" ".join(_words(1, 50))]), 1000, axis=0)
    signatures[np.arange(1000), random.integers(0, 112, 1000)] = np.arange(1000, dtype=np.uint32)
    table = cluster([f"{i:05d}" for i in range(1000)], signatures)
    assert set(table["cluster_size"].to_pylist()) == {1000}


def test_tables_that_differ_in_their_digits_are_not_duplicates():
    """The accounts of 2023 and of 2024: digits count (scenario 5)."""
    from corpus.filter.signatures import minhash, shingles

    texts = [" ".join(f"item {i} {year * i % 9973} euro" for i in range(1, 60)) for year in (2023, 2024)]
    table = cluster(["a", "b"], minhash(texts), shingles(texts))
    assert table["cluster_size"].to_pylist() == [1, 1]


def test_a_shared_template_joins_only_true_copies():
    """A thousand pages with the same long template and their own 40 % body: only the planted pairs join (scenario 6)."""
    template = " ".join(_words(0, 120))
    texts = {f"{i:04d}": f"{template} {' '.join(_words(i + 1, 80))}" for i in range(500)}
    texts |= {f"{i + 500:04d}": f"{template} {' '.join([*_words(i + 1, 79), 'changed'])}" for i in range(20)}
    rows = _cluster(texts)
    joined = {name for name, row in rows.items() if row["cluster_size"] > 1}
    assert joined == {f"{i:04d}" for i in [*range(20), *range(500, 520)]}
    assert {row["cluster_size"] for row in rows.values()} == {1, 2}


def test_likeness_is_not_handed_on():
    """A chain of pages, each like the next: its ends never share a cluster, and a member always touches its centre (scenario 6)."""
    words = _words(3, 300)
    chain = {f"{i:02d}": " ".join(words[i * 12 : i * 12 + 120]) for i in range(12)}
    sets = dict(zip(chain, mf.shingles(list(chain.values())), strict=True))
    alike = lambda a, b: len(np.intersect1d(sets[a], sets[b])) / len(np.union1d(sets[a], sets[b]))  # noqa: E731
    assert alike("00", "01") > 0.75 > alike("00", "02")
    rows = _cluster(chain)
    assert max(row["cluster_size"] for row in rows.values()) <= 3
    for group in {row["cluster_id"] for row in rows.values()}:
        members = [name for name, row in rows.items() if row["cluster_id"] == group]
        assert any(all(a == b or alike(a, b) >= 0.75 for b in members) for a in members)
