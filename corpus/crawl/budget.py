"""Budgets as pure decisions: how much of a host and of a registered domain may be asked for.

A budget counts page contacts (authority files and sitemaps are free: they are how we learn what we may do). An absent
setting is no limit. Nothing here remembers anything; the counts are arguments.
"""

from __future__ import annotations

from corpus.crawl.settings import CrawlSettings


def pages_left(host_pages: int, domain_pages: int, settings: CrawlSettings) -> int:
    """How many more pages of this host may be asked for; never negative. In-flight pages belong into the counts."""
    left = settings.max_pages_per_host - host_pages
    if settings.max_pages_per_domain is not None:
        left = min(left, settings.max_pages_per_domain - domain_pages)
    return max(left, 0)


def exhausted(host_pages: int, domain_pages: int, settings: CrawlSettings) -> str:
    """The reason code under which the rest of a host is excluded, or empty while it has budget."""
    if host_pages >= settings.max_pages_per_host:
        return "host-budget"
    if settings.max_pages_per_domain is not None and domain_pages >= settings.max_pages_per_domain:
        return "domain-budget"
    return ""


YIELD_START, YIELD_PER_LINKER, YIELD_PER_NEW = 1_000, 200, 2
"""A registered domain may have so many pages at first, more for each other domain that links to it, and twice as many
as the pages that had something new to say: a site of which half is new never meets this budget."""
_WINDOW, _WINDOW_LEAST = 64, 16


def grows(recent: int, judged: int) -> bool:
    """Whether a domain's budget still grows with what is new. `recent`: of its last 64 pages one bit each, newest lowest,
    set where the page was a copy; it stops while more than half of them are."""
    seen = min(judged, _WINDOW)
    return seen < _WINDOW_LEAST or (recent & ((1 << seen) - 1)).bit_count() * 2 <= seen


def allowance(novel: int, linkers: int) -> int:
    """Pages that a domain may have. `linkers`: a bit for each (hashed) other domain that links to it."""
    return YIELD_START + YIELD_PER_LINKER * linkers.bit_count() + YIELD_PER_NEW * novel


def spent_up(judged: int, novel: int, linkers: int) -> bool:
    """Whether a domain has used the budget that it earned by its yield."""
    return judged >= allowance(novel, linkers)
