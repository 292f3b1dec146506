"""The PostgreSQL edge of a partition file: one connection that takes the statements written for SQLite, and the fence.

The statements of `frontier_select`, `frontier_write` and `frontier_yields` are the same for both stores; `spoken` says
each in PostgreSQL's words, and refuses nothing silently: what it does not know, the server refuses. Many new rows of one
table travel as one COPY, many changes as one pipeline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, cast

from corpus.errors import FenceLost, ServerGone, StoreError, TryLater, UsageError
from corpus.store.frontier_pg_schema import ALL_TABLES, NUMBERED, PARENT, quoted, quoted_offset, schema_of
from corpus.store.frontier_schema import RawText

try:
    import psycopg
    from psycopg.abc import Buffer
    from psycopg.adapt import Dumper, Loader
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.types.string import StrDumperUnknown
except ImportError as error:
    raise UsageError("PostgreSQL needs another package", "store.frontier", "pip install 'corpus[fleet]'") from error

CONNECT_S = 10
_COPY_FROM = 6
"""So many rows are cheaper as a COPY than as statements."""
_ESCAPED = "\x01"
_INSERT = re.compile(r"^INSERT(?: OR (REPLACE|IGNORE))? INTO (\w+)(?: \(([^)]*)\))? ")
_PLAIN_INSERT = re.compile(r"^INSERT INTO (\w+)(?: \(([^)]*)\))? VALUES \([?, ]+\)$")


class _Text(StrDumperUnknown):
    """Text as PostgreSQL takes it: what it cannot hold (NUL, lone surrogates) is written as JSON behind a mark."""

    def dump(self, obj: str) -> Buffer | None:
        if not obj.isascii() or "\0" in obj or obj.startswith(_ESCAPED):
            return _escaped(obj)
        return obj.encode()


def _escaped(text: str) -> bytes:
    if "\0" not in text and not text.startswith(_ESCAPED):
        with suppress(UnicodeEncodeError):
            return text.encode("utf-8")
    return (_ESCAPED + json.dumps(text)).encode()


class _Raw(Dumper):
    """Text that SQLite keeps as bytes."""

    def dump(self, obj: bytes) -> Buffer | None:
        return _escaped(obj.decode("utf-8", "surrogatepass"))


class _Loaded(Loader):
    def load(self, data: Buffer) -> str:
        text = bytes(data).decode("utf-8")
        return str(json.loads(text[1:])) if text.startswith(_ESCAPED) else text


class _Truth(Dumper):
    """SQLite keeps a truth as 0 or 1, and so do these tables."""

    def dump(self, obj: bool) -> Buffer | None:
        return b"1" if obj else b"0"


class _Number(Loader):
    """Sums and counters: whole ones are ints."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data).decode()
        return float(text) if "." in text or "n" in text.lower() else int(text)


def shown(dsn: str) -> str:
    """A server's name without what is secret."""
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        return "postgresql://"
    return f"postgresql://{parts.get('host') or ''}:{parts.get('port') or 5432}/{parts.get('dbname') or ''}"


def told(error: psycopg.Error, where: str) -> StoreError:
    """An error of the server in our words: its name, and what to do next."""
    said = str(error).strip()
    if isinstance(error, psycopg.errors.DiskFull):
        return TryLater(f"the server's disk is full ({said})", where, "free some space there: nothing of this batch was written")
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return StoreError(f"not permitted ({said})", where, "give this user the right to CREATE in the database")
    if isinstance(error, psycopg.OperationalError | psycopg.errors.IdleInTransactionSessionTimeout):
        return ServerGone(f"the server does not answer ({said})", where, "start the server and run the same command again")
    return StoreError(said, where, "please report this")


@contextmanager
def translated(where: str) -> Iterator[None]:
    """Turn psycopg's errors into StoreError."""
    try:
        yield
    except psycopg.Error as error:
        raise told(error, where) from error


@lru_cache(512)
def spoken(sql: str) -> str:
    """A statement of the frontier in PostgreSQL's words."""
    said = sql.replace(" INDEXED BY url_line", "")
    insert = _INSERT.match(said)
    if insert is not None:
        table = ALL_TABLES[insert[2]]
        if insert[1] == "IGNORE":
            said = said.replace("INSERT OR IGNORE", "INSERT", 1) + " ON CONFLICT DO NOTHING"
        elif insert[1] == "REPLACE":
            names = [name for name in table.names if name not in table.key]
            sets = ", ".join(f"{quoted(name)} = excluded.{quoted(name)}" for name in names)
            said = said.replace("INSERT OR REPLACE", "INSERT", 1) + f" ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {sets}"
        said = said.replace("ON CONFLICT DO UPDATE", f"ON CONFLICT ({', '.join(table.key)}) DO UPDATE")
    said = quoted_offset(said)
    if "?" in said:
        said = said.replace("%", "%%").replace("?", "%s")
    return said.replace("LIMIT %s", "LIMIT nullif(%s, -1)")


class Spoken:
    """A connection that is asked in SQLite's words. `lastrowid` of what it returns is the number a row was given."""

    def __init__(self, con: psycopg.Connection[Any], where: str) -> None:
        self.raw, self.where = con, where

    def execute(self, sql: str, args: Sequence[Any] = ()) -> Any:
        said = spoken(sql)
        insert = _PLAIN_INSERT.match(sql)
        try:
            if insert is not None and insert[1] in NUMBERED and insert[2] is not None:
                (number,) = self.raw.execute(cast(Any, said + " RETURNING id"), args).fetchone() or (None,)
                return _Made(number)
            return self.raw.execute(cast(Any, said), args or None)
        except psycopg.Error as error:
            raise told(error, self.where) from error

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with translated(self.where):
            self._many(sql, list(rows))

    def _many(self, sql: str, many: list[Sequence[Any]]) -> None:
        insert = _PLAIN_INSERT.match(sql)
        if insert is not None and len(many) >= _COPY_FROM:
            names = [name.strip() for name in insert[2].split(",")] if insert[2] else ALL_TABLES[insert[1]].names
            columns = ", ".join(map(quoted, names))
            with self.raw.cursor() as cursor, cursor.copy(cast(Any, f"COPY {insert[1]} ({columns}) FROM STDIN")) as copy:
                for row in many:
                    copy.write_row(row)
        elif many:
            with self.raw.cursor() as cursor:
                cursor.executemany(cast(Any, spoken(sql)), many)

    def roll_back(self) -> None:
        with suppress(psycopg.Error):  # a connection that is gone took its transaction with it
            self.raw.execute("ROLLBACK")

    def close(self) -> None:
        self.raw.close()


class _Made:
    def __init__(self, number: int | None) -> None:
        self.lastrowid = number


def dial(dsn: str, file: int | None, *, readonly: bool = False) -> psycopg.Connection[Any]:
    """Connect to the server, with one file's schema first in the search path. Raises StoreError."""
    path = PARENT if file is None else f"{schema_of(file)}, {PARENT}"
    with translated(shown(dsn)):
        con = psycopg.connect(dsn, autocommit=True, connect_timeout=CONNECT_S, application_name="corpus")
        con.execute(f"SET search_path = {path}")
        con.execute("SET client_encoding = 'UTF8'")
        (level,) = con.execute("SHOW synchronous_commit").fetchone() or ("on",)
        if level == "off":  # a server set so would lose what was acknowledged
            con.execute("SET synchronous_commit = on")
        if readonly:
            con.execute("SET default_transaction_read_only = on")
        adapters = con.adapters
        adapters.register_dumper(str, _Text)
        adapters.register_dumper(RawText, _Raw)
        adapters.register_dumper(bool, _Truth)
        for name in ("text", "varchar", "name"):
            adapters.register_loader(name, _Loaded)
        adapters.register_loader("numeric", _Number)
        return con


@contextmanager
def transaction(con: Spoken, where: str, epoch: int) -> Iterator[None]:
    """One write transaction behind the fence. It holds the epoch's row until it ends, so a take-over waits for it."""
    with translated(where):
        con.raw.execute("BEGIN")
        try:
            (stored,) = con.raw.execute("SELECT value FROM meta WHERE name = 'epoch' FOR SHARE").fetchone() or (None,)
            if stored != epoch:
                (owner,) = con.raw.execute("SELECT note FROM meta WHERE name = 'owner'").fetchone() or ("",)
                raise FenceLost(f"epoch {epoch} was superseded by {stored} ({owner})", where, "this process must stop writing")
            yield
            con.raw.execute("COMMIT")
        except BaseException:
            con.roll_back()
            raise
