"""The plan: shards near their size, row groups of about a thousand rows that end at the same pages after a takedown."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpus.export.plan import GROUP_BYTES_MAX, GROUP_REACH, GROUP_ROWS_MAX, _bounds
from corpus.export.splits import rank_sql, split_sql


@given(
    st.lists(st.integers(1, GROUP_BYTES_MAX + 5), min_size=1, max_size=60), st.integers(0, 20), st.randoms(use_true_random=False)
)
def test_row_groups_cover_a_shard_within_their_limits(sizes, skipped, random):
    """Groups are contiguous, never empty, and above the byte limit only when a single row is."""
    padded = np.array([1] * skipped + sizes, dtype=np.int64)
    ranks = np.array([random.randrange(9) if random.random() < 0.3 else -1 for _ in padded], dtype=np.int64)
    bounds = _bounds(skipped, len(padded), padded, ranks)
    assert bounds[0] == skipped
    assert bounds[-1] == len(padded)
    for low, high in itertools.pairwise(bounds):
        assert low < high <= low + GROUP_ROWS_MAX
        assert padded[low:high].sum() <= GROUP_BYTES_MAX or high == low + 1


def test_row_groups_find_their_ends_again_after_rows_are_removed():
    """Without some twenty rows, wherever they stood, all groups but one or two end at the same pages."""
    random = np.random.default_rng(3)
    ranks = np.where(random.random(40_000) < 1 / 32, random.integers(0, 2**27, 40_000), -1)
    ones = np.ones(40_000, dtype=np.int64)
    before = _bounds(0, 40_000, ones, ranks)
    assert len(before) > 40
    for low in range(5_000, 35_000, 1_000):
        kept = np.delete(np.arange(40_000), slice(low, low + 20))
        after = {int(kept[b - 1]) + 1 for b in _bounds(0, len(kept), ones[: len(kept)], ranks[kept])[1:-1]}
        assert len(set(before[1:-1]) ^ after) <= 5, low
    sizes = np.diff(before)
    assert (sizes[1:-1] > GROUP_REACH / 2).all()
    assert (sizes <= GROUP_ROWS_MAX).all()
    assert 550 < sizes.mean() < 1_000


def test_splits_are_decided_by_the_url_alone():
    """No validation share: everything trains; with one, eight hex digits decide."""
    assert split_sql(0.0) == "'train'"
    assert "'40000000'" in split_sql(0.25)
    assert "substr(url_id" in rank_sql()
