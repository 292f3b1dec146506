"""The loop of a fetch process: hosts that are due get a visit, and what visits settle becomes durable in groups.

The loop owns no truth. URLs belong to the frontier files, clocks are durable with every acknowledgement, and a crash
here costs at most a few refetches. Decisions live elsewhere (`schedule`, `pace`, `authority`, `settle`); this file
only keeps them supplied and never blocks on a disk.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from corpus.crawl.commit import GROUP_PAGES, GROUP_S, Committed, Committer, Settlement
from corpus.crawl.desk import HEADS, Desk
from corpus.crawl.ports import Clock, Due, FrontierStore, HostRow
from corpus.crawl.schedule import Schedule
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.visit import Visitor, VisitTools
from corpus.url.host import registered_domain
from corpus.url.partition import partition_file

TICK_S = 0.001
HURRY_S = 0.02
"""With nothing in flight and no host due within this, waiting for more work to commit together gains nothing."""
InStore = Callable[..., Awaitable[Any]]
"""Runs a function in the store thread (or inline, in a simulation) and returns its result."""


@dataclass(slots=True)
class Progress:
    """What the supervisor hears twice a second. `facts` are summed over processes; `parked` is hosts by reason."""

    idle: bool = False
    sent: int = 0
    applied: int = 0
    pages: int = 0
    requests: int = 0
    policy_requests: int = 0
    bytes_wire: int = 0
    bytes_body: int = 0
    facts: dict[str, Any] = field(default_factory=dict)


class Worker:
    """One fetch process' loop. `run` ends after `finish`, `drain` or `stop` was called."""

    def __init__(
        self,
        settings: CrawlSettings,
        files: Mapping[int, FrontierStore],
        committer: Committer,
        tools: VisitTools,
        clock: Clock,
        in_store: InStore,
        *,
        tell: Callable[[Progress], None],
    ) -> None:
        self._settings, self._files, self._committer, self._clock = settings, files, committer, clock
        self._in_store, self._tell = in_store, tell
        self._schedule = Schedule(settings)
        self._desks: dict[str, Desk] = {}
        self._visitor = Visitor(tools, self)
        self._pending: list[Settlement] = []
        self._visits: set[asyncio.Task[None]] = set()
        self._wake = asyncio.Event()
        self._flush_now = asyncio.Event()
        self._draining = self._over = False
        self._failure: BaseException | None = None
        self._last = Committed()
        self._quiet = False
        self._not_before = 0.0
        self.progress = Progress()

    # ---- orders ------------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Take nothing new; end when what is in flight is durable."""
        self._draining = True
        self._wake.set()

    def poke(self) -> None:
        """Report at once (the supervisor is about to decide whether the crawl is done)."""
        self._flush_now.set()

    def stop(self) -> None:
        """End now: what is in flight is given up and stays queued."""
        self._draining = self._over = True
        for visit in self._visits:
            visit.cancel()
        self._wake.set()

    # ---- the loop ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Visit until told to end. An error of ours in a visit or a commit ends the process with that error."""
        await self._load()
        flusher = asyncio.create_task(self._flush_forever())
        try:
            while not (self._draining and not self._visits):
                self._raise_if_failed(flusher)
                self._start_visits()
                await self._pause()
        finally:
            flusher.cancel()
            with contextlib.suppress(asyncio.CancelledError):  # we cancelled it ourselves, one line above
                await flusher
        if not self._over:
            await self._flush()

    def _start_visits(self) -> None:
        if self._draining:
            return
        now = self._clock.monotonic()
        for host in self._schedule.ready(now, self._settings.slots - len(self._visits)):
            desk = self._desks[host]
            desk.visits += 1
            visit = asyncio.create_task(self._visitor.visit(desk))
            self._visits.add(visit)
            visit.add_done_callback(self._visited)

    def _visited(self, visit: asyncio.Task[None]) -> None:
        self._visits.discard(visit)
        if not visit.cancelled() and visit.exception() is not None:
            self._failure = visit.exception()
        self._wake.set()

    def _raise_if_failed(self, flusher: asyncio.Task[None]) -> None:
        if self._failure is not None:
            raise self._failure
        if flusher.done():
            flusher.result()

    async def _pause(self) -> None:
        """Sleep until something happened or a host is due; a loop with nothing to do hurries the group commit."""
        self._wake.clear()
        now = self._clock.monotonic()
        due = self._schedule.next_due(now)
        full = len(self._visits) >= self._settings.slots
        wait_s = GROUP_S if due is None or full or self._draining else min(max(due - now, 0.0), GROUP_S)
        quiet = not self._visits and wait_s > HURRY_S
        if quiet and (self._pending or not self._quiet):
            self._flush_now.set()
        self._quiet = quiet and not self._pending
        await first_of(self._wake.wait(), self._clock.sleep(max(wait_s, TICK_S)))

    # ---- durability --------------------------------------------------------------------------------------------------

    def settle(self, settlement: Settlement, desk: Desk) -> None:
        """Hand in what a visit settled; it is durable after the next group commit."""
        desk.unsettled += 1
        self._pending.append(settlement)
        if len(self._pending) >= GROUP_PAGES:
            self._flush_now.set()

    async def _flush_forever(self) -> None:
        while True:
            await first_of(self._flush_now.wait(), self._clock.sleep(GROUP_S))
            self._flush_now.clear()
            await self._flush()

    async def _flush(self) -> None:
        batch, self._pending = self._pending, []
        wall = self._clock.wall()
        committed, woken = await self._in_store(self._commit, batch, wall)
        for settlement in batch:
            self._durable(settlement)
        for host, file in {**committed.awake, **woken}.items():
            await self._activate(host, file)
        self._last = committed
        await self._report()
        self._wake.set()

    def _commit(self, batch: Sequence[Settlement], wall: float) -> tuple[Committed, dict[str, int]]:
        """In the store thread: one group commit, then whatever has waited long enough."""
        committed = self._committer.commit(batch)
        woken = {host: number for number, store in self._files.items() for host in store.wake(wall)}
        return committed, woken

    def _durable(self, settlement: Settlement) -> None:
        assert settlement.ack.host is not None, "every settlement names its host"
        desk = self._desks.get(settlement.ack.host.host)
        if desk is None:
            return
        desk.unsettled -= 1
        for settled in settlement.ack.settled:
            desk.release(settled.url)
        self._visitor.tools.book.durable(settlement.bodies)
        if desk.at_rest:
            self._line_up(desk)

    # ---- hosts come and go -------------------------------------------------------------------------------------------

    async def _load(self) -> None:
        """Every host with something to ask for, with the clocks of the last run; a crash costs one more gap each."""
        rows, clean = await self._in_store(self._stored_hosts)
        now, wall = self._clock.monotonic(), self._clock.wall()
        resumed = any(row.due.set_at > 0.0 for row, _ in rows)
        for row, file in rows:
            gap = self._settings.ip_gap_s if clean else max(row.pace_s, self._settings.delay_start)
            self._desks[row.host] = Desk(row, file)
            self._schedule.add(row, now, wall, not_before=now + gap if resumed else 0.0)

    def _stored_hosts(self) -> tuple[list[tuple[HostRow, int]], bool]:
        wall = self._clock.wall()
        for store in self._files.values():
            store.wake(wall)
        rows = [(row, number) for number, store in sorted(self._files.items()) for row in store.hosts()]
        return rows, all(store.was_clean() for store in self._files.values())

    async def _activate(self, host: str, file: int) -> None:
        """A host has something to ask for: make sure it is in line."""
        desk = self._desks.get(host)
        if desk is None:
            row = await self._in_store(self._files[file].host, host)
            desk = self._desks.setdefault(host, Desk(row or HostRow(host, registered_domain(host)), file))
        self._line_up(desk)

    def _line_up(self, desk: Desk) -> None:
        if not desk.suspended:
            desk.idle = False
            self._schedule.add(desk.row, self._clock.monotonic(), self._clock.wall())

    def errand_desk(self, host: str) -> Desk | None:
        """The desk of a host of ours, for an errand; None when another process owns it."""
        file = partition_file(registered_domain(host))
        if file not in self._files:
            return None
        return self._desks.setdefault(host, Desk(HostRow(host, registered_domain(host)), file))

    def desk_of(self, host: str) -> Desk:
        return self._desks[host]

    def line_up(self, desk: Desk) -> None:
        self._line_up(desk)

    def leave(self, desk: Desk) -> None:
        """Nothing left to ask of a host right now: out of line."""
        self._schedule.remove(desk.row.host)
        desk.idle = True

    def left(self, desk: Desk) -> None:
        """A visit ended; an idle host is forgotten once all of it is durable."""
        if desk.idle and desk.at_rest and not desk.suspended:
            self._visitor.tools.book.forget(desk.authorities)
            self._desks.pop(desk.row.host, None)

    def park(self, desk: Desk, reason: str, wait_s: float) -> None:
        """Leave a host alone for longer than a run waits; its row says why."""
        now, wall = self._clock.monotonic(), self._clock.wall()
        desk.row = replace(desk.row, state="parked", reason=reason, due=Due(wall, wait_s))
        self._schedule.park(desk.row.host, now + wait_s)

    async def heads(self, desk: Desk) -> None:
        """Read the next URLs of a host; on the first visit also what is known of its authority files."""
        limit = HEADS + len(desk.taken)
        store = self._files[desk.file]
        if not desk.authorities:
            rows, fresh = await self._in_store(_authorities_and_heads, store, desk.row.host, limit)
            self._visitor.tools.book.learn(rows)
            desk.authorities |= {row.authority for row in rows}
        else:
            fresh = await self._in_store(store.heads, desk.row.host, limit)
        desk.refill(fresh)

    @property
    def schedule(self) -> Schedule:
        return self._schedule

    # ---- reports -----------------------------------------------------------------------------------------------------

    async def _report(self) -> None:
        stats = self._schedule.stats()
        moving = stats.sleeping + stats.front + stats.active + stats.in_flight
        nothing = not (moving or self._visits or self._pending or self._last.outbox)
        parked: dict[str, int] = {}
        waiting = 0
        if nothing:
            rows = await self._in_store(self._stored_rows)
            for row in rows:
                if row.state in ("parked", "blocked", "retired"):
                    parked[row.reason or row.state] = parked.get(row.reason or row.state, 0) + 1
                elif row.queued and self._visitor.tools.only is None:
                    waiting += 1
        if nothing and not waiting:
            waiting = await self._in_store(self._soon)
        p = self.progress
        counts = self._visitor.counts
        p.pages, p.requests, p.policy_requests = counts.pages, counts.requests, counts.policy_requests
        p.bytes_wire, p.bytes_body = counts.bytes_wire, counts.bytes_body
        p.idle, p.sent, p.applied = nothing and not waiting, self._last.sent, self._last.applied
        p.facts = {"active": stats.active, "waiting": stats.sleeping + stats.waiting, "parked_hosts": stats.parked, "parked": parked}
        self._tell(p)

    def _soon(self) -> int:
        """URLs of hosts that are not parked may still wait for a retry inside this run."""
        limit = self._clock.wall() + self._settings.park_after
        return sum((store.next_wake() or limit + 1) <= limit for store in self._files.values())

    def _stored_rows(self) -> list[HostRow]:
        return [row for store in self._files.values() for row in store.hosts()]


def _authorities_and_heads(store: FrontierStore, host: str, limit: int) -> tuple[Any, Any]:
    return store.authorities(host), store.heads(host, limit)


async def first_of(*waits: Awaitable[Any]) -> None:
    """Wait for the first of several; the others are cancelled and gone when this returns."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
