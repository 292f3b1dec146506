"""One visit to a host: judge its heads until one may be asked, ask once, settle what came back.

A visit makes at most one request. Everything that needs none (refusals by files already known, budgets) is settled
on the way. Whatever the web does ends as a settlement; only our own defects raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection

from corpus.crawl import breaker
from corpus.crawl.answers import Answers, Conclusion, Undecided
from corpus.crawl.authority import Ask, Wait
from corpus.crawl.contact import Asked, Contacts, Counts, NotNow, Unresolved
from corpus.crawl.desk import Desk, Errand
from corpus.crawl.discover import Known
from corpus.crawl.errands import Errands
from corpus.crawl.hosts import Hosts
from corpus.crawl.judge import Judge, Spent, Starving, VisitTools, is_new_page
from corpus.crawl.licences import decide_waiting
from corpus.crawl.pace import limits, pace_of
from corpus.crawl.ports import Ack, QueuedUrl, Settled
from corpus.crawl.quota import Quota
from corpus.crawl.restart import rested
from corpus.crawl.settle import REFUSING
from corpus.crawl.settlement import Settlement, given_up
from corpus.crawl.slow import rest_s
from corpus.model import Failed, Failure, Kind, UrlState
from corpus.url.host import authority_of, host_of

DECISIONS_PER_VISIT = 64
"""Refusals settled in one visit before the loop gets its turn again."""


class Visitor:
    """Runs visits for one loop."""

    def __init__(
        self,
        tools: VisitTools,
        hosts: Hosts,
        quota: Quota,
        settle: Callable[[Settlement, Desk], None],
        roused: Callable[[], None],
        known: Known = lambda url, depth: False,
    ) -> None:
        """`known`: links that need not be told again."""
        self._tools, self._hosts, self._quota, self._settle, self._roused = tools, hosts, quota, settle, roused
        self._settings, self._clock = tools.settings, tools.clock
        self._judge = Judge(tools, hosts, quota)
        self._answers = Answers(tools.settings, tools.optout, lambda: hosts.plan, known)
        self.errands = Errands(tools.settings, tools.optout, tools.book, tools.clock, hosts, settle, tools.post)
        self._contacts = Contacts(
            tools.settings, hosts, tools.transport, tools.resolver, tools.clock, tools.claims,
            paused=self.errands.give_up, slower=tools.slower,
        )  # fmt: skip
        self.starving: dict[str, int] = {}
        """Hosts that left a page in line for want of quota, with their files."""

    @property
    def counts(self) -> Counts:
        return self._contacts.counts

    async def visit(self, desk: Desk) -> None:
        """One visit of a host that the schedule holds for us."""
        desk.row = rested(desk.row, self._settings, self._clock.wall())
        try:
            if (longer_s := rest_s(desk.row, self._tools.slower(desk.row.host), self._settings, self._clock.wall())) > 0.0:
                self._skip(desk, longer_s)  # an order that came while its clock was running
                return
            contact = await self._choose(desk)
            if isinstance(contact, Errand):
                await self._ask_authority(desk, contact)
            elif contact is not None:
                await self._ask_page(desk, contact)
        except asyncio.CancelledError:
            self._settle(Settlement(desk.file, Ack(host=desk.row)), desk)  # its clock, if a contact was broken off
            raise
        finally:
            desk.visits -= 1
        authorities = desk.authorities
        if self._hosts.left(desk):
            self.errands.forget(authorities)

    def let_go(self, files: Collection[int]) -> None:
        """These partition files leave and nobody of them is visited any more: what is still in hand of them stays in line there."""
        self.errands.let_go(files)
        self.starving = {host: file for host, file in self.starving.items() if file not in files}
        self.put_down(files)

    def put_down(self, files: Collection[int]) -> None:
        """Pages in hand that wait for licence documents stay in line; that their hosts were asked is told all the same."""
        for desk in self._hosts.desks.values():
            if desk.undecided and desk.file in files:
                for page in desk.undecided:
                    self._done(page.contact, stored=False)
                desk.undecided.clear()
                self._settle(Settlement(desk.file, Ack(host=desk.row)), desk)

    # ---- before the request

    async def _choose(self, desk: Desk) -> QueuedUrl | Errand | None:
        """What to ask of the host now; None when nothing is, and the schedule has been told so."""
        refused: list[Settled] = []
        held: list[QueuedUrl] = []
        try:
            return await self._next(desk, refused, held)
        finally:
            for queued in reversed(held):
                desk.put_back(queued)
            if refused:
                self._settle(Settlement(desk.file, Ack(host=desk.row, settled=tuple(refused))), desk)

    async def _next(self, desk: Desk, refused: list[Settled], held: list[QueuedUrl]) -> QueuedUrl | Errand | None:
        """`refused` and `held` collect what was looked at and passed over: a host may have several authorities."""
        waits: list[Wait] = []
        for _ in range(DECISIONS_PER_VISIT):
            if desk.errands:
                return desk.errands.popleft()
            if desk.undecided and (ask := self._decide(desk)) is not None:
                return await self._errand(desk, ask)
            queued = None if desk.suspended else await self._head(desk)
            if queued is None:
                self._nothing(desk, waits)
                return None
            match self._judge.judge(desk, queued):
                case Settled() as settled:
                    refused.append(settled)
                case Ask() as ask:
                    desk.put_back(queued)
                    return await self._errand(desk, ask)
                case Wait() as wait:
                    held.append(queued)
                    waits.append(wait)
                case Starving():
                    held.append(queued)
                    self.starving[desk.row.host] = desk.file
                case Spent(reason=reason):
                    desk.put_back(queued)
                    await self._hosts.exclude(desk, reason)
                case QueuedUrl():
                    return queued
        if held:
            self._nothing(desk, waits)
        else:
            self._skip(desk, 0.0)
        return None

    async def _errand(self, desk: Desk, ask: Ask) -> Errand | None:
        """Ask for an authority file, unless another visit of this host is doing so. One that lies at another host of the
        same owner (an RSL document) is asked for there, and this host looks again after its gap."""
        errand = Errand(ask.authority, ask.kind, ask.url, 0, host_of(ask.authority))
        if host_of(ask.url) == desk.row.host and (ask.authority, ask.kind) not in desk.asking:
            return errand
        again_s = pace_of(desk.row, limits(desk.row.host, self._settings, desk.row.ips)).gap_s
        if host_of(ask.url) != desk.row.host:
            again_s = max(again_s, await self.errands.send(errand))
        if again_s > self._settings.park_after:
            self._hold(desk, Wait(ask.authority, self._clock.wall() + again_s))
        else:
            self._skip(desk, again_s)
        return None

    async def _head(self, desk: Desk) -> QueuedUrl | None:
        again = self._hosts.schedule.revisits_next
        if not desk.heads or desk.lacks(again=again):
            await self._hosts.heads(desk)
        queued = desk.take(again=again)
        if queued is not None and self._tools.only not in {None, queued.kind}:
            desk.put_back(queued)
            return None
        return queued

    def _nothing(self, desk: Desk, waits: list[Wait]) -> None:
        """No URL may be asked now: wait for the first authority that may be read again, or leave."""
        if waits:
            self._hold(desk, min(waits, key=lambda wait: wait.until))
        else:
            self._skip(desk, 0.0)
            self._hosts.leave(desk)

    def _hold(self, desk: Desk, wait: Wait) -> None:
        """Nothing may be asked before `wait.until`: wait inside the run, or park the host."""
        wait_s = max(wait.until - self._clock.wall(), 0.0)
        self._skip(desk, wait_s)
        tries = {kind: self.errands.tries(wait.authority, kind) for kind in Kind}
        if max(tries.values()) >= self._settings.retries or wait_s > self._settings.park_after:
            self._hosts.park(desk, "robots-unreachable" if tries[Kind.ROBOTS] else "policy-unreachable", wait_s)
            self._settle(Settlement(desk.file, Ack(host=desk.row)), desk)

    def _skip(self, desk: Desk, wait_s: float) -> None:
        self._hosts.schedule.skip(desk.row.host, self._clock.monotonic(), wait_s)

    # ---- pages and sitemaps

    async def _ask_page(self, desk: Desk, contact: QueuedUrl) -> None:
        stored = waits = False
        try:
            conditional = []
            if contact.etag:
                conditional.append(("If-None-Match", contact.etag))
            if contact.last_modified:
                conditional.append(("If-Modified-Since", contact.last_modified))
            match await self._contacts.ask(desk, contact.found, contact.kind, contact.attempts, tuple(conditional)):
                case NotNow():
                    desk.put_back(contact)
                    self._rests(desk)
                case Unresolved(failed=failed):
                    await self._unresolved(desk, contact, failed)
                case Asked() as asked:
                    await self._contacts.finish(desk, asked)
                    await self._retire(desk)
                    self._hosts.schedule.took(again=contact.again)
                    if contact.kind is Kind.PAGE and not isinstance(asked.result, Failed) and not contact.content_sha256:
                        self._hosts.count_page(desk)
                    licences = self._tools.book.licences(authority_of(contact.found))
                    conclusion = await self._answers.conclude(
                        contact, desk.row, desk.file, asked.request, asked.result, self._clock.wall(), licences
                    )
                    if isinstance(conclusion, Undecided):
                        desk.undecided.append(conclusion)
                        waits = True
                    else:
                        stored = conclusion.state is UrlState.FETCHED
                        self._conclude(desk, contact, conclusion)
        finally:
            if not waits:
                self._done(contact, stored=stored)

    def _decide(self, desk: Desk) -> Ask | None:
        """Conclude what waited for licence documents; what must be read for the rest."""
        done, missing = decide_waiting(desk, self._tools.book, self._answers, self._clock.wall())
        for page, conclusion in done:
            self._conclude(desk, page.contact, conclusion)
            self._done(page.contact, stored=conclusion.state is UrlState.FETCHED)
        return missing

    def _done(self, contact: QueuedUrl, *, stored: bool) -> None:
        if is_new_page(contact) and self._quota.done(stored=stored):
            self._roused()

    def _conclude(self, desk: Desk, contact: QueuedUrl, conclusion: Conclusion) -> None:
        self.counts.pages += conclusion.state is UrlState.FETCHED and contact.kind is Kind.PAGE
        settlement = conclusion.settlement
        if desk.row.state == "retired":  # nothing waits for a host that is given up
            settlement = given_up(settlement, desk.row.reason)
        elif conclusion.park is not None:
            self._hosts.park(desk, *conclusion.park)
        if conclusion.again is not None:
            desk.put_back(conclusion.again)
        # the row may have changed while the body was read in a thread, or by the parking above
        self._settle(settlement.of(desk.row), desk)

    async def _unresolved(self, desk: Desk, contact: QueuedUrl, failed: Failed) -> None:
        """The name does not resolve to an address we may use: no contact was made, and no clock starts."""
        gap_s = pace_of(desk.row, limits(desk.row.host, self._settings, desk.row.ips)).gap_s
        self._skip(desk, 0.0 if failed.failure is Failure.ADDRESS else gap_s)
        wall = self._clock.wall()
        desk.row = breaker.host_after(desk.row, breaker.failed(failed), self._settings, wall)
        if desk.row.state == "parked":
            self._hosts.park(desk, desk.row.reason, desk.row.due.remaining(wall))
        await self._retire(desk)
        conclusion = self._answers.unresolved(contact, desk.row, desk.file, failed, gap_s, self._clock.wall())
        self._conclude(desk, contact, conclusion)

    def _rests(self, desk: Desk) -> None:
        """Its address is silent: where that parked the host, its row says so."""
        if desk.row.state == "parked":
            self._settle(Settlement(desk.file, Ack(host=desk.row)), desk)

    async def _retire(self, desk: Desk) -> bool:
        """Give up a host that has failed for days."""
        if not breaker.is_spent(desk.row, self._clock.wall()):
            return False
        await self._hosts.retire(desk)
        await self.errands.give_up(desk)
        return True

    # ---- authority files

    async def _ask_authority(self, desk: Desk, errand: Errand) -> None:
        tries = errand.hops + self.errands.tries(errand.authority, errand.kind)
        desk.asking.add((errand.authority, errand.kind))
        try:
            match await self._contacts.ask(desk, errand.url, errand.kind, tries):
                case NotNow():
                    desk.errands.appendleft(errand)
                    self._rests(desk)
                case Unresolved(failed=failed):
                    await self._unasked(desk, errand, failed)
                case Asked() as asked:
                    await self.errands.answered(desk, errand, asked.request, asked.result)
                    await self._contacts.finish(desk, asked)
                    if await self._retire(desk):
                        self._settle(Settlement(desk.file, Ack(host=desk.row)), desk)
        finally:
            desk.asking.discard((errand.authority, errand.kind))

    async def _unasked(self, desk: Desk, errand: Errand, failed: Failed) -> None:
        """A host whose name leads nowhere fails the URL that we came for; an errand for another host goes home."""
        own = errand.asker < 0 and errand.for_host == desk.row.host
        queued = await self._head(desk) if own else None
        if queued is not None:
            await self._unresolved(desk, queued, failed)
            return
        self._skip(desk, pace_of(desk.row, limits(desk.row.host, self._settings, desk.row.ips)).gap_s)
        await self.errands.answered(desk, errand, None, failed)


assert set(REFUSING) == {401, 402, 403, 451}, "the statuses that refuse are settled in settle.py"
