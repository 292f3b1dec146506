"""What follows a failure: ask again after so many of the host's own gaps, wait for another run, or give up with a reason.

Waits are multiples of the host's current pace, never fixed minutes: a host that is in trouble has already doubled its
pace, so the waits grow by themselves. Pure; the table is checked complete when this module is imported.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpus.crawl.settings import CrawlSettings
from corpus.model import Failure, UrlState
from corpus.reasons import REASONS


@dataclass(frozen=True, slots=True)
class Retry:
    """One row of the table.

    `first`: wait before the next try, as a multiple of the host's pace. `tries`: how often a URL may fail like this
    (never more than `crawl.retries`). `host_wide`: the host is to blame, so its other URLs wait with it.
    """

    first: float
    tries: int
    host_wide: bool
    state: UrlState
    reason: str


def _row(first: float, tries: int, *, host_wide: bool = False, reason: str) -> Retry:
    return Retry(first, tries, host_wide, UrlState.FAILED, reason)


RETRIES: dict[Failure, Retry] = {
    Failure.DNS: _row(4, 3, host_wide=True, reason="dns"),  # resolvers lie under load: ask three times
    Failure.CONNECT: _row(2, 4, host_wide=True, reason="connect"),
    Failure.TLS: _row(2, 2, host_wide=True, reason="tls"),
    Failure.TIMEOUT: _row(2, 5, reason="timeout"),
    Failure.RESET: _row(1, 5, reason="reset"),
    Failure.PROTOCOL: _row(2, 2, reason="protocol"),
    Failure.ADDRESS: _row(1, 1, host_wide=True, reason="address-refused"),
    Failure.THROTTLED: _row(1, 10, host_wide=True, reason="http-429"),
    Failure.UNAVAILABLE: _row(1, 10, host_wide=True, reason="http-503"),
    Failure.SERVER: _row(2, 4, reason="http-5xx"),
    Failure.CLIENT: _row(1, 1, reason="http-4xx"),
    Failure.CHALLENGE: _row(4, 2, host_wide=True, reason="challenge"),
    Failure.CONTENT_TYPE: _row(1, 1, reason="content-type"),
    Failure.TOO_SLOW: _row(4, 2, reason="too-slow"),
    Failure.DECODE: _row(1, 1, reason="decode"),
}
assert set(RETRIES) == set(Failure), "every failure needs a row in the retry table"
assert {row.reason for row in RETRIES.values()} <= set(REASONS), "every final reason must be in the table of reasons"

HOST_WIDE_PARK_GAPS = 60.0
"""A host whose URL has used up its tries for a fault of the host is left alone for this many of its gaps."""


@dataclass(frozen=True, slots=True)
class Requeue:
    """Ask again inside this run, not before `wait_s` from now."""

    wait_s: float
    host_wide: bool = False


@dataclass(frozen=True, slots=True)
class ParkUrl:
    """Ask again after `wait_s`, which is too long for this run. `host_wide`: park the host with the same reason."""

    reason: str
    wait_s: float
    host_wide: bool = False


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The URL is settled as `state` with `reason`. `park_host_s`: leave the whole host alone for this long."""

    state: UrlState
    reason: str
    park_host_s: float | None = None


Step = Requeue | ParkUrl | GiveUp


def next_step(
    failure: Failure, attempts: int, pace_s: float, settings: CrawlSettings, retry_after_s: float | None = None
) -> Step:
    """What to do with a URL that failed for the `attempts`-th time (this failure counted) on a host at `pace_s`.

    `retry_after_s`: the site's own request, in seconds; it is never shortened.
    """
    row = RETRIES[failure]
    if attempts >= min(row.tries, settings.retries):
        wait = min(max(HOST_WIDE_PARK_GAPS * pace_s, retry_after_s or 0.0), settings.backoff_max)
        return GiveUp(row.state, row.reason, wait if row.host_wide and row.tries > 1 else None)
    wait = max(min(row.first * pace_s, settings.backoff_max), retry_after_s or 0.0)
    if wait > settings.park_after:
        asked = retry_after_s is not None and retry_after_s > settings.park_after
        return ParkUrl("retry-after" if asked else "backing-off", wait, row.host_wide)
    return Requeue(wait, row.host_wide)
