"""Judging pairs: exact Jaccard, its estimate, and shingles on disk."""

from __future__ import annotations

import numpy as np

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
