"""The PostgreSQL edge of a partition file: one connection that takes the statements written for SQLite, and the fence.

The statements of `frontier_select`, `frontier_write` and `frontier_yields` are the same for both stores; `spoken` says
each in PostgreSQL's words, and refuses nothing silently: what it does not know, the server refuses. Many rows of one
statement travel as arrays (`frontier_pg_many`), and a transaction as one pipeline: it waits only where it reads.
"""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, cast

from corpus.errors import FenceLost, ServerGone, StoreError, TryLater, UsageError
from corpus.store.frontier_pg_many import AT_ONCE, ESCAPED, as_many, escaped
from corpus.store.frontier_pg_schema import ALL_TABLES, PARENT, quoted, quoted_offset, schema_of
from corpus.store.frontier_schema import RawText

try:
    import psycopg
    from psycopg.abc import Buffer
    from psycopg.adapt import Dumper, Loader
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.types.string import StrDumperUnknown
except ImportError as error:
    raise UsageError("PostgreSQL needs another package", "store.frontier", "pip install 'corpus[fleet]'") from error

_PATIENCE: dict[str, Any] = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4, "tcp_user_timeout": 30_000,
}  # fmt: skip
"""When a server counts as gone from which nothing comes: 30 s, where the operating system would wait for hours. A DSN may say otherwise."""
_SESSION = (
    "SET idle_in_transaction_session_timeout = 30000; SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5;"
    " SET tcp_keepalives_count = 4; SET tcp_user_timeout = 30000"
)
"""What a client leaves locked that is suspended, or whose machine is gone, is freed by the server as soon."""
_FENCE = "SELECT value FROM meta WHERE name = 'epoch' FOR SHARE"
_INSERT = re.compile(r"^INSERT(?: OR (REPLACE|IGNORE))? INTO (\w+)(?: \(([^)]*)\))? ")
_REFUSED = re.compile(
    r'FATAL:\s+(?:database "[^"]*" does not exist|role "[^"]*" (?:does not exist|is not permitted to log in)|\w+ authentication failed'
    r"|no pg_hba\.conf entry|pg_hba\.conf rejects|permission denied for database)[^\n]*|fe_sendauth: no password supplied"
)
"""What a server says that will say the same tomorrow; one that is away, starting, stopping or full says something else."""
_ENTRY = "make the role and the database (createuser, createdb), or mend the names in store.frontier; a password comes from PGPASSWORD or ~/.pgpass"


class _Text(StrDumperUnknown):
    """Text as PostgreSQL takes it: what it cannot hold (NUL, lone surrogates) is written as JSON behind a mark."""

    def dump(self, obj: str) -> Buffer | None:
        if not obj.isascii() or "\0" in obj or obj.startswith(ESCAPED):
            return escaped(obj).encode()
        return obj.encode()


class _Raw(Dumper):
    """Text that SQLite keeps as bytes."""

    def dump(self, obj: bytes) -> Buffer | None:
        return escaped(obj.decode("utf-8", "surrogatepass")).encode()


class _Loaded(Loader):
    def load(self, data: Buffer) -> str:
        text = bytes(data).decode("utf-8")
        return str(json.loads(text[1:])) if text.startswith(ESCAPED) else text


class _LoadedBinary(_Loaded):
    format = psycopg.pq.Format.BINARY


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
    if refused := _REFUSED.search(said):
        return StoreError(f"the server does not let us in ({refused[0].removeprefix('FATAL:').strip()})", where, _ENTRY)
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
    """A connection that is asked in SQLite's words."""

    def __init__(self, con: psycopg.Connection[Any], where: str) -> None:
        self.raw, self.where = con, where

    def execute(self, sql: str, args: Sequence[Any] = ()) -> Any:
        try:
            return self.raw.execute(cast(Any, spoken(sql)), args or None)
        except psycopg.Error as error:
            raise told(error, self.where) from error

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with translated(self.where):
            self._many(sql, list(rows))

    def ask(self, sql: str, args: Sequence[Any], *, binary: bool = False) -> psycopg.Cursor[Any]:
        """A statement in PostgreSQL's own words, prepared for good. In a pipeline it is answered when somebody fetches."""
        with translated(self.where):
            return self.raw.execute(cast(Any, sql), args, prepare=True, binary=binary)

    def _many(self, sql: str, many: list[Sequence[Any]]) -> None:
        if not many:
            return
        plan = as_many(sql)
        if plan is None or not plan.takes(many):
            with self.raw.cursor() as cursor:
                cursor.executemany(cast(Any, spoken(sql)), many)
            return
        for at in range(0, len(many), AT_ONCE):
            self.raw.execute(cast(Any, plan.sql), plan.arrays(many[at : at + AT_ONCE]), prepare=True)

    def roll_back(self) -> None:
        with suppress(psycopg.Error):  # a connection that is gone took its transaction with it
            self.raw.execute("ROLLBACK")

    def close(self) -> None:
        self.raw.close()


def dial(dsn: str, file: int | None, *, readonly: bool = False) -> psycopg.Connection[Any]:
    """Connect to the server, with one file's schema first in the search path. Raises StoreError."""
    path = PARENT if file is None else f"{schema_of(file)}, {PARENT}"
    with translated(shown(dsn)):
        given = conninfo_to_dict(dsn)
        patience = {name: value for name, value in _PATIENCE.items() if name not in given}
        con = psycopg.connect(dsn, autocommit=True, application_name="corpus", **patience)
        con.execute(cast(Any, f"SET search_path = {path}; SET client_encoding = 'UTF8'; {_SESSION}"))
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
            adapters.register_loader(name, _LoadedBinary)
        adapters.register_loader("numeric", _Number)
        return con


def sever(con: psycopg.Connection[Any]) -> None:
    """From another thread: end a connection under whoever waits for its answer, who gets ServerGone."""
    with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(con.fileno())) as line:  # it may be closed already
        line.shutdown(socket.SHUT_RDWR)


class Fence:
    """The epoch that a transaction found, asked for with its first words; whoever goes on must look at it (`check`)."""

    def __init__(self, con: Spoken, epoch: int) -> None:
        self._con, self._epoch = con, epoch
        self._asked: psycopg.Cursor[Any] | None = con.ask(_FENCE, ())

    def check(self) -> None:
        """Raises FenceLost when another owner has claimed the file."""
        if self._asked is None:
            return
        (stored,) = self._asked.fetchone() or (None,)
        self._asked = None
        if stored != self._epoch:
            (owner,) = self._con.raw.execute("SELECT note FROM meta WHERE name = 'owner'").fetchone() or ("",)
            told = f"epoch {self._epoch} was superseded by {stored} ({owner})"
            raise FenceLost(told, self._con.where, "this process must stop writing")


@contextmanager
def transaction(con: Spoken, where: str, epoch: int) -> Iterator[Fence]:
    """One write transaction behind the fence. It holds the epoch's row until it ends, so a take-over waits for it.

    Whoever reads first may read in the same breath as the fence, and then checks it; it is checked before the end in any case."""
    with translated(where):
        try:
            with con.raw.pipeline():
                con.raw.execute("BEGIN")
                fence = Fence(con, epoch)
                yield fence
                fence.check()
                con.raw.execute("COMMIT")
        except BaseException:
            con.roll_back()
            raise
