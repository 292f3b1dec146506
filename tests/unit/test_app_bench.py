"""The bench: every stage measures something real, and says on what."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.app.bench import bench, bench_pages
from corpus.app.bench_stages import STAGES
from corpus.errors import UsageError

KEYS = {"stage", "items", "bytes", "cpu_s", "wall_s", "items_per_cpu_s", "mb_per_cpu_s", "peak_rss_bytes"}


def test_a_stage_costs_cpu_and_memory(tmp_path: Path) -> None:
    """The first line names the input, and a stage's line has work, time and memory in it."""
    head, line = list(bench(["parse"], tmp_path))
    assert head["pages"] >= 50
    assert "demo pages" in head["input"]
    assert set(line) == KEYS
    assert line["items"] == head["pages"]
    assert line["cpu_s"] > 0
    assert line["peak_rss_bytes"] > 10**7


def test_an_unknown_stage_is_named(tmp_path: Path) -> None:
    """A misspelt stage is a usage error that lists the stages."""
    with pytest.raises(UsageError, match="no such stage: parze"):
        list(bench(["parze"], tmp_path))


@pytest.mark.parametrize("stage", [name for name in STAGES if name not in ("clusters", "consent")])
def test_every_stage_works_on_one_page(stage: str, tmp_path: Path) -> None:
    """Each stage does its work on a single demo page."""
    pages, _ = bench_pages(tmp_path)
    items, size = STAGES[stage](pages[5:7], tmp_path)()
    assert items > 0
    assert size > 0
