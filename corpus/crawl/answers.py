"""From a finished contact with a page or a sitemap to what is to become durable: parse once, judge, collect links.

The decisions are `settle.py`'s; this file reads bodies and puts the pieces together. Small bodies are parsed on the
loop, large ones in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from corpus.crawl.commit import CaptureJob, Settlement
from corpus.crawl.discover import canonical_link, page_links, sitemap_links
from corpus.crawl.gate import Fingerprint
from corpus.crawl.ports import Ack, Due, HostRow, Original, QueuedUrl, Request, Settled
from corpus.crawl.recrawl import next_visit
from corpus.crawl.settings import CrawlSettings, RecrawlSettings
from corpus.crawl.settle import Outcome, answered, failed
from corpus.crawl.sitemap import read_sitemap
from corpus.crawl.states import VISITED
from corpus.model import Failed, FetchResult, Kind, Response, Sighting, UrlState, content_sha256
from corpus.optout.filestate import FileState
from corpus.optout.response import judge_response, unread_licences
from corpus.optout.settings import OptoutSettings
from corpus.page.novelty import sample_runs
from corpus.page.simhash import fingerprint
from corpus.page.tree import Page, parse
from corpus.page.words import Hashes, word_hashes

Licences = Mapping[str, FileState]
"""Licence documents at hand, by URL."""
INLINE_PAGE = 256 * 1024
"""Pages up to here are hashed and parsed on the loop (about 5 ms); larger ones in a thread."""
INLINE_SITEMAP = 16 * 1024
"""Sitemaps up to here likewise: they may be packed, and every line is a URL."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """`park`: (reason, seconds) for the whole host. `again`: the same page must be asked under another spelling."""

    settlement: Settlement
    state: UrlState | None
    park: tuple[str, float] | None = None
    again: QueuedUrl | None = None


@dataclass(frozen=True, slots=True)
class Body:
    page: Page | None = None
    digest: str = ""
    simhash: int | None = None
    links: tuple[Sighting, ...] = ()
    runs: Hashes | None = None
    """A sample of what the page says (`page.novelty`)."""
    alias: bool = False
    """It names another address of its host as its own."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A page that advertises licence documents (`wanted`) which nobody has read yet: its body waits in memory until they are."""

    contact: QueuedUrl
    request: Request
    response: Response
    body: Body
    wanted: tuple[str, ...] = ()


class Answers:
    """Reads answers for one loop. Holds settings only."""

    def __init__(self, settings: CrawlSettings, optout: OptoutSettings, recrawl: RecrawlSettings | None) -> None:
        self._settings, self._optout, self._recrawl = settings, optout, recrawl

    async def conclude(
        self, contact: QueuedUrl, row: HostRow, file: int, request: Request, result: FetchResult, wall: float, licences: Licences
    ) -> Conclusion | Undecided:
        """What a contact settled. `row` is the host's after the contact, `wall` the time now (epoch seconds)."""
        if isinstance(result, Failed):
            return self._put_together(contact, row, file, request, None, self.failed(contact, result, row.pace_s, wall), Body())
        page = Undecided(contact, request, result, await self._read(contact, result))
        return self.decide(page, row, file, wall, licences)

    def decide(
        self, page: Undecided, row: HostRow, file: int, wall: float, licences: Licences, *, final: bool = False
    ) -> Conclusion | Undecided:
        """Judge an answer by the licence documents at hand; `final`: what was not read by now counts as no licence."""
        contact, response = page.contact, page.response
        verdict = judge_response(
            contact.found, response.status, response.headers, page.body.page, response.ended_at, self._optout, self._settings.robots_token,
            licences=licences,
        )  # fmt: skip
        wanted = () if final else unread_licences(verdict)
        if wanted:
            return replace(page, wanted=wanted)
        seal = self._optout.on_use_no == "seal"
        outcome = answered(contact, response, verdict, self._settings, pace_s=row.pace_s, wall=wall, seal=seal)
        return self._put_together(contact, row, file, page.request, response, outcome, page.body)

    def unresolved(self, contact: QueuedUrl, row: HostRow, file: int, result: Failed, pace_s: float, wall: float) -> Conclusion:
        """The host's name led to no address that we may use."""
        outcome = self.failed(contact, result, pace_s, wall)
        return self._put_together(contact, row, file, Request(contact.found, row.host, ""), None, outcome, Body())

    def failed(self, contact: QueuedUrl, result: Failed, pace_s: float, wall: float) -> Outcome:
        return failed(contact, result, self._settings, pace_s=pace_s, wall=wall)

    async def _read(self, contact: QueuedUrl, response: Response) -> Body:
        if not 200 <= response.status < 300:
            return Body()
        read, inline = (_read_page, INLINE_PAGE) if contact.kind is Kind.PAGE else (_read_sitemap, INLINE_SITEMAP)
        if len(response.decoded) <= inline:
            return read(contact, response)
        return await asyncio.to_thread(read, contact, response)

    def _put_together(
        self,
        contact: QueuedUrl,
        row: HostRow,
        file: int,
        request: Request,
        response: Response | None,
        outcome: Outcome,
        body: Body,
    ) -> Conclusion:
        settled = self._finished(contact, outcome.settled, body)
        follows = settled.state is UrlState.FETCHED and (contact.kind is Kind.SITEMAP or outcome.follow)
        sightings = body.links if follows else outcome.sightings
        job = None if response is None else _job(contact, request, response, outcome, settled, body)
        ack = Ack(host=row, settled=() if outcome.again else (settled,))
        settlement = Settlement(file, ack, capture=job, sightings=sightings, refusals=outcome.refusals)
        return Conclusion(settlement, None if outcome.again else settled.state, outcome.park, outcome.again)

    def _finished(self, contact: QueuedUrl, settled: Settled, body: Body) -> Settled:
        """The row with what the body gave, and with the time of the next visit."""
        if settled.state is UrlState.FETCHED:
            settled = replace(settled, content_sha256=body.digest, simhash=body.simhash)
        if settled.state in VISITED and settled.fetched_at is not None and settled.due is None and self._recrawl is not None:
            due: Due = next_visit(settled.url, settled.fetched_at, self._recrawl)
            settled = replace(settled, due=due)
        return settled


def _job(
    contact: QueuedUrl, request: Request, response: Response, outcome: Outcome, settled: Settled, body: Body
) -> CaptureJob | None:
    """In which archive the answer belongs, and in what form."""
    print_ = original = runs = None
    match outcome.archive:
        case "":
            return None
        case "pages":
            print_ = Fingerprint(contact.url, body.digest, body.simhash, contact.found, response.started_at, body.alias)
            runs = None if contact.content_sha256 else body.runs
        case "revisit":
            original = Original(contact.url, contact.found)
        case "policy" if contact.kind is Kind.PAGE:  # a redirect or a refusal: its text is nobody's page
            response = replace(response, body=b"", decoded=b"", truncated="unspecified" if response.body else "")
        case _:
            pass
    return CaptureJob(
        contact.url, request, response, contact.depth, contact.via, settled.content_sha256, print_,
        policy=outcome.archive == "policy", sealed=outcome.archive == "sealed", revisit_of=original, runs=runs,
    )  # fmt: skip


def _read_page(contact: QueuedUrl, response: Response) -> Body:
    page = parse(response.decoded, response.header("content-type"), contact.found)
    said = word_hashes(page.visible_text)
    own, links = canonical_link(page, contact), page_links(page, contact)
    if own is not None:
        links.append(own)
    return Body(
        page, content_sha256(response.decoded), fingerprint(said), tuple(links), sample_runs(said), alias=own is not None
    )


def _read_sitemap(contact: QueuedUrl, response: Response) -> Body:
    found = read_sitemap(response.decoded)
    return Body(None, content_sha256(response.decoded), None, tuple(sitemap_links(found.urls, found.children, contact)))
