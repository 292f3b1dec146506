"""What must happen before a URL may be asked for, or what settles it without being asked: orders, budgets, consent.

Judged at the moment of taking, from what is in memory: nothing here makes a request or waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from corpus.crawl.authority import Ask, AuthorityBook, Decided, Wait
from corpus.crawl.budget import exhausted
from corpus.crawl.contact import Claims
from corpus.crawl.desk import Desk
from corpus.crawl.discover import Router
from corpus.crawl.errands import Post
from corpus.crawl.hosts import Hosts
from corpus.crawl.ports import Clock, QueuedUrl, Resolver, Settled, Transport
from corpus.crawl.quota import Quota
from corpus.crawl.settings import CrawlSettings, RecrawlSettings
from corpus.model import Gate, Kind, UrlState
from corpus.optout.decide import deciding, reason_of
from corpus.optout.settings import OptoutSettings


@dataclass(frozen=True, slots=True)
class VisitTools:
    """Everything a visit needs from elsewhere."""

    settings: CrawlSettings
    optout: OptoutSettings
    book: AuthorityBook
    router: Router
    transport: Transport
    resolver: Resolver
    clock: Clock
    blocked: Callable[[str], str]
    """The reason code that an operator's order gives a URL, or empty."""
    recrawl: RecrawlSettings | None = None
    """When visited URLs fall due again; None: never."""
    only: Kind | None = None
    """Take URLs of this kind and leave all others in line (a consent refresh)."""
    claims: Claims | None = None
    """Absent: nobody else contacts anything from this machine."""
    post: Post | None = None
    paused: Callable[[], bool] = lambda: False
    """Whether the operator wants nobody to be contacted now; asked before every take."""
    qualities: Callable[[], Mapping[str, float]] = dict
    """What processing found of hosts since it was last asked (`priority.host_quality`); called in the store thread."""
    slower: Callable[[str], float] = lambda host: 1.0
    """By which factor the operator wants a host's gap stretched; at least 1."""


@dataclass(frozen=True, slots=True)
class Spent:
    """The host's page budget is used up, for this reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Starving:
    """The crawl's page budget has no room for one more page now."""


Judgement = QueuedUrl | Settled | Ask | Wait | Spent | Starving
"""The URL itself when it may be asked for (a new page then holds its place in the quota)."""


class Judge:
    """For one loop."""

    def __init__(self, tools: VisitTools, hosts: Hosts, quota: Quota) -> None:
        self._tools, self._hosts, self._quota = tools, hosts, quota

    def judge(self, desk: Desk, queued: QueuedUrl) -> Judgement:
        """The URL itself when it may be asked; else what settles it, or what must come first."""
        order = self._tools.blocked(queued.url)
        if order:
            state = UrlState.REFUSED if order == "operator-list" else UrlState.EXCLUDED
            return Settled(queued.url, state, order, attempts=queued.attempts)
        if is_new_page(queued) and (reason := exhausted(desk.row.pages, self._hosts.domain_pages(desk), self._tools.settings)):
            # one that was asked for before and never stored leaves alone: `Spent` takes no revisits out of line
            return Settled(queued.url, UrlState.EXCLUDED, reason, attempts=queued.attempts) if queued.again else Spent(reason)
        if is_new_page(queued) and (reason := self._tools.router.yields.excludes(queued.url, desk.row.host, desk.row.domain)):
            return Settled(queued.url, UrlState.EXCLUDED, reason, attempts=queued.attempts)
        wall = self._tools.clock.wall()
        step = self._tools.book.step(queued, wall)
        if not isinstance(step, Decided):
            desk.authorities.add(step.authority)
            return step
        consent = step.consent
        if queued.kind is Kind.ROBOTS:  # it stands for its authority, whose files are all fresh now
            return Settled(queued.url, UrlState.FETCHED, attempts=queued.attempts, fetched_at=wall)
        if consent.gate is Gate.DEFER:
            return self._tools.book.unread(queued, wall)
        if consent.gate is Gate.FETCH:
            return queued if not is_new_page(queued) or self._quota.take() else Starving()
        item = deciding(consent)
        return Settled(
            queued.url,
            UrlState.REFUSED,
            reason_of(consent),
            attempts=queued.attempts,
            rule=item.raw if item else "",
            rule_line=item.line_no if item else None,
            authority_digest=item.file_digest if item else "",
            protocol=item.protocol if item else "",
        )


def is_new_page(queued: QueuedUrl) -> bool:
    """A page that this crawl has not stored yet: the budgets count those."""
    return queued.kind is Kind.PAGE and not queued.content_sha256
