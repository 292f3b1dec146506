"""The hosts of a fetch process that have something to ask for: they come, stand in line, are parked, and go.

A host has a desk from the moment its first URL is due until the last one is durable. What is remembered of hosts
without a desk is in the store; nothing here is durable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from corpus.crawl.authority import AuthorityBook
from corpus.crawl.desk import HEADS, Desk
from corpus.crawl.pace import PUBLIC_FLOOR_S, all_private, limits
from corpus.crawl.ports import Clock, Due, FrontierStore, HostRow
from corpus.crawl.schedule import Schedule
from corpus.crawl.settings import CrawlSettings
from corpus.model import Kind
from corpus.url.host import registered_domain

InStore = Callable[..., Awaitable[Any]]
"""Runs a function in the store thread (or inline, in a simulation) and returns its result."""


def restart_gap_s(row: HostRow, settings: CrawlSettings, *, clean: bool) -> float:
    """How long after a start a host is left alone, beside what its stored clocks say.

    After an orderly end those are exact, and only addresses have no clock in the store. After a crash the last contact
    may have ended this very moment, unacknowledged, so its whole gap is waited for once more.
    """
    address = settings.ip_gap_s
    if address < PUBLIC_FLOOR_S and not all_private(row.ips, settings):
        address = PUBLIC_FLOOR_S
    if clean:
        return address
    return max(row.pace_s, row.crawl_delay_s or 0.0, limits(row.host, settings, row.ips).start_s, address)


def rested(row: HostRow, settings: CrawlSettings, wall: float) -> HostRow:
    """The row of a host that was parked, once its time has come: it has been left alone, so it begins no slower than a
    host that a run waits for. (Else one whose gap has grown past `park_after` would be parked again after every answer.)"""
    if row.state != "parked" or row.due.remaining(wall) > 0:
        return row
    most = max(limits(row.host, settings, row.ips).start_s, settings.park_after / 2)
    return replace(row, state="active", reason="", pace_s=min(row.pace_s, most))


class Hosts:
    """Belongs to the loop thread; reads the store through `in_store`."""

    def __init__(
        self, settings: CrawlSettings, files: Mapping[int, FrontierStore], book: AuthorityBook, clock: Clock, in_store: InStore
    ) -> None:
        self.schedule = Schedule(settings)
        self.desks: dict[str, Desk] = {}
        self._settings, self._files, self._book, self._clock, self._in_store = settings, files, book, clock, in_store
        self._not_before = 0.0
        self._domain_pages: dict[str, int] = {}

    async def load(self, *, fresh: bool, revisit: bool) -> None:
        """Line up every host with something to ask for. `fresh`: nobody ever contacted anything from this folder.

        `revisit`: visited URLs that have fallen due get back in line first.
        """
        wall = self._clock.wall()
        rows, clean = await self._in_store(self._stored, wall, revisit)
        now = self._clock.monotonic()
        if not fresh:
            self._not_before = now + restart_gap_s(HostRow("", ""), self._settings, clean=clean)
        for row, file in rows:
            row = rested(row, self._settings, wall)
            self.desks[row.host] = self._desk(row, file)
            hold = 0.0 if fresh else now + restart_gap_s(row, self._settings, clean=clean)
            self.schedule.add(row, now, wall, not_before=hold)

    def _stored(self, wall: float, revisit: bool) -> tuple[list[tuple[HostRow, int]], bool]:
        for store in self._files.values():
            store.wake(wall, revisit=revisit)
        rows = [(row, number) for number, store in sorted(self._files.items()) for row in store.hosts()]
        return rows, all(store.was_clean() for store in self._files.values())

    async def activate(self, host: str, file: int) -> None:
        """A host has something to ask for: make sure it is in line."""
        self.line_up(await self.desk(host, file))

    async def desk(self, host: str, file: int) -> Desk:
        """The desk of a host, set up from what the store remembers of it."""
        desk = self.desks.get(host)
        if desk is None:
            row = await self._in_store(self._files[file].host, host)
            desk = self.desks.get(host)  # another visit may have been quicker
            if desk is None:
                desk = self.desks[host] = self._desk(row or HostRow(host, registered_domain(host)), file)
        return desk

    def owns(self, file: int) -> bool:
        return file in self._files

    def _desk(self, row: HostRow, file: int) -> Desk:
        if self._settings.max_pages_per_domain is not None:
            self._domain_pages.setdefault(row.domain, row.domain_pages)
        return Desk(row, file)

    def line_up(self, desk: Desk) -> None:
        desk.idle = False
        self.schedule.add(desk.row, self._clock.monotonic(), self._clock.wall(), not_before=self._not_before)

    def resume(self, desk: Desk) -> None:
        if desk.suspended:
            desk.suspended = False
            self.line_up(desk)

    def leave(self, desk: Desk) -> None:
        """Nothing left to ask of a host right now: out of line."""
        self.schedule.remove(desk.row.host)
        desk.idle = True

    def left(self, desk: Desk) -> bool:
        """A visit ended; an idle host is forgotten (True) once all of it is durable."""
        if not desk.idle or not desk.at_rest or desk.suspended:
            return False
        self._book.forget(desk.authorities)
        self.desks.pop(desk.row.host, None)
        return True

    def park(self, desk: Desk, reason: str, wait_s: float) -> None:
        """Leave a host alone for longer than a run waits; its row says why."""
        now, wall = self._clock.monotonic(), self._clock.wall()
        wait_s = max(wait_s, desk.row.due.remaining(wall))
        desk.row = replace(desk.row, state="parked", reason=reason, due=Due(wall, wait_s))
        self.schedule.park(desk.row.host, now + wait_s)

    async def heads(self, desk: Desk) -> None:
        """Read the next URLs of a host; on the first visit also what is known of its authority files."""
        limit = HEADS + len(desk.taken)
        store = self._files[desk.file]
        if not desk.known:
            rows, fresh = await self._in_store(_authorities_and_heads, store, desk.row.host, limit)
            if not desk.known:
                desk.known = True
                self._book.learn(rows)
                desk.authorities |= {row.authority for row in rows}
        else:
            fresh = await self._in_store(store.heads, desk.row.host, limit)
        desk.refill(fresh)

    async def exclude(self, desk: Desk, reason: str) -> None:
        """All that is still queued of a host is excluded: its budget is used up."""
        await self._in_store(self._files[desk.file].exclude_queued, desk.row.host, reason)
        desk.heads.clear()

    def domain_pages(self, desk: Desk) -> int:
        """Page contacts of a whole registered domain, this run's included (one process owns all of its hosts)."""
        return self._domain_pages.get(desk.row.domain, desk.row.domain_pages)

    def count_page(self, desk: Desk) -> None:
        desk.row = replace(desk.row, pages=desk.row.pages + 1, domain_pages=desk.row.domain_pages + 1)
        if desk.row.domain in self._domain_pages:
            self._domain_pages[desk.row.domain] += 1

    def pending(self, *, only: Kind | None) -> tuple[int, dict[str, int]]:
        """In the store thread: (hosts that still wait for their turn, parked hosts by reason)."""
        waiting, parked = 0, dict[str, str]()
        for store in self._files.values():
            parked |= dict(store.parked())
            for row in store.hosts():
                if row.state in ("parked", "blocked", "retired"):
                    parked[row.host] = row.reason or row.state
                elif row.queued and only is None:
                    waiting += 1
        return waiting, dict(Counter(parked.values()))


def _authorities_and_heads(store: FrontierStore, host: str, limit: int) -> tuple[Any, Any]:
    return store.authorities(host), store.heads(host, limit)
