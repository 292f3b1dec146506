"""The recrawl simulation, shortened: uniform keeps more pages fresh than proportional, and both as the Poisson form says."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from corpus.app.simulate_plot import recrawl_svg
from corpus.app.simulate_recrawl import CLOSE, GAIN, RecrawlModel, simulate_recrawl
from tests.bench.bench_schedule import run

SHORT = RecrawlModel(sites=12, pages=3_000)


def test_uniform_beats_proportional_at_three_budgets() -> None:
    """At every budget by at least 0.05 average freshness, for the same number of visits, and both close to the closed form."""
    told = simulate_recrawl(SHORT, seed=2)
    assert len(told["gains"]) == 3
    assert min(told["gains"]) >= GAIN
    for each in told["runs"]:
        assert abs(each["freshness"] - each["closed_form"]) <= 1.5 * CLOSE, "3,000 pages are few"
        assert each["visits"] == pytest.approx(1.0, abs=0.02), "the budgets are the same"
        assert each["latest_s"] < 30.0
    best = list(told["optimal"].values())
    uniform = [each["freshness"] for each in told["runs"] if each["mode"] == "uniform"]
    assert all(a > b for a, b in zip(best, uniform, strict=True)), "knowing every rate would help, if proportional does not"
    assert ElementTree.fromstring(recrawl_svg(told)).tag.endswith("svg")


def test_a_hundred_thousand_contacts_keep_the_slots_full_and_every_gap_whole() -> None:
    """20,000 hosts with Zipf sizes and one giant: ≥ 98 % of what was possible is used, and no gap is short."""
    told = run(20_000, 100_000, 256)
    assert told.contacts == 100_000
    assert told.used >= 0.98
    assert told.short_gaps == 0


@pytest.mark.slow
def test_the_whole_comparison() -> None:
    """A tenth of the whole, within the whole's own goals."""
    told = simulate_recrawl(RecrawlModel(sites=27, pages=72_000), seed=1)
    assert told["ok"]
