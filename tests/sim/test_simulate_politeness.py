"""The politeness simulation tells a polite crawl from two that are not, and ours is one."""

from __future__ import annotations

import pytest

from corpus.app.simulate_origin import Origin, OriginModel
from corpus.app.simulate_politeness import simulate_politeness
from corpus.crawl.settings import CrawlSettings

SHORT = OriginModel(hosts=8, pages=6_000, stored=5_000, people_per_s=24.0, workers=4, queue=40, calm_s=700.0, surge_s=200.0, after_s=700.0, warm_s=100.0)  # fmt: skip


def _by_policy(model: OriginModel, seed: int = 1, **changes: float) -> dict[str, dict[str, float]]:
    told = simulate_politeness(model, CrawlSettings(**changes), seed=seed)
    return {run["policy"]: run for run in told["runs"]} | {"told": told}


def test_ours_is_polite_and_comes_back_and_the_others_are_not() -> None:
    """People's p95 stays within 1.2 × that without a crawl, and 80 % of the rate is held again within ten minutes; a shared
    FIFO and a fixed rate harm people, else the model could not tell."""
    runs = _by_policy(SHORT)
    assert runs["ours"]["harm"] <= 1.2
    assert runs["ours"]["recovered_s"] <= 600.0
    assert runs["ours"]["polite"]
    assert runs["ours"]["recovers"]
    for impolite in ("fifo", "fixed"):
        assert runs[impolite]["harm"] > 1.2
        assert runs[impolite]["origin_load"] > 0.9
    assert runs["told"]["ok"]
    assert runs["ours"]["share_of_expensive"] > 1.5 * runs["ours"]["share_of_requests"], "a crawler reads the long tail"
    assert runs["ours"]["refused"] < runs["fifo"]["refused"] / 20


def test_a_pace_that_ignores_health_fails() -> None:
    """The simulation can fail us: with a floor of a tenth of a second towards hosts that did not agree to it, people wait."""
    hasty = CrawlSettings(delay=0.1, delay_start=0.1, latency_factor=0.01, allow_private=("198.51.100.0/24",), ip_slots=64)
    told = simulate_politeness(SHORT, hasty, seed=1)
    assert not told["ok"]


def test_people_do_not_depend_on_the_crawler() -> None:
    """The same seed lets the same people in at the same times, crawled or not."""
    alone, crawled = Origin(SHORT, 5), Origin(SHORT, 5)
    for second in range(100, 400):
        crawled.ask(second, float(second))
    alone.until(400.0)
    crawled.until(400.0)
    assert alone.tally.people == crawled.tally.people > 1000
    assert crawled.tally.crawler == 300


@pytest.mark.slow
def test_the_whole_simulation_on_several_seeds() -> None:
    """The model as the verb runs it, on three seeds."""
    for seed in (1, 2, 3):
        assert _by_policy(OriginModel(), seed)["told"]["ok"]
