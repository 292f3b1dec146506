"""The public question: may this URL be requested, may it be trained on, and who said so? Everything given, offline.

`consent` takes what is at hand (files, status, headers, HTML) as text or bytes and never fetches anything. What is not
given states nothing; what is given and cannot be read defers.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from corpus.model import Access, Consent, Gate, Kind, Use
from corpus.optout.agents import AGENTS, AgentTable
from corpus.optout.authority import AuthorityFiles, compile_authority
from corpus.optout.decide import combine, deciding, reason_of
from corpus.optout.evidence import evidence_digest
from corpus.optout.filestate import FileState, classify_file, classify_robots
from corpus.optout.lines import as_bytes
from corpus.optout.response import ResponseVerdict, judge_response
from corpus.optout.settings import OptoutSettings
from corpus.url.canonical import fetch_url

__all__ = ["combine", "consent", "deciding", "evidence_digest", "given_files", "reason_of", "whole"]

OUR_TOKEN = "CorpusBot"
"""The product's robots token (`crawl.robots_token` where a crawl is configured otherwise)."""


NO_URL = Consent(Access.DEFER, Use.UNKNOWN, Gate.DEFER, store=False, export=False)
"""Nothing can be said about what is no URL, and nothing is allowed for it."""


def consent(
    url: str,
    *,
    robots: str | bytes | None = None,
    robots_status: int = 200,
    status: int = 200,
    headers: Iterable[tuple[str, str]] = (),
    html: str | bytes | None = None,
    tdmrep: str | bytes | None = None,
    ai_txt: str | bytes | None = None,
    rsl: str | bytes | Mapping[str, str | bytes] | None = None,
    at: float | None = None,
    settings: OptoutSettings | None = None,
    token: str = OUR_TOKEN,
    agents: AgentTable = AGENTS,
) -> Consent:
    """Both verdicts on one URL and every statement they rest on. Never raises, whatever a site may send; what is
    no http(s) URL defers (a forgotten scheme must not turn a refusal into a permission).

    `robots_status` is the answer that brought `robots` (None with 200: no robots.txt was looked at); `status`, `headers`
    and `html` are the page's own; `rsl` is the licence document, or documents by URL; `at` is epoch seconds (None: now).
    """
    requested = fetch_url(url)
    if requested is None:
        return NO_URL
    settings = settings or OptoutSettings()
    at = time.time() if at is None else at
    files = given_files(
        requested, at, settings, robots=robots, robots_status=robots_status, tdmrep=tdmrep, ai_txt=ai_txt, rsl=rsl
    )
    before = compile_authority(files, settings, token, agents=agents).judge(requested, at)
    licences = {state.url: state for state in files.rsl} if isinstance(files.rsl, tuple) else {}
    after = judge_response(requested, status, headers, html, at, settings, token, agents=agents, licences=licences)
    return whole(before, after, settings)


def whole(before: Consent, after: ResponseVerdict, settings: OptoutSettings) -> Consent:
    """What an authority said before the request, and what the response said, as one consent."""
    both = combine((before, after.evidence), settings)
    if after.keeps:
        return both
    return Consent(both.access, both.use, both.gate, store=False, export=False, evidence=both.evidence)


def given_files(
    url: str,
    at: float,
    settings: OptoutSettings,
    *,
    robots: str | bytes | None = None,
    robots_status: int = 200,
    tdmrep: str | bytes | None = None,
    ai_txt: str | bytes | None = None,
    rsl: str | bytes | Mapping[str, str | bytes] | None = None,
) -> AuthorityFiles:
    """Bodies at hand as the authority files of `url`, as if each had just been fetched whole from its own place."""

    def file(kind: Kind, path: str, body: str | bytes | None) -> FileState | None:
        if body is None:
            return None
        return classify_file(
            kind,
            200,
            None,
            0,
            (),
            as_bytes(body),
            truncated=False,
            settings=settings,
            url=fetch_url(path, url) or path,
            read_at=at,
        )

    robots_state = None
    if robots is not None or robots_status != 200:
        robots_state = classify_robots(
            robots_status,
            None,
            0,
            (),
            as_bytes(robots or b""),
            truncated=False,
            settings=settings,
            url=fetch_url("/robots.txt", url) or "robots.txt",
            read_at=at,
        )
    documents = rsl if isinstance(rsl, Mapping) else {} if rsl is None else {"": rsl}
    return AuthorityFiles(
        robots=robots_state,
        tdmrep=file(Kind.TDMREP, "/.well-known/tdmrep.json", tdmrep),
        ai_txt=file(Kind.AI_TXT, "/ai.txt", ai_txt),
        rsl=tuple(state for where, body in documents.items() if (state := _document(where, body, settings, at))),
    )


def _document(where: str, body: str | bytes, settings: OptoutSettings, at: float) -> FileState:
    return classify_file(Kind.RSL, 200, None, 0, (), as_bytes(body), truncated=False, settings=settings, url=where, read_at=at)
