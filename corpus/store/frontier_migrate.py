"""Bringing a partition file of an older version up to this one's schema, inside the transaction that opens it.

Steps only add: no row is lost or given another meaning, and what is new starts from a default that says "not known".
Views are made again at the end, because they name the columns.
"""

from __future__ import annotations

import sqlite3

from corpus.store.frontier_schema import HOSTS_VIEW, LINE_INDEX, RETIRED_INDEX, SCHEMA, URLS_VIEW, VERSION_TABLE

STEPS: dict[int, tuple[str, ...]] = {
    1: (
        "ALTER TABLE host ADD COLUMN quality REAL",
        "ALTER TABLE host ADD COLUMN cache_hits INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE host ADD COLUMN cache_misses INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE url ADD COLUMN again INTEGER NOT NULL DEFAULT 0",
        "DROP INDEX url_line",
        LINE_INDEX,
        "ALTER TABLE visit ADD COLUMN seen REAL",
        "ALTER TABLE visit ADD COLUMN changed REAL",
        "ALTER TABLE visit ADD COLUMN watched_s REAL",
        "ALTER TABLE visit ADD COLUMN checked_at REAL",
        "ALTER TABLE visit ADD COLUMN rate INTEGER",
        "ALTER TABLE visit ADD COLUMN cache INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE visit ADD COLUMN age_s INTEGER",
        VERSION_TABLE,
        "ALTER TABLE host ADD COLUMN failures INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE host ADD COLUMN failing_since REAL",
        RETIRED_INDEX,
        "ALTER TABLE visit ADD COLUMN whole_at REAL",
        "ALTER TABLE visit ADD COLUMN payload INTEGER",
    ),
}
"""Per schema what makes it the next one."""
assert set(STEPS) == set(range(1, SCHEMA)), "every older schema needs its step"


def migrate(con: sqlite3.Connection) -> None:
    """Run every step that the file has not had. The caller holds a write transaction; a current file is left alone."""
    (found,) = con.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    if found >= SCHEMA:
        return
    for view in ("urls", "hosts"):
        con.execute(f"DROP VIEW {view}")
    for schema in range(found, SCHEMA):
        for statement in STEPS[schema]:
            con.execute(statement)
    for view in (URLS_VIEW, HOSTS_VIEW):
        con.execute(view)
    con.execute("UPDATE meta SET value = ? WHERE name = 'schema'", (SCHEMA,))
