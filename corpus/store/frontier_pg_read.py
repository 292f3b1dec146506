"""Looking at partition files in PostgreSQL beside their running owners: the questions of `app.frontier_files`.

Read-only sessions; they hold no lock an owner waits for. A long answer comes through a cursor, so it is never held whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

import psycopg

from corpus.store.frontier_pg_bound import check_spread
from corpus.store.frontier_pg_db import Spoken, dial, shown, spoken, told, translated
from corpus.store.frontier_pg_schema import PARENT, schema_of
from corpus.url.partition import PARTITION_FILES

_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class ServerFile:
    """One partition file on a server, where a path stands for one in SQLite."""

    dsn: str
    file: int
    spread: int = PARTITION_FILES

    @property
    def name(self) -> str:
        return f"{shown(self.dsn)} {schema_of(self.file)}"

    def exists(self) -> bool:
        """Raises UsageError where the frontier is spread over another number of files: what is looked for would lie elsewhere."""
        return self.file in files(self.dsn, self.spread)

    def rows(self, query: str, args: Sequence[Any] = (), *, seconds: float | None = None) -> Iterator[tuple[Any, ...]]:
        """Rows of a query in SQLite's words. `seconds`: how long the server may take. Raises StoreError, TimeoutError."""
        return _rows(self.dsn, (self.file,), query, args, seconds)

    def columns(self, table: str) -> set[str]:
        """Names of a table's or view's columns; none when there is no such table."""
        sql = "SELECT column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ?"
        return {str(name) for (name,) in self.rows(sql, (schema_of(self.file), table))}

    def scrub(self, delete: str, args: Sequence[Any]) -> None:
        """Delete rows, and leave nothing of old ones on the server's pages (its log and its backups are its operator's)."""
        with translated(self.name), closing(dial(self.dsn, self.file)) as con:
            con.execute(cast(Any, spoken(delete)), args)
            for table in ("url", "visit", "version"):
                con.execute(cast(Any, f"VACUUM {schema_of(self.file)}.{table}"))


def files(dsn: str, spread: int | None = None) -> list[int]:
    """Numbers of the partition files there are. With `spread` UsageError is raised where the frontier has another."""
    sql = f"SELECT part FROM {PARENT}.lease ORDER BY part"
    with translated(shown(dsn)), closing(dial(dsn, None, readonly=True)) as con:
        if spread is not None:
            check_spread(con, spread, shown(dsn))
        (there,) = con.execute("SELECT to_regclass(%s)", (f"{PARENT}.lease",)).fetchone() or (None,)
        return [] if there is None else [int(part) for (part,) in con.execute(cast(Any, sql)).fetchall()]


def rows_of_all(dsn: str, query: str, args: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows of a query over every partition file, file by file, through one connection."""
    return _rows(dsn, files(dsn), query, args, None)


def _rows(dsn: str, numbers: Sequence[int], query: str, args: Sequence[Any], seconds: float | None) -> Iterator[tuple[Any, ...]]:
    try:
        with closing(dial(dsn, None, readonly=True)) as con:
            if seconds is not None:
                con.execute(cast(Any, f"SET statement_timeout = {max(int(seconds * 1000), 1)}"))
            for number in numbers:
                con.execute(cast(Any, f"SET search_path = {schema_of(number)}, {PARENT}"))
                with con.transaction(), con.cursor(name="rows") as cursor:
                    cursor.itersize = _AT_ONCE
                    cursor.execute(cast(Any, spoken(query)), args or None)
                    yield from cursor
    except psycopg.errors.QueryCanceled:
        raise TimeoutError(query[:80]) from None
    except psycopg.Error as error:
        raise told(error, shown(dsn)) from error


def pieces(con: Spoken, table: str, column: str, where: str, at_once: int = 100_000) -> Iterator[list[Any]]:
    """Every value of a column of the connection's own file, in the order of the table's key (host, column): each piece is a question
    of its own, so the connection is free between two, and never holds them all."""
    last: tuple[Any, ...] = ()
    while True:
        conditions = [where] * bool(where) + [f"(host, {column}) > (%s, %s)"] * bool(last)
        told = f"SELECT host, {column} FROM {table}{' WHERE ' * bool(conditions)}{' AND '.join(conditions)}"
        rows = con.ask(f"{told} ORDER BY host, {column} LIMIT {at_once}", last, binary=True).fetchall()
        if rows:
            yield [value for _, value in rows]
        if len(rows) < at_once:
            return
        last = rows[-1]


def disk_bytes(dsn: str) -> int:
    """What the frontier's tables and indexes take on the server."""
    sql = "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    with translated(shown(dsn)), closing(dial(dsn, None, readonly=True)) as con:
        names = [schema_of(number) for number in files(dsn)]
        (found,) = con.execute(cast(Any, sql + " WHERE c.relkind = 'r' AND n.nspname = ANY(%s)"), (names,)).fetchone() or (0,)
        return int(found)
