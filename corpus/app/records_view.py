"""The view `records`: the newest release; and of it only the shards that can answer, where a query asks for ids.

Narrowing changes no answer: it is done for a plain SELECT over `records` alone whose WHERE demands an id, and only where the
catalog knows the release as it is now.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb

from corpus.app.catalog import shards_with
from corpus.app.project import Project
from corpus.app.release import releases, shard_files
from corpus.app.taken_down_views import hidden

_TREE = "SELECT json_serialize_sql(?)"


class Narrowing:
    """Of one connection: whether its view `records` stands for a part, for the query that is being prepared."""

    def __init__(self) -> None:
        self._on = False

    def before(self, connection: duckdb.DuckDBPyConnection, project: Project, sql: str, made: set[str]) -> None:
        """Make `records` of the shards a query needs, or unmake it after such a query. `made` names the views there are."""
        if self._on:
            connection.execute("DROP VIEW IF EXISTS records")
            connection.execute("DROP VIEW IF EXISTS released")
            made.discard("records")
        files = _files(connection, project, sql) if "records" not in made else []
        self._on = bool(files)
        if files:
            listed = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
            connection.execute(f"CREATE VIEW released AS SELECT * FROM read_parquet([{listed}], hive_partitioning = false)")
            hidden(connection, project, "records", "released")
            made.add("records")


def _files(connection: duckdb.DuckDBPyConnection, project: Project, sql: str) -> list[str]:
    """The shards of the newest release that can answer a query for ids; none where it is no such query, or nobody knows."""
    ids = ids_asked(connection, sql)
    made = releases(project) if ids is not None else []
    found = shards_with(project, *made[-1], ids or []) if made else None
    if found is None:
        return []
    name, manifest = made[-1]
    return shard_files(project, name, {"shards": found or manifest["shards"][:1]}, empty=True)


def ids_asked(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str] | None:
    """The ids that every row of the answer must have one of; None where the query is not plainly about that."""
    if sql.lower().count("records") != 1:
        return None
    rows = connection.execute(_TREE, [sql]).fetchall()  # a row fetched alone would leave the connection busy for the next view
    told: dict[str, Any] = json.loads(rows[0][0]) if rows else {"error": True}
    if told["error"] or len(told["statements"]) != 1:
        return None
    node = told["statements"][0]["node"]
    source = node.get("from_table") or {}
    plain = (
        node.get("type") == "SELECT_NODE"
        and source.get("type") == "BASE_TABLE"
        and source.get("table_name", "").lower() == "records"
    )
    if not plain or source.get("schema_name") or node.get("cte_map", {}).get("map"):
        return None
    return next((ids for part in _demands(node.get("where_clause")) if (ids := _ids(part)) is not None), None)


def _demands(clause: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The conditions that must all hold."""
    if clause is not None and clause.get("type") == "CONJUNCTION_AND":
        for child in clause["children"]:
            yield from _demands(child)
    elif clause is not None:
        yield clause


def _ids(condition: dict[str, Any]) -> list[str] | None:
    """The texts that a condition allows the column `id` to be."""
    match condition.get("type"):
        case "COMPARE_EQUAL":
            sides = [condition["left"], condition["right"]]
            sides = sides if sides[0].get("class") == "COLUMN_REF" else sides[::-1]
        case "COMPARE_IN":
            sides = list(condition["children"])
        case _:
            return None
    column, *values = sides
    if column.get("class") != "COLUMN_REF" or column["column_names"][-1].lower() != "id" or len(column["column_names"]) > 2:
        return None
    literals = [value.get("literal", {}) for value in values if value.get("class") == "CONSTANT"]
    if len(literals) != len(values) or any(literal.get("kind") != "STRING" for literal in literals):
        return None
    return [str(literal["text"]) for literal in literals]
