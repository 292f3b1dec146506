"""A modelled origin behind a CDN, with people in front: what the politeness simulation asks its pages of.

The CDN answers what it holds at once (an LRU store: people keep the popular pages in it, and a crawler that reads the
long tail mostly misses). A miss is rendered by the origin: so many workers, a queue before them, and 503 once that is
full. People arrive as a Poisson stream over Zipf-popular pages; for a while there are many more of them than usual. All
is drawn from one seed, and people do not depend on the crawler, so runs with different crawlers differ by the crawler
alone. Pure but for its own state: time is an argument that never runs backwards.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left
from collections import OrderedDict
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from itertools import accumulate

EDGE_S, REFUSAL_S = 0.03, 0.005
"""Seconds for an answer from the CDN's store, and for a refusal of the origin's."""
SPREAD = 0.4
"""Of the logarithm of a page's rendering time: one in twenty-five takes more than twice the median."""


@dataclass(frozen=True, slots=True)
class OriginModel:
    """The site. Capacity is `workers / render_s` pages a second; people alone use about 40 % of it when nothing special happens."""

    hosts: int = 12
    pages: int = 20_000
    """Per host."""
    workers: int = 8
    render_s: float = 0.2
    queue: int = 80
    stored: int = 24_000
    """Pages that fit into the CDN's store."""
    people_per_s: float = 60.0
    zipf: float = 0.9
    calm_s: float = 1500.0
    surge_s: float = 300.0
    surge_factor: float = 4.0
    after_s: float = 1500.0
    """People come as usual for `calm_s`, in crowds for `surge_s`, and as usual again for `after_s`."""
    warm_s: float = 300.0
    """Left out of every figure: store and paces are still settling."""

    @property
    def end_s(self) -> float:
        return self.calm_s + self.surge_s + self.after_s

    @property
    def surge_ends_s(self) -> float:
        return self.calm_s + self.surge_s

    def surging(self, now: float) -> bool:
        return self.calm_s <= now < self.surge_ends_s


@dataclass(slots=True)
class Tally:
    """What was asked after `warm_s`. `latencies` of people, by whether the surge was on."""

    people: int = 0
    crawler: int = 0
    people_expensive: int = 0
    crawler_expensive: int = 0
    people_failed: int = 0
    crawler_refused: int = 0
    busy_s: float = 0.0
    crawled_at: list[float] = field(default_factory=list)
    """When the crawler got a page (of the warm-up, too)."""
    calm: list[float] = field(default_factory=list)
    surge: list[float] = field(default_factory=list)


class Origin:
    """One run. `ask` for the crawler; people are let in, in order, up to the time of every question."""

    def __init__(self, model: OriginModel, seed: int) -> None:
        self.model, self.tally = model, Tally()
        self._people = random.Random(seed)
        self._renders = random.Random(seed + 1)
        total = model.hosts * model.pages
        self._popular = list(accumulate(1.0 / rank**model.zipf for rank in range(1, total + 1)))
        self._pages = list(range(total))
        random.Random(seed + 2).shuffle(self._pages)
        self._store: OrderedDict[int, None] = OrderedDict((page, None) for page in reversed(self._pages[: model.stored]))
        self._free = [0.0] * model.workers
        heapify(self._free)
        self._starts: list[float] = []
        self._first_waiting = 0
        self._next_person = 0.0

    def ask(self, page: int, now: float) -> tuple[int, float, str]:
        """The crawler asks for a page (host number * pages + page number): (status, seconds until the answer, `X-Cache`)."""
        self.until(now)
        status, took, rendered = self._answer(page, now)
        counts = self.tally
        if status == 200:
            counts.crawled_at.append(now + took)
        if now >= self.model.warm_s:
            counts.crawler += 1
            counts.crawler_expensive += rendered
            counts.crawler_refused += status != 200
        return status, took, "MISS" if rendered or status != 200 else "HIT"

    def until(self, now: float) -> None:
        """Let everybody in who comes before `now`."""
        model, people = self.model, self._people
        while self._next_person < now:
            at = self._next_person
            rate = model.people_per_s * (model.surge_factor if model.surging(at) else 1.0)
            self._next_person = at + people.expovariate(rate)
            page = self._pages[bisect_left(self._popular, people.random() * self._popular[-1])]
            status, took, rendered = self._answer(page, at)
            if at < model.warm_s:
                continue
            self.tally.people += 1
            self.tally.people_expensive += rendered
            self.tally.people_failed += status != 200
            (self.tally.surge if model.surging(at) else self.tally.calm).append(took)

    def _answer(self, page: int, now: float) -> tuple[int, float, bool]:
        if page in self._store:
            self._store.move_to_end(page)
            return 200, EDGE_S, False
        if self._waiting(now) >= self.model.queue:
            return 503, EDGE_S + REFUSAL_S, False
        start = max(now, self._free[0])
        took = self._renders.lognormvariate(math.log(self.model.render_s) - SPREAD**2 / 2, SPREAD)
        heapreplace(self._free, start + took)
        self._starts.append(start)
        if now >= self.model.warm_s:
            self.tally.busy_s += took
        self._store[page] = None
        if len(self._store) > self.model.stored:
            self._store.popitem(last=False)
        return 200, start - now + took + EDGE_S, True

    def _waiting(self, now: float) -> int:
        """Pages whose rendering has not begun. Starts never go down, because the queue is served in order."""
        while self._first_waiting < len(self._starts) and self._starts[self._first_waiting] <= now:
            self._first_waiting += 1
        if self._first_waiting > 100_000:
            del self._starts[: self._first_waiting]
            self._first_waiting = 0
        return len(self._starts) - self._first_waiting
