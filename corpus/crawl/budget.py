"""Budgets as pure decisions: how much of a host, a registered domain and a crawl may be asked for.

A budget counts page contacts (authority files and sitemaps are free: they are how we learn what we may do). An absent
setting is no limit. Nothing here remembers anything; the counts are arguments.
"""

from __future__ import annotations

from dataclasses import dataclass

from corpus.crawl.settings import CrawlSettings


@dataclass(frozen=True, slots=True)
class Spent:
    """What a crawl has used so far, over all its processes. `seconds` is run time, resumed runs added up."""

    pages: int = 0
    body_bytes: int = 0
    seconds: float = 0.0


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


def crawl_over(spent: Spent, settings: CrawlSettings) -> str:
    """The setting whose limit ends the crawl (`max_pages`, `max_bytes`, `max_time`), or empty while it may go on."""
    if settings.max_pages is not None and spent.pages >= settings.max_pages:
        return "max_pages"
    if settings.max_bytes is not None and spent.body_bytes >= settings.max_bytes:
        return "max_bytes"
    if settings.max_time is not None and spent.seconds >= settings.max_time:
        return "max_time"
    return ""


def crawl_pages_left(spent: Spent, in_flight: int, settings: CrawlSettings) -> int | None:
    """How many more pages may be started now, so that those in flight do not overrun `max_pages`; None for no limit."""
    if settings.max_pages is None:
        return None
    return max(settings.max_pages - spent.pages - in_flight, 0)
