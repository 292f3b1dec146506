"""A removed domain stays cheap to publish: the whole measurement; `tests/contract/test_export_chunks.py` has a short one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.bench_takedown import costs, shard


@pytest.mark.slow
@pytest.mark.parametrize("words", [220, 600])
def test_a_removed_domain_costs_less_than_a_tenth_of_its_shard(tmp_path: Path, words: int) -> None:
    """Twenty pages of twenty thousand: at most 10 % of the shard is new, whichever of ten domains goes."""
    found = costs(shard(tmp_path, 20_000, words), tmp_path)
    assert found["new_share_max"] <= 0.10, found
    assert found["new_share_mean"] <= 0.08, found
