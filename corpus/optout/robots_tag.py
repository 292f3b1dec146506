"""X-Robots-Tag headers and robots meta elements: directives, whom they address, and what they decide.

A value is a list split at commas and blanks, in any case. `token:` addresses the rest of its value to one agent;
directives that take a value (`max-snippet:0`, `unavailable_after: date`) hold a colon and address nobody. Several
values are united and the most restrictive wins. Nothing here grants anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from corpus.model import Evidence
from corpus.optout.agents import Peers
from corpus.optout.evidence import Origin, stated
from corpus.optout.settings import OptoutSettings

VALUE_MAX = 65_536
_WORD = re.compile(r"[\s,;]*([^\s,:;]+)(\s*:)?")
_ARGUMENT = re.compile(r"\s*[^\s,]*")
_EXPIRY = frozenset({"unavailable_after", "unavailable-after"})
_VALUED = frozenset({"max-snippet", "max-image-preview", "max-video-preview"}) | _EXPIRY
_DATE = re.compile(
    r"\s*(\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2})?(?:\.\d{1,9})?)?\s?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})?"
    r"|(?:[A-Za-z]{3,9},?\s{1,3})?\d{1,2}[-\s][A-Za-z]{3,9}[-\s,]{1,2}\d{2,4}(?:\s{1,3}\d{1,2}:\d{2}(?::\d{2})?)?\s?(?:[A-Z]{1,5}\b|[+-]\d{4})?"
    r"|[A-Za-z]{3},?\s{1,3}[A-Za-z]{3}\s{1,3}\d{1,2}\s\d{1,2}:\d{2}:\d{2}\s\d{4})"
)
_EVERYONE = frozenset({"", "*", "robots", "all", "any"})
_NEAR_MISSES = {
    "no-ai": "noai",
    "no_ai": "noai",
    "noai-train": "noai",
    "noaitrain": "noai",
    "no-ml": "noml",
    "no_ml": "noml",
    "no-index": "noindex",
    "no-archive": "noarchive",
}
_PLAIN = frozenset(
    {"noai", "noml", "noindex", "none", "noarchive", "nocache", "noimageai", "nofollow", "nosnippet", "noimageindex"}
)


class Tag(NamedTuple):
    """One header value or meta content. `agent`: whom the carrier itself addresses (a meta element's name), or empty."""

    value: str
    source: str
    agent: str = ""


class TagReading(NamedTuple):
    """`drop_at`: the earliest future date after which the page asks not to be available (epoch seconds)."""

    evidence: tuple[Evidence, ...]
    follow: bool
    images: bool
    drop_at: float | None
    expired: bool


class Directive(NamedTuple):
    agent: str
    word: str
    argument: str


def directives(value: str, agent: str = "") -> Iterator[Directive]:
    """Every directive of a value with the agent it addresses (lower case; empty: everyone)."""
    value = value[:VALUE_MAX]
    at = 0
    while match := _WORD.match(value, at):
        at = match.end()
        word = match[1].lower()
        if word in _VALUED:
            date = _DATE.match(value, at) if word in _EXPIRY else None
            argument = date or _ARGUMENT.match(value, at)
            at = argument.end() if argument else at
            yield Directive(agent, word, argument[0].strip() if argument else "")
        elif match[2] and _NEAR_MISSES.get(word, word) not in _PLAIN:
            agent = word
        else:
            yield Directive(agent, word, "")


def read_tags(tags: Iterable[Tag], at: float, token: str, peers: Peers, settings: OptoutSettings) -> TagReading:
    """What all robots directives of one response decide about it at `at` (epoch seconds)."""
    own = _EVERYONE | {token.lower()}
    evidence: dict[Evidence, None] = {}
    by_peer: dict[str, list[Evidence]] = {}
    follow = images = True
    expired, drop_at = False, None
    for tag in tags:
        for item in directives(tag.value, tag.agent.lower()):
            word = _NEAR_MISSES.get(item.word, item.word) if settings.near_miss else item.word
            expiry = epoch_of(item.argument) if word in _EXPIRY else None
            value = _value_of(word, expiry, at, settings)
            if not value:
                continue
            said = _said(value, tag, item, at)
            if item.agent in own:
                evidence[said] = None
                follow = follow and word not in {"nofollow", "none"}
                images = images and word not in {"noimageai", "noai"}
                expired = expired or value == "expired"
                if value == "expires" and expiry is not None:
                    drop_at = expiry if drop_at is None else min(drop_at, expiry)
            elif item.agent in peers.names and said.verdict == "no":
                by_peer.setdefault(item.agent, []).append(said)
    if len(by_peer) >= peers.quorum:
        evidence.update(dict.fromkeys(said for found in by_peer.values() for said in found))
    return TagReading(tuple(evidence), follow, images, drop_at, expired)


def _value_of(word: str, expiry: float | None, at: float, settings: OptoutSettings) -> str:
    """The value of the decision table; empty for what says nothing to a corpus."""
    if word in _EXPIRY:
        return "noted" if expiry is None else "expired" if expiry <= at else "expires"
    switched_off = (word in {"noindex", "none"} and not settings.noindex) or (
        word in {"noarchive", "nocache"} and not settings.noarchive
    )
    if switched_off:
        return "nofollow" if word == "none" else "noted"
    if word in {"nosnippet", "noimageindex", "max-snippet"}:
        return "noted"
    return word if word in _PLAIN else ""


def _said(value: str, tag: Tag, item: Directive, at: float) -> Evidence:
    protocol = "meta-robots" if tag.source == "meta" else "x-robots-tag"
    name = f"<meta {tag.agent or 'robots'}>" if tag.source == "meta" else "X-Robots-Tag:"
    return stated(
        "page-robots",
        value,
        Origin(tag.source, read_at=at),
        raw=f"{name} {tag.value.strip()}",
        agent=item.agent,
        protocol=protocol,
    )


def expired_by(item: Evidence, at: float) -> bool:
    """Whether a statement kept from an earlier reading holds an `unavailable_after` date that has passed by `at`."""
    if item.verdict == "no" or item.protocol not in {"x-robots-tag", "meta-robots"}:
        return False
    in_meta = item.protocol == "meta-robots"
    value = item.raw.partition(">" if in_meta else ":")[2]
    found = directives(value, item.agent if in_meta else "")
    dates = [epoch_of(each.argument) for each in found if each.word in _EXPIRY and each.agent == item.agent]
    return any(date is not None and date <= at for date in dates)


def epoch_of(text: str) -> float | None:
    """Epoch seconds of an ISO 8601 or RFC 822-like date; without a zone it is UTC; None when unreadable."""
    words = text.strip()
    try:
        if words[:4].isdigit() and words[4:5] == "-":
            iso = words.replace(" UTC", "Z").replace(" GMT", "Z").replace("UTC", "Z").replace("GMT", "Z").replace(" Z", "Z")
            date = datetime.fromisoformat(iso)
        else:
            date = parsedate_to_datetime(re.sub(r"(?<=[A-Za-z])-(?=\d)|(?<=\d)-(?=[A-Za-z])", " ", words))
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
