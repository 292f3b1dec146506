"""The pace, answer by answer, as DESIGN states it; and the tables beside it (retry, budgets, CDN ranges, states, traps)."""

from __future__ import annotations

import itertools
import math

import pytest

from corpus.crawl import states
from corpus.crawl.budget import exhausted, pages_left
from corpus.crawl.cdn import CdnTable, by_headers, ip_key, shipped
from corpus.crawl.pace import (
    NEVER_S,
    Good,
    Neutral,
    Pace,
    Park,
    Throttled,
    Trouble,
    after,
    answer_of,
    domain_gap_s,
    host_after,
    host_with_crawl_delay,
    limits,
    start,
    verdict,
    with_crawl_delay,
)
from corpus.crawl.ports import HostRow
from corpus.crawl.retry import GiveUp, ParkUrl, Requeue, next_step
from corpus.crawl.settings import CrawlSettings, TrustedHost
from corpus.errors import IllegalTransition
from corpus.model import Failed, Failure, Response, UrlState

SETTINGS = CrawlSettings()
BOUNDS = limits("h.test", SETTINGS)


def _response(status: int, latency: float = 0.3) -> Response:
    return Response(status, (), b"", b"", "", b"", "10.0.0.1", 0.0, 1.0, latency, 0)


def test_a_host_starts_slow_and_earns_its_floor() -> None:
    """5 s at first, a quarter of a second less per good answer, 2 s in the end."""
    pace = start(BOUNDS)
    assert pace.gap_s == 5.0
    gaps = []
    for _ in range(14):
        pace = after(pace, Good(0.1), SETTINGS, BOUNDS)
        gaps.append(pace.gap_s)
    assert gaps[0] == pytest.approx(4.75)
    assert gaps[11] == pytest.approx(2.0)
    assert gaps[13] == 2.0


def test_a_slow_answer_widens_the_gap_by_half_but_noise_does_not() -> None:
    """Twice the host's own median is a sign; twice three milliseconds is not."""
    slow = after(Pace(4.0, 4.0, 0.4, 0.4), Good(1.0), SETTINGS, BOUNDS)
    assert slow.gap_s == pytest.approx(5.0), "half more, but no more than a cautious start"
    assert after(Pace(2.0, 2.0, 0.4, 0.4), Good(0.9), SETTINGS, BOUNDS).gap_s == pytest.approx(3.0)
    assert after(Pace(2.0, 2.0, 0.003, 0.003), Good(0.03), SETTINGS, BOUNDS).gap_s == 2.0
    near = CrawlSettings(delay=0.02, delay_start=0.02, allow_private=("127.0.0.0/8",))
    bounds = limits("h.test", near, ("127.0.0.1",))
    pace = start(bounds)
    for latency in itertools.islice(itertools.cycle((0.001, 0.001, 0.04, 0.2)), 200):
        pace = after(pace, Good(latency), near, bounds)
    assert pace.gap_s < 1.5, "a jittery loopback server cannot talk us out of its pace for good"


def test_trouble_doubles_and_a_fast_error_earns_nothing() -> None:
    """Seven 500s in 2 ms each: 5 s become more than ten minutes of waiting, and the host is parked while it backs off."""
    pace = start(BOUNDS)
    for _ in range(7):
        pace = after(pace, answer_of(_response(500, 0.002)), SETTINGS, BOUNDS, host="h.test")
    assert 5.0 * 2**7 <= pace.wait_s <= 5.0 * 2**7 * 1.25
    assert pace.gap_s == 10.0, "one spell of trouble doubles the earned gap once"
    assert pace.median_s == 0.0
    outcome = verdict(pace, SETTINGS)
    assert isinstance(outcome, Park)
    assert outcome.reason == "backing-off"


def test_a_throttled_host_is_slower_afterwards_than_before() -> None:
    """429 with Retry-After: 30: half a minute of silence, then a longer gap than before, recovered step by step."""
    before = Pace(2.0, 2.0, 0.1, 0.1)
    told = after(before, Throttled(30.0), SETTINGS, BOUNDS, host="h.test")
    assert (told.wait_s, told.gap_s) == (30.0, 4.0)
    better = after(told, Good(0.1), SETTINGS, BOUNDS)
    assert better.gap_s == better.wait_s == pytest.approx(3.75)
    assert after(before, Throttled(-5.0), SETTINGS, BOUNDS, host="h.test").wait_s >= 4.0
    assert after(before, Throttled(math.nan), SETTINGS, BOUNDS, host="h.test").wait_s < 10.0
    waits = {after(before, Throttled(), SETTINGS, BOUNDS, host=f"h{n}.test").wait_s for n in range(50)}
    assert len(waits) == 50
    assert all(4.0 <= wait <= 5.0 for wait in waits)


def test_backing_off_ends_at_its_cap() -> None:
    """Without Retry-After the wait grows to `backoff_max` and stays there."""
    pace = start(BOUNDS)
    for _ in range(40):
        pace = after(pace, Throttled(), SETTINGS, BOUNDS, host="h.test")
    assert pace.wait_s == SETTINGS.backoff_max


def test_a_spell_of_trouble_is_one_overload() -> None:
    """After it the host is back at twice its gap, whatever the waits were; a slow answer or a cached one does not end it, and
    the next spell doubles again."""
    pace = Pace(2.0, 2.0, 0.2, 0.2)
    waits = []
    for answer in (Throttled(), Trouble(), Good(2.0), Throttled(), Good(0.01, cached=True), Throttled()):
        pace = after(pace, answer, SETTINGS, BOUNDS, host="h.test")
        waits.append(pace.wait_s)
    assert pace.strikes == 4
    assert waits[0] < waits[1] < waits[3] < waits[5]
    assert waits[5] >= 2.0 * 2**4
    assert pace.gap_s <= 5.0
    better = after(pace, Good(0.2), SETTINGS, BOUNDS, host="h.test")
    assert (better.strikes, better.wait_s) == (0, better.gap_s)
    again = after(better, Throttled(), SETTINGS, BOUNDS, host="h.test")
    assert again.gap_s == pytest.approx(2 * better.gap_s)


def test_what_a_cache_had_says_nothing_about_the_origin() -> None:
    """Its speed neither earns a shorter latency nor hides a slow origin; the answer itself is good and earns its step."""
    slow = Pace(4.0, 10.0, 2.0, 2.0)
    pace = after(slow, Good(0.01, cached=True), SETTINGS, BOUNDS)
    assert (pace.latency_s, pace.median_s, pace.gap_s, pace.wait_s) == (2.0, 2.0, 3.75, 10.0)
    said = Response(200, (("X-Cache", "HIT"), ("Age", "7")), b"", b"", "", b"", "10.0.0.1", 0.0, 1.0, 0.01, 0)
    assert answer_of(said) == Good(0.01, cached=True)


def test_a_host_that_is_fast_again_is_back_at_its_earned_gap() -> None:
    """What latency asks for lies beside the gap: it binds at once, and lets go as soon as the answers are fast again."""
    pace = Pace(2.0, 2.0, 0.2, 0.2)
    for _ in range(30):
        pace = after(pace, Good(3.0), SETTINGS, BOUNDS)
    assert pace.wait_s == pytest.approx(5 * pace.latency_s)
    assert pace.wait_s > 14.0
    for _ in range(20):
        pace = after(pace, Good(0.2), SETTINGS, BOUNDS)
    assert pace.wait_s < 3.0


@pytest.mark.parametrize("value", [None, 0.0, -3.0, 1.5, math.nan])
def test_a_crawl_delay_that_says_nothing_means_the_floor(value: float | None) -> None:
    """Absent, zero, negative, under the floor, not a number: our own pace counts."""
    assert with_crawl_delay(start(BOUNDS), value, BOUNDS) == start(BOUNDS)


def test_a_crawl_delay_binds_from_the_moment_it_is_read() -> None:
    """The very next contact waits for it, no good answer goes under it, and a longer one than we wait out parks the host."""
    row = host_after(HostRow("h.test", "h.test"), Good(0.1), SETTINGS, 100.0)
    row = host_with_crawl_delay(row, 20.0, SETTINGS, 101.0)
    assert (row.due.set_at, row.due.wait_s, row.state) == (101.0, 20.0, "active")
    for n in range(80):
        row = host_after(row, Good(0.1), SETTINGS, 200.0 + n)
    assert row.due.wait_s == 20.0
    row = host_with_crawl_delay(row, 600.0, SETTINGS, 300.0)
    assert (row.state, row.reason) == ("parked", "crawl-delay")
    assert row.due.wait_s == 600.0
    assert host_with_crawl_delay(row, math.inf, SETTINGS, 300.0).due.wait_s == NEVER_S
    row = host_with_crawl_delay(row, None, SETTINGS, 1000.0)
    assert (row.crawl_delay_s, row.state) == (None, "active")
    row = host_after(row, Good(0.1), SETTINGS, 1001.0)
    assert (row.state, row.due.wait_s) == ("active", 2.0), "a site that lifts its Crawl-delay is back at its own pace"


def test_a_domain_does_not_wait_for_one_hosts_orders() -> None:
    """Retry-After and Crawl-delay bind their host; its siblings wait as for a new host."""
    assert domain_gap_s(3.0, SETTINGS) == 3.0
    assert domain_gap_s(3600.0, SETTINGS) == 5.0


def test_fast_paces_are_for_private_and_trusted_hosts() -> None:
    """A `delay` under a second holds where every address is allowed, or where the owner agreed; elsewhere a second is the least."""
    trusted = TrustedHost(host="fast.test", delay=0.2, connections=4, why="agreed in writing")
    config = CrawlSettings(delay=0.05, delay_start=0.05, allow_private=("127.0.0.0/8",), trusted=(trusted,))
    assert limits("h.test", config, ("127.0.0.1", "127.0.0.2")).floor_s == 0.05
    assert limits("h.test", config, ("127.0.0.1", "192.0.2.1")).floor_s == 1.0
    assert limits("h.test", config).floor_s == 1.0
    fast = limits("fast.test", config)
    assert (fast.floor_s, fast.connections) == (0.2, 4)
    pace = after(start(fast), Good(2.0), config, fast)
    assert pace.gap_s == 0.2, "the owner agreed to the pace, latency or not"
    assert after(pace, Trouble(), config, fast).gap_s == 0.4, "but trouble is trouble"


def test_answers_are_told_apart() -> None:
    """Pages, 304s and honest 404s are good; refusals are neutral; 429, 503 and 5xx are what they say."""
    assert answer_of(_response(200)) == answer_of(_response(304)) == answer_of(_response(404)) == Good(0.3)
    assert answer_of(_response(403)) == answer_of(_response(401)) == Neutral()
    assert answer_of(_response(503), 7.0) == Throttled(7.0)
    assert answer_of(_response(502)) == Trouble()
    assert answer_of(Failed(Failure.THROTTLED, "", 0.0, 1.0, retry_after_s=9.0)) == Throttled(9.0)
    assert answer_of(Failed(Failure.DNS, "", 0.0, 1.0)) == Neutral()
    assert answer_of(Failed(Failure.TIMEOUT, "", 0.0, 1.0)) == Trouble()


# ---- retries


@pytest.mark.parametrize("failure", Failure)
def test_every_failure_ends(failure: Failure) -> None:
    """Each failure is retried a bounded number of times, with waits that grow with the host's pace and shrink with it."""
    pace, step, tries = 0.02, None, 0
    while not isinstance(step, GiveUp):
        tries += 1
        assert tries <= SETTINGS.retries
        step = next_step(failure, tries, pace, SETTINGS)
        if isinstance(step, Requeue):
            assert 0.0 < step.wait_s <= 4 * pace, "with a short pace nothing waits for long"
        pace *= 2
    assert step.state is UrlState.FAILED


def test_long_waits_are_left_to_another_run() -> None:
    """What is longer than `park_after` parks the URL, and the host where the host is to blame; Retry-After is kept whole."""
    assert next_step(Failure.TIMEOUT, 1, 40.0, SETTINGS) == ParkUrl("backing-off", 80.0)
    assert next_step(Failure.UNAVAILABLE, 1, 4.0, SETTINGS, 3600.0) == ParkUrl("retry-after", 3600.0, host_wide=True)
    assert next_step(Failure.UNAVAILABLE, 1, 4.0, SETTINGS, 30.0) == Requeue(30.0, host_wide=True)
    assert next_step(Failure.DNS, 3, 5.0, SETTINGS) == GiveUp(UrlState.FAILED, "dns", 300.0)
    assert next_step(Failure.CONTENT_TYPE, 1, 5.0, SETTINGS) == GiveUp(UrlState.FAILED, "content-type")
    assert isinstance(next_step(Failure.RESET, 1, 2.0, CrawlSettings(retries=1)), GiveUp)


# ---- budgets


def test_budgets_count_down_and_name_themselves() -> None:
    """The tighter of two budgets binds; an absent one does not; pages in flight are spent already."""
    config = CrawlSettings(max_pages_per_host=10, max_pages_per_domain=15)
    assert pages_left(3, 3, config) == 7
    assert pages_left(3, 14, config) == 1
    assert pages_left(30, 3, config) == 0
    assert (exhausted(9, 14, config), exhausted(10, 10, config), exhausted(2, 15, config)) == ("", "host-budget", "domain-budget")
    assert exhausted(2, 10**9, SETTINGS) == ""


# ---- CDN table and address groups


def test_the_shipped_table_knows_the_large_networks_and_nothing_private() -> None:
    """An address of a CDN has a name; a loopback or an ordinary address has none; ranges do not overlap."""
    table = shipped()
    assert table.name("104.16.1.1") == table.name("::ffff:104.16.1.1") == "cloudflare"
    assert table.name("151.101.1.69") == "fastly"
    assert table.name("2606:4700::1111") == "cloudflare"
    for ip in ("127.0.0.1", "10.1.2.3", "8.8.8.8", "93.184.216.34", "0.0.0.0", "255.255.255.255", "::1", "2001:db8::1"):
        assert table.name(ip) == "", ip
    spans = sorted((version, first, last) for version, first, last, _ in table._spans)
    assert all(a[0] != b[0] or a[2] < b[1] for a, b in itertools.pairwise(spans))
    small = CdnTable([("10.0.0.0/30", "x")])
    assert [small.name(f"10.0.0.{n}") for n in (0, 3, 4)] == ["x", "x", ""]


def test_a_cdn_may_name_itself() -> None:
    """Headers that only an edge sets are believed; a `Via` that anyone may write is not."""
    assert by_headers([("Server", "cloudflare")]) == "cloudflare"
    assert by_headers([("X-Amz-Cf-Id", "abc")]) == "cloudfront"
    assert by_headers([("Server", "nginx"), ("Via", "1.1 varnish")]) == ""


def test_addresses_group_by_ipv4_and_by_ipv6_network() -> None:
    """One IPv4 address is a group; one IPv6 /64 is; mapped addresses are the IPv4 ones; no key is 0."""
    assert ip_key("192.0.2.1") == ip_key("::ffff:192.0.2.1") != ip_key("192.0.2.2")
    assert ip_key("2001:db8:0:1::1") == ip_key("2001:db8:0:1:ffff::2") != ip_key("2001:db8:0:2::1")
    assert 0 not in (ip_key("0.0.0.0"), ip_key("::"), ip_key("::1"))
    assert ip_key("::1") != ip_key("127.0.0.1")
    with pytest.raises(ValueError, match="does not appear to be"):
        ip_key("site.test")


# ---- states


def test_the_table_of_states_is_what_it_was() -> None:
    """A snapshot: changing a transition is a decision, not an accident."""
    picture = {s.value: {e.value: t.value for e, t in row.items()} for s, row in states.TRANSITIONS.items()}
    ends = {
        "fetch": "fetched", "unchanged": "not-modified", "redirect": "redirected", "refuse": "refused", "fail": "failed", "vanish": "gone",
        "park": "parked", "put-back": "queued", "exclude": "excluded",
    }  # fmt: skip
    assert picture == {
        "discovered": {"admit": "queued", "exclude": "excluded"},
        "queued": {
            "take": "in-flight", "put-back": "queued", "park": "parked", "refuse": "refused", "fail": "failed", "exclude": "excluded",
        },
        "in-flight": ends,
        "fetched": {"measure": "parsed", "due": "queued", "refuse": "refused", "exclude": "excluded"},
        "parsed": {"due": "queued", "refuse": "refused", "exclude": "excluded"},
        "not-modified": {"due": "queued", "refuse": "refused", "exclude": "excluded"},
        "redirected": {"due": "queued", "exclude": "excluded"},
        "refused": {"reopen": "queued", "due": "queued", "exclude": "excluded"},
        "failed": {"due": "queued", "exclude": "excluded"},
        "gone": {"due": "queued", "exclude": "excluded"},
        "excluded": {"admit": "queued", "exclude": "excluded"},
        "parked": {"wake": "queued", "exclude": "excluded", "refuse": "refused"},
    }  # fmt: skip


def test_every_state_can_be_reached_and_left() -> None:
    """No state is a trap: from each stored one there is a way back to the queue, and every state has a way in."""
    reached = {target for row in states.TRANSITIONS.values() for target in row.values()}
    assert set(UrlState) - reached == {UrlState.DISCOVERED}
    for state in states.STORED - {UrlState.QUEUED}:
        assert UrlState.QUEUED in states.TRANSITIONS[state].values(), state


def test_an_illegal_event_raises() -> None:
    """A parked URL cannot be fetched without waking; nothing is settled as in flight."""
    assert states.after(UrlState.QUEUED, states.UrlEvent.TAKE) is UrlState.IN_FLIGHT
    with pytest.raises(IllegalTransition, match="parked cannot fetch"):
        states.after(UrlState.PARKED, states.UrlEvent.FETCH)
    for state in states.STORED:
        with pytest.raises(IllegalTransition):
            states.check_settlement(state, UrlState.IN_FLIGHT)
        with pytest.raises(IllegalTransition):
            states.check_settlement(state, UrlState.PARSED)
