"""What a database is bound to for good: one corpus, and the number of partition files its frontier is spread over."""

from __future__ import annotations

from contextlib import closing
from typing import Any, cast

import psycopg

from corpus.errors import UsageError
from corpus.store.frontier_pg_db import dial, shown, translated
from corpus.store.frontier_pg_schema import PARENT
from corpus.url.partition import PARTITION_FILES

_BINDING = 0x636F7276
_MAKE = (
    f"CREATE SCHEMA IF NOT EXISTS {PARENT}",
    (
        f"CREATE TABLE IF NOT EXISTS {PARENT}.corpus (one smallint PRIMARY KEY DEFAULT 1 CHECK (one = 1), name text NOT NULL,"
        f" files smallint NOT NULL DEFAULT {PARTITION_FILES})"
    ),
    f"ALTER TABLE {PARENT}.corpus ADD COLUMN IF NOT EXISTS files smallint NOT NULL DEFAULT {PARTITION_FILES}",
)
_HAS = "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attname = 'files'"


def bind(dsn: str, corpus: str, spread: int = PARTITION_FILES) -> None:
    """Make sure that a database holds the frontier of this corpus only, spread over so many files; a new one does from now on.
    Raises UsageError naming what it holds."""
    where = shown(dsn)
    with translated(where), closing(dial(dsn, None)) as con:
        with con.transaction():
            con.execute("SELECT pg_advisory_xact_lock(%s)", (_BINDING,))  # workers of a fleet start at the same moment
            if not _has(con):
                for statement in _MAKE:
                    con.execute(cast(Any, statement))
            # what was made before a database was bound has as many files as every frontier had then
            (old,) = con.execute("SELECT to_regclass(%s)", (f"{PARENT}.lease",)).fetchone() or (None,)
            sql = f"INSERT INTO {PARENT}.corpus (name, files) VALUES (%s, %s) ON CONFLICT DO NOTHING"
            con.execute(cast(Any, sql), (corpus, spread if old is None else PARTITION_FILES))
            (name,) = con.execute(cast(Any, f"SELECT name FROM {PARENT}.corpus")).fetchone() or ("",)
        if name != corpus:
            told = f"this database holds the frontier of the corpus {name!r}"
            raise UsageError(told, "store.frontier", "give every corpus a database of its own")
        check_spread(con, spread, where)


def spread_of(con: psycopg.Connection[Any]) -> int | None:
    """Over how many files the frontier here is spread; None where nothing was settled yet."""
    if not _has(con):
        return None
    (files,) = con.execute(cast(Any, f"SELECT files FROM {PARENT}.corpus")).fetchone() or (None,)
    return files


def check_spread(con: psycopg.Connection[Any], spread: int, where: str) -> None:
    """Raises UsageError where a database is spread over another number of files than we think: nothing would be found again."""
    found = spread_of(con)
    if found not in (None, spread):
        told = f"the frontier in this database is spread over {found} partition files, not {spread} ({where})"
        raise UsageError(told, "store.partition_files", f"set it to {found}, or begin with an empty database")


def _has(con: psycopg.Connection[Any]) -> bool:
    return con.execute(_HAS, (f"{PARENT}.corpus",)).fetchone() is not None
