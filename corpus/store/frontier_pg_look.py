"""One look at a PostgreSQL server as a corpus would use it: version, rights, what is there already. Changes nothing.

For `corpus check` and `corpus doctor`; no stage decides anything by it.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

from corpus.store.fleet_schema import STEPS, fleet_schema
from corpus.store.frontier_pg_bound import spread_of
from corpus.store.frontier_pg_db import dial, shown, translated
from corpus.store.frontier_pg_schema import PARENT, SCHEMA, schema_of

OLDEST = 15
NEWEST_SCHEMAS = (SCHEMA, len(STEPS))
"""Of a partition file and of a fleet's tables: what this version knows."""


@dataclass(frozen=True, slots=True)
class ServerLook:
    """`version`: the server's major one. `may_create`: whether this role may make schemas in the database. `owner`: whose the tables
    are, empty where there are none; `owns`: whether they are as good as ours. `schemas`: (partition file, fleet), 0 for none.
    `corpus`: the name of the one that the database belongs to, or empty. `connections`: how many the server takes of us and others
    together. `spread`: over how many partition files the frontier is spread; None where that is not settled."""

    role: str
    version: int
    may_create: bool
    owner: str
    owns: bool
    schemas: tuple[int, int]
    corpus: str
    connections: int
    spread: int | None


def look(dsn: str) -> ServerLook:
    """Log in and look. Raises StoreError (ServerGone where nobody answers)."""
    with translated(shown(dsn)), closing(dial(dsn, None, readonly=True)) as con:
        row = _one(
            con,
            "SELECT current_user::text, current_setting('server_version_num')::int / 10000,"
            " has_database_privilege(current_database(), 'CREATE'),"
            " current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int",
        )
        role, version, may_create, connections = str(row[0]), int(row[1]), bool(row[2]), int(row[3])
        found = con.execute(
            "SELECT pg_get_userbyid(nspowner)::text, pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = %s",
            (PARENT,),
        ).fetchone()
        if found is None or not found[1]:  # what is not ours cannot be read either
            return ServerLook(
                role, version, may_create, str(found[0]) if found else "", found is None, (0, 0), "", connections, None
            )
        schemas, ours = (_file_schema(con), fleet_schema(con)), _corpus(con)
        return ServerLook(role, version, may_create, str(found[0]), True, schemas, ours, connections, spread_of(con))


def _file_schema(con: Any) -> int:
    if _one(con, f"SELECT to_regclass('{schema_of(0)}.meta')")[0] is None:
        return 0
    return int(_one(con, f"SELECT value FROM {schema_of(0)}.meta WHERE name = 'schema'")[0])


def _corpus(con: Any) -> str:
    if _one(con, f"SELECT to_regclass('{PARENT}.corpus')")[0] is None:
        return ""
    row = con.execute(cast(Any, f"SELECT name FROM {PARENT}.corpus")).fetchone()
    return str(row[0]) if row else ""


def _one(con: Any, sql: str) -> tuple[Any, ...]:
    row = con.execute(cast(Any, sql)).fetchone()
    assert row is not None, "such a question has one answer"
    return tuple(row)
