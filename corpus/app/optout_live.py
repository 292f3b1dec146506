"""`corpus optout check URL` against the real web: the same files, rules and redirects as a crawl, one request at a time.

Asks for robots.txt, then what that allows to ask for (tdmrep.json, ai.txt, licence documents), then the page unless
something says no; each hop of a redirect is judged at its own authority first. Between two requests lies the gap that a
crawl starts with, or the Crawl-delay. Nothing is stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from corpus.config.tree import Config
from corpus.crawl.authority import Ask, AuthorityBook, Decided, Wait
from corpus.crawl.authority_read import Follow, read_answer, row_of
from corpus.crawl.clock import RealClock
from corpus.crawl.desk import Errand
from corpus.crawl.dns import CachingResolver
from corpus.crawl.fetch import HttpTransport
from corpus.crawl.ports import Clock, QueuedUrl, Request, Resolver, Transport
from corpus.crawl.settle import REDIRECTS
from corpus.errors import UsageError
from corpus.model import Consent, Failed, FetchResult, Gate, Kind, Response
from corpus.optout.consent import whole
from corpus.optout.decide import combine
from corpus.optout.operator_list import OperatorList
from corpus.optout.protego_opinion import second_opinion
from corpus.optout.response import ResponseVerdict, judge_response, union, unread_licences
from corpus.page.tree import parse
from corpus.url.canonical import canonical_url, fetch_url
from corpus.url.host import authority_of, host_of, registered_domain


@dataclass(slots=True)
class Look:
    """What a live check found. `asked`: (URL, status or failure) in order; `protego`: its opinion on the first URL, if it has one."""

    consent: Consent
    asked: list[tuple[str, str]] = field(default_factory=list)
    protego: bool | None = None
    waits: str = ""
    """Why no answer could be had now; empty when there is one."""


async def look(
    url: str, config: Config, *, transport: Transport | None = None, resolver: Resolver | None = None, clock: Clock | None = None
) -> Look:
    """Check one URL. Raises UsageError when it is no http(s) URL or nobody is named as asking."""
    if not config.crawl.contact:
        raise UsageError("nobody is named as asking", "crawl.contact", "set crawl.contact, or give the files: --robots, --html …")
    if fetch_url(url) is None:
        raise UsageError("not an http(s) URL", url[:200], "write the URL with its scheme")
    clock = clock or RealClock()
    asker = _Asker(
        config, transport or HttpTransport(config.crawl, clock), resolver or CachingResolver(config.crawl, clock), clock
    )
    try:
        return await asker.look(url)
    finally:
        await asker.close()


class _Asker:
    def __init__(self, config: Config, transport: Transport, resolver: Resolver, clock: Clock) -> None:
        self._config, self._transport, self._resolver, self._clock = config, transport, resolver, clock
        self._token = config.crawl.robots_token
        self._bodies: dict[str, bytes] = {}
        self._book = AuthorityBook(config.optout, self._token, self._bodies.__getitem__)
        self._ended: float | None = None
        self._gap_s = config.crawl.delay_start
        self._asked: list[tuple[str, str]] = []

    async def close(self) -> None:
        await self._transport.close()
        await self._resolver.close()

    async def look(self, url: str) -> Look:
        first = here = fetch_url(url) or url
        before: list[Consent] = []
        after: list[ResponseVerdict] = []
        waits = ""
        for _ in range(self._config.crawl.max_redirects + 1):
            consent, waits = await self._before(here)
            before.append(consent)
            if waits or consent.gate is not Gate.FETCH:
                break
            result = await self._ask(here, Kind.PAGE)
            if isinstance(result, Failed):
                waits = f"{here}: {result.failure.value}: {result.detail}"
                break
            after.append(await self._judged(here, result))
            target = fetch_url(result.header("location") or "", here) if result.status in REDIRECTS else None
            if target is None or after[-1].use.value == "no":
                break
            here = target
        together = combine(before, self._config.optout)
        if after:
            together = whole(together, union(after, self._config.optout), self._config.optout)
        if waits:
            together = Consent(
                together.access, together.use, together.gate, store=False, export=False, evidence=together.evidence
            )
        return Look(together, self._asked, self._opinion(first), waits)

    async def _before(self, url: str) -> tuple[Consent, str]:
        """What the authority says of a URL, and why that is not known now (or empty)."""
        authority, host = authority_of(url), host_of(url)
        queued = QueuedUrl(canonical_url(url) or url, url, host, registered_domain(host), Kind.PAGE, 0, 0, "", 0, 0.5)
        while True:
            match self._book.step(queued, self._clock.wall()):
                case Ask() as ask:
                    await self._read(ask)
                case Wait(authority=silent):
                    known = self._book.rules(authority).judge(url, self._clock.wall())
                    return self._listed(known, url), f"{silent}: its statements cannot be read now"
                case Decided(consent=consent):
                    return self._listed(consent, url), ""

    def _listed(self, consent: Consent, url: str) -> Consent:
        file = self._config.optout.domains_file
        if not file:
            return consent
        listed = OperatorList.from_lines((self._config.base / file).read_text("utf-8").splitlines()).refuses(url)
        return consent if listed is None else combine([consent, listed], self._config.optout)

    async def _read(self, ask: Ask) -> None:
        """One authority file, redirects followed."""
        errand = Errand(ask.authority, ask.kind, ask.url, 0, host_of(ask.authority))
        while True:
            answer = read_answer(errand, await self._ask(errand.url, errand.kind), self._config.optout)
            if isinstance(answer, Follow):
                errand = replace(errand, url=answer.url, hops=answer.hops, first=errand.first or errand.url)
                continue
            row = row_of(errand, answer, self._clock.wall(), self._config.optout, pace_s=self._config.optout.robots_ttl)
            if row.digest:
                self._bodies[row.digest] = answer.body
            self._book.learn([row])
            if errand.kind is Kind.ROBOTS and row.outcome == "ok":
                delay = self._book.rules(row.authority).crawl_delay_s or 0.0
                self._gap_s = max(self._gap_s, min(delay, self._config.crawl.max_crawl_delay))
            return

    async def _judged(self, url: str, response: Response) -> ResponseVerdict:
        """The response's own word; licence documents that it advertises are read first."""
        page = parse(response.decoded, response.header("content-type"), url) if 200 <= response.status < 300 else None
        authority = authority_of(url)
        while True:
            verdict = judge_response(
                url, response.status, response.headers, page, response.ended_at, self._config.optout, self._token,
                licences=self._book.licences(authority),
            )  # fmt: skip
            steps = [self._book.licence(authority, wanted, self._clock.wall()) for wanted in unread_licences(verdict)]
            ask = next((step for step in steps if isinstance(step, Ask)), None)
            if ask is None:
                return verdict
            await self._read(ask)

    async def _ask(self, url: str, kind: Kind) -> FetchResult:
        """One request, no sooner than a gap after the last one ended."""
        if self._ended is not None:
            await self._clock.sleep(max(self._ended + self._gap_s - self._clock.monotonic(), 0.0))
        resolved = await self._resolver.resolve(host_of(url))
        if isinstance(resolved, Failed):
            result: FetchResult = resolved
        else:
            result = await self._transport.fetch(Request(url, host_of(url), resolved.addresses[0], kind))
            self._ended = self._clock.monotonic()
        self._asked.append((url, result.failure.value if isinstance(result, Failed) else str(result.status)))
        return result

    def _opinion(self, url: str) -> bool | None:
        row = self._book.row(authority_of(url), Kind.ROBOTS)
        return second_opinion(self._bodies[row.digest], self._token, url) if row is not None and row.digest else None
