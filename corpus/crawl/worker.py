"""The loop of a fetch process: hosts that are due get a visit, and what visits settle becomes durable in groups.

The loop owns no truth. URLs belong to the frontier files, clocks are durable with every acknowledgement, and a crash
here costs at most a few refetches. Decisions live elsewhere (`schedule`, `pace`, `authority`, `settle`); this file
only keeps them supplied and never blocks on a disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from corpus.crawl.bell import Bell
from corpus.crawl.commit import GROUP_PAGES, GROUP_S, Committer
from corpus.crawl.desk import Desk, Errand
from corpus.crawl.gauges import Gauges
from corpus.crawl.hosts import Hosts, InStore
from corpus.crawl.judge import VisitTools
from corpus.crawl.moves import Moves, Porter
from corpus.crawl.ports import Clock, FrontierStore, Request
from corpus.crawl.quota import Quota
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.settlement import Committed, Settlement
from corpus.crawl.visit import Visitor
from corpus.errors import NoRoom, TryLater
from corpus.model import FetchResult

TICK_S = 0.001
WAITING_BYTES = 8 * 2**20
"""Bodies and texts that wait for a group commit: past so many it is hurried, and nobody is asked until it has taken them."""
PLAN_EVERY_S = 3600.0
"""How often visits are shared out anew by what is known of rates of change."""
STALL_S = 1.0
"""How long to wait before a store that refused is tried again."""
HURRY_S = 0.02
"""With nothing in flight and no host due within this, waiting for more work to commit together gains nothing."""


@dataclass(slots=True)
class Progress:
    """What the supervisor hears twice a second. `new_pages` counts against `max_pages`; `starving`: pages wait for quota;
    `parked` is hosts by reason. `facts` are summed over processes."""

    idle: bool = False
    sent: int = 0
    applied: int = 0
    pages: int = 0
    new_pages: int = 0
    starving: bool = False
    stalled: str = ""
    """Why nothing can be made durable right now (a full disk, a store that does not answer); nobody is asked meanwhile."""
    full: bool = False
    """`stalled` because a disk of this machine has no room."""
    requests: int = 0
    policy_requests: int = 0
    bytes_wire: int = 0
    bytes_body: int = 0
    parked: dict[str, int] = field(default_factory=dict)
    facts: dict[str, int] = field(default_factory=dict)
    files: tuple[int, ...] = ()
    """Partition files that all of this is said of."""
    moved: int = 0
    """The last order to own other files that is over."""
    gauges: dict[str, Any] = field(default_factory=dict)
    """For a person (`crawl.gauges`); nothing is decided by it."""


class Worker:
    """One fetch process' loop. `run` ends after `drain` or `stop` was called."""

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
        quota: int | None = None,
        fresh: bool = False,
        quiet: Mapping[int, float] | None = None,
        porter: Porter | None = None,
    ) -> None:
        """`quota`: new pages this process may store; `fresh`: nobody ever contacted anything from this folder; `quiet`: `Hosts.load`;
        `porter`: whoever changes what is in `files`, where they may change."""
        self._settings, self._files, self._committer, self._tools, self._clock = settings, files, committer, tools, clock
        self._in_store, self._tell, self._fresh, self._left_alone = in_store, tell, fresh, quiet
        self._hosts = Hosts(settings, files, tools.book, clock, in_store, tools.router, tools.recrawl)
        self._quota = Quota(quota)
        self._bell, self._flush_bell = Bell(), Bell()
        self._loaded = asyncio.Event()
        self._gauges = Gauges()
        self._visitor = Visitor(tools, self._hosts, self._quota, self._settle, self._flush_bell.ring, committer.knows)
        self._moves = Moves(files, self._hosts, self._visitor, self._patiently, partial(self._flush, seal=True), porter)
        self._pending: list[Settlement] = []
        self._waiting = 0
        self._visits: dict[asyncio.Task[None], str] = {}
        """Visits under way, and their hosts."""
        self._draining = self._over = self._given_up = False
        self._failure: BaseException | None = None
        self._last = Committed()
        self._quiet = False
        self._planned = clock.monotonic()
        self._known_pending: tuple[int, dict[str, int]] | None = None
        self.progress = Progress(files=tuple(sorted(files)))
        self.turns = 0
        """How often the loop went round: bounded by the work, or it spins."""

    # ---- orders

    def drain(self) -> None:
        """Take nothing new; end when what is in flight is durable."""
        self._draining = True
        self._bell.ring()

    def stop(self) -> None:
        """Break off what is in flight (it stays queued) and end when the rest is durable."""
        self.drain()
        for visit in self._visits:
            visit.cancel()

    def give_up(self) -> None:
        """End like `stop`; but where a store has no room, do not wait for any: what is not durable will be fetched again by others."""
        self._given_up = True
        self.stop()

    def poke(self) -> None:
        """Report at once (the supervisor is about to decide whether the crawl is done)."""
        self._flush_bell.ring()

    def deal(self, quota: int) -> None:
        """A new share of the crawl's page budget."""
        self._quota.deal(quota)
        self._flush_bell.ring()

    def own(self, number: int, files: Collection[int]) -> None:
        """From now on these partition files; `Progress.moved` says when this order is over."""
        self._moves.order(number, files)
        self._flush_bell.ring()

    async def readmitted(self, hosts: Mapping[str, int]) -> None:
        """These hosts (with their files) have something to ask for again."""
        for host, file in hosts.items():
            await self._hosts.activate(host, file)
        if hosts:
            self._known_pending = None
            self._bell.ring()

    def fail(self, error: BaseException) -> None:
        """Something of ours broke outside the loop: end with it."""
        self._failure = error
        self._bell.ring()

    async def errand(self, errand: Errand) -> None:
        """Ask one of our hosts for an authority file, for another process. (It may have begun before us.)"""
        await self._loaded.wait()
        await self._visitor.errands.receive(errand)
        self._bell.ring()

    async def errand_returned(self, errand: Errand, request: Request | None, result: FetchResult | None) -> None:
        """Another process has asked for us."""
        await self._visitor.errands.returned(errand, request, result)
        self._bell.ring()

    # ---- the loop

    async def run(self) -> None:
        """Visit until told to end. An error of ours in a visit or a commit ends the process with that error."""
        await self._hosts.graded(await self._in_store(self._tools.qualities))
        await self._hosts.load(fresh=self._fresh, revisit=self._revisits, quiet=self._left_alone)
        self._loaded.set()
        flusher = asyncio.create_task(self._flush_forever())
        try:
            while not (self._draining and not self._visits):
                self._raise_if_failed(flusher)
                self._start_visits()
                await self._pause()
        except BaseException:
            flusher.cancel()
            raise
        self._visitor.put_down(self._files)
        self._over = True
        self._flush_bell.ring()
        await flusher
        if self._failure is not None:
            raise self._failure

    def _start_visits(self) -> None:
        self.turns += 1
        if self._draining or self.progress.stalled or self._behind or self._tools.paused():
            return
        for host in self._hosts.schedule.ready(self._clock.monotonic(), self._settings.slots - len(self._visits)):
            desk = self._hosts.desks.get(host)
            if desk is not None:
                desk.visits += 1
            visit = asyncio.create_task(self._visit(host, desk))
            self._visits[visit] = host
            visit.add_done_callback(self._visited)

    async def _visit(self, host: str, desk: Desk | None) -> None:
        desk = desk or await self._hosts.visited(host)
        if desk is not None:
            await self._visitor.visit(desk)

    def _visited(self, visit: asyncio.Task[None]) -> None:
        del self._visits[visit]
        error = None if visit.cancelled() else visit.exception()
        if error is not None:
            self._failure = error
        self._bell.ring()

    def _raise_if_failed(self, flusher: asyncio.Task[None]) -> None:
        if self._failure is not None:
            raise self._failure
        if flusher.done():
            flusher.result()

    async def _pause(self) -> None:
        """Sleep until something happened or a host is due; a loop with nothing to do hurries the group commit."""
        now = self._clock.monotonic()
        due = self._hosts.schedule.next_due(now)
        full = len(self._visits) >= self._settings.slots
        held = due is None or full or self._draining or self.progress.stalled or self._behind or self._tools.paused()
        wait_s = GROUP_S if due is None or held else min(max(due - now, 0.0), GROUP_S)
        quiet = not self._visits and wait_s > HURRY_S
        if quiet and (self._pending or not self._quiet):
            self._flush_bell.ring()
        self._quiet = quiet and not self._pending
        await self._bell.wait(max(wait_s, TICK_S))

    # ---- durability

    def _settle(self, settlement: Settlement, desk: Desk) -> None:
        """Hand in what a visit settled; it is durable after the next group commit (at once where a host asked for rest)."""
        desk.unsettled += 1
        self._gauges.settled(settlement.ack, self._clock.wall())
        self._pending.append(settlement)
        self._waiting += settlement.size
        full = len(self._pending) >= GROUP_PAGES or self._behind
        if full or (settlement.ack.host is not None and settlement.ack.host.strikes):
            self._flush_bell.ring()

    @property
    def _behind(self) -> bool:
        return self._waiting >= WAITING_BYTES

    async def _flush_forever(self) -> None:
        over = False
        while not over:
            await self._flush_bell.wait(GROUP_S)
            over = self._over
            await self._flush()
            if not self._draining and await self._moves.step(self._visits.values(), revisit=self._revisits):
                self._known_pending = None
                await self._flush()  # what is reported next is said of the files that are ours by now

    async def _flush(self, *, seal: bool = False) -> None:
        batch, self._pending, self._waiting = self._pending, [], 0
        self._bell.ring()
        rest = self._last.held > 0 and not batch and self._nothing_moves()
        self._last = await self._patiently(self._committer.commit, batch, seal=rest or seal)
        woken = await self._patiently(self._wake, self._clock.wall())
        for settlement in self._last.durable:
            self._durable(settlement)
        for host in self._last.linked:
            self._hosts.linked(host)
        awake = {**self._last.awake, **woken}
        if not self._quota.starving:
            awake |= self._visitor.starving
            self._visitor.starving = {}
        for host, file in awake.items():
            await self._hosts.activate(host, file)
        for host in woken:
            self._hosts.due_again(host)
        await self._learn()
        self._hosts.clear_away(self._visitor.errands.awaited)
        self._visitor.errands.overdue(self._clock.monotonic())
        if batch or awake:
            self._known_pending = None
        await self._report()
        self._bell.ring()

    async def _learn(self) -> None:
        """With every segment that was sealed, what processing found of hosts since; every hour, how often pages change."""
        if self._last.sealed:
            await self._hosts.graded(await self._in_store(self._tools.qualities))
        now = self._clock.monotonic()
        if now - self._planned >= PLAN_EVERY_S:
            self._planned = now
            await self._hosts.replan()
            await self._hosts.revive()

    async def _patiently(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """The result of a call in the store thread. While a store has no room or does not answer, nobody new is asked, and the same
        call is made again: what is settled waits here, and what was acknowledged is safe."""
        while True:
            try:
                result = await self._in_store(partial(call, *arguments, **named))
            except TryLater as error:
                self.progress.stalled = str(error.what if not error.where else f"{error.where}: {error.what}")
                self.progress.full = isinstance(error, NoRoom)
                self._tell(self.progress)
                if self._given_up:
                    raise
                await self._clock.sleep(STALL_S)
            else:
                self.progress.stalled, self.progress.full = "", False
                return result

    @property
    def _revisits(self) -> bool:
        return self._tools.recrawl is not None and self._tools.only is None

    def _wake(self, wall: float) -> dict[str, int]:
        """In the store thread: whatever has waited long enough."""
        revisit = self._settings.until == "forever" and self._revisits
        return {host: number for number, store in self._files.items() for host in store.wake(wall, revisit=revisit)}

    def _durable(self, settlement: Settlement) -> None:
        assert settlement.ack.host is not None, "every settlement names its host"
        self._tools.book.durable(settlement.bodies)
        desk = self._hosts.desks.get(settlement.ack.host.host)
        if desk is None:
            return
        desk.unsettled -= 1
        for settled in settlement.ack.settled:
            desk.release(settled.url)
        if desk.at_rest:
            self._hosts.line_up(desk)

    # ---- reports

    async def _report(self) -> None:
        """Tell how far we are. Idle: nothing can happen here any more unless links or errands come from elsewhere."""
        stats = self._hosts.schedule.stats()
        nothing = self._nothing_moves() and not (self._last.outbox or self._last.held or self._visitor.errands.away)
        p, counts = self.progress, self._visitor.counts
        waiting, p.parked = (await self._still_pending()) if nothing else (1, p.parked)
        p.pages, p.requests, p.policy_requests = counts.pages, counts.requests, counts.policy_requests
        p.bytes_wire, p.bytes_body, p.new_pages = counts.bytes_wire, counts.bytes_body, self._quota.stored
        p.starving = bool(self._visitor.starving)
        p.idle = nothing and not waiting and not self._moves.under_way
        p.sent, p.applied = self._last.sent, self._last.applied
        p.files, p.moved = tuple(sorted(self._files)), self._moves.done
        p.facts = {"active": stats.active, "waiting": stats.sleeping + stats.waiting, "parked_hosts": stats.parked}
        now, wall = self._clock.monotonic(), self._clock.wall()
        p.gauges = self._gauges.document(self._hosts.desks.values(), stats.in_flight, now, wall)
        p.gauges |= {"statuses": dict(counts.by_status), "commit_s": round(self._last.seconds, 3)}
        self._tell(p)

    def _nothing_moves(self) -> bool:
        """Nobody is being asked and nobody's turn will come. Pages that wait for a seal need not wait longer then."""
        stats = self._hosts.schedule.stats()
        return not (stats.sleeping + stats.front + stats.active + stats.in_flight or self._visits or self._pending)

    async def _still_pending(self) -> tuple[int, dict[str, int]]:
        """(hosts and waits that this run still sees to, parked hosts by reason)."""
        if self._known_pending is None:
            self._known_pending = await self._in_store(self._look_for_pending)
        waiting, parked = self._known_pending
        if self._visitor.starving:  # what is left waits for the budget
            return 0, parked
        return waiting + await self._in_store(self._soon), parked

    def _look_for_pending(self) -> tuple[int, dict[str, Any]]:
        return self._hosts.pending(only=self._tools.only)

    def _soon(self) -> int:
        """URLs of hosts that are not parked may still wait for a retry inside this run."""
        limit = self._clock.wall() + self._settings.park_after
        return sum((store.next_wake() or limit + 1) <= limit for store in self._files.values())
