"""Judging pairs: exact Jaccard, its estimate, and shingles on disk."""

from __future__ import annotations

import numpy as np
import pytest

from corpus.errors import StoreError
from corpus.filter.verify_pairs import ShingleFile, estimate, exact, jaccard, split
from tests import make_families as mf


def _set(*values: int) -> np.ndarray:
    return np.array(sorted(values), dtype=np.uint64)


def test_jaccard_counts_shared_over_all():
    """Half of the union shared is one half; nothing in common is nothing, and so are two empty sets."""
    assert jaccard(_set(1, 2, 3), _set(2, 3, 4)) == 0.5
    assert jaccard(_set(1), _set(2)) == 0.0
    assert jaccard(_set(), _set()) == 0.0
    assert jaccard(_set(5, 6), _set(5, 6)) == 1.0


def test_estimates_are_near_the_truth():
    """The share of equal values estimates Jaccard within four standard errors."""
    words = [f"w{i}" for i in range(600)]
    texts = [" ".join(words[i : i + 400]) for i in (0, 20, 60, 150)]
    sets, signatures = mf.shingles(texts), mf.minhash(texts)
    pairs = np.array([a << 32 | b for a in range(4) for b in range(a + 1, 4)], dtype=np.uint64)
    for value, a, b in zip(estimate(signatures, np.arange(4, dtype=np.int32), pairs), *split(pairs), strict=True):
        truth = jaccard(sets[a], sets[b])
        assert abs(value - truth) <= 4 * (truth * (1 - truth) / 112) ** 0.5 + 0.01


def test_sizes_alone_refuse_and_files_give_back_what_was_written(tmp_path):
    """A pair whose sizes exclude the threshold is not read; all others are judged from the scratch file."""
    sets = [_set(*range(100)), _set(*range(90)), _set(*range(10)), _set()]
    file = ShingleFile(tmp_path / "shingles.u64", 4)
    file.write(np.array([2, 0], dtype=np.int32), [sets[2], np.concatenate((sets[0], sets[0]))])
    file.write(np.array([1], dtype=np.int32), [sets[1]])
    read: list[int] = []

    def reader(rows):
        read.extend(rows.tolist())
        return file.read(rows)

    pairs = np.array([0 << 32 | 1, 0 << 32 | 2, 1 << 32 | 3], dtype=np.uint64)
    assert exact(pairs, file.sizes, reader, 0.75).tolist() == [0.9, 0.0, 0.0]
    assert read == [0, 1]
    file.close()


@pytest.mark.parametrize("apart", [1, 2, 17, 900])
def test_a_table_in_a_file_is_judged_as_one_in_memory(tmp_path, apart):
    """Rows that lie beside each other, some apart and far apart are read from the file as they stand in it, each side of a pair its own."""
    random = np.random.default_rng(apart)
    count = 12_000
    table = random.integers(0, 3, (count, 7), dtype=np.uint32)
    mapped = np.memmap(tmp_path / "signatures.u32", dtype=np.uint32, mode="w+", shape=table.shape)
    mapped[:] = table
    slots = random.permutation(count).astype(np.int32)
    a = np.arange(0, count - 1, apart, dtype=np.uint64)
    pairs = a << np.uint64(32) | random.integers(a + np.uint64(1), count, dtype=np.uint64)
    for slot_of in (np.arange(count, dtype=np.int32), slots):
        said = estimate(mapped, slot_of, pairs)
        assert np.array_equal(said, estimate(table, slot_of, pairs))
        left, right = split(pairs)
        assert np.array_equal(said, (table[slot_of[left]] == table[slot_of[right]]).mean(axis=1))


def test_a_table_that_is_cut_off_is_no_answer(tmp_path):
    """A scratch file that lost its end (a full disk) stops the step; what was in memory before is no signature."""
    mapped = np.memmap(tmp_path / "signatures.u32", dtype=np.uint32, mode="w+", shape=(100, 4))
    (tmp_path / "signatures.u32").write_bytes(b"\0" * 16 * 60)
    pairs = np.array([3 << 32 | 80], dtype=np.uint64)
    with pytest.raises(StoreError):
        estimate(mapped, np.arange(100, dtype=np.int32), pairs)
