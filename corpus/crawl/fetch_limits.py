"""How much of an answer is taken, and for how long. Pure tables and arithmetic; both transports obey them.

A server may be slow, endless or hostile: each fetch is freed by a bound that does not depend on the server. The
numbers that are not settings stand here with their reasons.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpus.crawl.settings import CrawlSettings
from corpus.model import Failure, Kind

POLICY_BODY = 512 * 1024
"""robots.txt must be read to 500 KiB (RFC 9309 §2.5); the rest of an authority file says nothing we may ignore."""
SITEMAP_BODY = 50 * 2**20
"""The sitemap protocol's own limit, uncompressed."""
REFUSAL_BODY = 64 * 1024
"""Of redirects and errors only the beginning is kept: enough for a notice or a challenge's mark."""
MIN_RATE = 512.0
"""Bytes a second that a body must bring on average, once `idle_s` has passed: a 24 kB page may take a minute."""
HEADER_COUNT = 128
HEADER_LINE = 16 * 1024
HEADER_TOTAL = 128 * 1024
"""The largest real header blocks (policies, cookies) stay below 64 KiB."""
PROBE_AT = 256 * 1024
"""An encoded body is decoded for the first time at this many wire bytes, and again at each doubling."""

_POLICY_KINDS = frozenset({Kind.ROBOTS, Kind.TDMREP, Kind.AI_TXT, Kind.RSL})
assert {Kind.PAGE, Kind.SITEMAP} | _POLICY_KINDS == set(Kind), "every kind of request needs a size limit"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one fetch: seconds and bytes. `max_body` bounds decoded bytes, and wire bytes too."""

    connect_s: float
    first_byte_s: float
    idle_s: float
    total_s: float
    max_body: int
    max_ratio: int


def limits_for(settings: CrawlSettings, kind: Kind, status: int = 200) -> Limits:
    """The bounds that hold for an answer of this status to a request of this kind."""
    return Limits(
        connect_s=settings.connect_timeout,
        first_byte_s=settings.first_byte_timeout,
        idle_s=settings.idle_timeout,
        total_s=settings.total_timeout,
        max_body=_max_body(settings, kind, status),
        max_ratio=settings.max_ratio,
    )


def _max_body(settings: CrawlSettings, kind: Kind, status: int) -> int:
    if not 200 <= status < 300:
        return min(REFUSAL_BODY, settings.max_body)
    if kind in _POLICY_KINDS:
        return POLICY_BODY
    if kind is Kind.SITEMAP:
        return max(SITEMAP_BODY, settings.max_body)
    return settings.max_body


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time (same clock as the arguments it was made from) and what it means to pass it."""

    at: float
    failure: Failure
    detail: str


def head_deadline(limits: Limits, started: float, connected: float | None) -> Deadline:
    """Until when the connection (`connected` is None) or else the whole header block must be there."""
    total = started + limits.total_s
    part = started + limits.connect_s if connected is None else connected + limits.first_byte_s
    if total < part:
        return Deadline(total, Failure.TIMEOUT, f"no answer within {limits.total_s:g} s")
    if connected is None:
        return Deadline(part, Failure.TIMEOUT, f"no connection within {limits.connect_s:g} s")
    return Deadline(part, Failure.TIMEOUT, f"no header within {limits.first_byte_s:g} s")


def body_deadline(limits: Limits, started: float, head_at: float, now: float, received: int) -> Deadline:
    """Until when the next bytes of the body must be there, given what came since the header at `head_at`."""
    idle, slow, total = now + limits.idle_s, head_at + limits.idle_s + received / MIN_RATE, started + limits.total_s
    if idle <= slow and idle <= total:
        return Deadline(idle, Failure.TIMEOUT, f"silent for {limits.idle_s:g} s")
    if slow <= total:
        return Deadline(slow, Failure.TOO_SLOW, f"slower than {MIN_RATE:g} B/s")
    return Deadline(total, Failure.TOO_SLOW, f"not done within {limits.total_s:g} s")


def essence(content_type: str | None) -> str:
    """`Text/HTML; charset=x` → `text/html`."""
    return (content_type or "").partition(";")[0].strip().lower()


def wanted(kind: Kind, status: int, content_type: str | None, content_types: tuple[str, ...]) -> bool:
    """Is the body worth reading? Only a successful answer to a page request can be refused for its type; an answer
    without a Content-Type is read."""
    kind_of = essence(content_type)
    return kind is not Kind.PAGE or not 200 <= status < 300 or not kind_of or kind_of in content_types
