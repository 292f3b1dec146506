"""A changed threshold over many documents: seconds, bounded memory, and the counts of a full run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def _run(documents: int) -> dict[str, object]:
    command = [sys.executable, "-m", "tests.bench.bench_flips", "--documents", str(documents)]
    facts: dict[str, object] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return facts


@pytest.mark.parametrize(("documents", "seconds"), [(30_000, 3.0), pytest.param(1_000_000, 5.0, marks=pytest.mark.slow)])
def test_documents_are_decided_again_in_seconds(documents: int, seconds: float) -> None:
    """A million (here thirty thousand) documents: at most 5 CPU-s of all threads, so at most 5 s warm, 2 GB, and the kept
    counts of two full decisions."""
    facts = _run(documents)
    assert facts["documents"] == documents
    assert facts["flipped"]
    assert facts["equal"] == {"kept_before": True, "kept_after": True}
    assert facts["warm_cpu_s"] <= seconds  # type: ignore[operator]
    assert facts["peak_rss_bytes"] <= 2 * 10**9  # type: ignore[operator]
