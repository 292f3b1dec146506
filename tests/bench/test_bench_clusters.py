"""Clustering at size: a floor under its speed, a ceiling on its memory, and the whole of it at twenty million."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def _run(*arguments: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.bench.bench_clusters", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    facts: dict[str, float] = json.loads(done.stdout)
    return facts


def test_the_join_is_a_few_microseconds_a_document_within_its_memory() -> None:
    """Two hundred thousand documents under a budget that spills: planted copies are found, distant relatives are not joined."""
    facts = _run("--documents", "200000", "--memory", "40000000", "--exact")
    assert facts["join_us_per_document"] <= 6
    assert facts["found"] >= 0.999 * facts["planted"]
    assert facts["edges"] <= facts["planted"]
    assert facts["peak_rss_bytes"] < 500 * 10**6


@pytest.mark.slow
@pytest.mark.parametrize(("documents", "more"), [(1_000_000, ("--exact",)), (20_000_000, ())])
def test_millions_of_documents_within_four_gigabytes(documents: int, more: tuple[str, ...]) -> None:
    """A million with exact verification, twenty million by signatures: six microseconds a document, four gigabytes a process."""
    facts = _run("--documents", str(documents), *more)
    assert facts["join_us_per_document"] <= 6
    assert facts["found"] >= 0.999 * facts["planted"]
    assert facts["edges"] <= facts["planted"]
    assert facts["peak_rss_bytes"] <= 4 * 10**9
