"""What a fetch process tells of itself for a person: outcomes by reason, hosts by state, who is slow, who fails, what is due.

Bounded, whatever the crawl: counters by closed sets of reasons, a few names, the last few URLs. Hosts are looked through at
most every other second. Nothing here decides anything.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from heapq import nlargest, nsmallest
from typing import Any

from corpus.crawl.desk import Desk
from corpus.crawl.ports import Ack, HostRow
from corpus.model import UrlState

LOOK_S = 2.0
NAMED = 5
RECENT = 12
TROUBLED_MAX = 4096
"""Hosts whose failures are counted one by one; past that the quieter half is forgotten."""
_URL_MAX = 300
_LOSSES = {UrlState.REFUSED: "refused", UrlState.FAILED: "failed", UrlState.GONE: "failed", UrlState.EXCLUDED: "excluded"}


class Gauges:
    """For one loop. `document` is plain data: it travels to the supervisor twice a second."""

    def __init__(self) -> None:
        self._counts: dict[str, Counter[str]] = {
            name: Counter() for name in ("refused", "failed", "excluded", "retried", "stored")
        }
        self._troubled: Counter[str] = Counter()
        self._why: dict[str, str] = {}
        self._recent: deque[list[Any]] = deque(maxlen=RECENT)
        self._hosts: dict[str, Any] = {}
        self._looked_at: float | None = None

    def settled(self, ack: Ack, wall: float) -> None:
        """Take note of what a visit settled."""
        host = ack.host.host if ack.host is not None else ""
        for row in ack.settled:
            if row.state in (UrlState.QUEUED, UrlState.PARKED):
                if not row.reason:
                    continue
                self._counts["retried"][row.reason] += 1
            else:
                self._counts[_LOSSES.get(row.state, "stored")][row.reason or row.state.value] += 1
            if row.state is UrlState.FAILED or row.state in (UrlState.QUEUED, UrlState.PARKED):
                self._trouble(host, row.reason)
            self._recent.append([round(wall, 3), row.url[:_URL_MAX], row.state.value, row.reason, row.http_status])

    def document(self, desks: Iterable[Desk], in_flight: int, now: float, wall: float) -> dict[str, Any]:
        """`now`: monotonic seconds, for how often hosts are looked through."""
        if self._looked_at is None or now - self._looked_at >= LOOK_S:
            self._looked_at = now
            self._hosts = _hosts([desk.row for desk in desks], wall)
        failing = [[host, n, self._why.get(host, "")] for host, n in self._troubled.most_common(NAMED)]
        counts = {name: dict(counter) for name, counter in self._counts.items()}
        return {**counts, **self._hosts, "failing": failing, "recent": list(self._recent), "in_flight": in_flight}

    def _trouble(self, host: str, reason: str) -> None:
        if len(self._troubled) >= TROUBLED_MAX and host not in self._troubled:
            self._troubled = Counter(dict(self._troubled.most_common(TROUBLED_MAX // 2)))
            self._why = {name: self._why[name] for name in self._troubled}
        self._troubled[host] += 1
        self._why[host] = reason


def _hosts(rows: list[HostRow], wall: float) -> dict[str, Any]:
    """By state, the slowest to answer, and who is due next (a host whose clock has run out is due in 0 s)."""
    states: Counter[str] = Counter()
    for row in rows:
        resting = row.state in ("new", "active") and row.due.remaining(wall) > 0
        states["waiting" if resting else row.state] += 1
    slowest = nlargest(NAMED, (row for row in rows if row.latency_s > 0), key=lambda row: (row.latency_s, row.host))
    awake = (row for row in rows if row.state not in ("parked", "blocked", "retired"))
    due = nsmallest(NAMED, ((row.due.remaining(wall), row.host, row) for row in awake), key=lambda item: item[:2])
    return {
        "states": dict(states),
        "slowest": [[row.host, round(row.latency_s, 3), round(row.pace_s, 3)] for row in slowest],
        "due": [[host, round(wait_s, 1), _why_waits(row)] for wait_s, host, row in due],
    }


def _why_waits(row: HostRow) -> str:
    if row.strikes:
        return f"backing off after {row.strikes} bad answers"
    if row.crawl_delay_s is not None and row.crawl_delay_s >= row.pace_s:
        return f"Crawl-delay {row.crawl_delay_s:g} s"
    return f"its gap is {row.pace_s:.1f} s"
