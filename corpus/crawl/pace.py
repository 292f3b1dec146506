"""How long a host is left alone after each answer: a live signal of its health, not a typed number.

Additive decrease, multiplicative increase. A host starts at `delay_start`; each good answer earns a twentieth of the
start back, down to the floor; trouble doubles the gap at once, and an answer that came fast because it failed earns
nothing. What the latency and the Crawl-delay ask for lies beside the earned gap: the longest of the three is waited, and
a host that is fast again is at once back at the gap it had earned. Trouble after trouble doubles the *wait* each time
(the back-off); the gap that the host goes back to afterwards is doubled once for the whole spell, because five failures
in a row are one overload and not five: else a host would be visited for hours as if it were still down. An answer that
comes, but slowly, does not end the spell, and neither does one that a cache had. The gap counts from the END of a contact to the start of the
next. Pure: no clock, no random source (jitter is a digest of the host), and it never returns a gap under the floor.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import assert_never

from corpus.crawl.cached import HIT, cache_of
from corpus.crawl.ports import Due, HostRow
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure, FetchResult

STEP = 0.05
"""Share of the starting gap that one good answer earns back."""
SLOW_RATIO, SLOW_FACTOR = 2.0, 1.5
"""An answer slower than twice the host's own median widens the gap by half."""
SLOW_NOISE_S = 0.05
"""... if it is also this much slower: on a near server twice the median is the noise of our own scheduler."""
TROUBLE_FACTOR = 2.0
SMOOTHING = 0.2
"""Weight of the newest latency in the smoothed one: about the last nine answers count."""
MEDIAN_STEP = 0.1
"""The running median moves a tenth of itself towards each answer: it follows, and one outlier cannot drag it."""
JITTER = 0.25
"""Back-offs are longer by up to this share, so that hosts that failed together do not return together."""
NEVER_S = 400 * 86_400.0
"""A longer Crawl-delay says "never"; cut here so that no arithmetic meets infinity."""
PUBLIC_FLOOR_S = 1.0
"""No configuration goes below this on a public host that is not `trusted`."""


@dataclass(frozen=True, slots=True)
class Good:
    """A healthy answer (2xx, 3xx, 404, 410). `latency_s`: first byte sent to first byte received. `cached`: a cache in front
    says that it had the answer, so its speed says nothing about the origin's health."""

    latency_s: float
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Neutral:
    """An answer, or a failure of ours, that says nothing about the host's load: neither credit nor blame."""


@dataclass(frozen=True, slots=True)
class Throttled:
    """429, 503 or a challenge. `retry_after_s`: seconds from the end of the contact; None where none was given."""

    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class Trouble:
    """5xx, reset, timeout, refused connection, a drip: doubled, and no credit for its speed."""


Answer = Good | Neutral | Throttled | Trouble

_OF_FAILURE: dict[Failure, Answer] = {
    Failure.DNS: Neutral(),
    Failure.CONNECT: Trouble(),
    Failure.TLS: Neutral(),
    Failure.TIMEOUT: Trouble(),
    Failure.RESET: Trouble(),
    Failure.PROTOCOL: Neutral(),
    Failure.ADDRESS: Neutral(),
    Failure.THROTTLED: Throttled(),
    Failure.UNAVAILABLE: Throttled(),
    Failure.SERVER: Trouble(),
    Failure.CLIENT: Neutral(),
    Failure.CHALLENGE: Throttled(),
    Failure.CONTENT_TYPE: Neutral(),
    Failure.TOO_SLOW: Trouble(),
    Failure.DECODE: Neutral(),
}
assert set(_OF_FAILURE) == set(Failure), "every failure needs its answer to the pace"


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds the pace of one host. `trusted`: its owner agreed, so only its own delay and its health count."""

    floor_s: float
    start_s: float
    connections: int = 1
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """`gap_s` is the pace the host has earned; `wait_s` is what the last answer costs now: the gap, what its latency or its
    Crawl-delay asks for, or more.
    """

    gap_s: float
    wait_s: float
    latency_s: float = 0.0
    median_s: float = 0.0
    crawl_delay_s: float | None = None
    strikes: int = 0
    asked_s: float | None = None
    """Retry-After of the last answer."""


@dataclass(frozen=True, slots=True)
class Go:
    """The host may be contacted again after `wait_s`."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class Park:
    """Too long to be waited out inside a run; `reason` is a code of `corpus.reasons`."""

    reason: str
    wait_s: float


@lru_cache(maxsize=64)
def _networks(cidrs: tuple[str, ...]) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(ipaddress.ip_network(cidr, strict=False) for cidr in cidrs)


def all_private(ips: tuple[str, ...], settings: CrawlSettings) -> bool:
    """Whether there is an address, and every one lies in `allow_private`."""
    return bool(ips) and _all_in(ips, settings.allow_private)


@lru_cache(maxsize=16_384)
def _all_in(ips: tuple[str, ...], cidrs: tuple[str, ...]) -> bool:
    return bool(cidrs) and all(any(ipaddress.ip_address(ip) in net for net in _networks(cidrs)) for ip in ips)


def limits(host: str, settings: CrawlSettings, ips: tuple[str, ...] = ()) -> Limits:
    """The bounds of a host, given the addresses it was found at. A `delay` under 1 s holds only for allowed addresses."""
    for row in settings.trusted:
        if row.host == host:
            return Limits(row.delay, row.delay, row.connections, trusted=True)
    floor = settings.delay
    if floor < PUBLIC_FLOOR_S and not all_private(ips, settings):
        floor = PUBLIC_FLOOR_S
    return Limits(floor, max(settings.delay_start, floor))


def start(bounds: Limits) -> Pace:
    """The pace of a host nobody has asked yet."""
    return Pace(bounds.start_s, bounds.start_s)


def crawl_delay(value: float | None, bounds: Limits) -> float | None:
    """A Crawl-delay as it binds: None where it is absent, under the floor, zero, negative or not a number."""
    if bounds.trusted or value is None or math.isnan(value) or value <= bounds.floor_s:
        return None
    return min(value, NEVER_S)


def jitter(host: str, strikes: int) -> float:
    """A share in [0, 1), the same on every machine for the same host and strike."""
    digest = hashlib.blake2b(f"{strikes}:{host}".encode("utf-8", "surrogatepass"), digest_size=4).digest()
    return int.from_bytes(digest, "big") / 2**32


def asked_for_s(pace: Pace, bounds: Limits, settings: CrawlSettings) -> float:
    """The gap that floor, latency and Crawl-delay ask for, whatever was earned. Latency alone never parks a host, so its
    share ends at `park_after`."""
    crawl_delay_s = pace.crawl_delay_s or 0.0
    if bounds.trusted:
        return max(bounds.floor_s, crawl_delay_s)
    by_latency = min(settings.latency_factor * pace.latency_s, settings.park_after)
    return max(bounds.floor_s, by_latency, crawl_delay_s)


def _good(pace: Pace, latency_s: float, bounds: Limits, settings: CrawlSettings) -> Pace:
    latency = latency_s if 0 <= latency_s < math.inf else 0.0
    first = pace.median_s == 0.0
    slow = not first and latency > max(SLOW_RATIO * pace.median_s, pace.median_s + SLOW_NOISE_S)
    smoothed = latency if first else pace.latency_s + SMOOTHING * (latency - pace.latency_s)
    towards = math.copysign(min(MEDIAN_STEP * pace.median_s, abs(latency - pace.median_s)), latency - pace.median_s)
    told = replace(pace, latency_s=smoothed, median_s=latency if first else pace.median_s + towards, asked_s=None)
    if slow:  # slowness asks for no more than a cautious start would; what the latency itself asks for comes on top
        gap, strikes = max(pace.gap_s, min(pace.gap_s * SLOW_FACTOR, bounds.start_s)), pace.strikes
    else:
        gap, strikes = max(bounds.floor_s, pace.gap_s - STEP * bounds.start_s), 0
    return replace(told, gap_s=gap, strikes=strikes, wait_s=max(gap, asked_for_s(told, bounds, settings)))


def after(pace: Pace, answer: Answer, settings: CrawlSettings, bounds: Limits, *, host: str = "") -> Pace:
    """The pace after one answer. `host` seeds the jitter. Never under the floor; never over `backoff_max` unless asked."""
    match answer:
        case Good(cached=True):
            gap = max(bounds.floor_s, pace.gap_s - STEP * bounds.start_s)
            return replace(pace, gap_s=gap, wait_s=max(gap, asked_for_s(pace, bounds, settings)), asked_s=None)
        case Good(latency_s=latency_s):
            return _good(pace, latency_s, bounds, settings)
        case Neutral():
            gap = max(pace.gap_s, bounds.floor_s)
            return replace(pace, gap_s=gap, wait_s=max(gap, asked_for_s(pace, bounds, settings)), asked_s=None)
        case Trouble() | Throttled():
            strikes = pace.strikes + 1
            now_s = asked_for_s(pace, bounds, settings)
            gap = max(pace.gap_s, bounds.floor_s)
            if strikes == 1:  # once for the whole spell
                gap = max(min(gap * TROUBLE_FACTOR, settings.backoff_max), gap)
            back_off = pressure_s(max(gap, TROUBLE_FACTOR * now_s), strikes, settings)
            wait = max(now_s, gap, min(back_off * (1 + JITTER * jitter(host, strikes)), settings.backoff_max))
            asked = answer.retry_after_s if isinstance(answer, Throttled) else None
            if asked is not None and 0 < asked < math.inf:
                # the site's own request is never cut short; a date in the past (or nonsense) is no request
                return replace(pace, gap_s=gap, wait_s=max(asked, gap, now_s), strikes=strikes, asked_s=asked)
            return replace(pace, gap_s=gap, wait_s=wait, strikes=strikes, asked_s=None)
        case _:
            assert_never(answer)


def pressure_s(gap_s: float, strikes: int, settings: CrawlSettings) -> float:
    """The back-off that a host is under: its gap, doubled for every failure of this spell after the first."""
    return max(
        min(gap_s * TROUBLE_FACTOR ** min(max(strikes - 1, 0), 64), settings.backoff_max), min(gap_s, settings.backoff_max)
    )


def with_crawl_delay(pace: Pace, value: float | None, bounds: Limits) -> Pace:
    """The pace from the moment a robots file was read; None lifts an earlier Crawl-delay."""
    delay = crawl_delay(value, bounds)
    return replace(pace, crawl_delay_s=delay, wait_s=max(pace.wait_s, delay or 0.0))


def verdict(pace: Pace, settings: CrawlSettings) -> Go | Park:
    """Wait inside the run, or park the host with the reason."""
    if pace.crawl_delay_s is not None and pace.crawl_delay_s > min(settings.max_crawl_delay, settings.park_after):
        return Park("crawl-delay", max(pace.wait_s, pace.crawl_delay_s))
    if pace.wait_s > settings.park_after:
        asked = pace.asked_s is not None and pace.asked_s > settings.park_after
        return Park("retry-after" if asked else "backing-off", pace.wait_s)
    return Go(pace.wait_s)


def answer_of(result: FetchResult, retry_after_s: float | None = None) -> Answer:
    """What a fetch says about the host's health. `retry_after_s`: the header of a `Response`, a date already made seconds."""
    if isinstance(result, Failed):
        answer = _OF_FAILURE[result.failure]
        return Throttled(result.retry_after_s) if isinstance(answer, Throttled) else answer
    if result.status in (429, 503):
        return Throttled(retry_after_s)
    if result.status >= 500:
        return Trouble()
    if result.status < 400 or result.status in (404, 410):
        return Good(result.latency_s, cached=cache_of(result.headers)[0] == HIT)
    return Neutral()


def pace_of(row: HostRow, bounds: Limits) -> Pace:
    """The pace a host row remembers; a row without one is new."""
    if row.pace_s <= 0.0:
        return replace(start(bounds), crawl_delay_s=row.crawl_delay_s)
    gap = max(row.pace_s, bounds.floor_s)
    return Pace(gap, gap, row.latency_s, row.latency_median_s, row.crawl_delay_s, row.strikes)


def domain_gap_s(wait_s: float, settings: CrawlSettings) -> float:
    """The gap of a registered domain after a contact of one of its hosts that itself waits `wait_s`.

    A host's own orders (a long Crawl-delay, Retry-After) bind that host; its siblings wait no longer than a new host would.
    """
    return min(wait_s, max(settings.delay_start, settings.delay, PUBLIC_FLOOR_S))


def host_after(row: HostRow, answer: Answer, settings: CrawlSettings, wall: float) -> HostRow:
    """The row of a host after a contact that ended at `wall` (epoch seconds): pace, clocks, state and reason."""
    bounds = limits(row.host, settings, row.ips)
    return _row_with(row, after(pace_of(row, bounds), answer, settings, bounds, host=row.host), settings, wall)


def host_with_crawl_delay(row: HostRow, value: float | None, settings: CrawlSettings, wall: float) -> HostRow:
    """The row from the moment its robots file was read; the wait that is running counts on and is only ever lengthened."""
    bounds = limits(row.host, settings, row.ips)
    pace = replace(pace_of(row, bounds), wait_s=row.due.remaining(wall))
    if pace.wait_s > settings.park_after:
        pace = replace(pace, asked_s=pace.wait_s if row.reason == "retry-after" else None)
    return _row_with(row, with_crawl_delay(pace, value, bounds), settings, wall)


def _row_with(row: HostRow, pace: Pace, settings: CrawlSettings, wall: float) -> HostRow:
    """The row with a pace written into it; `blocked` and `retired` hosts stay what they are."""
    outcome = verdict(pace, settings)
    if row.state in ("blocked", "retired"):
        state, reason = row.state, row.reason
    elif isinstance(outcome, Park):
        state, reason = "parked", outcome.reason
    else:
        state, reason = ("backing-off", "backing-off") if pace.strikes else ("active", "")
    return replace(
        row,
        state=state,
        reason=reason,
        pace_s=pace.gap_s,
        latency_s=pace.latency_s,
        latency_median_s=pace.median_s,
        due=Due(wall, outcome.wait_s),
        domain_due=Due(wall, max(domain_gap_s(outcome.wait_s, settings), row.domain_due.remaining(wall))),
        crawl_delay_s=pace.crawl_delay_s,
        strikes=pace.strikes,
    )
