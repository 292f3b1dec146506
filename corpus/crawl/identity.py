"""Who we are on the wire: the request headers, all of them, and nothing else.

The crawler says its name and how to reach its operator in every request, sends no cookies, and asks only with GET.
Pure: settings and a request in, header pairs out. Values that came from a server (ETag, Last-Modified) are vetted,
because a header must never be able to carry a second one.
"""

from __future__ import annotations

import re
from functools import lru_cache

from corpus.crawl.ports import Request
from corpus.crawl.settings import CrawlSettings
from corpus.model import Kind
from corpus.version import __version__

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_MAILBOX = re.compile(r"(?:mailto:)?([^\s@<>()\",;:]+@[^\s@<>()\",;:]+\.[^\s@<>()\",;:]+)\Z", re.IGNORECASE)
_CONDITIONAL = {"if-none-match": "If-None-Match", "if-modified-since": "If-Modified-Since"}
_FIELD_VALUE = re.compile(r"[\x20-\x7e\x80-\xff]{1,1000}\Z")

_ACCEPT: dict[Kind, str] = {
    Kind.PAGE: "",  # made from `content_types`
    Kind.SITEMAP: "application/xml,text/xml,text/plain,application/gzip,*/*;q=0.5",
    Kind.ROBOTS: "text/plain,*/*;q=0.5",
    Kind.TDMREP: "application/json,*/*;q=0.5",
    Kind.AI_TXT: "text/plain,*/*;q=0.5",
    Kind.RSL: "application/rsl+xml,application/xml,text/xml,*/*;q=0.5",
}
assert set(_ACCEPT) == set(Kind), "every kind of request needs an Accept header"


def mailbox(contact: str) -> str | None:
    """The address when `contact` is a mailbox (with or without `mailto:`), else None."""
    found = _MAILBOX.match(contact.strip())
    return found[1] if found else None


def user_agent(settings: CrawlSettings) -> str:
    """`CorpusBot/<version> (+<contact>)`, or the operator's own text."""
    if settings.user_agent:
        return _printable(settings.user_agent)
    contact = _printable(settings.contact)
    return f"{settings.robots_token}/{__version__} (+{contact})" if contact else f"{settings.robots_token}/{__version__}"


def identity_headers(settings: CrawlSettings) -> tuple[tuple[str, str], ...]:
    """User-Agent, and From when the contact is a mailbox: what every request of this crawl begins with."""
    sender = mailbox(settings.contact)
    who = (("User-Agent", user_agent(settings)),)
    return (*who, ("From", _printable(sender))) if sender else who


def accept(kind: Kind, content_types: tuple[str, ...]) -> str:
    """What a kind of request would like to get; anything else is still answered, at a low weight."""
    return _ACCEPT[kind] or ",".join((*content_types, "*/*;q=0.1"))


def request_headers(settings: CrawlSettings, request: Request) -> tuple[tuple[str, str], ...]:
    """Every header after Host, in the order sent."""
    return (
        *identity_headers(settings),
        ("Accept", accept(request.kind, settings.content_types)),
        ("Accept-Encoding", ACCEPT_ENCODING),
        *conditional(request.headers),
    )


def conditional(headers: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The two conditional headers a recrawl may send; others, and values that are not one line, are left out."""
    return tuple(
        (_CONDITIONAL[name.lower()], value)
        for name, value in headers
        if name.lower() in _CONDITIONAL and _FIELD_VALUE.match(value)
    )


@lru_cache(maxsize=64)
def _printable(text: str) -> str:
    """One line of ASCII: other characters are escaped, control characters dropped."""
    plain = text.encode("ascii", "backslashreplace").decode("ascii")
    return "".join(c for c in plain if " " <= c <= "~").strip()
