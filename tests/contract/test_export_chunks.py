"""What a removed domain costs a hub that stores files by chunk, in short; and the chunker that says so is one."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.bench.bench_takedown import costs, shard
from tests.bench.chunker import LEAST, MOST, chunks, new_bytes


def test_a_removed_domain_costs_less_than_a_tenth_of_its_shard(tmp_path: Path) -> None:
    """Five pages of five thousand: at most 10 % of a shard of 8 MB is new, where one large row group is 20 %."""
    found = costs(shard(tmp_path, 5_000, 600), tmp_path, (7, 500))
    assert found["shard_bytes"] < 9 * 2**20
    assert found["new_share_max"] <= 0.10, found


def test_chunks_are_cut_by_content() -> None:
    """All bytes come back, sizes are bounded and about 64 KiB, and an insertion makes only the chunks around it new."""
    data = np.random.default_rng(5).bytes(8_000_000)
    found = list(chunks(data))
    assert b"".join(found) == data
    assert all(LEAST <= len(chunk) <= MOST for chunk in found[:-1])
    assert 40_000 < len(data) / len(found) < 80_000
    assert new_bytes(data, data) == 0
    assert 0 < new_bytes(data, data[:4_000_000] + b"new" + data[4_000_000:]) < 3 * MOST
