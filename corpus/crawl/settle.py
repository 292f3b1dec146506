"""What a finished contact makes of a page or sitemap URL: a pure decision, from the answer and the verdict on it.

The table of statuses is here, the waits are in `retry.py`, the pace in `pace.py`, the consent in `optout`. The result
names the row's new state, the links that follow, and in which archive the capture belongs; it does nothing itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from corpus.crawl.discover import redirect
from corpus.crawl.ports import Due, QueuedUrl, ResponseRefusal, Settled
from corpus.crawl.retry import GiveUp, ParkUrl, Requeue, next_step
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure, Kind, Response, Sighting, UrlState, Use
from corpus.optout.response import ResponseVerdict

REDIRECTS = frozenset({301, 302, 303, 307, 308})
REFUSING = {401: "http-401", 402: "http-402", 403: "http-403", 451: "http-451"}
GONE = {404: "http-404", 410: "http-410"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """`archive` is `pages`, `revisit`, `policy`, `sealed` or empty (nothing is kept). `park`: (reason, seconds) for the whole host."""

    settled: Settled
    sightings: tuple[Sighting, ...] = ()
    archive: str = ""
    follow: bool = False
    """Whether the body's links may be followed (the caller holds the parsed page)."""
    refusals: tuple[ResponseRefusal, ...] = ()
    park: tuple[str, float] | None = None
    again: QueuedUrl | None = None
    """The same page under another spelling: ask for this at once, and settle nothing yet."""


def failed(queued: QueuedUrl, result: Failed, settings: CrawlSettings, *, pace_s: float, wall: float) -> Outcome:
    """No usable response: ask again, park, or give up, as the retry table says."""
    return _again(queued, result.failure, result.status, settings, pace_s, wall, result.retry_after_s)


def answered(
    queued: QueuedUrl,
    response: Response,
    verdict: ResponseVerdict,
    settings: CrawlSettings,
    *,
    pace_s: float,
    wall: float,
    seal: bool,
) -> Outcome:
    """A response of any status. `seal`: archives keep what may not be used, apart."""
    status = response.status
    failure = failure_of(status, verdict)
    if failure is not None:
        return _again(queued, failure, status, settings, pace_s, wall, verdict.retry_after_s)
    if status in REFUSING:
        return _refused(queued, response, REFUSING[status], verdict, archive="policy")
    if status in GONE:
        return Outcome(_row(queued, UrlState.GONE, response, reason=GONE[status]))
    # a redirect hop that says no ends the chain too; a sitemap is no text, and the pages it names are judged themselves
    if verdict.use is Use.NO and queued.kind is Kind.PAGE:
        return _refused(queued, response, verdict.reason, verdict, archive="sealed" if seal and status < 300 else "")
    if status == 304 and not (queued.etag or queued.last_modified):  # nobody asked whether anything had changed
        return _again(queued, Failure.PROTOCOL, status, settings, pace_s, wall, verdict.retry_after_s)
    if status == 304:  # the kept copy's signals stand, and these are added to them
        return Outcome(_unchanged(queued, response), archive="revisit", refusals=_added(queued, response, verdict))
    if status in REDIRECTS or (300 <= status < 400 and response.header("location")):
        return _redirected(queued, response, settings)
    if not 200 <= status < 300 or not verdict.keeps:
        return Outcome(_row(queued, UrlState.FAILED, response, reason="protocol"))
    archive = "pages" if queued.kind is Kind.PAGE else "policy"
    return Outcome(_row(queued, UrlState.FETCHED, response), archive=archive, follow=verdict.follow)


def failure_of(status: int, verdict: ResponseVerdict) -> Failure | None:
    """The failure that a status amounts to; None for an answer to settle."""
    if verdict.reason == "challenge":
        return Failure.CHALLENGE
    if status == 429:
        return Failure.THROTTLED
    if status == 503:
        return Failure.UNAVAILABLE
    if status >= 500:
        return Failure.SERVER
    if 400 <= status < 500 and status not in REFUSING and status not in GONE:
        return Failure.CLIENT
    return Failure.PROTOCOL if status < 200 else None


def _again(
    queued: QueuedUrl,
    failure: Failure,
    status: int | None,
    settings: CrawlSettings,
    pace_s: float,
    wall: float,
    retry_after_s: float | None,
) -> Outcome:
    attempts = queued.attempts + 1
    due: Due | None
    park: tuple[str, float] | None
    match next_step(failure, attempts, pace_s, settings, retry_after_s):
        case Requeue(wait_s=wait_s):
            state, reason, due, park = UrlState.QUEUED, failure.value, Due(wall, wait_s), None
        case ParkUrl(reason=reason, wait_s=wait_s, host_wide=host_wide):
            state, due, park = UrlState.PARKED, Due(wall, wait_s), (reason, wait_s) if host_wide else None
        case GiveUp(state=state, reason=reason, park_host_s=park_host_s):
            due, park = None, ("backing-off", park_host_s) if park_host_s is not None else None
    row = Settled(queued.url, state, reason, attempts=attempts, due=due, http_status=status, fetched_at=wall)
    return Outcome(row, park=park)


def _row(queued: QueuedUrl, state: UrlState, response: Response, *, reason: str = "", target: str = "") -> Settled:
    return Settled(
        queued.url,
        state,
        reason,
        attempts=queued.attempts + 1,
        http_status=response.status,
        content_type=(response.header("content-type") or "")[:200],
        fetched_at=response.started_at,
        etag=(response.header("etag") or "")[:500],
        last_modified=(response.header("last-modified") or "")[:100],
        target=target,
    )


def _refused(queued: QueuedUrl, response: Response, reason: str, verdict: ResponseVerdict, *, archive: str) -> Outcome:
    """The response itself says no: the tombstone keeps the raw statement, never the text."""
    deciding = next((item for item in verdict.evidence if item.verdict == "no"), None)
    raw = deciding.raw if deciding else response.raw_status
    line_no = deciding.line_no if deciding else None
    source = deciding.source if deciding else "status"
    protocol = deciding.protocol if deciding else reason
    digest = deciding.file_digest if deciding else ""
    if reason == "redirected":  # the hop's own statement ended the chain, not its being a redirect
        reason = protocol
    tombstone = ResponseRefusal(
        queued.url, response.started_at, protocol, raw, source, line_no, response.status, file_digest=digest
    )
    base = _row(queued, UrlState.REFUSED, response, reason=reason)
    settled = Settled(
        base.url, base.state, reason, attempts=base.attempts, http_status=base.http_status, content_type=base.content_type,
        fetched_at=base.fetched_at, rule=raw[:1000], rule_line=line_no, authority_digest=digest, protocol=protocol,
    )  # fmt: skip
    return Outcome(settled, archive=archive, refusals=(tombstone,))


def _added(queued: QueuedUrl, response: Response, verdict: ResponseVerdict) -> tuple[ResponseRefusal, ...]:
    return tuple(
        ResponseRefusal(
            queued.url, response.started_at, e.protocol, e.raw, e.source, e.line_no, response.status, e.verdict, e.file_digest
        )
        for e in verdict.evidence
    )


def _unchanged(queued: QueuedUrl, response: Response) -> Settled:
    """A 304 confirms what the last visit brought, and may leave out what has not changed."""
    row = _row(queued, UrlState.NOT_MODIFIED, response)
    return replace(
        row,
        content_sha256=queued.content_sha256,
        etag=row.etag or queued.etag,
        last_modified=row.last_modified or queued.last_modified,
    )


def same_body(queued: QueuedUrl, response: Response, verdict: ResponseVerdict) -> Outcome:
    """A page that came again whole with the very bytes its archive holds: as good as a 304, and kept like one."""
    return Outcome(_unchanged(queued, response), archive="revisit", refusals=_added(queued, response, verdict))


def _redirected(queued: QueuedUrl, response: Response, settings: CrawlSettings) -> Outcome:
    """The target is a URL of its own, unless it is this very URL spelt otherwise: then it is asked for at once.

    (Sites redirect away tracking parameters, which the key does not hold.) Round and round ends with the hops.
    """
    target = redirect(response.header("location") or "", queued)
    if target is None:
        return Outcome(_row(queued, UrlState.FAILED, response, reason="bad-redirect"))
    row = _row(queued, UrlState.REDIRECTED, response, reason="redirected", target=target.url)
    if target.url != queued.url:
        return Outcome(row, sightings=(target,), archive="policy")
    if target.found == queued.found or target.hops > settings.max_redirects:
        return Outcome(replace(row, reason="too-many-redirects"), archive="policy")
    return Outcome(row, archive="policy", again=replace(queued, found=target.found, hops=target.hops))
