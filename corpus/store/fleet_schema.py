"""What several crawling machines share in PostgreSQL beside the partition files: runs, members, inbox, addresses, near copies.

The tables lie in the schema `frontier`, made and brought up under one advisory lock, one step per schema number. Everything
that loses rows all the time is vacuumed early. What is here is small and short-lived, or can be made again from the frontier
(near copies); the frontier itself is in `frontier_pg_schema`.
"""

from __future__ import annotations

from typing import Any, cast

from corpus.errors import NewerSchema
from corpus.store.frontier_pg_db import dial, shown, translated
from corpus.store.frontier_pg_schema import PARENT

try:
    import psycopg
except ImportError as error:  # said in full by frontier_pg_db, which is imported first
    raise error

FIRST_MEMBER = 100
"""Numbers below name the fetch processes of `corpus run`; a name of a segment says which kind wrote it."""
BANDS_MAX = 8
"""Near copies of `crawl.near_k` up to 7 need that many bands."""
_LOCK = 0x636F7272
_QUICK = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0"
_BANDS = ", ".join(f"b{n} bigint" for n in range(BANDS_MAX))
CONTROL_CHANNEL = "corpus_control"

STEPS: tuple[tuple[str, ...], ...] = (
    (
        (f"CREATE TABLE {PARENT}.run (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, crawl_id text NOT NULL,"
        " opened timestamptz NOT NULL DEFAULT clock_timestamp(), ended text NOT NULL DEFAULT '', dealt bigint NOT NULL DEFAULT 0,"
        " seeded smallint[] NOT NULL DEFAULT '{}', shape text NOT NULL DEFAULT '{}') WITH (fillfactor = 20)"),
        (f"CREATE TABLE {PARENT}.member (id bigint GENERATED ALWAYS AS IDENTITY (START WITH {FIRST_MEMBER}) PRIMARY KEY,"
        " run bigint NOT NULL, host text NOT NULL, pid integer NOT NULL, region text NOT NULL, joined timestamptz NOT NULL,"
        " seen timestamptz NOT NULL, expires timestamptz NOT NULL, state text NOT NULL, report text NOT NULL DEFAULT '{}')"
        f" WITH (fillfactor = 20, {_QUICK})"),
        (f"CREATE TABLE {PARENT}.inbox (dst smallint NOT NULL, src smallint NOT NULL, first bigint NOT NULL, last bigint NOT NULL,"
        f" rows bytea NOT NULL, PRIMARY KEY (dst, src, first, last)) WITH ({_QUICK})"),
        (f"CREATE TABLE {PARENT}.address (ip bigint PRIMARY KEY, owner text NOT NULL, taken double precision NOT NULL,"
        " ttl_s double precision NOT NULL, due_set double precision NOT NULL, due_wait double precision NOT NULL)"
        f" WITH (fillfactor = 50, {_QUICK})"),
        (f"CREATE TABLE {PARENT}.near (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, url text COLLATE \"C\" NOT NULL,"
        f" found text COLLATE \"C\" NOT NULL, fetched_at double precision, digest bytea NOT NULL, simhash bigint, {_BANDS})"
        " WITH (autovacuum_vacuum_insert_scale_factor = 0.1, autovacuum_analyze_scale_factor = 0.02)"),
        f"CREATE INDEX near_digest ON {PARENT}.near USING hash (digest)",
        *(f"CREATE INDEX near_b{n} ON {PARENT}.near (b{n}, id) WHERE b{n} IS NOT NULL" for n in range(BANDS_MAX)),
        (f"CREATE TABLE {PARENT}.errand (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, dst smallint, asker bigint NOT NULL,"
        f" body text NOT NULL, posted timestamptz NOT NULL DEFAULT clock_timestamp()) WITH ({_QUICK})"),
        f"CREATE TABLE {PARENT}.control (one smallint PRIMARY KEY DEFAULT 1 CHECK (one = 1), n bigint NOT NULL) WITH (fillfactor = 20)",
    ),
    (
        (f"CREATE TABLE {PARENT}.way (part smallint NOT NULL, region text COLLATE \"C\" NOT NULL, n integer NOT NULL,"
        f" connect_s double precision NOT NULL, PRIMARY KEY (part, region)) WITH (fillfactor = 50, {_QUICK})"),
        (f"ALTER TABLE {PARENT}.run ADD COLUMN far text NOT NULL DEFAULT '{{}}',"
        " ADD COLUMN far_since timestamptz NOT NULL DEFAULT '-infinity'"),
    ),
)  # fmt: skip
"""Statements that bring the tables from one schema number to the next."""


def open_fleet(dsn: str, generation: int | None = None) -> psycopg.Connection[Any]:
    """A connection beside the partition files, with the fleet's tables there. Raises StoreError, NewerSchema.

    `generation`: what a new database begins its epochs with; it is kept from then on (`generation_of`)."""
    con = dial(dsn, None)
    try:
        with translated(shown(dsn)):
            con.execute("SET jit = off")
            if _found(con) != len(STEPS):
                _bring_up(con, dsn, generation or 0)
    except BaseException:
        con.close()
        raise
    return con


def generation_of(con: psycopg.Connection[Any]) -> int:
    """The epoch before the first of this database: names of a database that was lost are never given again."""
    (found,) = con.execute(cast(Any, f"SELECT generation FROM {PARENT}.fleet")).fetchone() or (0,)
    return int(found)


def fleet_schema(con: psycopg.Connection[Any]) -> int:
    """The schema number of the fleet's tables; 0 where there are none."""
    return _found(con)


def _found(con: psycopg.Connection[Any]) -> int:
    (there,) = con.execute("SELECT to_regclass(%s)", (f"{PARENT}.fleet",)).fetchone() or (None,)
    if there is None:
        return 0
    (found,) = con.execute(cast(Any, f"SELECT schema FROM {PARENT}.fleet")).fetchone() or (0,)
    return int(found)


def _bring_up(con: psycopg.Connection[Any], dsn: str, generation: int) -> None:
    with con.transaction():
        con.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        con.execute(cast(Any, f"CREATE SCHEMA IF NOT EXISTS {PARENT}"))
        found = _found(con)
        if found > len(STEPS):
            told = f"written by a newer version (fleet schema {found}, this one knows {len(STEPS)})"
            raise NewerSchema(told, shown(dsn), "update corpus, or use another database")
        if not found:
            con.execute(
                cast(
                    Any,
                    f"CREATE TABLE {PARENT}.fleet (one smallint PRIMARY KEY DEFAULT 1 CHECK (one = 1), schema integer NOT NULL,"
                    " generation bigint NOT NULL)",
                )
            )
            con.execute(cast(Any, f"INSERT INTO {PARENT}.fleet (schema, generation) VALUES (0, %s)"), (generation,))
        for step in STEPS[found:]:
            for statement in step:
                con.execute(cast(Any, statement))
        con.execute(cast(Any, f"UPDATE {PARENT}.fleet SET schema = %s"), (len(STEPS),))
