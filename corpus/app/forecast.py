"""How long a crawl takes, by the bound that holds it: politeness, capacity, a budget. A stated model; pure arithmetic.

A host that has earned its pace answers one contact a gap; a new one starts at `delay_start` and earns a twentieth of it
with each good answer, so its first contacts cost more. A registered domain and an address have one clock each. The crawl
ends when the slowest of them is through, when capacity is the bound, or at the first budget.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corpus.crawl.cdn import shipped
from corpus.crawl.pace import STEP, domain_gap_s
from corpus.crawl.settings import CrawlSettings

_FAR_S = 100 * 365 * 86_400.0
_STEPS = 60
"""Halvings until the end of a crawl is known to the second."""


@dataclass(frozen=True, slots=True)
class HostLoad:
    """`contacts`: pages and authority files still to be asked for. `gap_s`: where its pace is now; `floor_s`: where it leads."""

    host: str
    domain: str
    contacts: int
    gap_s: float
    floor_s: float
    ip: str = ""

    def seconds(self, start_s: float) -> float:
        """How long its own clock needs for all of them."""
        step = STEP * start_s
        slow = min(self.contacts, max(math.ceil((self.gap_s - self.floor_s) / step), 0) if step > 0 else 0)
        earned = slow * self.gap_s - step * slow * (slow - 1) / 2
        return earned + (self.contacts - slow) * self.floor_s

    def done(self, seconds: float, start_s: float) -> int:
        """How many of them fit into this time."""
        if self.seconds(start_s) <= seconds:
            return self.contacts
        step, gap, spent, n = STEP * start_s, self.gap_s, 0.0, 0
        while gap > self.floor_s and step > 0 and spent + gap <= seconds:
            spent, n, gap = spent + gap, n + 1, max(gap - step, self.floor_s)
        return n if gap > self.floor_s else n + int((seconds - spent) / max(self.floor_s, 1e-9))


@dataclass(frozen=True, slots=True)
class Bound:
    """`seconds` this alone would take, and what it is, in words."""

    seconds: float
    what: str


@dataclass(frozen=True, slots=True)
class Forecast:
    """`bound`: what decides the time. `contacts` fit into it."""

    contacts: int
    seconds: float
    bound: str
    bounds: tuple[Bound, ...]


def forecast(
    loads: Sequence[HostLoad], settings: CrawlSettings, *, contacts_per_s: float, most: float | None = None, most_key: str = "",
    time_s: float | None = None,
) -> Forecast:  # fmt: skip
    """`most`: contacts that a budget (`most_key`) allows; `time_s`: the budget of time; `contacts_per_s`: what the machine can do."""
    total = sum(load.contacts for load in loads)
    bounds = [
        bound for bound in (_slowest(loads, settings), _domain(loads, settings), _address(loads, settings)) if bound is not None
    ]
    bounds.append(Bound(total / contacts_per_s, f"this machine, at {contacts_per_s:.0f} contacts a second"))
    end = max(bounds, key=lambda bound: bound.seconds)
    contacts, seconds, what = total, end.seconds, end.what

    def done(at: float) -> int:
        return _done(loads, settings, contacts_per_s, at)

    if most is not None and most < total:
        at = _when(done, most)
        if at < seconds:
            contacts, seconds, what = int(most), at, most_key
    if time_s is not None and time_s < seconds:
        contacts, seconds, what = min(done(time_s), contacts), time_s, "crawl.max_time"
    return Forecast(contacts, seconds, what, tuple(sorted(bounds, key=lambda bound: -bound.seconds)))


def _slowest(loads: Sequence[HostLoad], settings: CrawlSettings) -> Bound | None:
    if not loads:
        return None
    host = max(loads, key=lambda load: (load.seconds(settings.delay_start), load.host))
    what = f"the slowest host: {host.host}, {host.contacts} contacts, one each {host.floor_s:g} s"
    return Bound(host.seconds(settings.delay_start), what)


def _domain(loads: Sequence[HostLoad], settings: CrawlSettings) -> Bound | None:
    """A registered domain with several hosts: one contact at a time, and its own gap between them."""
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0, 0, 0])
    for load in loads:
        row = sums[load.domain]
        row[0] += load.contacts * domain_gap_s(load.floor_s, settings)
        row[1] += load.contacts
        row[2] += 1
    several = [(row[0], name, row) for name, row in sums.items() if row[2] > 1]
    if not several:
        return None
    seconds, name, row = max(several)
    return Bound(seconds, f"the domain {name}: {row[1]:.0f} contacts of {row[2]:.0f} hosts")


def _address(loads: Sequence[HostLoad], settings: CrawlSettings) -> Bound | None:
    """Hosts of one address take turns, unless it is a delivery network's."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for load in loads:
        if load.ip and not shipped().name(load.ip):
            sums[load.ip][0] += load.contacts
            sums[load.ip][1] += 1
    several = [(row[0] * settings.ip_gap_s, ip, row) for ip, row in sums.items() if row[1] > 1]
    if not several:
        return None
    seconds, ip, row = max(several)
    return Bound(seconds, f"the address {ip}: {row[0]} contacts of {row[1]} hosts")


def _done(loads: Sequence[HostLoad], settings: CrawlSettings, contacts_per_s: float, seconds: float) -> int:
    """Contacts made by this time, hosts on their own clocks."""
    return min(sum(load.done(seconds, settings.delay_start) for load in loads), int(seconds * contacts_per_s))


def _when(done: Callable[[float], int], most: float) -> float:
    """The earliest time by which `most` are done."""
    low, high = 0.0, _FAR_S
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if done(middle) >= most else (middle, high)
    return high
