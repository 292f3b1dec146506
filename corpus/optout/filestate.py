"""What came of asking an authority for one of its statement files: four outcomes, from a table, never an exception.

`ok`: a body to read. `absent`: the authority makes no such statement. `denied`: it will not say, which is a no.
`unreachable`: nobody knows, so nothing is asked for now. Nothing here turns a failure into a permission, and no
failure becomes one by growing old. Source: RFC 9309 2.3.1; the stricter choices are ours.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

from corpus.model import Kind
from corpus.optout.challenge import Headers, challenge_page, challenged, looks_like_markup
from corpus.optout.lines import CAP_BYTES
from corpus.optout.settings import OptoutSettings

HOPS_MAX = 5
"""Redirects of a robots.txt that are followed (RFC 9309 2.3.1.2 asks for at least five)."""
_DENIED = frozenset({401, 403, 451})
_WAITS = frozenset({408, 425, 429})
_DEFAULT = OptoutSettings()


@dataclass(frozen=True, slots=True)
class FileState:
    """The latest state of one file. `body` is content-decoded; `digest` its SHA-256 (hex), empty without a body.

    `url` is where it was asked for (the authority's own address, not where redirects led); `status` None means that no
    answer came at all; `read_at` and `unreachable_since` are epoch seconds.
    """

    outcome: str
    status: int | None = None
    body: bytes = b""
    digest: str = ""
    read_at: float | None = None
    url: str = ""
    truncated: bool = False
    detail: str = ""
    unreachable_since: float | None = None


def file_state(body: bytes, *, url: str = "", read_at: float | None = None, status: int = 200, detail: str = "") -> FileState:
    """A file that was read. Past the cap only what the readers will see is kept, and the digest is of the whole."""
    digest = hashlib.sha256(body).hexdigest()
    return FileState("ok", status, body[: CAP_BYTES + 1], digest, read_at, url, len(body) > CAP_BYTES, detail)


def classify_robots(
    status: int | None,
    failure: str | None,
    hops: int,
    headers: Headers,
    body: bytes,
    truncated: bool | str,
    *,
    settings: OptoutSettings = _DEFAULT,
    url: str = "",
    read_at: float | None = None,
) -> FileState:
    """RFC 9309 2.3.1 as a table. `failure` names a network error; `truncated` is a transfer that broke off.

    A body cut by the caller's own cap is whole as far as we read (`lines.CAP_BYTES`), so long as the cap is not smaller.
    """
    outcome, detail = _outcome(status, failure, hops, tuple(headers), body, bool(truncated))
    if outcome == "denied" and detail.startswith("status") and settings.robots_denied == "allow":
        outcome = "absent"
    if outcome == "ok":
        return replace(file_state(body, url=url, read_at=read_at, status=status or 200), detail=detail)
    return FileState(outcome, status, read_at=read_at, url=url, detail=detail)


def classify_file(
    kind: Kind,
    status: int | None,
    failure: str | None,
    hops: int,
    headers: Headers,
    body: bytes,
    truncated: bool | str,
    *,
    settings: OptoutSettings = _DEFAULT,
    url: str = "",
    read_at: float | None = None,
) -> FileState:
    """The same for tdmrep.json, ai.txt and RSL documents. They state use, not access: a 4xx or a loop says nothing.

    (An RSL document that is absent is read by `rsl.py` as what the protocol says it is: no licence.)
    """
    headers = tuple(headers)
    if kind is Kind.ROBOTS:
        return classify_robots(status, failure, hops, headers, body, truncated, settings=settings, url=url, read_at=read_at)
    outcome, detail = _outcome(status, failure, hops, headers, body, bool(truncated))
    if outcome == "denied":
        outcome = "absent"
    if outcome != "ok":
        return FileState(outcome, status, read_at=read_at, url=url, detail=detail)
    if kind is Kind.RSL and not _may_be_rsl(headers, body):
        detail = NOT_RSL
    return replace(file_state(body, url=url, read_at=read_at, status=status or 200), detail=detail)


NOT_RSL = "not-rsl"
"""`detail` of an RSL state whose answer is an ordinary page."""


def _may_be_rsl(headers: Headers, body: bytes) -> bool:
    types = [value.lower() for name, value in headers if name.lower() == "content-type"]
    html = any("html" in value for value in types)
    return b"<rsl" in body or b"rslstandard.org/rsl" in body or not (html or (body and not looks_like_markup(body)))


def _outcome(
    status: int | None, failure: str | None, hops: int, headers: Headers, body: bytes, truncated: bool
) -> tuple[str, str]:
    if hops > HOPS_MAX:
        return "denied", "redirects"
    if status is None or failure == "challenge":
        return "unreachable", failure or "no answer"
    if wall := challenged(headers):
        return "unreachable", f"challenge ({wall})"
    if status in _DENIED:
        return "denied", f"status {status}"
    if 400 <= status < 500 and status not in _WAITS:
        return "absent", f"status {status}"
    if not 200 <= status < 300 or status == 206:
        return "unreachable", f"status {status}"
    if failure is not None or (truncated and len(body) < CAP_BYTES):
        return "unreachable", failure or "truncated"
    if challenge_page(body):
        return "unreachable", "challenge page"
    return "ok", ""


KEPT_MAX_S = 30 * 86_400.0


def governing(fresh: FileState, kept: FileState | None, at: float) -> FileState:
    """Which of two states binds: the fresh one, unless it is unreachable and a copy read within 30 days is at hand.

    RFC 9309 2.4 lets a copy older than a day stand only while the file is unreachable.
    """
    if fresh.outcome != "unreachable" or kept is None or kept.outcome != "ok":
        return fresh
    return kept if kept.read_at is not None and at - kept.read_at <= KEPT_MAX_S else fresh
