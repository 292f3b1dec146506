"""One partition file in PostgreSQL (15 or newer): the frontier of a fleet, or of one machine that has a server.

The store of `frontier_sqlite` over another edge: the same statements, the same rules, another connection. What differs is
ownership. The fence is read inside every write transaction and held until it ends, so a take-over waits for an open one
and whoever was superseded is told at its next write. A lease keeps others out meanwhile: its end is the server's time plus
a duration, so no machine's clock is trusted. Commits are durable (never `synchronous_commit = off`).
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from psycopg.errors import LockNotAvailable

from corpus.crawl.ports import Ack, OutboxRow, QueuedUrl, Tally
from corpus.crawl.seen import RecentSeen
from corpus.errors import Locked, NewerSchema, StoreError, TryLater
from corpus.store import frontier_pg_schema as pg
from corpus.store.frontier_batch import Changes
from corpus.store.frontier_filter import OwnerFilter
from corpus.store.frontier_pg_batch import Ahead, heads, read_ahead, write_hosts
from corpus.store.frontier_pg_bound import check_spread
from corpus.store.frontier_pg_db import Fence, Spoken, dial, shown, transaction, translated
from corpus.store.frontier_pg_idle import Idle, read_tally
from corpus.store.frontier_pg_names import ServerNames
from corpus.store.frontier_pg_read import pieces
from corpus.store.frontier_pg_session import end_session, note_session
from corpus.store.frontier_recent import Recent
from corpus.store.frontier_rows import Counted, Key, Peek, UrlRow, uid_of
from corpus.store.frontier_sqlite import SqliteFrontier
from corpus.store.frontier_view import queued_url
from corpus.store.frontier_write import write, write_acks
from corpus.store.frontier_yields import write_yields
from corpus.url.host import host_of, registered_domain
from corpus.url.partition import PARTITION_FILES

IDLE_MS = 30_000
"""A transaction whose owner says nothing for so long (a suspended process) is ended by the server."""
_MAKING = 0x636F7270
"""The advisory lock under which tables are made."""
_POLL_S = 0.2
_HASTE_MS = 200
"""How long a claim waits for a former owner's open transaction before it ends that owner's session, and then at each further try."""


@dataclass(frozen=True, slots=True)
class Lease:
    """`node`: who a machine is; an owner of the same node is known to be dead, because its lock on this machine is free.
    `ttl_s`: how long a lease holds without being renewed. `wait_s`: how long a claim waits for one to end. `longer_s`: how much
    longer than its lease the last contacts of another machine's owner may run that did not let go in order."""

    node: str
    ttl_s: float
    wait_s: float
    longer_s: float = 0.0


class PostgresFrontier(SqliteFrontier):
    """See `ports.FrontierStore`. `saved`: where the filter of seen URLs is kept on this machine between owners."""

    def __init__(
        self,
        dsn: str,
        file: int,
        *,
        recent: RecentSeen | None = None,
        seen: OwnerFilter | None = None,
        lease: Lease | None = None,
        spread: int = PARTITION_FILES,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """`meanwhile`: called now and then while a claim reads a long table. Raises UsageError where the database is spread over another number of files than `spread`."""
        self._where = f"{shown(dsn)} {pg.schema_of(file)}"
        self.path, self.file, self._filter, self._lease = Path(pg.schema_of(file)), file, seen, lease
        self.meanwhile = meanwhile
        raw = dial(dsn, file)
        self._pg = Spoken(raw, self._where)
        try:
            with translated(self._where):
                raw.execute(f"SET idle_in_transaction_session_timeout = {IDLE_MS}")
                # statements are few and short, each with one right plan: planning them every time would cost more than running them
                raw.execute("SET plan_cache_mode = force_generic_plan")
                raw.execute("SET jit = off")
                # a few rows are looked up by their keys, always: a plan made for a small table must be right for a large one
                for name in ("enable_hashjoin", "enable_mergejoin", "enable_bitmapscan"):
                    raw.execute(cast(Any, f"SET {name} = off"))
                raw.execute("SET random_page_cost = 0.2")
                check_spread(raw, spread, self._where)
                prepare(self._pg, file)
        except BaseException:
            raw.close()
            raise
        self._con = cast(sqlite3.Connection, self._pg)  # it is asked as one
        self._names: ServerNames = ServerNames(self._pg)
        self._fence: Fence | None = None
        self._ahead, self._idle = Ahead(), Idle()
        self._recent = Recent(recent)
        self._epoch, self._was_clean, self._last_wall = 0, True, math.inf
        self._stayed = True
        self.renewed_at = -math.inf
        """Monotonic time before the last renewal was asked for."""
        self.quiet_until = -math.inf
        """Monotonic time before which no host of this file may be contacted: somebody who died may still be at it."""

    # ---- ownership

    def claim(self, owner: str) -> int:
        ends = time.monotonic() + (self._lease.wait_s if self._lease else 0.0)
        while (holder := self._try_claim(owner)) is not None:
            if time.monotonic() > ends:
                raise Locked(f"{holder} owns this file", self._where, "stop it there, or wait until its lease has ended")
            time.sleep(_POLL_S)
        self._idle = Idle()
        if self._filter is not None:
            # another machine's filter lies there
            self._filter.start(self._con, clean=self._was_clean and self._stayed, scan=self._scan)
        return self._epoch

    def _try_claim(self, owner: str) -> str | None:
        """Become the owner; or who holds a lease that is still in force."""
        raw = self._pg.raw
        with translated(self._where):
            raw.execute("BEGIN")
            try:
                asked = time.monotonic()
                if self._lease is not None:  # who asks may have other files to see to
                    raw.execute(f"SET LOCAL lock_timeout = {_HASTE_MS}")
                # waits for an owner's open transaction, which holds this row
                raw.execute("SELECT value FROM meta WHERE name = 'epoch' FOR UPDATE")
                holder = self._holder()
                if holder is None:
                    meta = dict(raw.execute("SELECT name, value FROM meta WHERE name IN ('epoch', 'clean')").fetchall())
                    raw.execute("UPDATE meta SET value = value + 1 WHERE name = 'epoch'")
                    raw.execute("UPDATE meta SET note = %s WHERE name = 'owner'", (owner,))
                    raw.execute("UPDATE meta SET value = 0 WHERE name = 'clean'")
                    note_session(raw)
                    self._take(owner)
                raw.execute("COMMIT")
            except LockNotAvailable:
                self._pg.roll_back()
                if (holder := self._holder(how="")) is None:
                    end_session(raw)
                return holder or "an owner whose last transaction is still open"
            except BaseException:
                self._pg.roll_back()
                raise
        if holder is None:
            self._was_clean, self._epoch, self.renewed_at = bool(meta["clean"]), int(meta["epoch"]) + 1, asked
        return holder

    def _holder(self, how: str = "FOR UPDATE") -> str | None:
        if self._lease is None:
            return None
        sql = f"SELECT owner || ' on ' || node FROM {pg.PARENT}.lease WHERE part = %s AND node <> %s AND expires > clock_timestamp() {how}"
        row = self._pg.raw.execute(cast(Any, sql), (self.file, self._lease.node)).fetchone()
        return str(row[0]) if row else None

    def _take(self, owner: str) -> None:
        if self._lease is not None:
            (before,) = self._pg.raw.execute(
                cast(Any, f"SELECT node FROM {pg.PARENT}.lease WHERE part = %s"), (self.file,)
            ).fetchone() or ("",)
            self._stayed = before == self._lease.node
            # a lease that was let go in order ends at -infinity, and so does what follows from it
            sql = (
                f"UPDATE {pg.PARENT}.lease SET quiet = greatest(quiet, CASE WHEN node = %s THEN '-infinity' ELSE expires +"
                " make_interval(secs => %s) END), node = %s, owner = %s, expires = clock_timestamp() + make_interval(secs => %s)"
                " WHERE part = %s RETURNING CASE WHEN quiet > clock_timestamp()"
                " THEN extract(epoch FROM quiet - clock_timestamp())::double precision ELSE 0 END"
            )
            node, longest = self._lease.node, float(self._lease.longer_s)
            (left,) = self._pg.raw.execute(
                cast(Any, sql), (node, longest, node, owner, float(self._lease.ttl_s), self.file)
            ).fetchone() or (0.0,)
            self.quiet_until = time.monotonic() + left if left else -math.inf

    def renew(self) -> None:
        """Hold the lease for its whole time from now. Raises FenceLost when another owner has claimed the file."""
        if self._lease is None:
            return
        asked = time.monotonic()
        with self._write():
            sql = f"UPDATE {pg.PARENT}.lease SET expires = clock_timestamp() + make_interval(secs => %s) WHERE part = %s"
            self._pg.raw.execute(cast(Any, sql), (float(self._lease.ttl_s), self.file))
        self.renewed_at = asked

    def hold(self) -> None:
        """Renew the lease where a quarter of its time has passed: for whoever is busy for long where nobody else can renew it."""
        if self._lease is not None and self._epoch and time.monotonic() > self.renewed_at + self._lease.ttl_s / 4:
            self.renew()

    def _scan(self, table: str, column: str, where: str) -> Iterator[list[Any]]:
        """There may be tens of millions; leases do not wait for them, neither this file's nor those of the others."""
        for piece in pieces(self._pg, table, column, where):
            yield piece
            self.hold()
            self.meanwhile()

    def let_go(self) -> None:
        """End the lease where nothing is in flight but not everything is durable: the next owner comes at once, finds an unclean file,
        and waits a gap before it asks anybody."""
        if self._lease is not None and self._epoch:
            with self._write():
                self._pg.execute(f"UPDATE {pg.PARENT}.lease SET expires = '-infinity' WHERE part = ?", (self.file,))

    def close(self, *, clean: bool) -> None:
        """After a `TryLater` it is still open, and the same call may be made again."""
        try:
            if clean and self._epoch:
                with self._write():
                    self._pg.execute("UPDATE meta SET value = 1 WHERE name = 'clean'")
                    if self._lease is not None:
                        self._pg.execute(f"UPDATE {pg.PARENT}.lease SET expires = '-infinity' WHERE part = ?", (self.file,))
                if self._filter is not None:
                    self._filter.keep(self._con)
        except TryLater:
            raise
        except BaseException:
            self._pg.close()
            raise
        self._pg.close()

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with self._batch() as con:
            assert self._fence is not None, "a batch begins behind the fence"
            self._fence.check()
            yield con

    @contextmanager
    def _batch(self) -> Iterator[sqlite3.Connection]:
        if not self._epoch:
            raise StoreError("nobody has claimed this file", self._where, "call claim first")
        try:
            with transaction(self._pg, self._where, self._epoch) as self._fence:
                yield self._con
                self._names.flush()
            self._names.settle()
        except BaseException:
            self._names.forget()  # numbers that were given inside the transaction are void
            raise
        finally:
            self._fence, self._ahead, self._idle.told = None, Ahead(), None

    # ---- what a batch looks at

    def peek(self, keys: Sequence[Key], soon: Sequence[Key] = ()) -> dict[Key, Peek | Counted]:
        worth = keys if self._filter is None else self._filter.worth_a_look(keys)
        found, self._ahead = read_ahead(self._pg, self._names, worth, soon, self._fence)
        if self._filter is not None:
            self._filter.confirm(keys, found)
        return found

    def load(self, key: Key) -> UrlRow | None:
        return self._ahead.rows[key] if key in self._ahead.rows else super().load(key)

    def exclusions(self, host: str, reason: str) -> tuple[int, int]:
        number = self._names.host(host)
        known = None if number is None else self._ahead.sums.get(number)
        return (0, 0) if number is None or (known and known.counted is None) else super().exclusions(host, reason)

    def queued(self, host: str) -> int:
        number = self._names.host(host)
        known = None if number is None else self._ahead.sums.get(number)
        return 0 if number is None else known.queued if known else super().queued(host)

    def _store(self, con: sqlite3.Connection, acks: Sequence[Ack], changes: Changes) -> None:
        self._idle.note(acks, changes)
        write_acks(con, self._names, acks)
        for before, after in changes.rows:  # all hosts that are new: their rows are changed next
            if before is None:
                self._names.ensure_host(after.host, registered_domain(after.host))
        rows = [ack.host for ack in acks if ack.host is not None]
        write_hosts(self._pg, self._names, rows, self._ahead.sums, changes.queued)
        write_yields(con, acks)
        said = {row.host for row in rows}
        write(con, self._names, replace(changes, queued={host: n for host, n in changes.queued.items() if host not in said}))
        if self._filter is not None:
            self._filter.write(con, changes)

    def wake(self, wall: float, *, revisit: bool = False) -> list[str]:
        if wall >= self._last_wall and self._idle.nothing_due(wall, revisit=revisit):
            self._last_wall = wall
            return []
        awake = super().wake(wall, revisit=revisit)
        if self._epoch:
            self._idle.look(self._pg, revisit=revisit)
        return awake

    # ---- reads

    def outbox(self, limit: int) -> list[OutboxRow]:
        rows = super().outbox(limit) if self._idle.sends else []
        self._idle.sends = bool(rows) or not self._epoch
        return rows

    def tally(self) -> Tally:
        if not self._epoch:
            return read_tally(self._pg)
        self._idle.told = self._idle.told or read_tally(self._pg)
        return self._idle.told

    def heads(self, host: str, limit: int, *, again: bool | None = None) -> list[QueuedUrl]:
        domain = registered_domain(host)
        with translated(self._where):
            found = heads(self._pg, self._names, host, limit, again)
        self._names.tidy()
        return [queued_url(row, domain, last) for row, last in found]

    def unknown(self, urls: Sequence[str]) -> list[str]:
        keys = {url: (host_of(url), uid_of(url)) for url in urls}
        found, _ = read_ahead(self._pg, self._names, list(keys.values()), (), None)
        return [url for url, key in keys.items() if key not in found]


def prepare(con: Spoken, file: int) -> None:
    """Make a file's tables, or bring them up to this version's. One at a time; a current file is only looked at."""
    raw = con.raw
    if found_schema(con, file) == pg.SCHEMA and _remembers(con):
        return
    raw.execute("BEGIN")
    try:
        raw.execute("SELECT pg_advisory_xact_lock(%s)", (_MAKING,))
        found = found_schema(con, file)
        if found > pg.SCHEMA:
            raise NewerSchema(
                f"written by a newer version (schema {found}, this one knows {pg.SCHEMA})",
                con.where,
                "update corpus, or use another database",
            )
        for statement in pg.parents():
            raw.execute(cast(Any, statement))
        if not found:
            raw.execute(cast(Any, f"CREATE SCHEMA IF NOT EXISTS {pg.schema_of(file)}"))
            for statement, rows in pg.partition(file):
                if rows:
                    con.executemany(statement, rows)
                else:
                    raw.execute(cast(Any, pg.quoted_offset(statement)))
            raw.execute("UPDATE meta SET note = '' WHERE name = 'owner'")
        elif found < pg.SCHEMA:
            _migrate(con, file, found)
        raw.execute("COMMIT")
    except BaseException:
        con.roll_back()
        raise


def _remembers(con: Spoken) -> bool:
    """Whether leases have their newest column."""
    sql = "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'quiet'"
    return con.raw.execute(sql, (f"{pg.PARENT}.lease",)).fetchone() is not None


def _migrate(con: Spoken, file: int, found: int) -> None:
    for name in ("urls", "hosts"):
        con.raw.execute(cast(Any, f"DROP VIEW IF EXISTS {pg.schema_of(file)}.{name}"))
    for statement in pg.steps(file, found):
        con.raw.execute(cast(Any, pg.quoted_offset(statement)))
    con.raw.execute("UPDATE meta SET value = %s WHERE name = 'schema'", (pg.SCHEMA,))


def found_schema(con: Spoken, file: int) -> int:
    """The schema of a file's tables; 0 where there is none yet."""
    (there,) = con.raw.execute("SELECT to_regclass(%s)", (f"{pg.schema_of(file)}.meta",)).fetchone() or (None,)
    if there is None:
        return 0
    (found,) = con.raw.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone() or (0,)
    return int(found)
