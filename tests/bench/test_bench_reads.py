"""Reading a large release: group-bys under a second, the first look-up of an id from one shard. Whole sizes; CPU time, not wall."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from corpus.app.views import Views
from tests.bench.bench_lookup import ids_of, made_up, measure


@pytest.mark.slow
def test_a_million_rows_are_grouped_in_less_than_a_second(tmp_path: Path) -> None:
    """Through the view that `corpus sql` uses, first query of a connection included."""
    project = made_up(tmp_path, 1_000_000, 100_000)
    with Views(project) as views:
        for column in ("language", "domain", "signals.words // 100"):
            started = time.process_time()
            assert len(views.query(f"SELECT {column}, count(*), sum(token_count) FROM records GROUP BY 1"))
            assert time.process_time() - started < 2.0, column  # two threads: twice the wall time
    without, with_catalog = measure(project, ids_of(project, 6), processes=3)
    assert with_catalog["first_cpu_ms"] < 0.5 * without["first_cpu_ms"], (without, with_catalog)
    assert with_catalog["first_cpu_ms"] < 100.0, with_catalog
