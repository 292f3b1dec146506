"""One partition file in SQLite: the frontier of a single machine.

WAL with synchronous NORMAL: a killed process loses nothing that `commit` returned from; a power cut may lose the last
commits and never the file. Claiming and closing are flushed to the disk, so that an epoch is never given twice. One
owner writes, in one thread at a time; any number of readers (`frontier_reader`) look on. It never waits for a reader.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from corpus.crawl.ports import Ack, AuthorityRow, ClosedPattern, DomainYield, HostRow, Judged, OutboxRow, QueuedUrl, Tally
from corpus.crawl.seen import RecentSeen
from corpus.errors import StoreError
from corpus.model import Kind, UrlState
from corpus.store import frontier_select as select
from corpus.store.frontier_batch import Batch, Changes, links_of
from corpus.store.frontier_db import Names, connect, transaction, translated
from corpus.store.frontier_filter import OwnerFilter
from corpus.store.frontier_recent import Recent
from corpus.store.frontier_rows import PROTOCOLS, Counted, Key, Peek, UrlRow, excluded, reopens, requeued, uid_of
from corpus.store.frontier_schema import READY, STATE_CODE, WAITING, text_in, text_out
from corpus.store.frontier_select import VISITED_STATES, WAITING_STATES
from corpus.store.frontier_view import lookup_row, queued_url
from corpus.store.frontier_write import write, write_acks, write_hosts
from corpus.store.frontier_yields import read_yields, write_yields
from corpus.url.host import authority_of, host_of, registered_domain

_AT_ONCE = 5_000
"""Rows changed per step where a whole host is changed: bounds the memory, not the transaction."""


class SqliteFrontier:
    """See `ports.FrontierStore`. `cache_bytes`: SQLite's page cache; `recent`: a recent-set that may be shared by the files of a process."""

    def __init__(
        self, path: Path, *, cache_bytes: int = 2 * 2**20, recent: RecentSeen | None = None, seen: OwnerFilter | None = None
    ) -> None:
        self.path, self._filter = path, seen
        self._con = connect(path, cache_bytes=cache_bytes)
        self._names = Names(self._con)
        self._recent = Recent(recent)
        self._epoch = 0
        self._was_clean = True
        self._last_wall = math.inf

    # ---- ownership

    def claim(self, owner: str) -> int:
        with translated(self.path), self._flushed():
            self._con.execute("BEGIN IMMEDIATE")
            meta = dict(self._con.execute("SELECT name, value FROM meta").fetchall())
            self._was_clean = bool(meta["clean"])
            self._epoch = int(meta["epoch"]) + 1
            rows = [(self._epoch, "epoch"), (text_in(owner), "owner"), (0, "clean")]
            self._con.executemany("UPDATE meta SET value = ? WHERE name = ?", rows)
            self._con.execute("COMMIT")
        if self._filter is not None:
            self._filter.start(self._con, clean=self._was_clean)
        return self._epoch

    def was_clean(self) -> bool:
        return self._was_clean

    def close(self, *, clean: bool) -> None:
        try:
            if clean and self._epoch:
                with self._flushed(), self._write():
                    self._con.execute("UPDATE meta SET value = 1 WHERE name = 'clean'")
                if self._filter is not None:
                    self._filter.keep(self._con)
        finally:
            with translated(self.path):
                self._con.close()

    @contextmanager
    def _flushed(self) -> Iterator[None]:
        self._con.execute("PRAGMA synchronous = FULL")
        try:
            yield
        finally:
            self._con.execute("PRAGMA synchronous = NORMAL")

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        if not self._epoch:
            raise StoreError("nobody has claimed this file", str(self.path), "call claim first")
        try:
            with transaction(self._con, self.path, self._epoch):
                yield self._con
        except BaseException:
            self._names.forget()  # numbers that were given inside the transaction are void
            raise

    # ---- what a batch looks at

    def peek(self, keys: Sequence[Key], soon: Sequence[Key] = ()) -> dict[Key, Peek | Counted]:
        if self._filter is None:
            return select.peek(self._con, self._names, keys)
        found = select.peek(self._con, self._names, self._filter.worth_a_look(keys))
        self._filter.confirm(keys, found)
        return found

    def load(self, key: Key) -> UrlRow | None:
        return select.load(self._con, self._names, key)

    def exclusions(self, host: str, reason: str) -> tuple[int, int]:
        numbers = (self._names.host(host), self._names.word(reason))
        row = self._con.execute("SELECT kept, counted FROM exclusion WHERE host = ? AND reason = ?", numbers).fetchone()
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def queued(self, host: str) -> int:
        row = self._con.execute("SELECT queued FROM host WHERE id = ?", (self._names.host(host),)).fetchone()
        return int(row[0]) if row else 0

    # ---- writes

    def commit(self, acks: Sequence[Ack]) -> list[str]:
        if not acks:
            return []
        acks, links, seen = self._recent.sift(acks, links_of(acks))
        links = links if self._filter is None else self._filter.sift(links)
        with self._batch() as con:
            batch = Batch(self)
            batch.take(acks, links)
            changes = batch.finish()
            self._store(con, acks, changes)
        self._learn(changes)
        self._recent.remember(seen)
        return changes.awake

    def apply(self, src: int, rows: Sequence[tuple[int, Judged]]) -> list[str]:
        with self._batch() as con:
            mark = self.mark(src)
            fresh = [(seq, judged) for seq, judged in rows if seq > mark]
            if not fresh:
                return []
            batch = Batch(self)
            ack = Ack(own=tuple(judged for _, judged in fresh))
            links = links_of([ack])
            batch.take([ack], links if self._filter is None else self._filter.sift(links))
            changes = batch.finish()
            self._store(con, [ack], changes)
            con.execute("INSERT OR REPLACE INTO mark VALUES (?, ?)", (src, max(seq for seq, _ in fresh)))
            con.execute("UPDATE meta SET value = value + ? WHERE name = 'applied'", (len(fresh),))
        self._learn(changes)
        return changes.awake

    def forwarded(self, upto: dict[int, int]) -> None:
        with self._write() as con:
            con.executemany("DELETE FROM outbox WHERE dst = ? AND seq <= ?", list(upto.items()))

    def _batch(self) -> AbstractContextManager[sqlite3.Connection]:
        """A write transaction that begins by looking at what a batch touches."""
        return self._write()

    def _store(self, con: sqlite3.Connection, acks: Sequence[Ack], changes: Changes) -> None:
        write_acks(con, self._names, acks)
        write_hosts(con, self._names, [ack.host for ack in acks if ack.host is not None])
        write_yields(con, acks)
        write(con, self._names, changes)
        if self._filter is not None:
            self._filter.write(con, changes)

    def _learn(self, changes: Changes) -> None:
        """The transaction has returned."""
        if self._filter is not None:
            self._filter.learn(changes)

    def _replace(self, rows: Sequence[tuple[UrlRow, UrlRow]]) -> Changes:
        batch = Batch(self)
        for before, after in rows:
            batch.adopt(before)
            batch.put(before.key, after)
        changes = batch.finish()
        write(self._con, self._names, changes)
        return changes

    def reopen(self, host: str, authority: str, kind: Kind, digest: str) -> int:
        words = [number for number in map(self._names.word, sorted(PROTOCOLS[kind])) if number]
        marks, state = ",".join("?" * len(words)), STATE_CODE[UrlState.REFUSED]
        where = f"u.state = {state} AND u.uid IN (SELECT uid FROM visit WHERE host = u.host AND protocol IN ({marks}) AND protocol > 0 AND authority_digest <> ?)"
        opened = 0
        with self._write():
            args = (*words, self._names.ensure_word(digest))
            rows = select.rows_of(self._con, self._names, host, where, args, -1) if words else []
            for row in rows:
                settled = select.visit(self._con, self._names, row)
                if settled is not None and authority_of(row.url) == authority and reopens(settled, kind, digest):
                    self._replace([(row, requeued(row))])
                    opened += 1
        return opened

    def wake(self, wall: float, *, revisit: bool = False) -> list[str]:
        states = (*WAITING_STATES, *(VISITED_STATES if revisit else ()))
        awake: set[str] = set()
        if wall < self._last_wall:
            self._rebase(wall)
        self._last_wall = wall
        if not select.due_rows(self._con, self._names, states, wall, 1):
            return []
        with self._write():
            while rows := select.due_rows(self._con, self._names, states, wall, _AT_ONCE):
                self._replace([(row, requeued(row)) for row in sorted(rows, key=lambda row: row.key)])
                awake.update(row.host for row in rows)
        return sorted(awake)

    def _rebase(self, wall: float) -> None:
        """After a restart, or a wall clock that ran backwards: a wait set in the future costs the whole wait from now, never more."""
        with self._write() as con:
            con.execute("UPDATE url SET due_at = ? + due_wait WHERE due_at IS NOT NULL AND due_at > ? + due_wait", (wall, wall))

    def next_wake(self) -> float | None:
        sql = "SELECT due_at FROM url WHERE state = ? AND due_at IS NOT NULL ORDER BY due_at LIMIT 1"
        times = [row[0] for state in WAITING_STATES for row in self._con.execute(sql, (state,)).fetchall()]
        return min(times, default=None)

    def exclude_queued(self, host: str, reason: str, *, revisits: bool = False) -> int:
        where = f"u.state IN ({READY}, {WAITING}, {STATE_CODE[UrlState.PARKED]})" + ("" if revisits else " AND u.again = 0")
        count = 0
        with self._write():
            while rows := select.rows_of(self._con, self._names, host, where, (), _AT_ONCE):
                self._replace([(row, excluded(row, reason)) for row in rows])
                count += len(rows)
        return count

    def readmit(self, host: str, reason: str) -> int:
        with self._write() as con:
            number, word = self._names.host(host), self._names.word(reason)
            where = f"u.state = {STATE_CODE[UrlState.EXCLUDED]} AND u.reason = ?"
            rows = select.rows_of(con, self._names, host, where, (word,), -1)
            self._replace([(row, requeued(row)) for row in rows])
            kept, only = self.exclusions(host, reason)
            if only:
                con.execute("DELETE FROM counted WHERE host = ? AND reason = ?", (number, word))
                con.execute("UPDATE exclusion SET kept = ?, counted = 0 WHERE host = ? AND reason = ?", (kept, number, word))
                con.execute("UPDATE tally SET n = n - ? WHERE page = 1 AND state = 'excluded' AND reason = ?", (only, reason))
        self._recent.clear()  # it may hold sightings of URLs that are unknown from now on
        return len(rows)

    def grade(self, qualities: Mapping[str, float]) -> None:
        with self._write() as con:
            con.executemany("UPDATE host SET quality = ? WHERE name = ?", [(q, text_in(host)) for host, q in qualities.items()])

    # ---- reads

    def mark(self, src: int) -> int:
        row = self._con.execute("SELECT seq FROM mark WHERE src = ?", (src,)).fetchone()
        return int(row[0]) if row else 0

    def outbox(self, limit: int) -> list[OutboxRow]:
        return select.outbox(self._con, limit)

    def hosts(self, *, pending: bool = True) -> list[HostRow]:
        return list(select.hosts(self._con, "h.queued > 0" if pending else "1 = 1"))

    def host(self, host: str) -> HostRow | None:
        return next(select.hosts(self._con, "h.name = ?", (text_in(host),)), None)

    def retired(self) -> list[HostRow]:
        return list(select.hosts(self._con, "h.state = 'retired'"))

    def parked(self) -> list[tuple[str, str]]:
        sql = "SELECT DISTINCT h.name, w.text FROM url u JOIN host h ON h.id = u.host JOIN word w ON w.id = u.reason WHERE u.state = ? ORDER BY 1, 2"
        rows = self._con.execute(sql, (STATE_CODE[UrlState.PARKED],)).fetchall()
        return [(text_out(host), text_out(reason)) for host, reason in rows]

    def heads(self, host: str, limit: int, *, again: bool | None = None) -> list[QueuedUrl]:
        domain = registered_domain(host)
        return [queued_url(row, domain, last) for row, last in select.heads(self._con, self._names, host, limit, again)]

    def rates(self) -> dict[int, int]:
        return select.rates(self._con)

    def versions(self, url: str) -> list[tuple[float, float, str, str]]:
        return select.versions(self._con, self._names, (host_of(url), uid_of(url)))

    def yields(self, host: str) -> tuple[list[ClosedPattern], DomainYield]:
        return read_yields(self._con, host, registered_domain(host))

    def unknown(self, urls: Sequence[str]) -> list[str]:
        keys = {url: (host_of(url), uid_of(url)) for url in urls}
        found = select.peek(self._con, self._names, list(keys.values()))
        return [url for url, key in keys.items() if key not in found]

    def authorities(self, host: str) -> list[AuthorityRow]:
        return select.authorities(self._con, self._names, host)

    def lookup(self, url: str) -> dict[str, object] | None:
        host = host_of(url)
        known, visit = select.known(self._con, self._names, (host, uid_of(url)))
        return None if known is None else lookup_row(url, host, known, visit)

    def acked_end(self, segment_file: str) -> int:
        return select.acked_end(self._con, self._names, segment_file)

    def tally(self) -> Tally:
        return select.tally(self._con)
