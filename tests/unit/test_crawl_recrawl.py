"""When pages fall due, how their rate of change is estimated, and how the kinds of visits are mixed."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.crawl.cached import HIT, MISS, cache_of
from corpus.crawl.mix import Mix
from corpus.crawl.nouns import NO_HISTORY, Change, History, QueuedUrl
from corpus.crawl.priority import FRONTS, PRIOR_QUALITY, front, host_quality, url_front, with_host
from corpus.crawl.recrawl import (
    DAY_S,
    NEVER_BIN,
    SPREAD,
    Plan,
    bin_rate,
    compared,
    freshness,
    interval_s,
    next_visit,
    optimal_interval,
    plan,
    rate,
    rate_bin,
)
from corpus.crawl.settings import RecrawlSettings
from corpus.crawl.versions import change_of
from corpus.model import Kind, UrlState

MINUTE_S = 60.0


def _settings(**changes: object) -> RecrawlSettings:
    base = {"every": 30 * DAY_S, "min_interval": 10 * MINUTE_S, "max_interval": 90 * DAY_S}
    return RecrawlSettings.model_validate({**base, **changes})


def _watch(changes_every_s: float, of: Plan, visits: int, seed: int = 1) -> list[float]:
    """Intervals of a page that changes as a Poisson process, visited when it is due."""
    drawn, now, history, intervals = random.Random(seed), 0.0, History(checked_at=0.0), []
    for _ in range(visits):
        wait = next_visit("http://a.test/", now, of, history).wait_s
        changed = drawn.random() < -math.expm1(-wait / changes_every_s)
        now += wait
        history = compared(history, now, Change.MAJOR if changed else Change.UNCHANGED)
        intervals.append(wait)
    return intervals


# ---- uniform


@given(st.text(max_size=60), st.floats(1.0, 1e9), st.floats(1.0, 1e8))
def test_uniform_visits_are_within_a_tenth_of_the_interval(url: str, at: float, every: float) -> None:
    """Each URL's own interval is within ±10 % of `every`, the same at every visit, whatever the page does."""
    of = Plan(RecrawlSettings(every=every))
    due = next_visit(url, at, of)
    assert due.set_at == at
    assert (1 - SPREAD) * every <= due.wait_s <= (1 + SPREAD) * every
    assert next_visit(url, at + 5, of, History(3.0, 3.0, 5.0, at)).wait_s == due.wait_s


def test_a_burst_spreads_and_a_long_crawl_has_no_crowded_hundredth() -> None:
    """What was crawled within the hour is spread evenly over the next fifth of an interval; after ten rounds no hundredth of an
    interval holds more than 1.5 × the mean."""
    every = 100_000.0
    of = Plan(RecrawlSettings(every=every))
    first: Counter[int] = Counter()
    later: Counter[int] = Counter()
    for n in range(60_000):
        at = n * 0.05
        for turn in range(12):
            at += next_visit(f"http://s{n % 97}.test/{n}", at, of).wait_s
            if turn == 0:
                first[int((at - 0.9 * every) // (every / 100))] += 1
            if 10.5 * every <= at < 11.5 * every:
                later[int((at - 10.5 * every) // (every / 100))] += 1
    assert max(first[n] for n in range(24)) <= 1.5 * 60_000 / 20
    assert len(later) == 100
    assert max(later.values()) <= 1.5 * sum(later.values()) / 100


# ---- the estimate


@pytest.mark.parametrize("changes_a_day", [0.05, 0.3, 1.0])
def test_the_estimate_finds_the_rate(changes_a_day: float) -> None:
    """Over many pages visited daily, the average estimate is within a fifth of the true rate (Cho and Garcia-Molina's
    correction takes the bias out); a page that never changed has rate 0, one never compared has none."""
    drawn, found = random.Random(3), []
    for _ in range(4000):
        history = History(checked_at=0.0)
        for day in range(1, 15):
            changed = drawn.random() < -math.expm1(-changes_a_day)
            history = compared(history, day * DAY_S, Change.MAJOR if changed else Change.UNCHANGED)
        found.append(rate(history) or 0.0)
    assert sum(found) / len(found) * DAY_S == pytest.approx(changes_a_day, rel=0.2)
    assert rate(NO_HISTORY) is None
    assert rate(compared(History(checked_at=0.0), DAY_S, Change.UNCHANGED)) == 0.0


def test_a_minor_change_is_no_change_and_nothing_is_compared_twice() -> None:
    """Dates and counters do not make a page news; a first visit starts the watch and compares nothing."""
    first = compared(NO_HISTORY, 100.0, None)
    assert (first.seen, first.checked_at) == (0.0, 100.0)
    minor = compared(first, 200.0, Change.MINOR)
    assert (minor.seen, minor.changed, minor.watched_s) == (1.0, 0.0, 100.0)
    assert compared(first, 200.0, Change.GONE).changed == 1.0


@given(st.floats(0.01, 8.0), st.floats(0.0, 1.0), st.floats(1.0, 1e8))
def test_bins_are_fine_enough(seen: float, share: float, watched: float) -> None:
    """A page's bin tells its rate to within a tenth."""
    history = History(seen, seen * share, watched, 0.0)
    value, number = rate(history), rate_bin(history)
    assert value is not None
    assert number is not None
    if number == NEVER_BIN:
        assert value == 0.0
    else:
        assert bin_rate(number) == pytest.approx(value, rel=0.1)


# ---- by change


def test_news_are_visited_every_few_minutes_and_archives_monthly() -> None:
    """`by-change` finds the pace of both from nothing: within two dozen visits a page that changes all the time is visited
    at the shortest interval, one that never changes at the longest."""
    of = Plan(_settings(mode="by-change", max_interval=30 * DAY_S))
    news = _watch(MINUTE_S, of, 24)
    assert news[0] == pytest.approx(math.sqrt(10 * MINUTE_S * 30 * DAY_S), rel=0.11)
    assert max(news[-5:]) <= 11 * MINUTE_S + 1
    assert sum(news[:12]) < 5 * DAY_S, "found within days, not months"
    archive = _watch(3650 * DAY_S, of, 16)
    assert min(archive[-3:]) >= 27 * DAY_S
    assert all(b <= 2.3 * a for a, b in itertools.pairwise(archive)), "one unchanged visit proves little"
    weekly = _watch(7 * DAY_S, of, 200)
    assert 3 * DAY_S < sum(weekly[-100:]) / 100 < 14 * DAY_S


@given(st.floats(0.0, 8.0), st.floats(0.0, 1.0), st.floats(0.0, 1e9), st.sampled_from(["by-change", "proportional", "optimal"]))
def test_intervals_keep_their_bounds(seen: float, share: float, watched: float, mode: str) -> None:
    """Whatever a history says, visits are at least `min_interval` and at most `max_interval` apart (spread aside)."""
    config = _settings(mode=mode)
    of = Plan(config, 0.7)
    interval = interval_s(History(seen, seen * share, watched, 0.0), of)
    assert config.min_interval <= interval <= config.max_interval


# ---- shared budgets


def test_plans_spend_what_uniform_would() -> None:
    """`proportional` and `optimal` share out exactly the visits of `uniform`; the optimum leaves hectic pages alone."""
    rates = {rate_bin(History(1.0, 1.0, DAY_S * 2.0**n, 0.0)) or 0: 1000 for n in range(-6, 10)}
    for mode in ("proportional", "optimal"):
        config = _settings(mode=mode, min_interval=0.001, max_interval=1e12)
        of = plan(config, rates)
        known = [History(1.0, 1.0, math.log(3.0) / bin_rate(number), 0.0) for number in rates]
        spent = sum(1000 / interval_s(history, of) for history in known)
        assert spent == pytest.approx(16_000 / config.every, rel=0.02), mode
        hectic = max(known, key=lambda history: rate(history) or 0.0)
        if mode == "optimal":
            assert interval_s(hectic, of) == config.max_interval
    assert plan(_settings(), rates).level == 0.0
    assert interval_s(NO_HISTORY, plan(_settings(mode="optimal"), {})) == 30 * DAY_S, "nothing known: uniform"


def test_the_optimum_is_best_and_proportional_is_worst() -> None:
    """At the same number of visits: optimal ≥ uniform ≥ proportional in average freshness, for any mixture of rates."""
    drawn = random.Random(5)
    for _ in range(20):
        values = [drawn.gammavariate(0.4, 3.0) / DAY_S + 1e-9 for _ in range(200)]
        histories = [History(1.0, 1.0, math.log(3.0) / value, 0.0) for value in values]
        bins = Counter(rate_bin(history) or 0 for history in histories)
        average = {}
        for mode in ("optimal", "uniform", "proportional"):
            of = plan(_settings(mode=mode, every=drawn.uniform(0.3, 5.0) * DAY_S if False else 2 * DAY_S, min_interval=0.001, max_interval=1e12), bins)  # fmt: skip
            average[mode] = sum(freshness(v * interval_s(h, of)) for v, h in zip(values, histories, strict=True)) / 200
        assert average["optimal"] >= average["uniform"] - 0.01
        assert average["uniform"] >= average["proportional"]


def test_the_optimal_interval_solves_its_equation() -> None:
    """1 - (1 + x)e^-x = level * rate."""
    interval = optimal_interval(0.5, 0.4)
    x = 0.5 * interval
    assert 1 - (1 + x) * math.exp(-x) == pytest.approx(0.2, abs=1e-9)
    assert optimal_interval(5.0, 0.4) == math.inf


# ---- what changed


@settings(max_examples=50)
@given(st.sampled_from(sorted(UrlState)), st.booleans(), st.booleans())
def test_changes_are_told_apart(state: UrlState, same: bool, near: bool) -> None:
    """Same bytes or 304: unchanged. A near copy of itself: minor. Other words, or too few to compare: major. 404: gone, once."""
    before = QueuedUrl("u", "u", "h", "d", Kind.PAGE, 0, 0, "", 0, 0.5, content_sha256="aa", simhash=0b1111, history=History(checked_at=1.0), again=True)  # fmt: skip
    found = change_of(before, state, "aa" if same else "bb", 0b0111 if near else 0xFFFF0000, 3)
    match state:
        case UrlState.NOT_MODIFIED:
            assert found is Change.UNCHANGED
        case UrlState.FETCHED:
            assert found is (Change.UNCHANGED if same else Change.MINOR if near else Change.MAJOR)
        case UrlState.GONE:
            assert found is Change.GONE
        case _:
            assert found is None


# ---- mixing


@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 1.0))
def test_the_mix_holds_its_share(share: float) -> None:
    """While both kinds can be had, revisits get their share of any thousand contacts, to the contact."""
    mix, revisits = Mix(share), 0
    for _ in range(1000):
        again = mix.revisits_next()
        revisits += again
        mix.took(again=again)
    assert abs(revisits - 1000 * share) <= 1.5


def test_a_kind_that_could_not_be_served_does_not_take_everything_later() -> None:
    """After ten thousand contacts without a revisit, the revisits that follow in a row are few."""
    mix = Mix(0.3)
    for _ in range(10_000):
        mix.took(again=False)
    in_a_row = 0
    while mix.revisits_next():
        mix.took(again=True)
        in_a_row += 1
    assert in_a_row < 50


# ---- priority


def test_priority_is_one_number_and_every_part_of_it_counts() -> None:
    """Nearer, claimed, linked by others, of a good host, changing (under by-change alone), due: each comes earlier."""
    base = front(3)
    assert front(2) < base < front(4)
    assert front(3, 1.0) < base < front(3, 0.0)
    assert front(3, linking=30) < front(3, linking=1) < base
    assert front(3, quality=1.0) < base < front(3, quality=0.0)
    assert front(3, again=True) < base
    moving = History(2.0, 2.0, 10.0, 0.0)
    assert front(3, history=moving, by_change=True) < base == front(3, history=moving)
    assert front(20, 0.0, quality=0.0) == FRONTS - 1
    assert front(0, kind=Kind.SITEMAP) < front(0, 1.0)
    assert front(3, linking=9, quality=0.4) == with_host(url_front(3), 9, 0.4)


def test_host_quality_needs_documents_to_count() -> None:
    """Nobody is judged by one page; many useless documents make a host several times as rare as many useful ones."""
    assert host_quality(0, 0, 0, 0) == PRIOR_QUALITY
    assert host_quality(1, 0, 0, 0) >= 0.5
    good, spam = host_quality(500, 500, 500, 500), host_quality(500, 0, 0, 500)
    assert 2 ** ((with_host(36, 0, spam) - with_host(36, 0, good)) / 64) > 4
    assert host_quality(100, 100, 50, 100) > host_quality(100, 100, 10, 100)


# ---- caches


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ((("X-Cache", "HIT"),), (HIT, None)),
        ((("X-Cache", "Miss from cloudfront"),), (MISS, None)),
        ((("x-cache", "MISS, HIT"), ("Age", "12")), (HIT, 12)),
        ((("X-Cache", "TCP_MISS from a (b/1)"),), (MISS, None)),
        ((("X-Cache", "TCP_REFRESH_HIT"),), (HIT, None)),
        ((("CF-Cache-Status", "DYNAMIC"),), (MISS, None)),
        ((("CF-Cache-Status", "EXPIRED"), ("Age", "0")), (MISS, 0)),
        ((("CF-Cache-Status", "STALE"),), (HIT, None)),
        ((("Cache-Status", "OriginCache; hit; ttl=1100, \"CDN Company Here\"; hit; ttl=545"),), (HIT, None)),
        ((("Cache-Status", "ExampleCache; fwd=uri-miss; stored"), ("X-Cache", "HIT")), (MISS, None)),
        ((("Age", "300"),), (HIT, 300)),
        ((("Age", "-5"),), ("", None)),
        ((("Age", "9" * 40),), (HIT, 10 * 366 * 86_400)),
        ((("X-Cache", "\x00\xff banana"),), ("", None)),
        ((), ("", None)),
    ],
)  # fmt: skip
def test_what_caches_say(headers: tuple[tuple[str, str], ...], said: tuple[str, int | None]) -> None:
    """Hit, miss or nothing, in every common spelling; a miss is never read into silence."""
    assert cache_of(headers) == said
