"""Which host may be contacted now: Mercator's queues in memory, polite by construction.

Every known host rests in one place: *sleeping* (its clock runs), *front* (due, and in competition by priority),
*active* (one of about three times as many back queues as there are slots; only their heads need be in memory),
*waiting* for a group, *busy*, *parked* or *idle*. A contact holds its host, its registered domain and its address at
once, so no two contacts of a group can overlap or come closer than the gap, whatever the callers do; a host never
holds more than one slot (a `trusted` one: its `connections`, and it is a group of its own). The longest due goes
first among active hosts. Hosts at the front take turns by weight (64 fronts halve it: the last front has a sixteenth of
the first one's turns), and an active host goes back there after a stint, so priority decides who is served more, and
nobody starves. Hosts with pages due for another visit stand in a front line of their own, and the line whose kind is
behind its share (`mix`) goes first. While slots stay empty, more hosts become active at once.

Pure: `now` is monotonic seconds, an argument. Every operation is O(log hosts). Nothing here is durable: the store's
clocks come in by `add`.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

from corpus.crawl.cdn import CdnTable, ip_key, shipped
from corpus.crawl.fronts import STINT, Fronts
from corpus.crawl.groups import SWEEP_AT, Flight, Group, Groups
from corpus.crawl.known_hosts import DUE, NEW, KnownHosts, Place
from corpus.crawl.pace import domain_gap_s
from corpus.crawl.ports import HostRow
from corpus.crawl.settings import CrawlSettings

ACTIVE_PER_SLOT = 3

Heap = list[tuple[float, int, int]]
"""(key, host number, stamp)"""


@dataclass(frozen=True, slots=True)
class Begun:
    """The contact may start at once; `end` must follow."""


@dataclass(frozen=True, slots=True)
class Busy:
    """The address is held by another host, or its clock runs. The host is back in line; `until` is the earliest hope."""

    until: float


@dataclass(frozen=True, slots=True)
class ScheduleStats:
    """Counts of hosts by place. `active`: active, waiting and busy hosts together; `in_flight`: contacts held or running."""

    known: int
    sleeping: int
    front: int
    active: int
    waiting: int
    in_flight: int
    parked: int
    groups: int


class Schedule:
    """The hosts of one fetch process. Not thread-safe: it belongs to the loop thread."""

    def __init__(self, settings: CrawlSettings, cdn: CdnTable | None = None, *, share: float = 0.5) -> None:
        """`share`: of the contacts that go to pages due for another visit, while new ones wait too."""
        self._settings = settings
        self._groups = Groups(settings, cdn or shipped())
        self._wanted = ACTIVE_PER_SLOT * settings.slots
        self._connections = {row.host: row.connections for row in settings.trusted}
        self._lanes: dict[int, list[float]] = {}
        """Trusted hosts only: when each connection that is not in use is free."""
        self._hosts = KnownHosts()
        self._sleepers: Heap = []
        self._parked: Heap = []
        self._fronts = Fronts(self._hosts, share)
        self._clock: Heap = []
        self._flights: dict[int, list[Flight]] = {}
        self._idle_at = SWEEP_AT

    # ---- hosts come and go

    def add(self, row: HostRow, monotonic: float, wall: float, *, not_before: float = 0.0) -> None:
        """Take up a host that has something to ask for, with the clocks the store remembers.

        `not_before`: monotonic time before which nothing is contacted (after an unclean take-over). A host that is in
        line already only takes its new priority: the clocks in here are younger than the store's.
        Raises ValueError when `row.domain` is not a suffix of `row.host`.
        """
        hosts = self._hosts
        i = hosts.number.get(row.host)
        if i is None:
            i = hosts.new(row.host, row.domain)
            if row.host in self._connections:
                self._lanes[i] = [0.0] * self._connections[row.host]
        hosts.front[i] = min(max(row.front, 0), 255)
        hosts.wait(i, (NEW if row.new_waits else 0) | (DUE if row.due_waits else 0) or NEW)
        if hosts.place[i] not in (Place.IDLE, Place.PARKED):
            return
        if row.ips and not hosts.address[i]:
            hosts.address[i] = ip_key(row.ips[0])
        hosts.due[i] = max(hosts.due[i], monotonic + row.due.remaining(wall), not_before)
        domain_due = max(monotonic + row.domain_due.remaining(wall), not_before)
        if domain_due > monotonic:
            group = self._domain(i)
            group.free_at = max(group.free_at, domain_due)
        if row.state in ("blocked", "retired"):
            hosts.move(i, Place.PARKED)
        elif row.state == "parked" and hosts.due[i] > monotonic:
            self._rest(i, Place.PARKED, self._parked, hosts.due[i])
        else:
            self._line_up(i, Place.SLEEPING)

    def park(self, host: str, until: float | None = None) -> None:
        """Take a host out of line until `until`, or (None) until it is added again. A running contact ends normally."""
        i = self._hosts.number[host]
        if until is None:
            self._hosts.move(i, Place.PARKED)
        else:
            self._hosts.due[i] = max(self._hosts.due[i], until)
            self._rest(i, Place.PARKED, self._parked, self._hosts.due[i])

    def remove(self, host: str) -> None:
        """Nothing left to ask of a host. Its clock is kept until it has run out, so that `add` cannot hurry it."""
        i = self._hosts.number.get(host)
        if i is not None:
            self._hosts.move(i, Place.IDLE)

    def waits(self, host: str, *, new: bool, due: bool) -> None:
        """What was found to wait at a host: new pages, pages due for another visit, or both."""
        i = self._hosts.number.get(host)
        if i is not None and (new or due):
            self._hosts.wait(i, (NEW if new else 0) | (DUE if due else 0))

    @property
    def revisits_next(self) -> bool:
        """Whether a host where both kinds wait should be asked for a revisit."""
        return self._fronts.revisits_next

    def took(self, *, again: bool) -> None:
        """A contact is made for a new page or for a revisit; it counts for the share while the other kind waits as well."""
        self._fronts.took(again=again)

    def mark_cdn(self, ip: str) -> None:
        """A response from this address named a CDN: from now on it has a connection cap and no clock."""
        self._groups.mark_cdn(ip)

    # ---- contacts

    def ready(self, now: float, limit: int) -> list[str]:
        """At most `limit` hosts to contact now, longest due first; each is held for its caller until `end` or `skip`.

        A trusted host may stand in the list once per free connection.
        """
        out: list[str] = []
        if limit <= 0:
            return out
        self._sweep(now)
        hosts = self._hosts
        for heap in (self._sleepers, self._parked):
            while heap and heap[0][0] <= now:
                _, i, stamp = heappop(heap)
                if stamp == hosts.stamp[i]:
                    self._line_up(i, Place.SLEEPING if hosts.due[i] > now else Place.FRONT)
        while len(out) < limit and self._step(now, out, limit):
            pass
        while len(out) < limit or sum(hosts.count[Place.ACTIVE : Place.PARKED]) < self._wanted:
            first = self._fronts.first()
            if first is None:
                break
            if len(out) < limit:
                self._try(first, now, out)
            else:
                self._line_up(first, Place.ACTIVE)
        return out

    def begin(self, host: str, ip: str, now: float) -> Begun | Busy:
        """Start the contact of a host that `ready` returned, at the address it resolved to.

        Raises KeyError for a host that is not held for the caller: a defect of the caller. ValueError: not an address.
        """
        i = self._hosts.number[host]
        flight = self._held(i)
        key = ip_key(ip)
        self._hosts.address[i] = key
        if i not in self._lanes and key != flight.key:
            self._let_go(flight.address, now)
            group = self._groups.address(key, ip)
            if not group.open(now):
                self._land(i, flight)
                self._let_go(flight.domain, now)
                if self._hosts.place[i] == Place.BUSY:
                    self._wait(i, group, now)
                return Busy(max(group.free_at, now))
            group.in_flight += 1
            flight.address = group
        flight.key, flight.begun = key, True
        return Begun()

    def end(
        self, host: str, now: float, gap_s: float, *, domain_s: float | None = None, ip: str = "", slower: float = 1.0
    ) -> None:
        """A contact ended (or was aborted) at `now`: its host waits `gap_s`, its domain `domain_s`, its address `ip_delay`.

        `domain_s` absent: `pace.domain_gap_s(gap_s)`. `ip` tells apart the contacts of a trusted host. `slower` stretches the
        wait of the address.
        """
        i = self._hosts.number[host]
        key = ip_key(ip) if ip else 0
        begun = [flight for flight in self._flights[i] if flight.begun]
        flight = next((f for f in begun if f.key == key), begun[0])
        self._land(i, flight)
        if flight.domain is not None:
            flight.domain.release(now, domain_gap_s(gap_s, self._settings) if domain_s is None else domain_s)
            self._groups.serve(flight.domain, now)
        if flight.address is not None:
            address_s = flight.address.gap_s
            flight.address.release(now, None if address_s is None else address_s * slower)
            self._groups.serve(flight.address, now)
        self._hosts.stint[i] = min(self._hosts.stint[i] + 1, 255)
        self._return(i, now + max(gap_s, 0.0))

    def skip(self, host: str, now: float, wait_s: float = 0.0) -> None:
        """A held host is not contacted after all: no clock starts; it is in line again after `wait_s`."""
        i = self._hosts.number[host]
        flight = self._held(i)
        self._land(i, flight)
        self._let_go(flight.domain, now)
        self._let_go(flight.address, now)
        self._return(i, now + wait_s)

    def next_due(self, now: float) -> float | None:
        """When `ready` may next have something, parked hosts not counted; None: only `end` or `add` can bring it."""
        timer = self._groups.next_timer()
        times = [] if timer is None else [timer]
        if self._fronts.waiting():
            times.append(now)
        for heap in (self._sleepers, self._clock):
            while heap and heap[0][2] != self._hosts.stamp[heap[0][1]]:
                heappop(heap)
            if heap:
                times.append(heap[0][0])
        return max(min(times), now) if times else None

    def stats(self) -> ScheduleStats:
        """Where the hosts rest now; cheap enough for every status line."""
        count = self._hosts.count
        return ScheduleStats(
            known=len(self._hosts.number),
            sleeping=count[Place.SLEEPING],
            front=count[Place.FRONT],
            active=sum(count[Place.ACTIVE : Place.PARKED]),
            waiting=count[Place.WAITING],
            in_flight=sum(len(flights) for flights in self._flights.values()),
            parked=count[Place.PARKED],
            groups=len(self._groups),
        )

    # ---- lines

    def _rest(self, i: int, place: Place, heap: Heap, key: float) -> None:
        heappush(heap, (key, i, self._hosts.move(i, place)))

    def _line_up(self, i: int, place: Place) -> None:
        """Put a host where its clock is looked at; one whose every connection is in use is busy instead."""
        lanes = self._lanes.get(i)
        if not lanes if lanes is not None else i in self._flights:
            self._hosts.move(i, Place.BUSY)
            return
        if place is Place.FRONT:
            self._fronts.stand(i)
        else:
            self._rest(i, place, self._clock if place is Place.ACTIVE else self._sleepers, self._hosts.due[i])

    def _return(self, i: int, due: float) -> None:
        """A contact of a host is over: back in line at `due`, unless it was removed or parked meanwhile."""
        hosts, lanes = self._hosts, self._lanes.get(i)
        if lanes is not None:
            heappush(lanes, due)
            due = lanes[0]
        hosts.due[i] = max(hosts.due[i], due) if hosts.place[i] == Place.PARKED else due
        if hosts.place[i] in (Place.IDLE, Place.PARKED):
            return
        rotate = hosts.stint[i] >= STINT and (
            hosts.count[Place.FRONT] or sum(hosts.count[Place.ACTIVE : Place.PARKED]) > self._wanted
        )
        self._line_up(i, Place.SLEEPING if rotate else Place.ACTIVE)

    def _wait(self, i: int, group: Group, now: float) -> None:
        group.waiters.append((i, self._hosts.move(i, Place.WAITING)))
        self._groups.serve(group, now)

    def _step(self, now: float, out: list[str], limit: int) -> bool:
        """Serve the longest due group or active host; False when none is due."""
        timer = self._groups.next_timer()
        clock = self._clock[0][0] if self._clock else None
        if clock is not None and clock <= now and (timer is None or clock < timer):
            _, i, stamp = heappop(self._clock)
            if stamp == self._hosts.stamp[i]:
                self._try(i, now, out)
            return True
        if timer is None or timer > now:
            return False
        group = self._groups.pop_timer()
        while group.waiters and group.open(now) and len(out) < limit:
            i, stamp = group.waiters.popleft()
            if stamp == self._hosts.stamp[i]:
                self._try(i, now, out)
        self._groups.serve(group, now)
        return True

    def _try(self, i: int, now: float, out: list[str]) -> None:
        """Hold a due host with its groups and add it to `out`, or put it in line for the group that is in the way."""
        lanes = self._lanes.get(i)
        if lanes is not None:
            heappop(lanes)
            self._flights.setdefault(i, []).append(Flight(None, None, 0))
            out.append(self._hosts.names[i])
            self._hosts.due[i] = lanes[0] if lanes else now
            self._line_up(i, Place.ACTIVE)
            return
        domain, key = self._domain(i), self._hosts.address[i]
        address = self._groups.address(key) if key else None
        for group in (domain, address):
            if group is not None and not group.open(now):
                self._wait(i, group, now)
                return
        domain.in_flight += 1
        if address is not None:
            address.in_flight += 1
        self._flights[i] = [Flight(domain, address, key)]
        self._hosts.move(i, Place.BUSY)
        out.append(self._hosts.names[i])

    # ---- groups and flights

    def _held(self, i: int) -> Flight:
        for flight in self._flights.get(i, ()):
            if not flight.begun:
                return flight
        raise KeyError(f"{self._hosts.names[i]} is not held: `ready` did not return it, or it was begun already")

    def _land(self, i: int, flight: Flight) -> None:
        flights = self._flights[i]
        flights.remove(flight)
        if not flights:
            del self._flights[i]

    def _let_go(self, group: Group | None, now: float) -> None:
        if group is not None:
            group.release(now, None)
            self._groups.serve(group, now)

    def _domain(self, i: int) -> Group:
        return self._groups.domain(self._hosts.domain(i))

    def _sweep(self, now: float) -> None:
        """Forget groups and idle hosts that have nothing to remember, whenever their number has doubled."""
        self._groups.sweep(now)
        if self._hosts.count[Place.IDLE] > self._idle_at:
            for i in self._hosts.forget_idle(now, set(self._flights)):
                self._lanes.pop(i, None)
            self._idle_at = 2 * self._hosts.count[Place.IDLE] + SWEEP_AT
