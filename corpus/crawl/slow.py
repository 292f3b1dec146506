"""An operator's order to go slower: the gap a host has earned, stretched by a factor. Pure; it never shortens a wait.

The pace itself stays what the host has earned, so that the order leaves no trace once it is lifted.
"""

from __future__ import annotations

from dataclasses import replace

from corpus.crawl.pace import domain_gap_s, limits, pace_of
from corpus.crawl.ports import Due, HostRow
from corpus.crawl.settings import CrawlSettings


def slowed(row: HostRow, factor: float, settings: CrawlSettings) -> HostRow:
    """The row whose clocks, counted from the end of its last contact, run at least `factor` gaps (or Crawl-delays)."""
    if factor <= 1.0:
        return row
    base = max(pace_of(row, limits(row.host, settings, row.ips)).gap_s, row.crawl_delay_s or 0.0)
    due = Due(row.due.set_at, max(row.due.wait_s, factor * base))
    domain = Due(row.domain_due.set_at, max(row.domain_due.wait_s, factor * domain_gap_s(base, settings)))
    return replace(row, due=due, domain_due=domain)


def rest_s(row: HostRow, factor: float, settings: CrawlSettings, wall: float) -> float:
    """How much longer a host whose turn has come must rest under this factor; 0.0 when it may be asked now."""
    if factor <= 1.0 or row.due.set_at <= 0.0:
        return 0.0
    return slowed(row, factor, settings).due.remaining(wall)
