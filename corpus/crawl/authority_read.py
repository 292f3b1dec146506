"""From the answer to an authority file's request to what is known of that authority. Pure.

The statuses are `optout.filestate`'s table; here stand the redirects, the second address of ai.txt, and when a file
must be read again.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin

from corpus.crawl.authority import PATHS
from corpus.crawl.desk import Errand
from corpus.crawl.ports import AuthorityRow
from corpus.crawl.settle import REDIRECTS
from corpus.model import Failed, FetchResult, Kind
from corpus.optout.filestate import HOPS_MAX, FileState, classify_file
from corpus.optout.settings import OptoutSettings
from corpus.url.canonical import fetch_url


@dataclass(frozen=True, slots=True)
class Follow:
    """Ask here next, for the same authority. `hops` counts redirects so far."""

    url: str
    hops: int


@dataclass(frozen=True, slots=True)
class Read:
    """The file's state. `body` is all of it as read (what its digest is of), empty unless `outcome` is ok."""

    outcome: str
    detail: str = ""
    state: FileState | None = None
    body: bytes = b""


AuthorityAnswer = Follow | Read


def read_answer(errand: Errand, result: FetchResult, settings: OptoutSettings) -> AuthorityAnswer:
    """What one answer says of the file. A redirect is followed up to the limit; ai.txt has a second address."""
    if isinstance(result, Failed):
        state = classify_file(
            errand.kind, result.status, result.failure.value, errand.hops, (), b"", truncated=False, settings=settings
        )
        return Read(
            "unreachable" if result.status is None else state.outcome, f"{result.failure.value}: {result.detail}"[:300], state
        )
    if result.status in REDIRECTS:
        target = fetch_url(_joined(errand.url, result.header("location") or ""))
        if target is None:
            return Read("unreachable", "a redirect without a usable target")
        if errand.hops < HOPS_MAX and target != errand.url:  # to itself: asking five times more would find the same
            return Follow(target, errand.hops + 1)
        return _classified(errand, result.status, HOPS_MAX + 1, b"", result.headers, "", settings)
    read = _classified(errand, result.status, errand.hops, result.decoded, result.headers, result.truncated, settings)
    if read.outcome == "absent" and errand.kind is Kind.AI_TXT and errand.url.endswith(PATHS[Kind.AI_TXT][0]) and not errand.hops:
        second = PATHS[Kind.AI_TXT][1]
        if not errand.url.endswith(second):
            return Follow(errand.authority + second, 0)
    return read


def _classified(
    errand: Errand,
    status: int,
    hops: int,
    body: bytes,
    headers: tuple[tuple[str, str], ...],
    truncated: str,
    settings: OptoutSettings,
) -> Read:
    # a body cut by our own size cap is whole as far as we read; only a broken transfer is not
    broken = truncated if truncated not in ("", "length") else ""
    state = classify_file(errand.kind, status, None, hops, headers, body, truncated=broken, settings=settings)
    return Read(state.outcome, state.detail, state, body if state.outcome == "ok" else b"")


def row_of(
    errand: Errand, answer: Read, wall: float, settings: OptoutSettings, *, pace_s: float, before: AuthorityRow | None = None
) -> AuthorityRow:
    """The row to remember: readable files for `robots_ttl`, unreadable ones until the host's pace (which trouble has
    already doubled) allows another try. `before` is what was known of the file so far."""
    state = answer.state
    wait = settings.robots_ttl if answer.outcome != "unreachable" else min(pace_s, settings.robots_ttl)
    url = asked_at(errand)
    since = None
    if answer.outcome == "unreachable":
        since = wall if before is None or before.unreachable_since is None else before.unreachable_since
    return AuthorityRow(
        errand.authority,
        errand.kind,
        answer.outcome,
        state.status if state else None,
        state.digest if state and answer.outcome == "ok" else "",
        wall,
        wall + wait,
        detail=answer.detail,
        url=url,
        truncated=state.truncated if state else False,
        unreachable_since=since,
    )


def asked_at(errand: Errand) -> str:
    """The file's own address, not where redirects led."""
    return errand.authority + PATHS[errand.kind][0] if errand.kind in PATHS else errand.first or errand.url


def _joined(base: str, location: str) -> str:
    try:
        return urljoin(base, location)
    except ValueError:
        return ""
