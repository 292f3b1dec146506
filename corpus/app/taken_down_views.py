"""What is taken down is in no view from the moment of the order, also before `takedown apply` has removed it from the files.

Tables of the orders in force and a condition on rows of a view; a folder without takedowns pays nothing.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from corpus.app.project import Project
from corpus.app.release import releases
from corpus.app.takedown_targets import targets_of


def standing(
    connection: duckdb.DuckDBPyConnection, project: Project, source: str, alias: str, columns: tuple[str, ...] = ("url_id", "id")
) -> str:
    """A SQL condition that no taken-down row of the relation `source` (with `columns` and host) fulfils; empty without takedowns."""
    targets = targets_of((entry for entry in project.control.read() if entry.action == "takedown"), 0)
    if not targets:
        return ""
    keys = {"url_id": targets.url_ids, "id": targets.ids}
    parts = []
    for column, values in keys.items():
        if values and column in columns:
            _table(connection, f"down_{column}", column, values)
            parts.append(f"{alias}.{column} NOT IN (SELECT {column} FROM down_{column})")
    if targets.domains:
        _table(connection, "down_domain", "domain", targets.domains)
        hosts = f"down_host_{source}"
        connection.execute(
            f"CREATE OR REPLACE TABLE {hosts} AS SELECT DISTINCT h.host FROM (SELECT DISTINCT host FROM {source}) h JOIN down_domain t"
            " ON h.host = t.domain OR ends_with(h.host, '.' || t.domain)"
        )
        parts.append(f"{alias}.host NOT IN (SELECT host FROM {hosts})")
    return " AND ".join(parts)


def hidden(connection: duckdb.DuckDBPyConnection, project: Project, name: str, source: str) -> None:
    """Create the view `name`: the rows of `source` that are not taken down."""
    where = standing(connection, project, source, "r")
    connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source} r" + (f" WHERE {where}" if where else ""))


def pages_now(connection: duckdb.DuckDBPyConnection, project: Project, source: str) -> None:
    """Create the view `pages`: what is taken down is excluded, whatever its row in the frontier still says."""
    where = standing(connection, project, source, "r", ("url_id",))
    if not where:
        connection.execute(f"CREATE VIEW pages AS SELECT * FROM {source}")
        return
    connection.execute(
        f"CREATE VIEW pages AS SELECT * REPLACE (CASE WHEN {where} THEN state ELSE 'excluded' END AS state,"
        f" CASE WHEN {where} THEN reason ELSE 'taken-down' END AS reason) FROM {source} r"
    )


def decided_now(connection: duckdb.DuckDBPyConnection, project: Project, name: str, source: str) -> None:
    """Create the view `name` of the newest decisions: what was taken down since is taken down, and the copies that took its place
    are in."""
    made = releases(project)
    promoted = frozenset(made[-1][1].get("promoted", ())) if made else frozenset()
    where = standing(connection, project, source, "r") or "true"
    if promoted:
        _table(connection, "promoted", "id", promoted)
    now_in = "r.id IN (SELECT id FROM promoted)" if promoted else "false"
    replaced = ", ".join(
        f"CASE WHEN NOT ({where}) THEN '{down}' WHEN {now_in} THEN '{up}' ELSE {column} END AS {column}"
        for column, down, up in (("stage", "allowed", "exported"), ("reason", "taken-down", ""))
    )
    plain = where == "true" and not promoted
    connection.execute(f"CREATE VIEW {name} AS SELECT *{'' if plain else f' REPLACE ({replaced})'} FROM {source} r")


def _table(connection: duckdb.DuckDBPyConnection, name: str, column: str, values: frozenset[str]) -> None:
    """One column of values, once a connection; a table, so that copies of the views can take it along."""
    connection.register("incoming", pa.table({column: pa.array(sorted(values), pa.string())}))
    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} AS SELECT * FROM incoming")
    connection.unregister("incoming")
