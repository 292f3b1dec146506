"""Laws of the pace: bounds, direction, and that a host which asks for quiet gets it."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.crawl.pace import (
    NEVER_S,
    Good,
    Neutral,
    Pace,
    Park,
    Throttled,
    Trouble,
    after,
    host_after,
    host_with_crawl_delay,
    limits,
    start,
    verdict,
)
from corpus.crawl.ports import Due, HostRow
from corpus.crawl.settings import CrawlSettings

SETTINGS = CrawlSettings(delay=2.0, delay_start=5.0)
BOUNDS = limits("h.test", SETTINGS)

odd = st.one_of(st.floats(allow_nan=True, allow_infinity=True), st.floats(0, 120))
answers = st.one_of(
    st.builds(Good, odd, st.booleans()),
    st.just(Neutral()),
    st.builds(Throttled, st.one_of(st.none(), odd)),
    st.just(Trouble()),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(answers, max_size=40))
def test_no_history_brings_the_gap_under_the_floor_or_past_the_cap(history: list[Good | Neutral | Throttled | Trouble]) -> None:
    """The gap stays between `delay` and `backoff_max`; a wait is never shorter than the gap; every number stays a number."""
    pace = start(BOUNDS)
    for answer in history:
        before, pace = pace, after(pace, answer, SETTINGS, BOUNDS, host="h.test")
        assert SETTINGS.delay <= pace.gap_s <= SETTINGS.backoff_max
        assert pace.gap_s <= pace.wait_s < math.inf
        assert all(0 <= x < math.inf for x in (pace.latency_s, pace.median_s))
        match answer:
            case Good(cached=True):
                assert (pace.strikes, pace.latency_s) == (before.strikes, before.latency_s)
            case Good():
                assert pace.strikes in (0, before.strikes)
            case Neutral():
                assert pace.gap_s == before.gap_s
            case Trouble() | Throttled():
                assert pace.gap_s >= before.gap_s
                assert pace.strikes == before.strikes + 1
                assert (pace.latency_s, pace.median_s) == (before.latency_s, before.median_s), "no credit for its speed"


@settings(max_examples=60, deadline=None)
@given(st.floats(2.0, 10_000), st.floats(0.001, 60))
def test_good_answers_come_down_by_a_twentieth_and_settle_where_latency_says(gap: float, latency: float) -> None:
    """Each good answer earns 5 % of the start back, never more; the end is max(floor, factor × latency, but not past park_after)."""
    pace = Pace(gap, gap, latency, latency)
    target = max(SETTINGS.delay, min(SETTINGS.latency_factor * latency, SETTINGS.park_after))
    for _ in range(30):
        before, pace = pace, after(pace, Good(latency), SETTINGS, BOUNDS)
        assert pace.wait_s >= target - 1e-9
        assert pace.gap_s >= before.gap_s - 0.05 * SETTINGS.delay_start - 1e-9
        if before.gap_s > SETTINGS.delay:
            assert pace.gap_s < before.gap_s
        assert pace.wait_s == max(pace.gap_s, target)


@settings(max_examples=60, deadline=None)
@given(st.lists(answers, max_size=12), st.floats(0.5, 10_000))
def test_retry_after_is_never_cut_short(history: list[Good | Neutral | Throttled | Trouble], asked: float) -> None:
    """Whatever came before: the next contact is at least as far away as the site asked; a long wait parks with its reason."""
    pace = start(BOUNDS)
    for answer in [*history, Throttled(asked)]:
        pace = after(pace, answer, SETTINGS, BOUNDS, host="h.test")
    assert pace.wait_s >= asked
    outcome = verdict(pace, SETTINGS)
    assert outcome.wait_s >= asked
    if asked > SETTINGS.park_after:
        assert outcome == Park("retry-after", pace.wait_s)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.one_of(answers, st.builds(lambda x: ("robots", x), st.one_of(st.none(), odd))), max_size=20))
def test_a_host_row_never_loses_a_wait_it_owes(history: list[object]) -> None:
    """Reading robots.txt only lengthens the running wait; a binding Crawl-delay holds for every later contact; the domain waits too."""
    row, wall, binding = HostRow("h.test", "h.test"), 1000.0, 0.0
    for event in history:
        before = row
        if isinstance(event, tuple):
            row = host_with_crawl_delay(row, event[1], SETTINGS, wall)
            binding = event[1] if event[1] is not None and event[1] > SETTINGS.delay else 0.0
            assert row.due.remaining(wall) >= before.due.remaining(wall) - 1e-6
        else:
            assert isinstance(event, Good | Neutral | Throttled | Trouble)
            row = host_after(row, event, SETTINGS, wall)
            assert row.due.set_at == wall
        assert row.due.wait_s >= SETTINGS.delay or isinstance(event, tuple)
        assert row.due.wait_s >= min(binding, NEVER_S)
        assert row.domain_due.remaining(wall) >= min(row.due.wait_s, SETTINGS.delay)
        assert (row.state == "parked") == (row.due.wait_s > SETTINGS.park_after)
        wall += 0.5


@given(st.floats(0, 1e6), st.floats(0, 1e5), st.floats(0, 1e6))
def test_a_deadline_survives_clock_jumps(set_at: float, wait: float, wall: float) -> None:
    """The rest of a wait is never negative and never more than the whole, wherever the wall clock jumps."""
    assert 0.0 <= Due(set_at, wait).remaining(wall) <= wait
