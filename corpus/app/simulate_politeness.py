"""`corpus simulate politeness`: the crawl's own pacing against a modelled origin, beside two ways that are not polite.

The same site (`simulate_origin`) is crawled by (a) one shared FIFO, many connections and no gap, (b) a fixed rate per
host, typed in by somebody, and (c) the pacing of this package: the real `Schedule` with its groups, and the real pace
after every answer, under the virtual clock. The first run has no crawler at all; what people feel there is the measure.
A politeness that harms nobody but never gets anywhere would be none, so the recovery after an overload is measured too.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import asdict, dataclass, replace
from typing import Any

from corpus.app.simulate_origin import Origin, OriginModel
from corpus.crawl.cdn import CdnTable
from corpus.crawl.pace import answer_of, host_after
from corpus.crawl.ports import HostRow
from corpus.crawl.schedule import Begun, Schedule
from corpus.crawl.settings import CrawlSettings
from corpus.model import Response
from corpus.testing.clock import VirtualClock

EDGE_IP, EDGE_RANGE = "198.51.100.7", "198.51.100.0/24"
FIFO_CONNECTIONS, FIXED_PER_S = 32, 2.0
"""How (a) and (b) are set: 32 connections; two requests a second to every host."""
HARM, RECOVERED, WITHIN_S = 1.2, 0.8, 600.0
"""What is asked of a crawler: people's p95 at most 1.2 × that without a crawl, calm and in the surge; 80 % of the rate it
had sustained again within ten minutes of an overload."""
WINDOW_S = 120.0
"""Rates are taken over this long."""


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """One crawler's run. Shares and load are of what was asked after the warm-up; latencies in seconds."""

    policy: str
    pages_per_hour: float
    share_of_requests: float
    share_of_expensive: float
    origin_load: float
    human_p95_calm_s: float
    human_p95_surge_s: float
    harm: float
    """The larger of both p95 over those without a crawl."""
    human_failed: int
    refused: int
    sustained_per_s: float
    """Pages a second in the calm before the surge."""
    recovered_s: float | None
    """From the end of the surge until 80 % of that rate is held again; None: not in this run."""
    polite: bool
    recovers: bool


class _Site:
    """The crawler's side of a run: what it still wants of each host, in a fixed order that knows nothing of popularity."""

    def __init__(self, model: OriginModel, seed: int, clock: VirtualClock) -> None:
        self.origin, self.clock, self.model = Origin(model, seed), clock, model
        self.names = [f"h{n}.test" for n in range(model.hosts)]
        order = random.Random(seed + 3)
        self.wanted = {name: deque(order.sample(range(model.pages), model.pages)) for name in self.names}

    async def get(self, name: str) -> tuple[int, float, str]:
        """Ask for the next page of a host; one that is refused is asked for again at the end."""
        page = self.wanted[name].popleft()
        status, took, cache = self.origin.ask(self.names.index(name) * self.model.pages + page, self.clock.monotonic())
        await self.clock.sleep(took)
        if status != 200:
            self.wanted[name].append(page)
        return status, took, cache


Policy = Callable[[_Site, CrawlSettings], Coroutine[Any, Any, None]]


async def _nobody(site: _Site, settings: CrawlSettings) -> None:
    await site.clock.sleep(site.model.end_s)


async def _fifo(site: _Site, settings: CrawlSettings) -> None:
    """Whatever is next in one line, as fast as connections allow; the links of a page stand together, fifty in a row."""
    turns = deque((name, n) for n in range(0, site.model.pages, 50) for name in site.names)

    async def connection() -> None:
        while turns and site.clock.monotonic() < site.model.end_s:
            name, _ = turns.popleft()
            for _ in range(50):
                if site.clock.monotonic() < site.model.end_s and site.wanted[name]:
                    await site.get(name)

    await asyncio.gather(*(connection() for _ in range(FIFO_CONNECTIONS)))


async def _fixed(site: _Site, settings: CrawlSettings) -> None:
    """So many requests a second to every host, whatever it answers."""

    async def host(name: str, offset_s: float) -> None:
        await site.clock.sleep(offset_s)
        async with asyncio.TaskGroup() as asked:
            while site.clock.monotonic() < site.model.end_s and site.wanted[name]:
                asked.create_task(site.get(name))
                await site.clock.sleep(1 / FIXED_PER_S)

    await asyncio.gather(*(host(name, n / FIXED_PER_S / len(site.names)) for n, name in enumerate(site.names)))


async def _ours(site: _Site, settings: CrawlSettings) -> None:
    """The real schedule and the real pace. Every host is a registered domain of its own behind one edge of a CDN."""
    clock, schedule = site.clock, Schedule(settings, CdnTable([(EDGE_RANGE, "edge")]))
    rows = {name: HostRow(name, name, ips=(EDGE_IP,)) for name in site.names}
    answered = asyncio.Event()
    for row in rows.values():
        schedule.add(row, clock.monotonic(), clock.wall())

    async def contact(name: str) -> None:
        started = clock.wall()
        status, took, cache = await site.get(name)
        answer = Response(status, (("X-Cache", cache),), b"", b"", "", b"", EDGE_IP, started, clock.wall(), took, 0)
        row = rows[name] = host_after(rows[name], answer_of(answer), settings, clock.wall())
        now, wait_s = clock.monotonic(), row.due.wait_s
        schedule.end(name, now, wait_s, ip=EDGE_IP)
        if row.state == "parked":
            schedule.park(name, now + wait_s)
        answered.set()

    async with asyncio.TaskGroup() as contacts:
        while clock.monotonic() < site.model.end_s:
            for name in schedule.ready(clock.monotonic(), settings.slots):
                if isinstance(schedule.begin(name, EDGE_IP, clock.monotonic()), Begun):
                    contacts.create_task(contact(name))
            due = schedule.next_due(clock.monotonic())
            answered.clear()
            wait_s = max(min(1.0 if due is None else due - clock.monotonic(), 1.0), 0.001)
            try:
                async with asyncio.timeout(wait_s):
                    await answered.wait()
            except TimeoutError:
                continue


POLICIES: dict[str, Policy] = {"fifo": _fifo, "fixed": _fixed, "ours": _ours}


def simulate_politeness(model: OriginModel, settings: CrawlSettings, *, seed: int = 1) -> dict[str, Any]:
    """Every crawler's figures, and whether the model told them apart: ours must pass, the others must not."""
    base = _run(_nobody, model, settings, seed).origin
    calm, surge = _p95(base.tally.calm), _p95(base.tally.surge)
    results = [_result(name, _run(policy, model, settings, seed).origin, calm, surge) for name, policy in POLICIES.items()]
    alone = _result("none", base, calm, surge)
    passed = {result.policy: result.polite and result.recovers for result in results}
    return {
        "seed": seed,
        "model": asdict(model),
        "pace": {"delay_s": settings.delay, "delay_start_s": settings.delay_start, "latency_factor": settings.latency_factor},
        "goals": {"harm": HARM, "recovered": RECOVERED, "within_s": WITHIN_S},
        "runs": [asdict(result) for result in (replace(alone, polite=True, recovers=True), *results)],
        "ok": passed["ours"] and not passed["fifo"] and not passed["fixed"],
    }


def _run(policy: Policy, model: OriginModel, settings: CrawlSettings, seed: int) -> _Site:
    clock = VirtualClock()
    site = _Site(model, seed, clock)
    clock.run(policy(site, settings))
    site.origin.until(model.end_s)
    return site


def _result(name: str, origin: Origin, calm_s: float, surge_s: float) -> PolicyResult:
    model, tally = origin.model, origin.tally
    measured_s = model.end_s - model.warm_s
    p95_calm, p95_surge = _p95(tally.calm), _p95(tally.surge)
    harm = max(p95_calm / calm_s, p95_surge / surge_s)
    before = [at for at in tally.crawled_at if model.calm_s - 600.0 <= at < model.calm_s]
    sustained = len(before) / 600.0
    recovered = _recovered(tally.crawled_at, model, RECOVERED * sustained)
    pages = sum(model.warm_s <= at < model.end_s for at in tally.crawled_at)
    return PolicyResult(
        name,
        pages_per_hour=round(pages / measured_s * 3600, 1),
        share_of_requests=round(tally.crawler / max(tally.crawler + tally.people, 1), 4),
        share_of_expensive=round(tally.crawler_expensive / max(tally.crawler_expensive + tally.people_expensive, 1), 4),
        origin_load=round(tally.busy_s / (measured_s * model.workers), 4),
        human_p95_calm_s=round(p95_calm, 4),
        human_p95_surge_s=round(p95_surge, 4),
        harm=round(harm, 4),
        human_failed=tally.people_failed,
        refused=tally.crawler_refused,
        sustained_per_s=round(sustained, 4),
        recovered_s=recovered,
        polite=harm <= HARM,
        recovers=recovered is not None and recovered <= WITHIN_S,
    )


def _recovered(crawled_at: list[float], model: OriginModel, rate: float) -> float | None:
    """Seconds after the surge at which a window of `WINDOW_S` first holds `rate`; counted to the window's end."""
    times = sorted(at for at in crawled_at if at >= model.surge_ends_s)
    if rate <= 0.0:
        return None
    first = 0
    for last, at in enumerate(times):
        while times[first] <= at - WINDOW_S:
            first += 1
        if last - first + 1 >= rate * WINDOW_S:
            return round(max(at - model.surge_ends_s, 0.0), 1)
    return None


def _p95(latencies: list[float]) -> float:
    ordered = sorted(latencies)
    return ordered[int(0.95 * (len(ordered) - 1))] if ordered else 0.0
