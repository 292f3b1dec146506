"""Requests for authority files, and what their answers lead to: the next redirect hop, or news of the authority.

A hop of the same host waits for that host's next turn; a hop of another host becomes an errand at that host's desk,
at its pace, while the host it is for stands aside. A host of another process is reached through `Post`. Whatever
happens, an errand comes back: as an answer, or as "unreachable".
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Protocol

from corpus.crawl.authority import AuthorityBook
from corpus.crawl.authority_read import AuthorityAnswer, Follow, Read, asked_at, read_answer, row_of
from corpus.crawl.desk import Desk, Errand
from corpus.crawl.discover import sitemaps
from corpus.crawl.hosts import Hosts
from corpus.crawl.pace import host_with_crawl_delay, limits, pace_of
from corpus.crawl.ports import Ack, AuthorityRow, Clock, Request
from corpus.crawl.retry import HOST_WIDE_PARK_GAPS
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.settlement import CaptureJob, Settlement
from corpus.model import FetchResult, Kind, Response, Sighting
from corpus.optout.settings import OptoutSettings
from corpus.url.host import host_of


class Post(Protocol):
    """Carries errands between fetch processes: of one machine, or of a fleet."""

    def ask(self, file: int, errand: Errand) -> None:
        """Have the owner of a partition file run an errand, for us or for whoever asked us."""
        ...

    def answer(self, errand: Errand, request: Request | None, result: FetchResult | None) -> None:
        """Send an errand of another process (`errand.asker`) home."""
        ...


class Errands:
    """For one loop: how often each file could not be read in a row, and which errands are away."""

    def __init__(
        self, settings: CrawlSettings, optout: OptoutSettings, book: AuthorityBook, clock: Clock, hosts: Hosts,
        settle: Callable[[Settlement, Desk], None], post: Post | None,
    ) -> None:  # fmt: skip
        self._settings, self._optout, self._book, self._clock = settings, optout, book, clock
        self._hosts, self._settle, self._post = hosts, settle, post
        self._tries: dict[tuple[str, Kind], int] = {}
        self._away: dict[tuple[str, Kind], tuple[float, Errand]] = {}
        """Errands run by other processes, with the time (monotonic) at which we stop waiting."""

    @property
    def away(self) -> int:
        return len(self._away)

    def tries(self, authority: str, kind: Kind) -> int:
        """How often in a row this file could not be read."""
        return self._tries.get((authority, kind), 0)

    # ---- answers

    async def answered(self, desk: Desk, errand: Errand, request: Request | None, result: FetchResult) -> None:
        """`desk` asked for it (no `request`: its host could not be asked at all). The file binds `errand.authority`."""
        if errand.asker >= 0:
            self._only_clock(desk, request)
            assert self._post is not None, "an errand of another process came by post"
            self._post.answer(errand, request, result)
            return
        if errand.for_host != desk.row.host:
            self._only_clock(desk, request)
        await self._read(errand, request, result)

    async def returned(self, errand: Errand, request: Request | None, result: FetchResult | None) -> None:
        """Another process has run an errand of ours; without a result its host cannot be asked in this run."""
        if self._away.pop((errand.authority, errand.kind), None) is None:
            return  # we stopped waiting for it
        errand = replace(errand, asker=-1)
        if result is None:
            self._learn(errand, Read("unreachable", f"{host_of(errand.url)} cannot be asked now"), None, None)
        else:
            await self._read(errand, request, result)

    @property
    def awaited(self) -> set[str]:
        """Hosts for which another process is asking."""
        return {errand.for_host for _, errand in self._away.values()}

    async def give_up(self, desk: Desk) -> None:
        """This host cannot be asked for long: errands for others go home without an answer."""
        others = [errand for errand in desk.errands if errand.asker >= 0 or errand.for_host != desk.row.host]
        for errand in others:
            desk.errands.remove(errand)
            if errand.asker >= 0:
                assert self._post is not None, "an errand of another process came by post"
                self._post.answer(errand, None, None)
            else:
                self._learn(errand, Read("unreachable", f"{desk.row.host} cannot be asked now"), None, None)

    def overdue(self, now: float) -> None:
        """Stop waiting for errands that another process never answered (it may have died)."""
        for key, (until, errand) in list(self._away.items()):
            if until <= now:
                del self._away[key]
                self._learn(errand, Read("unreachable", f"no news of {host_of(errand.url)}"), None, None)

    async def receive(self, errand: Errand) -> None:
        """Run an errand for another process, or pass it on when its host has gone to another owner."""
        file = self._hosts.file_of(host_of(errand.url))
        if self._hosts.owns(file) or self._post is None:
            await self._hand_over(errand)
        else:
            self._post.ask(file, errand)

    def let_go(self, files: Collection[int]) -> None:
        """These partition files leave: errands at their hosts go to whoever owns them next, and what was asked for their hosts is asked
        again there."""
        desks = list(self._hosts.desks.values())
        for desk in desks:
            theirs = [errand for errand in desk.errands if errand.asker < 0 and self._hosts.file_of(errand.for_host) in files]
            for errand in theirs:
                desk.errands.remove(errand)
        for key in [key for key, (_, errand) in self._away.items() if self._hosts.file_of(errand.for_host) in files]:
            del self._away[key]
        for desk in desks:
            while desk.file in files and desk.errands:
                self._mail(desk.file, desk.errands.popleft())

    def forget(self, authorities: set[str]) -> None:
        """A host has gone, with nothing left that its authorities could hold up."""
        for authority in authorities:
            for kind in Kind:
                self._tries.pop((authority, kind), None)

    def _only_clock(self, desk: Desk, request: Request | None) -> None:
        if request is not None:
            self._settle(Settlement(desk.file, Ack(host=desk.row)), desk)

    async def _read(self, errand: Errand, request: Request | None, result: FetchResult) -> None:
        answer: AuthorityAnswer = read_answer(errand, result, self._optout)
        if isinstance(answer, Read):
            self._learn(errand, answer, request, result)
            return
        owner = self._hosts.desks.get(errand.for_host)
        if owner is None:  # its file has left, and whoever owns it now asks again
            return
        if request is not None and request.host == owner.row.host:
            self._only_clock(owner, request)
        await self._follow(owner, errand, answer)

    # ---- hops

    async def _follow(self, owner: Desk, errand: Errand, answer: Follow) -> None:
        hop = replace(errand, url=answer.url, hops=answer.hops, first=errand.first or errand.url)
        target = host_of(hop.url)
        if target == owner.row.host:
            owner.errands.append(hop)
            self._hosts.resume(owner)
            return
        owner.suspended = True
        file = self._hosts.file_of(host_of(hop.url))
        if self._hosts.owns(file):
            await self._hand_over(hop)
        elif self._post is None:
            self._learn(hop, Read("unreachable", f"redirects to {target}, which nobody here may ask"), None, None)
        else:
            self._mail(file, hop)

    def _mail(self, file: int, errand: Errand) -> None:
        """Have another process run an errand; one of ours is waited for."""
        assert self._post is not None, "an errand stays where there is nobody else"
        if errand.asker < 0:
            patience_s = 2 * (self._settings.total_timeout + self._settings.park_after)
            self._away[errand.authority, errand.kind] = (self._clock.monotonic() + patience_s, errand)
        self._post.ask(file, errand)

    async def send(self, errand: Errand) -> float:
        """See to it that one of our hosts is asked for a file, once; returns for how long that host is to be left alone."""
        target = host_of(errand.url)
        desk = await self._hosts.desk(target, self._hosts.file_of(target))
        waits = any((one.authority, one.kind) == (errand.authority, errand.kind) for one in desk.errands)
        if not waits and (errand.authority, errand.kind) not in desk.asking:
            desk.errands.append(errand)
            self._hosts.line_up(desk)
        return desk.row.due.remaining(self._clock.wall()) if desk.row.state == "parked" else 0.0

    async def _hand_over(self, errand: Errand) -> None:
        """Put an errand on the desk of one of our hosts, unless that host is to be left alone for long."""
        target = host_of(errand.url)
        desk = await self._hosts.desk(target, self._hosts.file_of(target))
        twins = [one for one in desk.errands if (one.authority, one.kind, one.url) == (errand.authority, errand.kind, errand.url)]
        if errand.asker >= 0 and any(one.asker < 0 for one in twins):
            return  # the host that it is for is ours by now: whoever asked waits no longer
        for twin in twins:
            if errand.asker < 0 or twin.asker == errand.asker:
                desk.errands.remove(twin)
        desk.errands.append(errand)
        if desk.row.state in ("blocked", "retired") or (
            desk.row.state == "parked" and desk.row.due.remaining(self._clock.wall()) > 0
        ):
            await self.give_up(desk)
        else:
            self._hosts.line_up(desk)

    # ---- news

    def _learn(self, errand: Errand, answer: Read, request: Request | None, result: FetchResult | None) -> None:
        """A file was read, or could not be: the book, the host's pace and the store all hear of it."""
        owner = self._hosts.desks.get(errand.for_host)
        if owner is None:  # its file has left, and whoever owns it now asks again
            return
        key, wall = (errand.authority, errand.kind), self._clock.wall()
        gap_s = pace_of(owner.row, limits(owner.row.host, self._settings, owner.row.ips)).gap_s
        pace = max(owner.row.due.wait_s, gap_s)
        if answer.outcome == "unreachable":
            self._tries[key] = self._tries.get(key, 0) + 1
            if self._tries[key] >= self._settings.retries:  # long enough that its host is parked until then
                least = max(min(HOST_WIDE_PARK_GAPS * gap_s, self._settings.backoff_max), self._settings.park_after + gap_s)
                pace = max(pace, least)
        else:
            self._tries.pop(key, None)
        before = self._book.row(errand.authority, errand.kind, asked_at(errand))
        row = row_of(errand, answer, wall, self._optout, pace_s=pace, before=before)
        bodies = {row.digest: answer.body} if row.digest else {}
        self._book.learn([row], bodies)
        owner.authorities.add(row.authority)
        found = self._consequences(owner, row) if errand.kind is Kind.ROBOTS and row.outcome == "ok" else ()
        job = None
        if request is not None and isinstance(result, Response):
            job = CaptureJob(request.url, request, result, 0, "", row.digest, policy=True)
        changed = (
            before is not None and row.outcome != "unreachable" and (before.digest, before.outcome) != (row.digest, row.outcome)
        )
        ack = Ack(host=owner.row, authorities=(row,))
        news = Settlement(owner.file, ack, capture=job, sightings=found, bodies=bodies, reopen=(row,) if changed else ())
        self._settle(news, owner)
        self._hosts.resume(owner)

    def _consequences(self, owner: Desk, row: AuthorityRow) -> tuple[Sighting, ...]:
        """A readable robots.txt sets the host's Crawl-delay (whoever ends this contact tells the schedule) and names sitemaps."""
        rules = self._book.rules(row.authority)
        owner.row = host_with_crawl_delay(owner.row, rules.crawl_delay_s, self._settings, self._clock.wall())
        return tuple(sitemaps(rules.sitemaps, row.url)) if self._settings.sitemaps else ()
