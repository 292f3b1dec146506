"""How long hosts are left alone when a process takes up their partition file: after a start, a crash, or another owner.

Pure: rows and times in, times out. Stored clocks count besides; what is said here covers what they cannot know.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from corpus.crawl.pace import PUBLIC_FLOOR_S, all_private, asked_for_s, limits, pace_of
from corpus.crawl.ports import HostRow
from corpus.crawl.settings import CrawlSettings


@dataclass(frozen=True, slots=True)
class Hold:
    """How a partition file was taken up. `begins`: monotonic time from which its hosts' gaps count; `clean`: its former owner ended
    in order."""

    begins: float
    clean: bool

    def until(self, row: HostRow, settings: CrawlSettings) -> float:
        """Monotonic time before which this host is not contacted."""
        return self.begins + restart_gap_s(row, settings, clean=self.clean)


def restart_gap_s(row: HostRow, settings: CrawlSettings, *, clean: bool) -> float:
    """How long after a start a host is left alone, beside what its stored clocks say.

    After an orderly end those are exact, and only addresses have no clock in the store. After a crash the last contact
    may have ended this very moment, unacknowledged, so its whole gap is waited for once more.
    """
    address = settings.ip_gap_s
    if address < PUBLIC_FLOOR_S and not all_private(row.ips, settings):
        address = PUBLIC_FLOOR_S
    if clean:
        return address
    bounds = limits(row.host, settings, row.ips)
    return max(row.pace_s, asked_for_s(pace_of(row, bounds), bounds, settings), bounds.start_s, address)


def rested(row: HostRow, settings: CrawlSettings, wall: float) -> HostRow:
    """The row of a host that was parked, once its time has come: it has been left alone, so it begins no slower than a
    host that a run waits for. (Else one whose gap has grown past `park_after` would be parked again after every answer.)"""
    if row.state != "parked" or row.due.remaining(wall) > 0:
        return row
    most = max(limits(row.host, settings, row.ips).start_s, settings.park_after / 2)
    return replace(row, state="active", reason="", pace_s=min(row.pace_s, most))
