"""From a finished contact with a page or a sitemap to what is to become durable: parse once, judge, collect links.

The decisions are `settle.py`'s; this file reads bodies and puts the pieces together. Small bodies are parsed on the
loop, large ones in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from corpus.crawl.cached import cache_of
from corpus.crawl.discover import Known, canonical_link, page_links, sitemap_links
from corpus.crawl.gate import Fingerprint
from corpus.crawl.pace import pressure_s
from corpus.crawl.ports import Ack, HostRow, Original, QueuedUrl, Request, Settled, Whole
from corpus.crawl.prints import numbers
from corpus.crawl.priority import url_front
from corpus.crawl.recrawl import Plan, compared, next_visit
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.settle import Outcome, answered, failed, same_body
from corpus.crawl.settlement import CaptureJob, Settlement
from corpus.crawl.sitemap import read_sitemap
from corpus.crawl.states import VISITED
from corpus.crawl.versions import COMPARED, change_of
from corpus.model import Failed, FetchResult, Kind, Response, Sighting, UrlState, content_sha256
from corpus.optout.filestate import FileState
from corpus.optout.response import judge_response, unread_licences
from corpus.optout.settings import OptoutSettings
from corpus.page.novelty import Said
from corpus.page.tree import Page, parse

Licences = Mapping[str, FileState]
"""Licence documents at hand, by URL."""
INLINE_PAGE = 256 * 1024
"""Pages up to here are hashed and parsed on the loop (about 5 ms); larger ones in a thread."""
LATER_CHARS = 65_536
"""Texts up to here wait for the group commit to work out their numbers; so many of them that `WAITING_BYTES` are reached hurry it."""
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
    payload: bytes = b""
    """The SHA-1 of the body as it is stored: the archive, its revisits and the row of a page need it."""
    simhash: int | None = None
    links: tuple[Sighting, ...] = ()
    said: Said | None = None
    text: str | None = None
    """Its visible text, where `simhash` and `said` are still to come of it."""
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

    def __init__(
        self,
        settings: CrawlSettings,
        optout: OptoutSettings,
        plan: Callable[[], Plan | None],
        known: Known = lambda url, depth: False,
    ) -> None:
        """`plan`: how visited pages fall due, as it is now; None: they do not. `known`: links that need not be told again."""
        self._settings, self._optout, self._plan, self._known = settings, optout, plan, known

    async def conclude(
        self, contact: QueuedUrl, row: HostRow, file: int, request: Request, result: FetchResult, wall: float, licences: Licences
    ) -> Conclusion | Undecided:
        """What a contact settled. `row` is the host's after the contact, `wall` the time now (epoch seconds)."""
        if isinstance(result, Failed):
            return self._put_together(
                contact, row, file, request, None, self.failed(contact, result, self._pressure_s(row), wall), Body()
            )
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
        outcome = answered(contact, response, verdict, self._settings, pace_s=self._pressure_s(row), wall=wall, seal=seal)
        if outcome.archive == "pages" and _is_held(contact, response, page.body):
            outcome = same_body(contact, response, verdict)
        return self._put_together(contact, row, file, page.request, response, outcome, page.body)

    def unresolved(self, contact: QueuedUrl, row: HostRow, file: int, result: Failed, pace_s: float, wall: float) -> Conclusion:
        """The host's name led to no address that we may use."""
        outcome = self.failed(contact, result, pace_s, wall)
        return self._put_together(contact, row, file, Request(contact.found, row.host, ""), None, outcome, Body())

    def _pressure_s(self, row: HostRow) -> float:
        return pressure_s(row.pace_s, row.strikes, self._settings)

    def failed(self, contact: QueuedUrl, result: Failed, pace_s: float, wall: float) -> Outcome:
        return failed(contact, result, self._settings, pace_s=pace_s, wall=wall)

    async def _read(self, contact: QueuedUrl, response: Response) -> Body:
        if not 200 <= response.status < 300:
            return Body()
        read, inline = (_read_page, INLINE_PAGE) if contact.kind is Kind.PAGE else (_read_sitemap, INLINE_SITEMAP)
        if len(response.decoded) <= inline:
            return read(contact, response, self._known)
        return await asyncio.to_thread(read, contact, response, self._known)

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
        settled = self._finished(contact, outcome.settled, body, response)
        follows = settled.state is UrlState.FETCHED and (contact.kind is Kind.SITEMAP or outcome.follow)
        sightings = body.links if follows else outcome.sightings
        job = None if response is None else _job(contact, request, response, outcome, settled, body)
        ack = Ack(host=row, settled=() if outcome.again else (settled,))
        unread = body.text if outcome.archive == "pages" else None
        settlement = Settlement(file, ack, capture=job, sightings=sightings, refusals=outcome.refusals, unread=unread)
        return Conclusion(settlement, None if outcome.again else settled.state, outcome.park, outcome.again)

    def _finished(self, contact: QueuedUrl, settled: Settled, body: Body, response: Response | None) -> Settled:
        """The row with what the body gave, compared with the visit before, and with the time of the next visit."""
        state, at, history = settled.state, settled.fetched_at, contact.history
        if state not in VISITED or at is None:
            return settled
        change = change_of(contact, state, body.digest, body.simhash, self._settings.near_k)
        if state in COMPARED and (state is not UrlState.GONE or history.checked_at is not None):
            history = compared(history, at, change)
        cache, age_s = cache_of(response.headers) if response is not None else ("", None)
        digest, simhash, whole = settled.content_sha256, settled.simhash, settled.whole
        if state is UrlState.FETCHED:
            digest, simhash = body.digest, body.simhash
            whole = None if response is None or contact.kind is not Kind.PAGE else Whole(at, payload_of(response, body))
        elif state is UrlState.NOT_MODIFIED:
            simhash, whole = contact.simhash, contact.whole
        plan, due, front = self._plan(), settled.due, settled.front
        if plan is not None and due is None:
            due = next_visit(settled.url, at, plan, history)
            by_change = plan.settings.mode != "uniform"
            front = url_front(contact.depth, contact.priority, contact.kind, history=history, by_change=by_change, again=True)
        return replace(
            settled, history=history, change=change, cache=cache, age_s=age_s, content_sha256=digest, simhash=simhash, whole=whole,
            due=due, front=front,
        )  # fmt: skip


def payload_of(response: Response, body: Body) -> int:
    """The first 64 bits of the SHA-1 over the body as it is stored, signed."""
    return int.from_bytes((body.payload or _sha1(response.body))[:8], "big", signed=True)


def _sha1(body: bytes) -> bytes:
    return hashlib.sha1(body, usedforsecurity=False).digest()


def _is_held(contact: QueuedUrl, response: Response, body: Body) -> bool:
    """Whether a capture of this very URL holds the same content in the same bytes (a revisit record names their digest)."""
    held = contact.whole
    return held is not None and body.digest == contact.content_sha256 and payload_of(response, body) == held.payload


def _job(
    contact: QueuedUrl, request: Request, response: Response, outcome: Outcome, settled: Settled, body: Body
) -> CaptureJob | None:
    """In which archive the answer belongs, and in what form."""
    print_ = original = said = None
    match outcome.archive:
        case "":
            return None
        case "pages":
            print_ = Fingerprint(contact.url, body.digest, body.simhash, contact.found, response.started_at, body.alias)
            said = None if contact.content_sha256 else body.said
        case "revisit":
            original = Original(contact.url, contact.found, None if contact.whole is None else contact.whole.at)
        case "policy" if contact.kind is Kind.PAGE:  # a redirect or a refusal: its text is nobody's page
            response = replace(response, body=b"", decoded=b"", truncated="unspecified" if response.body else "")
        case _:
            pass
    return CaptureJob(
        contact.url, request, response, contact.depth, contact.via, settled.content_sha256, print_,
        policy=outcome.archive == "policy", sealed=outcome.archive == "sealed", revisit_of=original, said=said,
        payload=body.payload if response.body else b"",
    )  # fmt: skip


def _read_page(contact: QueuedUrl, response: Response, known: Known) -> Body:
    page = parse(response.decoded, response.header("content-type"), contact.found)
    is_new = not contact.content_sha256 and contact.history.checked_at is None  # nothing to compare it with
    text = page.last_text()
    later = is_new and len(text) <= LATER_CHARS
    simhash, said = (None, None) if later else numbers(contact.url, text)
    own, links = canonical_link(page, contact), page_links(page, contact, known)
    if own is not None:
        links.append(own)
    digests = content_sha256(response.decoded), _sha1(response.body)
    return Body(page, *digests, simhash, tuple(links), said, text if later else None, alias=own is not None)


def _read_sitemap(contact: QueuedUrl, response: Response, _: Known) -> Body:
    found = read_sitemap(response.decoded)
    return Body(digest=content_sha256(response.decoded), links=tuple(sitemap_links(found.urls, found.children, contact)))
