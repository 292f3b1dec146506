"""A virtual crawl over the real schedule: events instead of sleeps, every contact logged, an oracle that knows everything."""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from corpus.crawl.ports import HostRow
from corpus.crawl.schedule import Begun, Schedule


@dataclass(slots=True)
class SimHost:
    name: str
    domain: str
    ip: str
    urls: int
    front: int = 128


@dataclass(slots=True)
class Contact:
    host: str
    start: float
    end: float


@dataclass(slots=True)
class Run:
    contacts: list[Contact] = field(default_factory=list)
    busy_s: float = 0.0
    possible_s: float = 0.0
    idle_faults: list[tuple[float, str]] = field(default_factory=list)
    """(time, host): a slot stood empty although this host could have been contacted."""


def crawl(
    schedule: Schedule,
    hosts: list[SimHost],
    *,
    slots: int,
    gap: Callable[[str], float],
    duration: Callable[[str, int], float],
    until: float = float("inf"),
    known_ips: bool = True,
    oracle: bool = False,
    domain_gap: Callable[[str], float] | None = None,
    ip_gap: float = 0.0,
) -> Run:
    """Run to the end of all URLs or to `until`. With `oracle`, every moment is checked for hosts that should be running."""
    run, table = Run(), {host.name: host for host in hosts}
    for host in hosts:
        schedule.add(HostRow(host.name, host.domain, ips=(host.ip,) if known_ips else (), front=host.front), 0.0, 0.0)
    now, ends, seq = 0.0, [], itertools.count()
    free_at: dict[str, float] = defaultdict(float)
    running: dict[str, int] = defaultdict(int)
    left = {host.name: host.urls for host in hosts}
    made: dict[str, int] = defaultdict(int)
    resting: list[tuple[float, str]] = []
    could = len(hosts)
    """Hosts that could begin now, each counted by its own clock alone: exact where every host is a group of its own."""
    while now <= until:
        for name in schedule.ready(now, slots - len(ends)):
            host = table[name]
            if left[name] <= running[name]:  # a trusted host is offered once per connection, URLs or not
                schedule.skip(name, now, 1.0)
                continue
            if not isinstance(schedule.begin(name, host.ip, now), Begun):
                continue
            for key in (name, f"d:{host.domain}", f"i:{host.ip}"):
                running[key] += 1
            end = now + duration(name, made[name])
            made[name] += 1
            could -= 1
            heapq.heappush(ends, (end, next(seq), name))
            run.contacts.append(Contact(name, now, end))
        if oracle and len(ends) < slots and not schedule.ready(now, 0):
            for host in hosts:
                keys = (host.name, f"d:{host.domain}", f"i:{host.ip}")
                if left[host.name] > running[host.name] and all(free_at[k] <= now and not running[k] for k in keys):
                    run.idle_faults.append((now, host.name))
        due = schedule.next_due(now) if len(ends) < slots else None
        times = [t for t in (ends[0][0] if ends else None, due) if t is not None]
        if not times:
            break
        after = max(min(times), now)
        run.busy_s += len(ends) * (after - now)
        run.possible_s += min(slots, len(ends) + could) * (after - now)
        now = after
        while ends and ends[0][0] <= now:
            _, _, name = heapq.heappop(ends)
            host = table[name]
            pause = gap(name)
            across = domain_gap(name) if domain_gap else pause
            for key, wait in ((name, pause), (f"d:{host.domain}", across), (f"i:{host.ip}", ip_gap)):
                running[key] -= 1
                free_at[key] = max(free_at[key], now + wait)
            left[name] -= 1
            schedule.end(name, now, pause, domain_s=across)
            if left[name]:
                heapq.heappush(resting, (free_at[name], name))
            else:
                schedule.remove(name)
        while resting and resting[0][0] <= now:
            heapq.heappop(resting)
            could += 1
    return run


def closest(contacts: list[Contact], group: Callable[[str], str]) -> dict[str, float]:
    """Smallest time from the end of a contact to the start of the next, per group; negative where two overlap."""
    last: dict[str, float] = {}
    least: dict[str, float] = {}
    for contact in sorted(contacts, key=lambda c: c.start):
        key = group(contact.host)
        if key in last:
            least[key] = min(least.get(key, float("inf")), contact.start - last[key])
        last[key] = max(last.get(key, contact.end), contact.end)
    return least
