"""The plan: shards near their size, row groups of about a thousand rows that end at the same pages after a takedown."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpus.export.plan import GROUP_BYTES_MAX, GROUP_ROWS_MAX, GROUP_ROWS_MIN, _bounds
from corpus.export.splits import may_end_sql, split_sql


@given(
    st.lists(st.integers(1, GROUP_BYTES_MAX + 5), min_size=1, max_size=60), st.integers(0, 20), st.randoms(use_true_random=False)
)
def test_row_groups_cover_a_shard_within_their_limits(sizes, skipped, random):
    """Groups are contiguous, never empty, and above the byte limit only when a single row is."""
    padded = np.array([1] * skipped + sizes, dtype=np.int64)
    ends = np.array([random.random() < 0.3 for _ in padded])
    bounds = _bounds(skipped, len(padded), padded, ends)
    assert bounds[0] == skipped
    assert bounds[-1] == len(padded)
    for low, high in itertools.pairwise(bounds):
        assert low < high <= low + GROUP_ROWS_MAX
        assert padded[low:high].sum() <= GROUP_BYTES_MAX or high == low + 1


def test_row_groups_find_their_ends_again_after_rows_are_removed():
    """Without some hundred rows in the middle, all groups away from them end at the same pages."""
    random = np.random.default_rng(3)
    ends = random.random(40_000) < 1 / 512
    names = np.arange(40_000)
    kept = np.delete(names, slice(10_000, 10_300))
    ones = np.ones(40_000, dtype=np.int64)
    before = set(_bounds(0, 40_000, ones, ends)[1:-1])
    after = {int(kept[b - 1]) + 1 for b in _bounds(0, len(kept), ones[: len(kept)], ends[kept])[1:-1]}
    assert len(before) > 20
    assert len(before & after) / len(before) > 0.8
    assert all(
        GROUP_ROWS_MIN <= high - low <= GROUP_ROWS_MAX for low, high in zip(sorted(before)[:-1], sorted(before)[1:], strict=True)
    )


def test_splits_are_decided_by_the_url_alone():
    """No validation share: everything trains; with one, eight hex digits decide."""
    assert split_sql(0.0) == "'train'"
    assert "'40000000'" in split_sql(0.25)
    assert "substr(url_id" in may_end_sql()
