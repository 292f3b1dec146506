"""One partition file in memory: the store of simulations and tests, and the plainest statement of what a store does.

Same rules and same answers as the SQLite store (one contract suite runs over both); nothing survives the process.
`reborn` plays a restart: a new store over the old one's data, whose previous owner closed in order or did not.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from corpus.crawl.nouns import NO_HISTORY
from corpus.crawl.ports import (
    Ack,
    AuthorityRow,
    ClosedPattern,
    DomainYield,
    Due,
    HostRow,
    Judged,
    OutboxRow,
    QueuedUrl,
    Settled,
    Tally,
)
from corpus.crawl.recrawl import rate_bin
from corpus.crawl.states import VISITED
from corpus.errors import FenceLost
from corpus.model import Kind, UrlState
from corpus.store.frontier_batch import Batch, Changes, TallyKey
from corpus.store.frontier_rows import (
    Counted,
    Key,
    Peek,
    UrlRow,
    Validators,
    Version,
    carry_on,
    excluded,
    later,
    reopens,
    requeued,
    uid_of,
)
from corpus.store.frontier_view import host_key, lookup_row, queued_url
from corpus.store.frontier_yields import MemoryYields
from corpus.url.host import authority_of, host_of, registered_domain

HeadKey = tuple[int, int, bytes]
"""(front, depth, uid)"""


@dataclass(slots=True)
class _Data:
    """All that a partition file holds."""

    epoch: int = 0
    owner: str = ""
    clean: bool = True
    rows: dict[Key, UrlRow] = field(default_factory=dict)
    counted: dict[Key, Counted] = field(default_factory=dict)
    visits: dict[Key, Settled] = field(default_factory=dict)
    chains: dict[Key, list[Version]] = field(default_factory=dict)
    qualities: dict[str, float] = field(default_factory=dict)
    hosts: dict[str, HostRow] = field(default_factory=dict)
    domains: dict[str, Due] = field(default_factory=dict)
    lines: dict[str, list[HeadKey]] = field(default_factory=dict)
    """Per host the queued URLs that are due, in order."""
    waiting: set[Key] = field(default_factory=set)
    """Rows with a time of their own."""
    queued: dict[str, int] = field(default_factory=dict)
    exclusions: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    authorities: dict[tuple[str, str, Kind], AuthorityRow] = field(default_factory=dict)
    outbox: list[OutboxRow] = field(default_factory=list)
    marks: dict[int, int] = field(default_factory=dict)
    yields: MemoryYields = field(default_factory=MemoryYields)
    ends: dict[str, int] = field(default_factory=dict)
    tally: dict[TallyKey, int] = field(default_factory=dict)
    sent: int = 0
    applied: int = 0


class MemoryFrontier:
    """See `ports.FrontierStore`."""

    def __init__(self, data: _Data | None = None) -> None:
        self._data = data or _Data()
        self._epoch = 0
        self._was_clean = True
        self._last_wall = math.inf

    def reborn(self) -> MemoryFrontier:
        """The store as the next process finds it."""
        return MemoryFrontier(self._data)

    # ---- ownership

    def claim(self, owner: str) -> int:
        self._was_clean = self._data.clean
        self._data.epoch += 1
        self._data.owner, self._data.clean = owner, False
        self._epoch = self._data.epoch
        return self._epoch

    def was_clean(self) -> bool:
        return self._was_clean

    def close(self, *, clean: bool) -> None:
        if clean and self._epoch == self._data.epoch:
            self._data.clean = True

    def _fence(self) -> None:
        if self._epoch != self._data.epoch or not self._epoch:
            raise FenceLost(
                f"epoch {self._epoch} was superseded by {self._data.epoch} ({self._data.owner})",
                "frontier in memory",
                "stop writing",
            )

    # ---- what a batch looks at

    def peek(self, keys: Sequence[Key], soon: Sequence[Key] = ()) -> dict[Key, Peek | Counted]:
        found: dict[Key, Peek | Counted] = {}
        for key in keys:
            row = self._data.rows.get(key)
            if row is not None:
                found[key] = Peek(row.state, row.reason, row.kind, row.depth, row.hops, row.claim)
            elif key in self._data.counted:
                found[key] = self._data.counted[key]
        return found

    def load(self, key: Key) -> UrlRow | None:
        return self._data.rows.get(key)

    def exclusions(self, host: str, reason: str) -> tuple[int, int]:
        return self._data.exclusions.get((host, reason), (0, 0))

    def queued(self, host: str) -> int:
        return self._data.queued.get(host, 0)

    # ---- writes

    def commit(self, acks: Sequence[Ack]) -> list[str]:
        self._fence()
        batch = Batch(self)
        batch.take(acks)
        changes = batch.finish()  # nothing is visible before this line, and nothing below can fail
        for ack in acks:
            for judged in ack.own:
                self._know(judged.host, judged.domain)
            if ack.host is not None:
                self._store_host(ack.host)
            for row in ack.authorities:
                self._data.authorities[host_key(row), row.authority, row.kind] = row
            self._data.yields.take(ack)
            for dst, sighting in ack.foreign:
                self._data.sent += 1
                self._data.outbox.append(OutboxRow(self._data.sent, dst, sighting))
            for settled in ack.settled:
                if settled.capture is not None:
                    file = settled.capture.file
                    self._data.ends[file] = max(self._data.ends.get(file, 0), settled.segment_end)
        self._write(changes)
        return changes.awake

    def apply(self, src: int, rows: Sequence[tuple[int, Judged]]) -> list[str]:
        self._fence()
        mark = self.mark(src)
        fresh = [(seq, judged) for seq, judged in rows if seq > mark]
        if not fresh:
            return []
        batch = Batch(self)
        batch.take([Ack(own=tuple(judged for _, judged in fresh))])
        changes = batch.finish()
        for _, judged in fresh:
            self._know(judged.host, judged.domain)
        self._data.marks[src] = max(seq for seq, _ in fresh)
        self._data.applied += len(fresh)
        self._write(changes)
        return changes.awake

    def _know(self, host: str, domain: str) -> None:
        self._data.hosts.setdefault(host, HostRow(host, domain))

    def _store_host(self, row: HostRow) -> None:
        self._data.hosts[row.host] = row
        held = self._data.domains.get(row.domain, row.domain_due)
        self._data.domains[row.domain] = later(held, row.domain_due)

    def _write(self, changes: Changes) -> None:
        data = self._data
        for before, after in changes.rows:
            self._know(after.host, registered_domain(after.host))
            self._unline(before)
            data.rows[after.key] = after
            if after.due is not None:
                data.waiting.add(after.key)
            elif after.state is UrlState.QUEUED:
                insort(data.lines.setdefault(after.host, []), (after.front, after.depth, after.uid))
        for row in changes.dropped:
            self._unline(row)
            data.rows.pop(row.key, None)
            data.visits.pop(row.key, None)
            data.chains.pop(row.key, None)
        for key, _ in changes.uncounted:
            data.counted.pop(key, None)
        for key, reason in changes.counted:
            data.counted[key] = Counted(reason)
        for key, settled in changes.visits.items():
            if settled.state not in (UrlState.QUEUED, UrlState.PARKED) or key not in data.visits:
                self._visit(key, settled)  # a try that is to be repeated does not erase what the last visit brought
        data.exclusions.update(changes.exclusions)
        data.queued.update(changes.queued)
        for count, step in changes.tally.items():
            data.tally[count] = data.tally.get(count, 0) + step

    def _visit(self, key: Key, settled: Settled) -> None:
        before = self._data.visits.get(key)
        if settled.change is not None:
            carry_on(self._data.chains.setdefault(key, []), before, settled)
        if settled.history is None and before is not None:
            settled = replace(settled, history=before.history)
        self._data.visits[key] = settled

    def _unline(self, row: UrlRow | None) -> None:
        if row is None:
            return
        self._data.waiting.discard(row.key)
        if row.state is UrlState.QUEUED and row.due is None:
            line = self._data.lines[row.host]
            del line[bisect_left(line, (row.front, row.depth, row.uid))]

    def _replace(self, rows: Sequence[tuple[UrlRow, UrlRow]]) -> Changes:
        batch = Batch(self)
        for before, after in rows:
            batch.adopt(before)
            batch.put(before.key, after)
        changes = batch.finish()
        self._write(changes)
        return changes

    def reopen(self, host: str, authority: str, kind: Kind, digest: str) -> int:
        self._fence()
        rows = [
            (row, requeued(row))
            for row in self._of(host)
            if row.state is UrlState.REFUSED
            and authority_of(row.url) == authority
            and reopens(self._data.visits[row.key], kind, digest)
        ]
        self._replace(rows)
        return len(rows)

    def wake(self, wall: float, *, revisit: bool = False) -> list[str]:
        self._fence()
        if wall < self._last_wall:
            self._rebase(wall)
        self._last_wall = wall
        over = []
        for key in self._data.waiting:
            row = self._data.rows[key]
            if row.due is not None and row.due.remaining(wall) <= 0 and (revisit or row.state not in VISITED):
                over.append(row)
        over.sort(key=lambda row: row.key)
        self._replace([(row, requeued(row)) for row in over])
        return sorted({row.host for row in over})

    def _rebase(self, wall: float) -> None:
        """After a restart, or a wall clock that ran backwards: a wait set in the future costs the whole wait from now, never more."""
        for key in self._data.waiting:
            row = self._data.rows[key]
            if row.due is not None and row.due.set_at > wall:
                self._data.rows[key] = row._replace(due=Due(wall, row.due.wait_s))

    def next_wake(self) -> float | None:
        rows = [self._data.rows[key] for key in self._data.waiting]
        times = [row.due.set_at + row.due.wait_s for row in rows if row.due is not None and row.state not in VISITED]
        return min(times, default=None)

    def exclude_queued(self, host: str, reason: str, *, revisits: bool = False) -> int:
        self._fence()
        waiting = [r for r in self._of(host) if r.state in (UrlState.QUEUED, UrlState.PARKED) and (revisits or not r.again)]
        self._replace([(row, excluded(row, reason)) for row in waiting])
        return len(waiting)

    def readmit(self, host: str, reason: str) -> int:
        self._fence()
        rows = [(row, requeued(row)) for row in self._of(host) if row.state is UrlState.EXCLUDED and row.reason == reason]
        self._replace(rows)
        kept, only = self.exclusions(host, reason)
        if only:
            for key in [key for key, c in self._data.counted.items() if key[0] == host and c.reason == reason]:
                del self._data.counted[key]
            self._data.exclusions[host, reason] = (kept, 0)
            self._data.tally[True, UrlState.EXCLUDED, reason] -= only
        return len(rows)

    def grade(self, qualities: Mapping[str, float]) -> None:
        self._fence()
        self._data.qualities.update((host, value) for host, value in qualities.items() if host in self._data.hosts)

    def forwarded(self, upto: dict[int, int]) -> None:
        self._fence()
        self._data.outbox = [row for row in self._data.outbox if row.seq > upto.get(row.dst, 0)]

    # ---- reads

    def _of(self, host: str) -> Iterator[UrlRow]:
        """Rows of a host in key order."""
        return iter(sorted((row for row in self._data.rows.values() if row.host == host), key=lambda row: row.uid))

    def mark(self, src: int) -> int:
        return self._data.marks.get(src, 0)

    def outbox(self, limit: int) -> list[OutboxRow]:
        return self._data.outbox[:limit]

    def hosts(self, *, pending: bool = True) -> list[HostRow]:
        names = sorted(host for host in self._data.hosts if not pending or self.queued(host))
        return [row for row in map(self.host, names) if row is not None]

    def host(self, host: str) -> HostRow | None:
        row = self._data.hosts.get(host)
        if row is None:
            return None
        line = self._data.lines.get(host)
        siblings = (other.pages for other in self._data.hosts.values() if other.domain == row.domain)
        return replace(
            row,
            domain_due=self._data.domains.get(row.domain, Due(0.0, 0.0)),
            queued=self.queued(host),
            domain_pages=sum(siblings),
            front=line[0][0] if line else 128,
            new_waits=not line or any(not self._data.rows[host, uid].again for _, _, uid in line),
            due_waits=any(self._data.rows[host, uid].again for _, _, uid in line or ()),
            quality=self._data.qualities.get(host),
            linking=self._data.yields.of_domain(row.domain).linkers.bit_count(),
        )

    def retired(self) -> list[HostRow]:
        return [row for row in self.hosts(pending=False) if row.state == "retired"]

    def parked(self) -> list[tuple[str, str]]:
        rows = (self._data.rows[key] for key in self._data.waiting)
        return sorted({(row.host, row.reason) for row in rows if row.state is UrlState.PARKED})

    def heads(self, host: str, limit: int, *, again: bool | None = None) -> list[QueuedUrl]:
        domain = self._data.hosts[host].domain if host in self._data.hosts else ""
        line = (self._data.rows[host, uid] for _, _, uid in self._data.lines.get(host, []))
        rows = islice((row for row in line if again is None or row.again is again), limit)
        return [queued_url(row, domain, self._validators(row.key)) for row in rows]

    def _validators(self, key: Key) -> Validators:
        visit = self._data.visits.get(key)
        if visit is None:
            return Validators()
        return Validators(
            visit.etag, visit.last_modified, visit.content_sha256, visit.simhash, visit.history or NO_HISTORY, visit.whole
        )

    def rates(self) -> dict[int, int]:
        bins = (rate_bin(visit.history or NO_HISTORY) for visit in self._data.visits.values())
        return dict(Counter(number for number in bins if number is not None))

    def versions(self, url: str) -> list[tuple[float, float, str, str]]:
        chain = self._data.chains.get((host_of(url), uid_of(url)), ())
        return [(link.first_at, link.last_at, link.change, link.content_sha256) for link in chain]

    def yields(self, host: str) -> tuple[list[ClosedPattern], DomainYield]:
        return self._data.yields.of_host(host), self._data.yields.of_domain(registered_domain(host))

    def unknown(self, urls: Sequence[str]) -> list[str]:
        found = self.peek([(host_of(url), uid_of(url)) for url in urls])
        return [url for url in urls if (host_of(url), uid_of(url)) not in found]

    def authorities(self, host: str) -> list[AuthorityRow]:
        return [row for key, row in sorted(self._data.authorities.items()) if key[0] == host]

    def lookup(self, url: str) -> dict[str, object] | None:
        host = host_of(url)
        key = (host, uid_of(url))
        known = self._data.rows.get(key) or self._data.counted.get(key)
        return None if known is None else lookup_row(url, host, known, self._data.visits.get(key))

    def acked_end(self, segment_file: str) -> int:
        return self._data.ends.get(segment_file, 0)

    def tally(self) -> Tally:
        by_state: dict[tuple[str, str], int] = {}
        others: dict[tuple[str, str], int] = {}
        for (page, state, reason), n in sorted(self._data.tally.items()):
            if n:
                by_state[state.value, reason] = by_state.get((state.value, reason), 0) + n
                if not page:
                    others[state.value, reason] = n
        return Tally(by_state, self._data.sent, self._data.applied, len(self._data.outbox), others)
