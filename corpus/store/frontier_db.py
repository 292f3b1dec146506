"""The SQLite edge of a partition file: opening it, one transaction at a time behind a fence, errors in our own words.

Knows connections, transactions and interned texts; knows nothing of what a row means.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from corpus.errors import FenceLost, NewerSchema, StoreError, TryLater
from corpus.store.frontier_migrate import migrate
from corpus.store.frontier_schema import FIRST_ROWS, PRAGMAS, SCHEMA, TABLES, text_in, text_out
from corpus.store.frontier_yields import TABLES as YIELD_TABLES

BUSY_MS = 5_000
"""How long to wait for another writer, which can only be an owner that is about to learn that it was superseded."""
CACHED_NAMES = 65_536

_HINTS: tuple[tuple[str, str, str], ...] = (
    ("full", "the disk is full", "free some space and run the same command again: nothing of this batch was written"),
    ("readonly", "the file cannot be written", "check the permissions of the folder store.local"),
    ("locked", "another process is writing the file", "stop the other run, or wait for it"),
    ("busy", "another process is writing the file", "stop the other run, or wait for it"),
    ("unable to open", "the file cannot be opened", "check that the folder store.local exists and can be written"),
    (
        "malformed",
        "the file is damaged",
        "move it away and rebuild the frontier from the commit records: corpus verify --rebuild",
    ),
    ("not a database", "the file is not a frontier", "move it away, or set store.local to another folder"),
    ("disk i/o", "the disk does not answer", "check the disk; nothing of this batch was written"),
)


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into StoreError with the path and what to do next."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        name = getattr(error, "sqlite_errorname", "") or ""
        seen = f"{text} {name}".lower().replace("sqlite_", "").replace("attempt to write a readonly", "readonly")
        for sign, what, hint in _HINTS:
            if sign in seen:
                raise (TryLater if sign == "full" else StoreError)(f"{what} ({text})", str(path), hint) from error
        raise StoreError(text, str(path), "please report this with the file's size and the free space of its disk") from error


def connect(path: Path, *, cache_bytes: int) -> sqlite3.Connection:
    """Open a partition file for its owner, creating it when it is not there. Raises StoreError or NewerSchema."""
    with translated(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        con = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256, timeout=BUSY_MS / 1000)
        try:
            _prepare(con, path, cache_bytes)
        except BaseException:
            con.close()
            raise
        return con


def _prepare(con: sqlite3.Connection, path: Path, cache_bytes: int) -> None:
    for pragma in PRAGMAS:
        con.execute(pragma)
    con.execute(f"PRAGMA cache_size = -{max(cache_bytes // 1024, 64)}")
    con.execute("BEGIN IMMEDIATE")
    try:
        if not con.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
            for statement in TABLES.split(";\n"):
                con.execute(statement)
            for sql, rows in FIRST_ROWS:
                con.executemany(sql, rows)
        check_schema(con, path)
        migrate(con)
        for statement in YIELD_TABLES:
            con.execute(statement)
        con.execute("COMMIT")
    except BaseException:
        con.execute("ROLLBACK")
        raise


def check_schema(con: sqlite3.Connection, path: Path) -> None:
    """Raises NewerSchema when a newer version wrote the file."""
    (found,) = con.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    if found > SCHEMA:
        raise NewerSchema(
            f"written by a newer version (schema {found}, this one knows {SCHEMA})",
            str(path),
            "update corpus, or use another store.local",
        )


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Open a partition file beside a running writer, or in a folder that cannot be written. Raises StoreError or NewerSchema."""
    with translated(path):
        uri = path.resolve().as_uri()
        con = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000)
        try:
            check_schema(con, path)
        except sqlite3.OperationalError:
            con.close()
            if path.with_name(path.name + "-wal").exists() or not path.exists():
                raise
            # a file whose writer closed in order has no log; in a folder that cannot be written it opens only like this
            con = sqlite3.connect(f"{uri}?immutable=1", uri=True, isolation_level=None, check_same_thread=False)
            check_schema(con, path)
        con.execute("PRAGMA query_only = 1")
        return con


@contextmanager
def transaction(con: sqlite3.Connection, path: Path, epoch: int) -> Iterator[None]:
    """One write transaction, fenced by the owner's epoch: commits whole, or rolls back and changes nothing."""
    with translated(path):
        con.execute("BEGIN IMMEDIATE")
        try:
            stored, owner = con.execute(
                "SELECT (SELECT value FROM meta WHERE name = 'epoch'), (SELECT value FROM meta WHERE name = 'owner')"
            ).fetchone()
            if stored != epoch:
                raise FenceLost(
                    f"epoch {epoch} was superseded by {stored} ({owner})", str(path), "this process must stop writing"
                )
            yield
            con.execute("COMMIT")
        except BaseException:
            # after a full disk SQLite has rolled back by itself, and says so with an error of its own
            with suppress(sqlite3.OperationalError):
                con.execute("ROLLBACK")
            raise


class Names:
    """Interned texts and host numbers, cached; `forget` after a rollback, because numbers given in it are void."""

    def __init__(self, con: sqlite3.Connection) -> None:
        self._con = con
        self._hosts: dict[str, int] = {}
        self._words: dict[str, int] = {"": 0}
        self._texts: dict[int, str] = {0: ""}
        self._via: tuple[str, int] = ("", 0)

    def forget(self) -> None:
        self._hosts, self._words, self._texts, self._via = {}, {"": 0}, {0: ""}, ("", 0)

    def host(self, host: str) -> int | None:
        """The number of a host, None when it was never seen."""
        known = self._hosts.get(host)
        if known is None:
            row = self._con.execute("SELECT id FROM host WHERE name = ?", (text_in(host),)).fetchone()
            if row is None:
                return None
            known = self._remember(host, row[0])
        return known

    def ensure_host(self, host: str, domain: str) -> int:
        known = self.host(host)
        if known is not None:
            return known
        row = self._con.execute("SELECT id FROM domain WHERE name = ?", (text_in(domain),)).fetchone()
        number = row[0] if row else self._con.execute("INSERT INTO domain (name) VALUES (?)", (text_in(domain),)).lastrowid
        made = self._con.execute("INSERT INTO host (name, domain) VALUES (?, ?)", (text_in(host), number)).lastrowid
        assert made is not None
        return self._remember(host, made)

    def _remember(self, host: str, number: int) -> int:
        if len(self._hosts) >= CACHED_NAMES:
            self._hosts.clear()
        self._hosts[host] = number
        return number

    def word(self, text: str) -> int | None:
        """The number of an interned text, None when no row uses it."""
        known = self._words.get(text)
        if known is None:
            row = self._con.execute("SELECT id FROM word WHERE text = ?", (text_in(text),)).fetchone()
            known = None if row is None else self._learn(text, row[0])
        return known

    def ensure_word(self, text: str) -> int:
        known = self.word(text)
        if known is not None:
            return known
        made = self._con.execute("INSERT INTO word (text) VALUES (?)", (text_in(text),)).lastrowid
        assert made is not None
        return self._learn(text, made)

    def text(self, number: int) -> str:
        known = self._texts.get(number)
        if known is None:
            (stored,) = self._con.execute("SELECT text FROM word WHERE id = ?", (number,)).fetchone()
            known = text_out(stored)
            self._learn(known, number)
        return known

    def _learn(self, text: str, number: int) -> int:
        if len(self._words) >= CACHED_NAMES:
            self._words, self._texts = {"": 0}, {0: ""}
        self._words[text], self._texts[number] = number, text
        return number

    def ensure_via(self, url: str) -> int:
        """The number of a linking page. Its links arrive one after the other, so remembering the last one is enough."""
        if url == self._via[0]:
            return self._via[1]
        made = self._con.execute("INSERT INTO via (url) VALUES (?)", (text_in(url),)).lastrowid if url else 0
        assert made is not None
        self._via = (url, made)
        return made
