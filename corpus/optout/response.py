"""What one response says about itself: status, headers and meta elements, judged the same at fetch time and again from
the archive. Pure: the time is an argument, and the same response always gives the same verdict.

A refusal here means that the body is dropped at once and only the statement is kept. Several responses on the way to
one page (redirect hops; a kept copy and the 304 that confirmed it) are judged one by one and united.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from corpus.model import Evidence, Use
from corpus.optout.agents import AGENTS, AgentTable, Peers
from corpus.optout.aipref import header_usage
from corpus.optout.challenge import challenged
from corpus.optout.content_signal import header_signals
from corpus.optout.decide import decide, deciding
from corpus.optout.evidence import Origin, stated
from corpus.optout.filestate import FileState
from corpus.optout.links import advertised_licences
from corpus.optout.match import target_of
from corpus.optout.robots_tag import Tag, TagReading, expired_by, read_tags
from corpus.optout.rsl import licence_scope, read_licence
from corpus.optout.settings import OptoutSettings
from corpus.optout.status import CHALLENGE, LICENCE, StatusRow, retry_after_s, status_row
from corpus.optout.tdmrep import KEY, POLICY, stated_by
from corpus.page.tree import LinkElement, Page, parse
from corpus.url.host import authority_of

PageLike = Page | Sequence[tuple[str, str]] | bytes | str | None
"""A parsed page, its meta pairs, raw HTML, or nothing."""


@dataclass(frozen=True, slots=True)
class ResponseVerdict:
    """`use`: from this response alone. `store`: the body may be kept. `follow`: its links may be. `drop_at`: epoch
    seconds after which it must go. `purge`: copies held so far must go now. `reason`: code of a refusal or failure.

    `keeps`: the status came with the page (whatever it says). `retry`: `no`, `after`, `exponential` or empty.
    """

    use: Use
    evidence: tuple[Evidence, ...]
    store: bool
    follow: bool
    drop_at: float | None
    purge: bool
    retry_after_s: float | None
    reason: str
    images: bool = True
    keeps: bool = True
    retry: str = ""
    backoff: bool = False
    record: str = ""


def judge_response(
    url: str,
    status: int,
    headers: Iterable[tuple[str, str]],
    page: PageLike,
    at: float,
    settings: OptoutSettings,
    token: str,
    *,
    agents: AgentTable = AGENTS,
    licences: Mapping[str, FileState] | None = None,
) -> ResponseVerdict:
    """The verdict on one response. `page` is a parsed page, its meta pairs, raw HTML, or None.

    `licences` are RSL documents at hand by URL (an empty URL stands for any); one that the response advertises and
    that is not among them counts as unlicensed.
    """
    headers = tuple(headers)
    metas, links = _page_statements(page, url)
    by_name: dict[str, list[str]] = {}
    for name, value in headers:
        by_name.setdefault(name.lower().strip(), []).append(value)
    row = _row(status, headers, by_name)
    peers = agents.peers(settings.peers, token)
    tags = [Tag(value, "header") for value in by_name.get("x-robots-tag", [])] + _meta_tags(metas, token, peers)
    reading = read_tags(tags, at, token, peers, settings)
    evidence = (
        [stated("http", row.statement, Origin("status", read_at=at), raw=_status_raw(status, by_name))] if row.statement else []
    )
    evidence += reading.evidence
    evidence += _usage(by_name, metas, at, near_miss=settings.near_miss)
    if settings.tdmrep:
        evidence += stated_by(by_name.get(KEY, []), by_name.get(POLICY, []), "header", at)
        evidence += stated_by(_meta(metas, KEY), _meta(metas, POLICY), "meta", at)
    if settings.rsl:
        evidence += _licences(url, by_name.get("link", []), links, licences or {})
    wait = (
        retry_after_s(by_name.get("retry-after", []), next(iter(by_name.get("date", [])), None), at)
        if row.retry == "exponential"
        else None
    )
    return _verdict(tuple(dict.fromkeys(evidence)), row, reading, wait, settings)


def _verdict(
    evidence: tuple[Evidence, ...], row: StatusRow, reading: TagReading, wait: float | None, settings: OptoutSettings
) -> ResponseVerdict:
    use, reason = _settle(evidence, settings)
    return ResponseVerdict(
        use=use,
        evidence=evidence,
        store=row.keeps and use is not Use.NO,
        follow=reading.follow,
        drop_at=reading.drop_at,
        purge=row.purge or reading.expired,
        retry_after_s=wait,
        reason=row.reason or reason,
        images=reading.images and use is not Use.NO,
        keeps=row.keeps,
        retry="after" if wait is not None else row.retry,
        backoff=row.backoff,
        record=row.record,
    )


def _settle(evidence: tuple[Evidence, ...], settings: OptoutSettings) -> tuple[Use, str]:
    """The use that these statements come to, and the protocol that refused it; the profile is asked about the whole only."""
    consent = decide(evidence, settings, part=True)
    against = deciding(consent) if consent.use is Use.NO else None
    return consent.use, "" if against is None else against.protocol


def union(verdicts: Sequence[ResponseVerdict], settings: OptoutSettings) -> ResponseVerdict:
    """One verdict for a page reached over several responses, the last of which is the page's own (at least one)."""
    last = verdicts[-1]
    evidence = tuple(dict.fromkeys(item for verdict in verdicts for item in verdict.evidence))
    use, reason = _settle(evidence, settings)
    return replace(
        last,
        use=use,
        evidence=evidence,
        store=last.keeps and use is not Use.NO,
        follow=all(verdict.follow for verdict in verdicts),
        drop_at=min((verdict.drop_at for verdict in verdicts if verdict.drop_at is not None), default=None),
        purge=any(verdict.purge for verdict in verdicts),
        reason=last.reason or reason,
        images=all(verdict.images for verdict in verdicts),
    )


def unread_licences(verdict: ResponseVerdict) -> tuple[str, ...]:
    """Documents whose reading could still change this verdict: none where something else refuses as well."""
    against = [item for item in verdict.evidence if item.verdict == "no"]
    unread = [item.source for item in against if _is_unread(item)]
    return tuple(dict.fromkeys(unread)) if verdict.keeps and len(unread) == len(against) else ()


def reread(
    evidence: Iterable[Evidence], url: str, at: float, licences: Mapping[str, FileState], settings: OptoutSettings
) -> tuple[Evidence, ...]:
    """What statements kept from an earlier response come to now: documents read since are read, dates that passed have passed."""
    found: list[Evidence] = []
    for item in evidence:
        state = licences.get(item.source) if _is_unread(item) and settings.rsl else None
        if state is not None:
            found.extend(licence_scope(read_licence(state, item.source, authority_of(url))).at(target_of(url)))
        elif expired_by(item, at):
            found.append(replace(item, axis="use", verdict="no"))
        else:
            found.append(item)
    return tuple(found)


def _is_unread(item: Evidence) -> bool:
    """The mark of a document that a response advertised and that was not at hand."""
    return item.protocol == "rsl" and item.verdict == "no" and not item.file_digest and item.raw == item.source != ""


def _row(status: int, headers: tuple[tuple[str, str], ...], by_name: Mapping[str, list[str]]) -> StatusRow:
    if challenged(headers):
        return CHALLENGE
    if status == 401 and any(value.strip().lower().startswith("license") for value in by_name.get("www-authenticate", [])):
        return LICENCE
    return status_row(status)


def _status_raw(status: int, by_name: Mapping[str, list[str]]) -> str:
    telling = ("cf-mitigated", "x-amzn-waf-action", "www-authenticate", "crawler-price")
    return "; ".join([f"HTTP {status}", *(f"{name}: {value.strip()}" for name in telling for value in by_name.get(name, []))])


def _page_statements(page: PageLike, url: str) -> tuple[Sequence[tuple[str, str]], Sequence[LinkElement]]:
    if page is None:
        return (), ()
    if isinstance(page, str):
        page = parse(page.encode("utf-8", "surrogatepass"), "text/html; charset=utf-8", url)
    elif isinstance(page, bytes):
        page = parse(page, "text/html", url)
    return (page.metas, page.link_elements) if isinstance(page, Page) else (page, ())


def _meta(metas: Iterable[tuple[str, str]], wanted: str) -> list[str]:
    """Contents of meta elements called `wanted`, whichever attribute carries the name."""
    return [
        content for name, content in metas if name.strip().lower().removeprefix("property:").removeprefix("http-equiv:") == wanted
    ]


_TO_EVERYONE = frozenset({"robots", "x-robots-tag", "http-equiv:x-robots-tag", "http-equiv:robots"})


def _meta_tags(metas: Iterable[tuple[str, str]], token: str, peers: Peers) -> list[Tag]:
    """Robots elements, and those called after us or an agent that speaks for us; no other element's text is read."""
    tags = []
    for name, content in metas:
        name = name.strip().lower().removeprefix("property:")
        if name in _TO_EVERYONE:
            tags.append(Tag(content, "meta"))
        elif name == token.lower() or name in peers.names:
            tags.append(Tag(content, "meta", name))
    return tags


def _usage(by_name: Mapping[str, list[str]], metas: Sequence[tuple[str, str]], at: float, *, near_miss: bool) -> list[Evidence]:
    header, meta = Origin("header", read_at=at), Origin("meta", read_at=at)
    return [
        *header_usage(by_name.get("content-usage", []), header, near_miss=near_miss),
        *header_usage(_meta(metas, "content-usage"), meta, near_miss=near_miss),
        *header_signals((*by_name.get("content-signal", []), *by_name.get("content-signals", [])), header, near_miss=near_miss),
        *header_signals(_meta(metas, "content-signal"), meta, near_miss=near_miss),
    ]


def _licences(
    url: str, link_headers: Iterable[str], links: Iterable[LinkElement], at_hand: Mapping[str, FileState]
) -> list[Evidence]:
    evidence: list[Evidence] = []
    for licence_url in advertised_licences(url, link_headers, links)[:8]:
        state = at_hand.get(licence_url, at_hand.get(""))
        if state is None:
            evidence.append(stated("page-licence", "unread", Origin(licence_url), raw=licence_url))
        else:
            evidence.extend(licence_scope(read_licence(state, licence_url, authority_of(url))).at(target_of(url)))
    return evidence
