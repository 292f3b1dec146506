"""`corpus simulate recrawl`: how fresh a crawl keeps its pages, by how it spaces its visits, at the same number of visits.

Pages change as Poisson processes whose rates are gamma-distributed; the real `next_visit` says when each page is due and
the real `Schedule` who is asked when. Rates are given to the policies as if they had been estimated without error, so
the runs compare policies, not estimators. The start is the middle of a long crawl (every page somewhere in its
interval), so that the closed Poisson form is what a run must come out at.
"""

from __future__ import annotations

import heapq
import math
import random
import time
from array import array
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from corpus.crawl.cdn import CdnTable
from corpus.crawl.ports import Due, History, HostRow
from corpus.crawl.recrawl import DAY_S, Plan, freshness, interval_s, next_visit, plan, rate_bin
from corpus.crawl.schedule import Begun, Schedule
from corpus.crawl.settings import CrawlSettings, RecrawlSettings

ANSWER_S = 0.2
GAIN, CLOSE = 0.05, 0.01
"""What is asked: uniform keeps at least this much more fresh than proportional, and both come this close to the closed form."""
_ONE_CHANGE = math.log(3.0)
"""A history of one comparison that found a change, over `log(3) / rate` seconds, is estimated at exactly `rate`."""


@dataclass(frozen=True, slots=True)
class RecrawlModel:
    """The web that changes. `every_days`: the budgets, as the interval at which each would visit all pages alike."""

    sites: int = 270
    pages: int = 720_000
    days: float = 120.0
    mean_days: float = 12.0
    """Between two changes of the average rate."""
    shape: float = 0.5
    """Of the gamma distribution: at 0.5 most pages hardly change, and a few do all the time."""
    every_days: tuple[float, ...] = (20.0, 40.0, 80.0)


@dataclass(frozen=True, slots=True)
class RecrawlResult:
    """One policy at one budget. `visits` per page and `every`; freshness as the average share of pages equal to their copy."""

    mode: str
    every_days: float
    freshness: float
    closed_form: float
    visits: float
    latest_s: float
    """How late the latest visit came, because its host was resting."""
    cpu_s: float


def simulate_recrawl(
    model: RecrawlModel, *, seed: int = 1, modes: tuple[str, ...] = ("uniform", "proportional")
) -> dict[str, Any]:
    """Every policy at every budget, and whether uniform won as it must."""
    drawn = random.Random(seed)
    rates = array(
        "d", (drawn.gammavariate(model.shape, 1.0 / (model.shape * model.mean_days * DAY_S)) for _ in range(model.pages))
    )
    rates = array("d", (max(value, 1e-15) for value in rates))
    runs = [_Run(model, rates, mode, every, seed).run() for every in model.every_days for mode in modes]
    by_budget = {every: {run.mode: run for run in runs if run.every_days == every} for every in model.every_days}
    gains = [found["uniform"].freshness - found["proportional"].freshness for found in by_budget.values()]
    apart = [abs(run.freshness - run.closed_form) for run in runs]
    return {
        "seed": seed,
        "model": asdict(model),
        "goals": {"gain": GAIN, "close": CLOSE},
        "runs": [asdict(run) for run in runs],
        "optimal": {f"{every:g}": round(_closed_form(rates, _plan(rates, "optimal", every)), 4) for every in model.every_days},
        "gains": [round(gain, 4) for gain in gains],
        "ok": min(gains) >= GAIN and max(apart) <= CLOSE,
    }


def _settings(mode: str, every_days: float) -> RecrawlSettings:
    """Without bounds on the interval, which the closed form does not know."""
    return RecrawlSettings.model_validate(
        {"every": every_days * DAY_S, "mode": mode, "min_interval": 0.001, "max_interval": 1e6 * DAY_S}
    )


def _known(rate: float) -> History:
    return History(1.0, 1.0, _ONE_CHANGE / rate, 0.0)


def _plan(rates: array[float], mode: str, every_days: float) -> Plan:
    bins = Counter(number for number in (rate_bin(_known(rate)) for rate in rates) if number is not None)
    return plan(_settings(mode, every_days), bins)


def _closed_form(rates: array[float], of: Plan) -> float:
    """The average over all pages of (1 - e^-x) / x, at x = rate * interval; 0 for a page that is never visited again."""
    total = 0.0
    for rate in rates:
        interval = interval_s(_known(rate), of)
        total += freshness(rate * interval)
    return total / len(rates)


class _Run:
    """One policy at one budget: an event loop over the real schedule."""

    def __init__(self, model: RecrawlModel, rates: array[float], mode: str, every_days: float, seed: int) -> None:
        self._model, self._rates, self._mode, self._every = model, rates, mode, every_days
        self._began = time.process_time()
        self._random = random.Random(seed + 1)
        self._plan = _plan(rates, mode, every_days)
        self._end = model.days * DAY_S
        self._schedule = Schedule(CrawlSettings(), CdnTable([]))
        self._gap_s = CrawlSettings().delay
        self._names = [f"s{n}.test" for n in range(model.sites)]
        self._number = {name: n for n, name in enumerate(self._names)}
        self._rows = [HostRow(name, name, due=Due(0.0, 0.0), new_waits=False, due_waits=True) for name in self._names]
        self._stale_at = array("d", bytes(8 * model.pages))
        """When each page's copy stops being equal to it."""
        self._seen_at = array("d", bytes(8 * model.pages))
        """Since when the copy counts: its visit, or the start."""
        self._due: list[list[tuple[float, int]]] = [[] for _ in self._names]
        self._fresh_s, self._visits, self._latest_s = 0.0, 0, 0.0
        self._events: list[tuple[float, int, int, int]] = []
        """(time, kind, site, page): a site has a page due, a contact ends, the schedule has something."""

    def run(self) -> RecrawlResult:
        self._start()
        while self._events and self._events[0][0] < self._end:
            now = self._events[0][0]
            while self._events and self._events[0][0] <= now:
                _, kind, site, page = heapq.heappop(self._events)
                if kind == 0:
                    self._schedule.add(self._rows[site], now, now)
                elif kind == 1:
                    self._ended(site, page, now)
            self._ask(now)
        for page in range(self._model.pages):
            self._account(page, self._end)
        pages = self._model.pages
        visits = self._visits / pages / (self._model.days / self._every)
        return RecrawlResult(
            self._mode, self._every, round(self._fresh_s / (pages * self._end), 4), round(_closed_form(self._rates, self._plan), 4),
            round(visits, 3), round(self._latest_s, 1), round(time.process_time() - self._began, 1),
        )  # fmt: skip

    def _start(self) -> None:
        """Every page somewhere in its interval, its copy fresh or stale as that makes it."""
        for page, rate in enumerate(self._rates):
            before = next_visit(self._url(page), 0.0, self._plan, _known(rate)).wait_s
            last = -self._random.random() * before
            self._stale_at[page] = last + self._random.expovariate(rate)
            if last + before < self._end:
                self._due[page % self._model.sites].append((last + before, page))
        for site, due in enumerate(self._due):
            heapq.heapify(due)
            self._wake(site)

    def _url(self, page: int) -> str:
        return f"https://{self._names[page % self._model.sites]}/{page}"

    def _wake(self, site: int) -> None:
        if self._due[site]:
            heapq.heappush(self._events, (self._due[site][0][0], 0, site, 0))

    def _ask(self, now: float) -> None:
        schedule = self._schedule
        for name in schedule.ready(now, self._model.sites):
            site = self._number[name]
            if isinstance(schedule.begin(name, f"20.{site // 65536}.{site // 256 % 256}.{site % 256}", now), Begun):
                due, page = heapq.heappop(self._due[site])
                self._latest_s = max(self._latest_s, now - due)
                heapq.heappush(self._events, (now + ANSWER_S, 1, site, page))
        again = schedule.next_due(now)
        if again is not None and (not self._events or again < self._events[0][0]):
            heapq.heappush(self._events, (max(again, now + 1e-6), 2, 0, 0))

    def _ended(self, site: int, page: int, now: float) -> None:
        self._account(page, now)
        self._visits += 1
        rate = self._rates[page]
        self._seen_at[page], self._stale_at[page] = now, now + self._random.expovariate(rate)
        due = next_visit(self._url(page), now, self._plan, _known(rate))
        at = now + due.wait_s
        if at < self._end:
            heapq.heappush(self._due[site], (at, page))
        name = self._names[site]
        self._schedule.end(name, now, self._gap_s)
        if not self._due[site] or self._due[site][0][0] > now:
            self._schedule.remove(name)
            self._wake(site)

    def _account(self, page: int, until: float) -> None:
        since = self._seen_at[page]
        self._fresh_s += min(max(self._stale_at[page] - since, 0.0), until - since)
