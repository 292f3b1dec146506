"""What a simulated host is like: nouns only. `web_policy`, `web_pages` and `web_hostile` give them their answers.

Names under `.test` are nobody's; each host has an address of its own in 127.0.0.0/8 unless it is told to share one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum

from corpus.model import UrlState
from corpus.testing.web_answer import Answer, Ask, Name
from corpus.testing.web_text import LANGUAGES


class Robots(StrEnum):
    """What a host's robots.txt does."""

    OPEN = "open"
    MISSING = "missing"
    GONE = "gone"
    PART = "part"
    ALL = "all"
    NAMED = "named"
    GROUPS = "groups"
    BOM_CR = "bom-cr"
    HUGE = "huge"
    DELAY = "delay"
    LONG_DELAY = "long-delay"
    AI_PEERS = "ai-peers"
    SIGNAL_NO = "signal-no"
    SIGNAL_YES = "signal-yes"
    USAGE_NO = "usage-no"
    RSL = "rsl"
    FORBIDDEN = "forbidden"
    UNAVAILABLE = "unavailable"
    RECOVERS = "recovers"
    THROTTLED = "throttled"
    SILENT = "silent"
    RESET = "reset"
    REDIRECT = "redirect"
    REDIRECT_LOOP = "redirect-loop"
    REDIRECT_PRIVATE = "redirect-private"
    CHALLENGE = "challenge"


class Trait(StrEnum):
    """A family of special pages on a host, linked from its index."""

    SITEMAP = "sitemap"
    REDIRECTS = "redirects"
    STATUSES = "statuses"
    RECOVERS = "recovers"
    CHARSETS = "charsets"
    CODINGS = "codings"
    TYPES = "types"
    COPIES = "copies"
    CONDITIONAL = "conditional"
    OPTOUT_PAGES = "optout-pages"
    TDMREP = "tdmrep"
    AI_TXT = "ai-txt"
    SLOW = "slow"
    BROKEN = "broken"
    BOMBS = "bombs"
    CALENDAR = "calendar"
    LOOPING_PATH = "looping-path"
    SESSIONS = "sessions"
    SLUGS = "slugs"


@dataclass(frozen=True, slots=True)
class Throttle:
    """Answer 429 (or `status`) after every `after` contacts, until `wait_s` have passed since the first refusal.

    `form`: `seconds`, `date`, `past` (a date gone by) or `none` (no Retry-After). A contact inside the wait is tagged
    `early` in the log.
    """

    after: int = 3
    wait_s: float = 1.0
    form: str = "seconds"
    status: int = 429


@dataclass(frozen=True, slots=True)
class SimHost:
    """One host. `pages` ordinary pages `/p/0001` … of about `page_bytes` characters with `links` links each."""

    name: str
    address: str
    language: str = "en"
    pages: int = 6
    robots: Robots = Robots.OPEN
    traits: tuple[Trait, ...] = ()
    page_bytes: int = 2_500
    links: int = 5
    latency_s: float = 0.0
    drip: tuple[int, float] = (0, 0.0)
    """Bytes per piece of a page's body, and the pause before each; (0, …): all at once."""
    crawl_delay_s: float = 1.0
    throttle: Throttle | None = None
    dns: Name | None = None
    """Absent: the address. An address refused by policy, an error or silence go here."""
    down: bool = False
    """Nobody listens: connections are refused."""


Respond = Callable[[Ask], Answer]


@dataclass(frozen=True, slots=True)
class Page:
    """One path of a host: its answer, and what a crawl with default settings must make of it.

    `reasons` are the codes of `corpus.reasons` that may stand beside `state`; empty when none must.
    """

    respond: Respond
    state: UrlState = UrlState.FETCHED
    reasons: tuple[str, ...] = ()
    linked: bool = True
    """Linked from the host's index; otherwise something else (a sitemap, a redirect) leads there."""
    requested: bool = True
    """False: a polite crawl never asks for it."""


def address_of(number: int) -> str:
    """The n-th address used for hosts: 127.1.0.1 onwards."""
    return f"127.{1 + number // 62_500 % 250}.{number // 250 % 250}.{number % 250 + 1}"


def plain_hosts(
    count: int, pages: int, *, page_bytes: int = 2_500, links: int = 5, by_address: bool = False
) -> tuple[SimHost, ...]:
    """`count` well-behaved hosts on addresses of their own; `by_address` names them by it, so that no DNS is needed."""
    return tuple(
        SimHost(
            name=address_of(n) if by_address else f"site{n:04d}.test",
            address=address_of(n),
            language=LANGUAGES[n % len(LANGUAGES)],
            pages=pages,
            page_bytes=page_bytes,
            links=links,
        )
        for n in range(count)
    )


def zoo() -> tuple[SimHost, ...]:
    """One host for every kind of robots.txt and one for every family of pages, and the throttled, slow and lost ones."""
    hosts = [SimHost(f"robots-{kind.value}.test", "", robots=kind) for kind in Robots]
    hosts += [SimHost(f"{trait.value}.test", "", traits=(trait,)) for trait in Trait]
    hosts += [SimHost(f"throttle-{f}.test", "", throttle=Throttle(form=f), pages=8) for f in ("seconds", "date", "past", "none")]
    hosts += [SimHost("refuses.test", "", down=True), SimHost("late.test", "", latency_s=0.2)]
    lost = {
        "nxdomain": Name(rcode=3),
        "servfail": Name(rcode=2),
        "blackhole": Name(silent=True),
        "private": Name(("10.0.0.1",)),
        "metadata": Name(("169.254.169.254",)),
        "mapped": Name(("::ffff:10.0.0.1",)),
    }
    hosts += [SimHost(f"{name}.test", "", dns=dns) for name, dns in lost.items()]
    return tuple(replace(h, address=address_of(n), language=LANGUAGES[n % len(LANGUAGES)]) for n, h in enumerate(hosts))
