"""`catalog.sqlite`: which file holds which id, so that one id is found without reading a thousand footers.

A cache and nothing else: every word of it follows from files that commit records name, and losing it loses nothing. A set
of files enters under a name and the digest of the list it was read from; whoever asks names the digest, so what was read from
an older list is never believed. One writer at a time; readers see the last whole state.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.void]
"""Identities as 16 raw bytes each."""

_VERSION = 1
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS sets (no INTEGER PRIMARY KEY, name TEXT UNIQUE, digest TEXT, rows INTEGER);
CREATE TABLE IF NOT EXISTS files (set_no INTEGER, no INTEGER, path TEXT, PRIMARY KEY (set_no, no)) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""
_BUSY_S = 10.0
ASKED_MAX = 1000
"""Ids one question may name; beyond, looking everywhere is as good."""


class Catalog:
    """The cache at one path. A file that is no catalog of this version counts as none: reads find nothing, a write starts anew."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def files_of(self, name: str, digest: str, ids: Sequence[str]) -> list[str] | None:
        """Files of the set that hold any of the ids (32 hex digits). None when the set as `digest` describes it is not in the catalog."""
        try:
            with self._reading() as con:
                found = con.execute("SELECT no FROM sets WHERE name = ? AND digest = ?", (name, digest)).fetchone()
                if found is None or len(ids) > ASKED_MAX:
                    return None
                keys = [bytes.fromhex(one) for one in ids if len(one) == 32]
                marks = ", ".join("?" * len(keys))
                query = f"SELECT DISTINCT path FROM ids_{found[0]} i JOIN files f ON f.set_no = ? AND f.no = i.file WHERE i.id IN ({marks}) ORDER BY 1"
                return [str(row[0]) for row in con.execute(query, (found[0], *keys))]
        except (sqlite3.Error, ValueError, OSError):  # no catalog, a damaged one, or no hex: look everywhere
            return None

    def sets(self) -> dict[str, tuple[str, int]]:
        """(digest, rows) of every set; empty without a usable catalog."""
        try:
            with self._reading() as con:
                return {
                    str(name): (str(digest), int(rows))
                    for name, digest, rows in con.execute("SELECT name, digest, rows FROM sets")
                }
        except (sqlite3.Error, OSError):
            return {}

    def content(self, name: str) -> Iterator[tuple[str, bytes]]:
        """(file, id) of a set in the order of its ids. Raises sqlite3.Error when the catalog is damaged."""
        with self._reading() as con:
            for (number,) in con.execute("SELECT no FROM sets WHERE name = ?", (name,)).fetchall():
                query = f"SELECT path, id FROM ids_{number} i JOIN files f ON f.set_no = {number} AND f.no = i.file ORDER BY id"
                yield from con.execute(query)

    def put(self, name: str, digest: str, files: Iterable[tuple[str, Ids]]) -> int:
        """Put a set in the place of what stood under its name; returns its rows. Takes 24 bytes of memory an id."""
        with self._writing() as con:
            self._drop(con, name)
            number = int(con.execute("INSERT INTO sets (name, digest, rows) VALUES (?, ?, 0)", (name, digest)).lastrowid or 0)
            con.execute(f"CREATE TABLE ids_{number} (id BLOB PRIMARY KEY, file INTEGER) WITHOUT ROWID")
            ids, owners = [], []
            for at, (path, some) in enumerate(files):
                con.execute("INSERT INTO files VALUES (?, ?, ?)", (number, at, path))
                ids.append(some)
                owners.append(np.full(len(some), at, dtype=np.int32))
            rows = sum(map(len, ids))
            if rows:
                con.executemany(f"INSERT INTO ids_{number} VALUES (?, ?)", _sorted(np.concatenate(ids), np.concatenate(owners)))
            con.execute("UPDATE sets SET rows = ? WHERE no = ?", (rows, number))
        return rows

    def keep(self, names: Iterable[str]) -> None:
        """Forget every set but these."""
        gone = self.sets().keys() - set(names)
        if gone:
            with self._writing() as con:
                for name in sorted(gone):
                    self._drop(con, name)

    def forget(self) -> None:
        """Remove the whole catalog."""
        for suffix in ("", "-journal", "-wal", "-shm"):
            self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)

    @staticmethod
    def _drop(con: sqlite3.Connection, name: str) -> None:
        for (number,) in con.execute("SELECT no FROM sets WHERE name = ?", (name,)).fetchall():
            con.execute(f"DROP TABLE IF EXISTS ids_{number}")
            con.execute("DELETE FROM files WHERE set_no = ?", (number,))
            con.execute("DELETE FROM sets WHERE no = ?", (number,))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with closing(
            sqlite3.connect(
                f"file:{self._path.as_posix().replace('?', '%3f').replace('#', '%23')}?mode=ro", uri=True, timeout=_BUSY_S
            )
        ) as con:
            if con.execute("PRAGMA user_version").fetchone()[0] != _VERSION:
                raise sqlite3.DatabaseError("a catalog of another version")
            yield con

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction; what is no catalog of this version is thrown away first."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._path.exists() and not self._usable():
            self.forget()
        with closing(sqlite3.connect(self._path, timeout=_BUSY_S)) as con:
            con.executescript(_SCHEMA)
            with con:
                con.execute("BEGIN IMMEDIATE")
                yield con

    def _usable(self) -> bool:
        try:
            with self._reading() as con:
                return str(con.execute("PRAGMA quick_check(1)").fetchone()[0]) == "ok"
        except (sqlite3.Error, OSError):
            return False


def _sorted(ids: Ids, owners: npt.NDArray[np.int32]) -> Iterator[tuple[bytes, int]]:
    """Pairs in the order of the ids: a table that is filled in order is written once and has no holes."""
    words = ids.view(">u8").reshape(len(ids), 2)
    order = np.lexsort((words[:, 1], words[:, 0]))
    raw = ids[order].tobytes()
    for at, owner in enumerate(owners[order].tolist()):
        yield raw[16 * at : 16 * at + 16], owner
