"""The supervisor's look at its crawl: statuses of fetch processes in, one `Live` out, twice a second.

Rates are over the last seconds; depth and the end of the crawl are looked up in the frontier now and then, because that
costs a query. Decides nothing.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from corpus.app.frontier_view import slowest_pending
from corpus.app.orders import Orders, described
from corpus.app.overlap import Overlap
from corpus.app.project import Project
from corpus.app.spending import Budget
from corpus.app.url_states import StatesNow
from corpus.crawl.worker import Progress
from corpus.errors import StoreError
from corpus.observe.live import Live, status_class, why_stalled

EVERY_S = 0.5
LOOK_S, FORECAST_S = 5.0, 15.0
WINDOW_S = 10.0
SUMMED = ("pages", "requests", "policy_requests", "bytes_wire", "bytes_body")
COUNTERS = ("refused", "failed", "retried", "excluded", "stored")
NAMED = 5


class Watch:
    """For one run of one stage. `earlier`: pages that earlier runs stored; `beside`: what processes meanwhile."""

    def __init__(
        self, project: Project, run_id: str, stage: str, orders: Orders, earlier: int, beside: Overlap | None = None,
        *, monotonic: Callable[[], float] = time.monotonic, wall: Callable[[], float] = time.time,
    ) -> None:  # fmt: skip
        self._project, self._orders, self._earlier = project, orders, earlier
        self._run_id, self._stage, self._beside = run_id, stage, beside
        self._monotonic, self._wall = monotonic, wall
        self._next = self._looked = self._forecast = float("-inf")
        self._window: deque[tuple[float, int, int]] = deque()
        self._moved = (monotonic(), -1)
        self._states = StatesNow(project, monotonic)
        self._frontier: dict[str, int] = {}
        self._frontier_at = 0.0
        self._slowest: tuple[str, int, float] | None = None

    def due(self, requests: int) -> bool:
        """Whether it is time for the next look: every half second, and at once when the first request was made."""
        return self._monotonic() >= self._next or (requests > 0 and self._moved[1] <= 0)

    def look(
        self, statuses: Sequence[Progress], dead: Sequence[Progress], budget: Budget, seconds: float, *, last: bool = False
    ) -> Live:
        """`dead`: the last words of processes that were replaced; `seconds`: run time without pauses; `last`: look at all anew."""
        now = self._monotonic()
        if last:
            self._looked = self._forecast = float("-inf")
        self._next = now + EVERY_S
        live = Live(at=self._wall(), run_id=self._run_id, stage=self._stage, seconds=round(seconds, 2))
        for name in SUMMED:
            setattr(live, name, sum(getattr(status, name) for status in (*statuses, *dead)))
        self._gauges(live, [status.gauges for status in (*statuses, *dead)], [status.gauges for status in statuses])
        for status in statuses:
            for reason, hosts in status.parked.items():
                live.parked[reason] = live.parked.get(reason, 0) + hosts
        live.paused = self._orders.standing.pause is not None
        live.orders = described(self._orders.standing)
        if self._beside is not None:
            self._beside.tell(live)
        self._rates(live, now, seconds)
        self._frontier_facts(live, now, last=last)
        self._budget(live, budget, seconds)
        live.stalled = why_stalled(live, self._quiet_s(live, now))
        return live

    def _gauges(self, live: Live, every: list[dict[str, Any]], alive: list[dict[str, Any]]) -> None:
        for name in COUNTERS:
            total: Counter[str] = Counter()
            for gauges in every:
                total.update(gauges.get(name, {}))
            setattr(live, name, dict(total))
        states, classes = Counter[str](), Counter[str]()
        for gauges in every:
            for status, n in gauges.get("statuses", {}).items():
                classes[status_class(status)] += n
        for gauges in alive:
            states.update(gauges.get("states", {}))
        live.hosts, live.statuses = dict(states), dict(classes)
        live.slowest = sorted((row for g in alive for row in g.get("slowest", [])), key=lambda row: -row[1])[:NAMED]
        live.failing = sorted((row for g in alive for row in g.get("failing", [])), key=lambda row: -row[1])[:NAMED]
        live.due = sorted((row for g in alive for row in g.get("due", [])), key=lambda row: row[1])[:NAMED]
        live.recent = sorted((row for g in alive for row in g.get("recent", [])), key=lambda row: -row[0])[:12]
        live.in_flight = sum(g.get("in_flight", 0) for g in alive)
        live.lag_ms = max((g.get("lag_ms", 0.0) for g in alive), default=0.0)
        live.lag_own_ms = max((g.get("lag_own_ms", 0.0) for g in alive), default=0.0)
        live.commit_s = max((g.get("commit_s", 0.0) for g in alive), default=0.0)

    def _rates(self, live: Live, now: float, seconds: float) -> None:
        window = self._window
        window.append((now, live.pages, live.bytes_wire))
        while len(window) > 2 and window[0][0] < now - WINDOW_S:
            window.popleft()
        took = now - window[0][0]
        if took > 0:
            live.pages_s = max(live.pages - window[0][1], 0) / took
            live.bytes_s = max(live.bytes_wire - window[0][2], 0) / took
        live.pages_s_mean = live.pages / seconds if seconds > 0 else 0.0

    def _quiet_s(self, live: Live, now: float) -> float:
        if live.requests != self._moved[1] or live.paused:
            self._moved = (now, live.requests)
        return now - self._moved[0]

    def _frontier_facts(self, live: Live, now: float, *, last: bool) -> None:
        with suppress(StoreError):  # a partition file that is being made this very moment: the next look will see it
            if now - self._looked >= LOOK_S:
                self._looked = now
                self._frontier, self._frontier_at = self._states.by_state(anew=last), self._wall()
            if now - self._forecast >= FORECAST_S:
                self._forecast = now
                self._slowest = slowest_pending(self._project)
        live.frontier, live.frontier_at = self._frontier, self._frontier_at

    def _budget(self, live: Live, budget: Budget, seconds: float) -> None:
        """What is used of each budget, and which bound ends the crawl first."""
        ends: list[tuple[float, str]] = []
        rate = live.pages_s or live.pages_s_mean
        stored = self._earlier + live.pages
        if budget.pages is not None:
            live.budget.append(["crawl.max_pages", stored, budget.pages])
            ends += [(max(budget.pages - stored, 0) / rate, "crawl.max_pages")] if rate > 0 else []
        if budget.bytes is not None:
            live.budget.append(["crawl.max_bytes", live.bytes_wire, budget.bytes])
            ends += [(max(budget.bytes - live.bytes_wire, 0) / live.bytes_s, "crawl.max_bytes")] if live.bytes_s > 0 else []
        if budget.seconds is not None:
            live.budget.append(["crawl.max_time", round(seconds, 1), budget.seconds])
            ends.append((max(budget.seconds - seconds, 0), "crawl.max_time"))
        queued = self._frontier.get("queued", 0)
        if self._slowest is not None and rate > 0:
            host, waiting, gap_s = self._slowest
            polite, through = waiting * gap_s, queued / rate
            if polite >= through:
                ends.append((polite, f"{host}: {waiting} known URLs, one each {gap_s:.1f} s"))
            else:
                ends.append((through, f"{queued} known URLs at this rate"))
        if live.held:
            live.bound = "processing: fetch waits for it"
        if ends and not live.paused and not live.held:
            live.eta_s, live.bound = min(ends)
