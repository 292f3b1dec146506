"""Candidate pairs: bounded work on giant buckets, and the same pairs from memory and from disk."""

from __future__ import annotations

import numpy as np
import pytest

from corpus.filter import bands
from corpus.filter.bands import SMALL_BUCKET, KeyColumns, PairRuns, band_keys, bucket_pairs, join
from corpus.filter.verify_pairs import split


def _signatures(count: int, copies: float = 0.3) -> np.ndarray:
    random = np.random.default_rng(5)
    table = random.integers(0, 2**32 - 1, (count, 112), dtype=np.uint32)
    repeated = int(count * copies)
    table[count - repeated :] = table[random.integers(0, count - repeated, repeated)]
    table[count - repeated :, :20] = random.integers(0, 2**32 - 1, (repeated, 20), dtype=np.uint32)
    return table


def _pairs(table: np.ndarray, rows: np.ndarray, memory: int, scratch) -> np.ndarray:
    columns = KeyColumns(14, memory, scratch)
    for start in range(0, len(table), 700):
        columns.append(band_keys(table[start : start + 700], 14, 8))
    runs = PairRuns(len(table), memory, scratch, "pairs")
    for pairs in join(columns, rows, memory):
        runs.add(pairs)
    return np.concatenate([*runs.parts(), np.empty(0, dtype=np.uint64)])


def test_spilling_changes_nothing(tmp_path):
    """A budget of a few kilobytes, with key ranges and files, gives the pairs that memory alone gives."""
    table = _signatures(5000)
    rows = np.random.default_rng(1).permutation(5000).astype(np.int32)
    in_memory = _pairs(table, rows, 10**9, None)
    assert len(in_memory) > 1000
    assert np.array_equal(in_memory, _pairs(table, rows, 4096, tmp_path))


def test_a_join_over_more_keys_than_a_block_is_the_join_of_its_parts(monkeypatch, tmp_path):
    """Blocks of a hundred keys give the pairs that one block gives, in one key range and in many, from memory and from files."""
    table = _signatures(5000)
    rows = np.random.default_rng(1).permutation(5000).astype(np.int32)
    whole = _pairs(table, rows, 10**9, None)
    monkeypatch.setattr(bands, "_CACHED", 100)
    assert np.array_equal(whole, _pairs(table, rows, 10**9, None))
    assert np.array_equal(whole, _pairs(table, rows, 4096, tmp_path))


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 9, 300, 40_000, 70_001])
@pytest.mark.parametrize("block", [1, 2, 3, 1 << 15])
def test_how_much_is_looked_at_at_once_changes_nothing(monkeypatch, size, block):
    """Buckets may end, begin or go on where a block of words ends, and more of them than one slice holds: the pairs are all equal keys'."""
    monkeypatch.setattr(bands, "_CACHED", max(block, size // 1000))
    key = np.sort(np.random.default_rng(size).integers(0, max(size // 3, 1), size, dtype=np.uint64))
    packed = key << np.uint64(32) | np.arange(size, dtype=np.uint64)
    found = np.sort(np.concatenate([*bucket_pairs(packed), np.empty(0, dtype=np.uint64)]))
    first = np.searchsorted(key, key)
    assert size == 0 or np.bincount(first).max() <= SMALL_BUCKET
    naive = [a << 32 | b for b in range(size) for a in range(int(first[b]), b)]
    assert np.array_equal(found, np.sort(np.array(naive, dtype=np.uint64)))


@pytest.mark.parametrize("count", [SMALL_BUCKET, SMALL_BUCKET + 1, 20_000])
def test_a_bucket_costs_at_most_two_pairs_a_member_beyond_the_small_ones(count):
    """Every pair up to the limit; beyond it a chain in id order and the smallest id, never a square."""
    packed = np.arange(count, dtype=np.uint64) | np.uint64(7) << np.uint64(32)
    pairs = np.unique(np.concatenate(list(bucket_pairs(packed))))
    a, b = split(pairs)
    assert (a < b).all()
    if count <= SMALL_BUCKET:
        assert len(pairs) == count * (count - 1) // 2
    else:
        assert len(pairs) == 2 * (count - 1) - 1
        assert set(b[a == 0]) == set(range(1, count))


def test_parts_rise_and_hold_each_pair_once(tmp_path):
    """Repeats between bands vanish, within memory and across spills."""
    random = np.random.default_rng(2)
    runs = PairRuns(10**6, 4096, tmp_path, "pairs")
    seen = []
    for _ in range(20):
        a, b = random.integers(0, 500_000, 300), random.integers(500_000, 10**6, 300)
        pairs = a.astype(np.uint64) << np.uint64(32) | b.astype(np.uint64)
        seen += [pairs, pairs]
        runs.add(pairs)
        runs.add(pairs)
    assert np.array_equal(np.concatenate(list(runs.parts())), np.unique(np.concatenate(seen)))


def test_odd_rows_have_keys_too():
    """A band of an odd number of values is keyed by exactly those values."""
    table = np.array([[1, 2, 3, 4, 5, 6], [1, 2, 3, 9, 9, 9], [7, 7, 7, 4, 5, 6]], dtype=np.uint32)
    keys = band_keys(table, 2, 3)
    assert keys[0, 0] == keys[0, 1] != keys[0, 2]
    assert keys[1, 0] == keys[1, 2] != keys[1, 1]
