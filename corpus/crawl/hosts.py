"""The hosts of a fetch process that have something to ask for: they come, stand in line, are parked, and go.

A host has a desk from the moment its first URL is due until the last one is durable. What is remembered of hosts
without a desk is in the store; nothing here is durable.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from corpus.crawl import breaker
from corpus.crawl.authority import AuthorityBook
from corpus.crawl.desk import HEADS, Desk
from corpus.crawl.discover import Router
from corpus.crawl.ports import Ack, Clock, Due, FrontierStore, HostRow, QueuedUrl
from corpus.crawl.priority import with_host
from corpus.crawl.recrawl import Plan, plan
from corpus.crawl.restart import Hold, rested
from corpus.crawl.schedule import Schedule
from corpus.crawl.settings import CrawlSettings, RecrawlSettings
from corpus.model import Kind
from corpus.url.host import host_of, registered_domain

DESKS_MAX = 2_048
"""Hosts with a desk (about 2 kB each), unless six times the slots are more; the others are only known to the schedule."""
InStore = Callable[..., Awaitable[Any]]
"""Runs a function in the store thread (or inline, in a simulation) and returns its result."""


class Hosts:
    """Belongs to the loop thread; reads the store through `in_store`."""

    def __init__(
        self, settings: CrawlSettings, files: Mapping[int, FrontierStore], book: AuthorityBook, clock: Clock, in_store: InStore,
        router: Router, recrawl: RecrawlSettings | None = None,
    ) -> None:  # fmt: skip
        self.schedule = Schedule(settings, share=0.0 if recrawl is None else recrawl.share)
        self.plan = None if recrawl is None else Plan(recrawl)
        """How pages that were visited fall due; None: they do not."""
        self.desks: dict[str, Desk] = {}
        self._settings, self._files, self._book, self._clock, self._in_store = settings, files, book, clock, in_store
        self._router, self._yields = router, router.yields
        self.addresses = breaker.AddressBreakers(settings)
        self._desks_max = max(DESKS_MAX, 6 * settings.slots)
        self._holds: dict[int, Hold] = {}
        """How files were taken up whose hosts somebody may have contacted before."""
        self.leaving: frozenset[int] = frozenset()
        """Files whose hosts get no visits: they are about to be another process's, or have not quite come."""
        self._domain_pages: dict[str, int] = {}

    async def load(
        self, *, fresh: bool, revisit: bool, quiet: Mapping[int, float] | None = None, files: Collection[int] | None = None
    ) -> None:
        """Line up every host of these files (all that are ours) with something to ask for. `fresh`: nobody ever contacted any of them.

        `revisit`: visited URLs that have fallen due get back in line first. `quiet`: by file, the monotonic time up to which a
        former owner's last contacts may still run; every gap begins then.
        """
        wall = self._clock.wall()
        stores = {number: self._files[number] for number in sorted(self._files if files is None else files)}
        clean = await self._in_store(self._wake, stores, wall, revisit)
        await self.replan()
        now = self._clock.monotonic()
        if not fresh:
            begins = {number: max(now, (quiet or {}).get(number, now)) for number in stores}
            self._holds |= {number: Hold(begins[number], clean[number] and begins[number] == now) for number in stores}
        self.leaving -= stores.keys()
        silent: list[HostRow] = []
        for number, store in stores.items():  # one file's rows at a time: there may be many
            rows = await self._in_store(store.hosts)
            silent += [row for row in rows if row.failures]
            for row in rows:
                row = rested(row, self._settings, wall)
                if len(self.desks) < self._desks_max:
                    self.desks[row.host] = self._desk(row, number)
                self._line_up(row, number)
        self.addresses.restore(silent, now, wall)

    def _wake(self, stores: Mapping[int, FrontierStore], wall: float, revisit: bool) -> dict[int, bool]:
        """In the store thread: whatever is due gets back in line. Returns which files were closed in order."""
        self._revived(stores, wall)
        for store in stores.values():
            store.wake(wall, revisit=revisit)
        return {number: store.was_clean() for number, store in stores.items()}

    # ---- files that leave

    def file_of(self, host: str) -> int:
        """The partition file that a host belongs to."""
        return self._router.file_of(registered_domain(host))

    def owns(self, file: int) -> bool:
        """Whether hosts of this partition file are ours to visit, now and for as long as can be seen."""
        return file in self._files and file not in self.leaving

    async def let_go(self, files: Collection[int]) -> None:
        """Nobody of these files gets a new visit; visits under way go on."""
        going = frozenset(files) - self.leaving
        self.leaving |= going
        names = await self._in_store(lambda: [row.host for number in going for row in self._files[number].hosts()])
        for host in {*names, *(desk.row.host for desk in self.desks.values() if desk.file in going)}:
            self.schedule.remove(host)

    async def forget(self, files: Collection[int]) -> None:
        """Files that leave, when nothing of them is under way and all that was known of their hosts is stored. Desks go at once."""
        for desk in [desk for desk in self.desks.values() if desk.file in files]:
            self._book.forget(desk.authorities)
            del self.desks[desk.row.host]
        for domain in [domain for domain in self._domain_pages if self._router.file_of(domain) in files]:
            del self._domain_pages[domain]
        self._holds = {number: hold for number, hold in self._holds.items() if number not in files}
        await self._in_store(self._yields.forget, lambda domain: self._router.file_of(domain) in files)

    async def retire(self, desk: Desk) -> None:
        """A host that has kept failing is given up: what waits there is excluded, and it is not asked again for long."""
        wall = self._clock.wall()
        desk.row = breaker.retired(desk.row, wall)
        self._yields.retire(desk.row.host)
        await self._in_store(_give_up, self._files[desk.file], desk.row)
        desk.heads.clear()
        self.schedule.park(desk.row.host)

    async def revive(self) -> None:
        """Retired hosts whose time is over get their probe."""
        for host, file in (await self._in_store(self._revived, self._files, self._clock.wall())).items():
            desk, row = self.desks.get(host), await self._in_store(self._files[file].host, host)
            if desk is not None and row is not None:
                desk.row = row
            await self.activate(host, file)

    def _revived(self, stores: Mapping[int, FrontierStore], wall: float) -> dict[str, int]:
        """In the store thread: retired hosts back in line where their time is over, and kept out of it where it is not."""
        awake = {}
        for number, store in stores.items():
            for row in store.retired():
                back = breaker.revived(row, wall)
                if back is None:
                    self._yields.retire(row.host)
                    if row.queued:
                        store.exclude_queued(row.host, row.reason, revisits=True)
                    continue
                self._yields.revive(row.host)
                store.commit([Ack(host=back)])
                store.readmit(row.host, row.reason)
                awake[row.host] = number
        return awake

    async def activate(self, host: str, file: int) -> None:
        """A host has something to ask for: make sure it is in line. (It gets a desk when it is visited, if there are many.)"""
        if not self.owns(file):
            return
        if host in self.desks or len(self.desks) < self._desks_max:
            self.line_up(await self.desk(host, file))
            return
        row = await self._in_store(self._files[file].host, host)
        if host in self.desks or row is None:
            self.line_up(await self.desk(host, file))
        else:
            self._line_up(row, file)

    async def visited(self, host: str) -> Desk | None:
        """The desk of a host that is to be visited now; it is not cleared away before the visit has begun. None: it is not ours."""
        file = self.file_of(host)
        if not self.owns(file):
            self.schedule.skip(host, self._clock.monotonic())
            self.schedule.remove(host)
            return None
        desk = await self.desk(host, file)
        desk.visits += 1
        return desk

    def clear_away(self, keep: set[str]) -> None:
        """With more desks than are needed at once, take back those at rest, oldest first, but for `keep`: all they hold is stored."""
        spare = len(self.desks) - self._desks_max
        if spare <= 0:
            return
        keep = keep | {errand.for_host for desk in self.desks.values() for errand in desk.errands}
        keep |= {host_of(authority) for desk in self.desks.values() for authority, _ in desk.asking}
        idle = [desk for desk in self.desks.values() if desk.at_rest and not desk.suspended and desk.row.host not in keep]
        for desk in idle[:spare]:
            self._book.forget(desk.authorities)
            del self.desks[desk.row.host]

    async def desk(self, host: str, file: int) -> Desk:
        """The desk of a host, set up from what the store remembers of it."""
        desk = self.desks.get(host)
        if desk is None:
            row = await self._in_store(self._files[file].host, host)
            desk = self.desks.get(host)  # another visit may have been quicker
            if desk is None:
                desk = self.desks[host] = self._desk(row or HostRow(host, registered_domain(host)), file)
        return desk

    def _desk(self, row: HostRow, file: int) -> Desk:
        if self._settings.max_pages_per_domain is not None:
            self._domain_pages.setdefault(row.domain, row.domain_pages)
        return Desk(row, file)

    async def replan(self) -> None:
        """Share out visits by what is known of rates of change by now; pages of other processes are theirs to plan."""
        if self.plan is not None and self.plan.settings.mode in ("proportional", "optimal"):
            self.plan = plan(self.plan.settings, await self._in_store(self._rates))

    def _rates(self) -> dict[int, int]:
        total: Counter[int] = Counter()
        for store in self._files.values():
            total.update(store.rates())
        return dict(total)

    async def graded(self, qualities: Mapping[str, float]) -> None:
        """Processing has measured pages of these hosts: their priority follows."""
        by_file: dict[int, dict[str, float]] = {}
        for host, quality in qualities.items():
            by_file.setdefault(self.file_of(host), {})[host] = quality
        for file in by_file.keys() & self._files.keys():
            await self._in_store(self._files[file].grade, by_file[file])
        for host in qualities.keys() & self.desks.keys():
            desk = self.desks[host]
            desk.row = replace(desk.row, quality=qualities[host])
            if not desk.idle:
                self.line_up(desk)

    def line_up(self, desk: Desk) -> None:
        desk.idle = False
        self._line_up(desk.row, desk.file)

    def _line_up(self, row: HostRow, file: int) -> None:
        if not self.owns(file):
            return
        row = replace(row, front=with_host(row.front, row.linking, row.quality))
        hold = self._holds.get(file)
        not_before = 0.0 if hold is None else hold.until(row, self._settings)
        self.schedule.add(row, self._clock.monotonic(), self._clock.wall(), not_before=not_before)

    def due_again(self, host: str) -> None:
        """Pages of this host may be due for another visit."""
        desk = self.desks.get(host)
        if desk is not None:
            desk.more_due = True
            desk.row = replace(desk.row, due_waits=True)
            self.schedule.waits(host, new=desk.row.new_waits, due=True)

    def linked(self, host: str) -> None:
        """New URLs of a host may be in the store: if it went out of line with its last ones in hand, it gets back in."""
        desk = self.desks.get(host)
        if desk is not None and desk.idle:
            self.line_up(desk)

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
        self.rest(desk, now + wait_s)

    def rest(self, desk: Desk, until: float) -> None:
        """Out of line up to a monotonic time; for good when its file leaves."""
        if self.owns(desk.file):
            self.schedule.park(desk.row.host, until)

    async def heads(self, desk: Desk) -> None:
        """Read the next URLs of a host; on the first visit also what is known of its authority files."""
        limit = HEADS + len(desk.taken)
        store = self._files[desk.file]
        if not desk.known:
            rows, fresh = await self._in_store(self._first_look, store, desk.row.host, limit)
            if not desk.known:
                desk.known = True
                self._book.learn(rows)
                desk.authorities |= {row.authority for row in rows}
        else:
            fresh = await self._in_store(_heads, store, desk.row.host, limit, desk.row.due_waits)
        desk.refill(fresh, limit)
        self.schedule.waits(desk.row.host, new=desk.waits(again=False), due=desk.waits(again=True))

    async def exclude(self, desk: Desk, reason: str) -> None:
        """What is still queued of a host is excluded: its budget is used up. Pages it has spent it on are visited again all the same."""
        await self._in_store(self._files[desk.file].exclude_queued, desk.row.host, reason)
        desk.heads = deque(queued for queued in desk.heads if queued.again)

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

    def _first_look(self, store: FrontierStore, host: str, limit: int) -> tuple[Any, Any]:
        """In the store thread: all that is stored of a host beside its row."""
        closed, sums = store.yields(host)
        self._yields.restore(closed, [sums], self._clock.wall())
        return store.authorities(host), _heads(store, host, limit, True)


def _give_up(store: FrontierStore, row: HostRow) -> None:
    """The row first: a crash in between leaves URLs in line of a retired host, and the next start excludes them."""
    store.commit([Ack(host=row)])
    store.exclude_queued(row.host, row.reason, revisits=True)


def _heads(store: FrontierStore, host: str, limit: int, revisits: bool) -> list[QueuedUrl]:
    """The first URLs of each kind; `revisits`: whether any may be due."""
    return store.heads(host, limit, again=False) + (store.heads(host, limit, again=True) if revisits else [])
