"""Politeness groups: a registered domain or an address, with its clock, its cap and the hosts that wait for it.

A group exists only while it has something to remember (a contact in flight, a clock that still runs, hosts waiting);
an idle one carries no information and is swept away. Pure: time is an argument.
"""

from __future__ import annotations

import ipaddress
from collections import deque
from dataclasses import dataclass, field
from heapq import heappop, heappush

from corpus.crawl.cdn import V6_FLAG, CdnTable, ip_key
from corpus.crawl.pace import PUBLIC_FLOOR_S, all_private
from corpus.crawl.settings import CrawlSettings

SWEEP_AT = 1024
"""Nothing is swept while fewer than this many groups (or idle hosts) are remembered."""

Waiter = tuple[int, int]
"""(host number, stamp): stale once the host's stamp has moved on."""


@dataclass(slots=True, eq=False)
class Group:
    """`cap` contacts at once; with `gap_s` not None the next contact starts that long after the end of the last."""

    cap: int = 1
    gap_s: float | None = 0.0
    in_flight: int = 0
    free_at: float = 0.0
    timer: bool = False
    """Whether a timer is running that will serve the waiters."""
    waiters: deque[Waiter] = field(default_factory=deque)

    def open(self, now: float) -> bool:
        """Whether a contact may begin now."""
        return self.in_flight < self.cap and self.free_at <= now

    def release(self, now: float, gap_s: float | None) -> None:
        """End a contact; `gap_s` None leaves the clock alone (no contact was made, or the group has no clock)."""
        self.in_flight -= 1
        if gap_s is not None:
            self.free_at = max(self.free_at, now + gap_s)

    def idle(self, now: float) -> bool:
        return not self.in_flight and not self.waiters and not self.timer and self.free_at <= now


@dataclass(slots=True, eq=False)
class Flight:
    """One held or running contact of a host, with the groups it holds; `key` is its address group's key, 0 for none."""

    domain: Group | None
    address: Group | None
    key: int
    begun: bool = False


class Groups:
    """All groups that remember something, and one timer for each that has hosts waiting and room for one."""

    def __init__(self, settings: CrawlSettings, cdn: CdnTable) -> None:
        self._settings, self._cdn = settings, cdn
        self._cdn_seen: set[int] = set()
        self._domains: dict[str, Group] = {}
        self._addresses: dict[int, Group] = {}
        self._timers: list[tuple[float, int, Group]] = []
        self._timer_seq = 0
        self._sweep_at = SWEEP_AT

    def __len__(self) -> int:
        return len(self._domains) + len(self._addresses)

    def domain(self, name: str) -> Group:
        group = self._domains.get(name)
        if group is None:
            group = self._domains[name] = Group()
        return group

    def address(self, key: int, ip: str = "") -> Group:
        """The group of an address: a clock, or (a CDN's) a cap. `ip` absent: remembered by its key from an earlier run."""
        group = self._addresses.get(key)
        if group is None:
            ip = ip or str(ipaddress.IPv4Address(key) if key < V6_FLAG else ipaddress.IPv6Address(key << 64))
            gap_s = self._settings.ip_gap_s
            if gap_s < PUBLIC_FLOOR_S and not all_private((ip,), self._settings):
                gap_s = PUBLIC_FLOOR_S
            edge = key in self._cdn_seen or bool(self._cdn.name(ip))
            group = self._addresses[key] = Group(self._settings.ip_slots, None) if edge else Group(1, gap_s)
        return group

    def mark_cdn(self, ip: str) -> None:
        key = ip_key(ip)
        if key in self._cdn_seen:
            return
        self._cdn_seen.add(key)
        group = self._addresses.get(key)
        if group is not None:
            group.cap, group.gap_s, group.free_at = self._settings.ip_slots, None, 0.0

    def serve(self, group: Group, now: float) -> None:
        """See to it that whoever waits for a group with room is tried once its clock has run out."""
        if group.waiters and not group.timer and group.in_flight < group.cap:
            group.timer = True
            self._timer_seq += 1
            heappush(self._timers, (max(group.free_at, now), self._timer_seq, group))

    def next_timer(self) -> float | None:
        return self._timers[0][0] if self._timers else None

    def pop_timer(self) -> Group:
        """The group whose timer is first; the timer is over."""
        group = heappop(self._timers)[2]
        group.timer = False
        return group

    def sweep(self, now: float) -> None:
        """Forget groups that have nothing to remember, whenever their number has doubled."""
        if len(self) > self._sweep_at:
            self._domains = {name: group for name, group in self._domains.items() if not group.idle(now)}
            self._addresses = {key: group for key, group in self._addresses.items() if not group.idle(now)}
            self._sweep_at = 2 * len(self) + SWEEP_AT
