"""A modelled fleet for `corpus simulate fleet`: members, the server that holds their leases, and the web that logs every contact.

What decides is the real thing: `crawl.assign` says who owns what, `crawl.schedule` whom a member contacts, `crawl.pace` how long it
waits then, `crawl.restart.restart_gap_s` what a take-over leaves alone. What is modelled is the world: time, answers that take
long, a group commit every half second, members that are killed, cut off or new. Events in place of sleeps; one seed, one run.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count

from corpus.crawl.assign import moves, owners
from corpus.crawl.cdn import CdnTable
from corpus.crawl.pace import Good, host_after
from corpus.crawl.ports import HostRow
from corpus.crawl.restart import restart_gap_s
from corpus.crawl.schedule import Begun, Schedule
from corpus.crawl.settings import CrawlSettings

COMMIT_S = 0.5
AT_MOST = 4
"""Partitions that a member lets go of, or takes, per beat."""
WAVE_S = 120.0
"""Waves of failures nearer than this overlap: who was to take a partition over may be cut off itself, and it takes longer."""
_EPSILON = 1e-6


@dataclass(frozen=True, slots=True)
class FleetModel:
    """Sizes, and what goes wrong. `killed`, `cut` and `joined` members at a time, `waves` times in the run; half of those cut off
    are back before their leases end. One contact in a hundred drips until `total_timeout`."""

    members: int = 1000
    partitions: int = 4000
    hosts: int = 8000
    seconds: float = 900.0
    lease_s: float = 30.0
    slots: int = 16
    delay_s: float = 5.0
    total_timeout_s: float = 60.0
    waves: int = 3
    killed: int = 10
    cut: int = 10
    joined: int = 10
    quarantine: bool = True

    @property
    def longer_s(self) -> float:
        """How much longer than a lease its last contacts may run, so that hosts of a lost owner rest."""
        return max(self.lease_s / 2 + self.total_timeout_s - self.lease_s, 0.0) if self.quarantine else 0.0

    @property
    def beat_s(self) -> float:
        return self.lease_s / 4


@dataclass(slots=True)
class Partition:
    """What the server knows: the owner, how it let go, and its hosts as last committed."""

    rows: dict[str, HostRow]
    owner: str = ""
    clean: bool = True
    lost_at: float | None = None
    """When its owner failed; None: it did not, or somebody has taken over."""
    quiet_until: float = 0.0
    """When contacts of an owner that was lost are surely over."""


@dataclass(slots=True)
class Member:
    """One worker: its partitions, its schedule, and what it has not committed yet."""

    name: str
    schedule: Schedule
    renewed: float
    owned: set[int] = field(default_factory=set)
    leaving: set[int] = field(default_factory=set)
    rows: dict[str, HostRow] = field(default_factory=dict)
    pending: list[HostRow] = field(default_factory=list)
    flying: dict[str, int] = field(default_factory=dict)
    contacts: int = 0
    wake_at: float = float("inf")
    alive: bool = True
    connected: bool = True


@dataclass(slots=True)
class Web:
    """The log of all servers: what no member can deceive."""

    gap_s: float
    free_at: dict[str, float] = field(default_factory=dict)
    """When each host's gap is over; infinite while a contact lasts."""
    lasting: dict[str, int] = field(default_factory=dict)
    contacts: int = 0
    violations: int = 0
    wasted_s: float = 0.0

    def begins(self, host: str, now: float) -> None:
        free = self.free_at.get(host, 0.0)
        if self.lasting.get(host) or now < free - _EPSILON:
            self.violations += 1
        else:
            self.wasted_s += now - free
        self.lasting[host] = self.lasting.get(host, 0) + 1
        self.contacts += 1

    def ends(self, host: str, now: float) -> None:
        self.lasting[host] -= 1
        self.free_at[host] = now + self.gap_s


class World:
    """Runs a fleet; afterwards its fields tell what happened."""

    def __init__(self, model: FleetModel, seed: int) -> None:
        self.model, self.now, self._random = model, 0.0, random.Random(seed)
        self.settings = CrawlSettings(
            delay=model.delay_s, delay_start=model.delay_s, slots=model.slots, total_timeout=model.total_timeout_s
        )
        self.web = Web(model.delay_s)
        self.partitions = [Partition({}) for _ in range(model.partitions)]
        for n in range(model.hosts):
            row = HostRow(f"h{n}.test", f"h{n}.test", ips=(f"{20 + n // 65536}.{n // 256 % 256}.{n % 256}.1",))
            self.partitions[n % model.partitions].rows[row.host] = row
        self.members: dict[str, Member] = {}
        self.seen: dict[str, float] = {}
        """Member → when the server gives it up."""
        self.recovered_s: list[float] = []
        self.rested_s = 0.0
        """For how long partitions had an owner again, and their hosts rested because the last one's contacts might have run."""
        self.moved = self.rejoined = 0
        self.calm_wasted_s = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order, self._names = count(), count()
        self._shares: dict[tuple[str, ...], dict[str, list[int]]] = {}

    def run(self) -> None:
        """Everything up to the end of the model's time."""
        model = self.model
        for _ in range(model.members):
            self._join()
        for wave in range(model.waves):
            self._at(self._wave_at(wave), self._wave)
        self._at(self._wave_at(0), self._remember_calm)
        while self._events and self._events[0][0] <= model.seconds:
            self.now, _, call = heapq.heappop(self._events)
            call()
        self.now = model.seconds
        for host, free in self.web.free_at.items():
            if not self.web.lasting[host]:
                self.web.wasted_s += max(self.now - free, 0.0)

    def _wave_at(self, wave: int) -> float:
        return self.model.seconds * (0.2 + 0.5 * wave / max(self.model.waves, 1))

    def _remember_calm(self) -> None:
        self.calm_wasted_s = self.web.wasted_s

    def _at(self, when: float, call: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), call))

    # ---- what happens to members

    def _join(self) -> None:
        member = Member(f"w{next(self._names)}", Schedule(self.settings, CdnTable([])), self.now)
        self.members[member.name] = member
        self.seen[member.name] = self.now + self.model.lease_s
        self._at(self.now + self._random.uniform(0.0, 1.0), lambda: self._beat(member))
        self._at(self.now + COMMIT_S, lambda: self._commit(member))

    def _wave(self) -> None:
        model = self.model
        hit = self._random.sample(
            sorted(m.name for m in self.members.values() if m.alive and m.connected), model.killed + model.cut
        )
        for name in hit[: model.killed]:
            self._fails(self.members[name], alive=False)
        for at, name in enumerate(hit[model.killed :]):
            self._fails(self.members[name], alive=True)
            away_s = self.model.lease_s / 3 if at % 2 else 2.0 * (model.lease_s + model.longer_s)
            self._at(self.now + away_s, lambda member=self.members[name]: self._back(member))  # type: ignore[misc]
        for _ in range(model.joined):
            self._join()

    def _fails(self, member: Member, *, alive: bool) -> None:
        member.alive, member.connected = alive, False
        for number in member.owned:
            self.partitions[number].lost_at = self.now
        if not alive:
            for host in member.flying:  # its sockets close with it
                self.web.ends(host, self.now)

    def _back(self, member: Member) -> None:
        member.connected = True
        if self.now >= self.seen[member.name]:
            member.alive = False  # what it holds is another's: it begins anew, and its answers are nobody's
            self.rejoined += 1
            self._join()
            return
        for number in member.owned:
            self.partitions[number].lost_at = None
        self._beat(member)

    # ---- what a member does

    def _beat(self, member: Member) -> None:
        """Renew, then come a step closer to the share that the list of members gives."""
        if not member.alive or not member.connected:
            return
        member.renewed = self.now
        self.seen[member.name] = self.now + self.model.lease_s
        names = tuple(sorted(name for name, until in self.seen.items() if until > self.now))
        release, acquire = moves(member.owned, self._share(names).get(member.name, []), at_most=AT_MOST)
        for number in release:
            self._let_go(member, number)
        for number in acquire:
            self._take(member, number)
        self._at(self.now + (1.0 if release or acquire else self.model.beat_s), lambda: self._beat(member))
        self._pump(member)

    def _share(self, names: tuple[str, ...]) -> dict[str, list[int]]:
        if names not in self._shares:
            self._shares.clear()
            found: dict[str, list[int]] = {}
            for number, owner in enumerate(owners(names, self.model.partitions)):
                found.setdefault(owner, []).append(number)
            self._shares[names] = found
        return self._shares[names]

    def _take(self, member: Member, number: int) -> None:
        partition = self.partitions[number]
        if partition.owner and self.seen.get(partition.owner, 0.0) > self.now:
            return
        clean = partition.clean or not self.model.quarantine
        if partition.owner:  # lost: its lease has ended, its contacts perhaps not
            quiet = self.seen[partition.owner] + self.model.longer_s
            self.rested_s += max(quiet - max(partition.quiet_until, self.now), 0.0)
            partition.quiet_until = max(partition.quiet_until, quiet)
        if partition.lost_at is not None:
            self.recovered_s.append(self.now - partition.lost_at)
        self.moved += partition.owner != "" or partition.lost_at is not None
        partition.owner, partition.clean, partition.lost_at = member.name, False, None
        member.owned.add(number)
        wall, begins = self.now, max(self.now, partition.quiet_until)
        for row in partition.rows.values():
            hold = (
                0.0
                if row.state == "new" and clean and begins == self.now
                else begins + restart_gap_s(row, self.settings, clean=clean)
            )
            member.rows[row.host] = row
            member.schedule.add(row, self.now, wall, not_before=hold if self.model.quarantine else 0.0)

    def _let_go(self, member: Member, number: int) -> None:
        """Ask nothing more of a partition; it is released when its last answer is committed."""
        member.leaving.add(number)
        for host in self.partitions[number].rows:
            member.schedule.remove(host)

    def _commit(self, member: Member) -> None:
        if not member.alive:
            return
        if member.connected:
            for row in member.pending:
                self.partitions[self._partition(row.host)].rows[row.host] = row
            member.pending.clear()
            for number in sorted(member.leaving):
                rows = self.partitions[number].rows
                if not any(host in member.flying for host in rows):
                    self._release(member, number, rows)
        self._at(self.now + COMMIT_S, lambda: self._commit(member))

    def _release(self, member: Member, number: int, rows: Iterable[str]) -> None:
        member.leaving.discard(number)
        member.owned.discard(number)
        for host in rows:
            member.rows.pop(host, None)
        self.partitions[number].owner, self.partitions[number].clean = "", True
        self.moved += 1

    def _partition(self, host: str) -> int:
        return int(host[1:].partition(".")[0]) % self.model.partitions

    def _pump(self, member: Member) -> None:
        """Contact whoever is due, unless a lease is in doubt."""
        member.wake_at = float("inf")
        if not member.alive or (self.model.quarantine and self.now >= member.renewed + self.model.lease_s / 2):
            return
        for host in member.schedule.ready(self.now, self.model.slots - len(member.flying)):
            if not isinstance(member.schedule.begin(host, member.rows[host].ips[0], self.now), Begun):
                continue
            drips = self._random.random() < 0.01
            took = self._random.uniform(0.5, 1.0) * self.model.total_timeout_s if drips else self._random.uniform(0.05, 1.0)
            member.flying[host] = 1
            member.contacts += 1
            self.web.begins(host, self.now)
            self._at(self.now + took, lambda host=host: self._answered(member, host))  # type: ignore[misc]
        due = member.schedule.next_due(self.now) if len(member.flying) < self.model.slots else None
        if due is not None and due < member.wake_at:
            member.wake_at = max(due, self.now + 1e-3)
            self._at(member.wake_at, lambda at=member.wake_at: self._woken(member, at))  # type: ignore[misc]

    def _woken(self, member: Member, at: float) -> None:
        if member.wake_at == at:
            self._pump(member)

    def _answered(self, member: Member, host: str) -> None:
        if host not in member.flying or (not member.alive and not member.connected):
            return
        del member.flying[host]
        self.web.ends(host, self.now)
        row = member.rows[host] = host_after(member.rows[host], Good(0.1), self.settings, self.now)
        member.pending.append(row)
        member.schedule.end(host, self.now, row.due.wait_s)
        self._pump(member)
