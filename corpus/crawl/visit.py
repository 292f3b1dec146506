"""One visit to a host: judge its heads until one may be asked, ask once, settle what came back.

A visit makes at most one request. Everything that needs none (refusals by files already known, budgets) is settled
on the way. Whatever the web does ends as a settlement; only our own defects raise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from corpus.crawl.authority import Ask, AuthorityBook, Decided, Wait
from corpus.crawl.authority_read import AuthorityAnswer, Follow, Read, read_answer, row_of
from corpus.crawl.budget import Spent, crawl_pages_left, exhausted
from corpus.crawl.commit import CaptureJob, Settlement
from corpus.crawl.desk import Desk, Errand
from corpus.crawl.discover import Router, page_links, sitemap_links, sitemaps
from corpus.crawl.gate import Fingerprint
from corpus.crawl.pace import answer_of, host_after, host_with_crawl_delay, limits, pace_of
from corpus.crawl.ports import Ack, AuthorityRow, Clock, QueuedUrl, Request, Resolver, Settled, Transport
from corpus.crawl.schedule import Busy, Schedule
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.settle import REFUSING, Outcome, answered, failed
from corpus.crawl.sitemap import read_sitemap
from corpus.model import Failed, FetchResult, Gate, Kind, Response, Sighting, UrlState, content_sha256
from corpus.optout.decide import deciding, reason_of
from corpus.optout.response import judge_response
from corpus.optout.settings import OptoutSettings
from corpus.page.simhash import simhash64
from corpus.page.tree import Page, parse
from corpus.url.host import host_of

INLINE_PARSE = 256 * 1024
"""Bodies up to here are hashed and parsed on the loop (about 5 ms); larger ones in a thread."""
DECISIONS_PER_VISIT = 64
"""Refusals settled in one visit before the loop gets its turn again."""


@dataclass(frozen=True, slots=True)
class VisitTools:
    """Everything a visit needs from elsewhere."""

    settings: CrawlSettings
    optout: OptoutSettings
    book: AuthorityBook
    router: Router
    transport: Transport
    resolver: Resolver
    clock: Clock
    blocked: Callable[[str], str]
    """The reason code that an operator's order gives a URL, or empty."""
    pages_before: int = 0
    """Pages fetched in earlier runs of this crawl, for `max_pages`."""
    only: Kind | None = None
    """Take URLs of this kind and leave all others in line (a consent refresh)."""


class Host(Protocol):
    """What a visit asks of the loop it runs in."""

    @property
    def schedule(self) -> Schedule: ...
    async def heads(self, desk: Desk) -> None: ...
    def settle(self, settlement: Settlement, desk: Desk) -> None: ...
    def leave(self, desk: Desk) -> None: ...
    def left(self, desk: Desk) -> None: ...
    def park(self, desk: Desk, reason: str, wait_s: float) -> None: ...
    def errand_desk(self, host: str) -> Desk | None: ...
    def desk_of(self, host: str) -> Desk: ...
    def line_up(self, desk: Desk) -> None: ...


@dataclass(slots=True)
class Counts:
    pages: int = 0
    requests: int = 0
    policy_requests: int = 0
    bytes_wire: int = 0
    bytes_body: int = 0
    pages_in_flight: int = 0
    by_status: dict[str, int] = field(default_factory=dict)


class Visitor:
    """Runs visits for one loop; its only state of its own is how far authority redirects have been followed."""

    def __init__(self, tools: VisitTools, host: Host) -> None:
        self.tools = tools
        self.counts = Counts()
        self._loop = host
        self._tries: dict[tuple[str, Kind], int] = {}

    async def visit(self, desk: Desk) -> None:
        """One visit of a host that the schedule holds for us."""
        try:
            contact = await self._choose(desk)
            if contact is not None:
                await self._contact(desk, contact)
        finally:
            desk.visits -= 1
        self._loop.left(desk)

    # ---- before the request ------------------------------------------------------------------------------------------

    async def _choose(self, desk: Desk) -> QueuedUrl | Errand | None:
        """What to ask of the host now; None when nothing is, and the schedule has been told so."""
        refused: list[Settled] = []
        try:
            while len(refused) < DECISIONS_PER_VISIT:
                if desk.errands:
                    return desk.errands.popleft()
                queued = await self._head(desk)
                if queued is not None and self.tools.only not in (None, queued.kind):
                    desk.put_back(queued)
                    queued = None
                if queued is None:
                    self._skip(desk, 0.0)
                    self._loop.leave(desk)
                    return None
                verdict = self._judge(desk, queued)
                if isinstance(verdict, Settled):
                    refused.append(verdict)
                    continue
                if isinstance(verdict, Wait):
                    desk.put_back(queued)
                    self._hold(desk, verdict)
                    return None
                if isinstance(verdict, Ask):
                    desk.put_back(queued)
                    return Errand(verdict.authority, verdict.kind, verdict.url, 0, desk.row.host)
                return queued
            self._skip(desk, 0.0)
            return None
        finally:
            if refused:
                self._settle(desk, tuple(refused))

    async def _head(self, desk: Desk) -> QueuedUrl | None:
        if not desk.heads:
            await self._loop.heads(desk)
        return desk.take()

    def _judge(self, desk: Desk, queued: QueuedUrl) -> QueuedUrl | Settled | Ask | Wait:
        """The URL itself when it may be asked; else what settles it, or what must come first."""
        order = self.tools.blocked(queued.url)
        if order:
            state = UrlState.REFUSED if order == "operator-list" else UrlState.EXCLUDED
            return Settled(queued.url, state, order, attempts=queued.attempts)
        if queued.kind is Kind.PAGE and (reason := exhausted(desk.row.pages, desk.row.domain_pages, self.tools.settings)):
            return Settled(queued.url, UrlState.EXCLUDED, reason, attempts=queued.attempts)
        wall = self.tools.clock.wall()
        step = self.tools.book.step(queued, wall)
        if not isinstance(step, Decided):
            desk.authorities.add(step.authority)
            return step
        consent = step.consent
        if queued.kind is Kind.ROBOTS:  # it stands for its authority, whose files are all fresh now
            return Settled(queued.url, UrlState.FETCHED, attempts=queued.attempts, fetched_at=wall)
        if consent.gate is Gate.FETCH:
            return queued
        if consent.gate is Gate.DEFER:
            return self.tools.book.unread(queued, wall)
        item = deciding(consent)
        return Settled(
            queued.url,
            UrlState.REFUSED,
            reason_of(consent),
            attempts=queued.attempts,
            rule=item.raw if item else "",
            rule_line=item.line_no if item else None,
            authority_digest=item.file_digest if item else "",
            protocol=item.protocol if item else "",
        )

    def _hold(self, desk: Desk, wait: Wait) -> None:
        """Nothing may be asked of this authority before `wait.until`: wait inside the run, or park the host."""
        wait_s = max(wait.until - self.tools.clock.wall(), 0.0)
        self._skip(desk, wait_s)
        tries = {kind: self._tries.get((wait.authority, kind), 0) for kind in Kind}
        if wait_s > self.tools.settings.park_after or max(tries.values()) >= self.tools.settings.retries:
            self._park(desk, "robots-unreachable" if tries[Kind.ROBOTS] else "backing-off", wait_s)

    def _skip(self, desk: Desk, wait_s: float) -> None:
        self._loop.schedule.skip(desk.row.host, self.tools.clock.monotonic(), wait_s)

    def _park(self, desk: Desk, reason: str, wait_s: float) -> None:
        self._loop.park(desk, reason, wait_s)
        self._settle(desk, ())

    # ---- the request -------------------------------------------------------------------------------------------------

    async def _contact(self, desk: Desk, contact: QueuedUrl | Errand) -> None:
        """Resolve, begin, ask, end, settle."""
        host, clock = desk.row.host, self.tools.clock
        page = isinstance(contact, QueuedUrl) and contact.kind is Kind.PAGE
        if page and not self._within_budget():
            assert isinstance(contact, QueuedUrl)
            desk.put_back(contact)
            self._skip(desk, 1.0)
            return
        self.counts.pages_in_flight += page
        try:
            resolved = await self.tools.resolver.resolve(host)
            if isinstance(resolved, Failed):
                self._unreachable(desk, contact, resolved)
                return
            addresses = resolved.addresses
            tries = contact.attempts if isinstance(contact, QueuedUrl) else contact.hops
            ip = addresses[tries % len(addresses)]
            desk.row = replace(desk.row, ips=addresses[:4])
            if isinstance(self._loop.schedule.begin(host, ip, clock.monotonic()), Busy):
                self._give_back(desk, contact)
                return
            request = self._request(contact, host, ip)
            result = await self._ask(desk, request)
            await self._settle_contact(desk, contact, request, result)
        finally:
            self.counts.pages_in_flight -= page

    def _within_budget(self) -> bool:
        spent = Spent(pages=self.tools.pages_before + self.counts.pages)
        left = crawl_pages_left(spent, self.counts.pages_in_flight, self.tools.settings)
        return left is None or left > 0

    def _give_back(self, desk: Desk, contact: QueuedUrl | Errand) -> None:
        if isinstance(contact, Errand):
            if contact.for_host != desk.row.host or contact.hops:
                desk.errands.appendleft(contact)
        else:
            desk.put_back(contact)

    def _request(self, contact: QueuedUrl | Errand, host: str, ip: str) -> Request:
        if isinstance(contact, Errand):
            return Request(contact.url, host, ip, contact.kind)
        conditional = []
        if contact.etag:
            conditional.append(("If-None-Match", contact.etag))
        if contact.last_modified:
            conditional.append(("If-Modified-Since", contact.last_modified))
        return Request(contact.found, host, ip, contact.kind, tuple(conditional))

    async def _ask(self, desk: Desk, request: Request) -> FetchResult:
        """The contact itself: from here on the gap counts, whatever happens."""
        clock, settings = self.tools.clock, self.tools.settings
        try:
            result = await self.tools.transport.fetch(request)
        except asyncio.CancelledError:
            gap = pace_of(desk.row, limits(desk.row.host, settings, desk.row.ips)).gap_s
            self._loop.schedule.end(desk.row.host, clock.monotonic(), gap, ip=request.ip)
            raise
        wall = clock.wall()
        retry_after = self._retry_after(request, result)
        desk.row = host_after(desk.row, answer_of(result, retry_after), settings, wall)
        self._loop.schedule.end(desk.row.host, clock.monotonic(), desk.row.due.wait_s, ip=request.ip)
        if desk.row.state == "parked":
            self._loop.schedule.park(desk.row.host, clock.monotonic() + desk.row.due.wait_s)
        self._count(request, result)
        return result

    def _retry_after(self, request: Request, result: FetchResult) -> float | None:
        if isinstance(result, Failed):
            return result.retry_after_s
        if result.status in (429, 503):
            verdict = judge_response(request.url, result.status, result.headers, None, result.ended_at, self.tools.optout, self._token)
            return verdict.retry_after_s
        return None

    def _count(self, request: Request, result: FetchResult) -> None:
        self.counts.requests += 1
        self.counts.policy_requests += request.kind is not Kind.PAGE
        status = str(result.status) if result.status is not None else "failed"
        self.counts.by_status[status] = self.counts.by_status.get(status, 0) + 1
        if isinstance(result, Response):
            self.counts.bytes_wire += result.bytes_wire
            self.counts.bytes_body += len(result.decoded)

    @property
    def _token(self) -> str:
        return self.tools.settings.robots_token

    # ---- after the request -------------------------------------------------------------------------------------------

    async def _settle_contact(self, desk: Desk, contact: QueuedUrl | Errand, request: Request, result: FetchResult) -> None:
        if isinstance(contact, Errand):
            self._authority_answered(desk, contact, request, result)
            return
        wall = self.tools.clock.wall()
        if isinstance(result, Failed):
            outcome = failed(contact, result, self.tools.settings, pace_s=desk.row.pace_s, wall=wall)
            self._conclude(desk, contact, outcome, request, None, None)
            return
        if contact.kind is Kind.PAGE:
            desk.row = replace(desk.row, pages=desk.row.pages + 1, domain_pages=desk.row.domain_pages + 1)
        page, digest, simhash = await self._read(contact, result)
        verdict = judge_response(
            contact.found, result.status, result.headers, page, result.ended_at, self.tools.optout, self._token
        )
        seal = self.tools.optout.on_use_no == "seal"
        outcome = answered(contact, result, verdict, self.tools.settings, pace_s=desk.row.pace_s, wall=wall, seal=seal)
        if outcome.settled.state is UrlState.FETCHED:
            self.counts.pages += contact.kind is Kind.PAGE
            outcome = self._with_links(contact, result, page, outcome)
            outcome = replace(outcome, settled=replace(outcome.settled, content_sha256=digest, simhash=simhash))
        self._conclude(desk, contact, outcome, request, result, digest)

    async def _read(self, contact: QueuedUrl, response: Response) -> tuple[Page | None, str, int | None]:
        """Parse a body once, for its meta elements, links and fingerprint; large bodies in a thread."""
        if contact.kind is not Kind.PAGE or not 200 <= response.status < 300:
            return None, content_sha256(response.decoded), None
        if len(response.decoded) <= INLINE_PARSE:
            return _parse(contact, response)
        return await asyncio.to_thread(_parse, contact, response)

    def _with_links(self, contact: QueuedUrl, response: Response, page: Page | None, outcome: Outcome) -> Outcome:
        if contact.kind is Kind.SITEMAP:
            found = read_sitemap(response.decoded)
            return replace(outcome, sightings=tuple(sitemap_links(found.urls, found.children, contact)))
        if page is None or not outcome.follow:
            return outcome
        return replace(outcome, sightings=tuple(page_links(page, contact)))

    def _conclude(
        self, desk: Desk, contact: QueuedUrl, outcome: Outcome, request: Request, response: Response | None, digest: str | None
    ) -> None:
        job = None
        if outcome.archive and response is not None:
            settled = outcome.settled
            body = response
            if outcome.archive == "policy" and contact.kind is Kind.PAGE:  # a redirect or a refusal: its text is nobody's page
                body = replace(response, body=b"", decoded=b"", truncated="unspecified" if response.body else "")
            print_ = None
            if outcome.archive == "pages":
                print_ = Fingerprint(contact.url, digest or "", settled.simhash, contact.found, response.started_at)
            job = CaptureJob(
                contact.url, request, body, contact.depth, contact.via, digest or "", print_,
                policy=outcome.archive == "policy", sealed=outcome.archive == "sealed",
            )  # fmt: skip
        if outcome.park is not None:
            self._loop.park(desk, *outcome.park)
        own, foreign = self.tools.router.split(outcome.sightings, desk.file)
        ack = Ack(host=desk.row, settled=(outcome.settled,), own=own, foreign=foreign)
        self._loop.settle(Settlement(desk.file, ack, capture=job, refusals=outcome.refusals), desk)

    def _settle(
        self, desk: Desk, settled: tuple[Settled, ...], authorities: tuple[AuthorityRow, ...] = (), bodies: dict[str, bytes] | None = None,
        sightings: tuple[Sighting, ...] = (), job: CaptureJob | None = None,
    ) -> None:  # fmt: skip
        own, foreign = self.tools.router.split(sightings, desk.file)
        ack = Ack(host=desk.row, settled=settled, authorities=authorities, own=own, foreign=foreign)
        self._loop.settle(Settlement(desk.file, ack, capture=job, authorities=authorities, bodies=bodies or {}), desk)

    def _unreachable(self, desk: Desk, contact: QueuedUrl | Errand, result: Failed) -> None:
        """The name does not resolve to an address we may use: no contact was made, and no clock starts."""
        pace = pace_of(desk.row, limits(desk.row.host, self.tools.settings, desk.row.ips))
        if isinstance(contact, Errand):
            self._skip(desk, pace.gap_s)
            self._authority_answered(desk, contact, None, result)
            return
        outcome = failed(contact, result, self.tools.settings, pace_s=pace.gap_s, wall=self.tools.clock.wall())
        self._skip(desk, pace.gap_s)
        self._conclude(desk, contact, outcome, Request(contact.found, desk.row.host, ""), None, None)

    # ---- authority files ---------------------------------------------------------------------------------------------

    def _authority_answered(self, desk: Desk, errand: Errand, request: Request | None, result: FetchResult) -> None:
        """An authority file, or a redirect on the way to it. The file binds the authority that was first asked."""
        answer: AuthorityAnswer = read_answer(errand, result, self.tools.optout)
        if isinstance(answer, Follow):
            self._settle(desk, ())
            self._follow(desk, errand, answer)
            return
        owner = desk if errand.for_host == desk.row.host else self._loop.desk_of(errand.for_host)
        if owner is not desk:
            self._settle(desk, ())
        self._learn(owner, errand, answer, request, result)

    def _follow(self, desk: Desk, errand: Errand, answer: Follow) -> None:
        """The next hop: of the same host at its next turn, of another host of ours as an errand, else unreadable."""
        hop = replace(errand, url=answer.url, hops=answer.hops)
        target = host_of(answer.url)
        if target == desk.row.host:
            desk.errands.append(hop)
            return
        other = self._loop.errand_desk(target)
        owner = self._loop.desk_of(errand.for_host)
        if other is None:
            detail = f"redirects to {target}, which another process crawls"
            self._learn(owner, errand, Read("unreachable", detail), None, None)
            return
        owner.suspended = True
        self._loop.schedule.remove(owner.row.host)
        other.errands.append(hop)
        self._loop.line_up(other)

    def _learn(self, owner: Desk, errand: Errand, answer: Read, request: Request | None, result: FetchResult | None) -> None:
        """A file was read, or could not be: the book, the host's pace and the store all hear of it."""
        key = (errand.authority, errand.kind)
        wall = self.tools.clock.wall()
        self._tries[key] = 0 if answer.outcome != "unreachable" else self._tries.get(key, 0) + 1
        pace = max(owner.row.due.wait_s, pace_of(owner.row, limits(owner.row.host, self.tools.settings, owner.row.ips)).gap_s)
        row = row_of(errand, answer, wall, self.tools.optout, pace_s=pace)
        bodies = {row.digest: answer.body} if row.digest else {}
        self.tools.book.learn([row], bodies)
        owner.authorities.add(row.authority)
        found: tuple[Sighting, ...] = ()
        if errand.kind is Kind.ROBOTS and row.outcome == "ok":
            rules = self.tools.book.rules(row.authority)
            owner.row = host_with_crawl_delay(owner.row, rules.crawl_delay_s, self.tools.settings, wall)
            if owner.row.state == "parked":
                self._loop.schedule.park(owner.row.host, self.tools.clock.monotonic() + owner.row.due.wait_s)
            if self.tools.settings.sitemaps:
                found = tuple(sitemaps(rules.sitemaps, row.url))
        job = None
        if request is not None and isinstance(result, Response):
            job = CaptureJob(request.url, request, result, 0, "", row.digest, policy=True)
        self._settle(owner, (), (row,), bodies, found, job)
        if owner.suspended:
            owner.suspended = False
            self._loop.line_up(owner)


def _parse(contact: QueuedUrl, response: Response) -> tuple[Page, str, int | None]:
    page = parse(response.decoded, response.header("content-type"), contact.found)
    return page, content_sha256(response.decoded), simhash64(page.visible_words)


assert set(REFUSING) == {401, 402, 403, 451}, "the statuses that refuse are settled in settle.py"
