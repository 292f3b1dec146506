"""Many rows of one statement as one statement of the server: an array for each column, and `unnest`.

A statement written for SQLite that would be repeated row by row is turned into one that takes all rows at once. It is prepared
once whatever the number of rows, so a commit costs the server a few statements however many pages it holds. What cannot be
turned (rows that touch one key twice, an expression that is not understood) is repeated as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from corpus.store.frontier_pg_schema import ALL_TABLES, Table, quoted

AT_ONCE = 10_000
"""Rows of one statement."""
ESCAPED = "\x01"
_INSERT = re.compile(r"^INSERT(?: OR (REPLACE|IGNORE))? INTO (\w+)(?: \(([^)]*)\))? VALUES \([?, ]+\)(.*)$")
_UPDATE = re.compile(r"^UPDATE (\w+) SET (.*) WHERE (.*)$")
_DELETE = re.compile(r"^DELETE FROM (\w+) WHERE (.*)$")
_SET = re.compile(r"(\w+) ?= ?(?:(\w+) ?([+-]) ?)?\?")
_WHERE = re.compile(r"(\w+) ?(=|<=|>=|<|>) ?\?")


@dataclass(frozen=True, slots=True)
class Many:
    """`sql` takes one array a column, whose types are `types`; `key`: places of the columns that no two rows may share (none: any)."""

    sql: str
    types: tuple[str, ...]
    key: tuple[int, ...]

    def takes(self, rows: Sequence[Sequence[Any]]) -> bool:
        """Whether these rows may go at once: the server changes a row once in a statement."""
        if len(rows) < 2 or not self.key:
            return True
        return len({tuple(row[n] for n in self.key) for row in rows}) == len(rows)

    def arrays(self, rows: Sequence[Sequence[Any]]) -> list[str]:
        return [array(kind, column) for kind, column in zip(self.types, zip(*rows, strict=True), strict=True)]


def escaped(text: str) -> str:
    """Text as PostgreSQL can hold it: what it cannot (NUL, lone surrogates) as JSON behind a mark."""
    if "\0" not in text and not text.startswith(ESCAPED):
        with suppress(UnicodeEncodeError):
            text.encode("utf-8")
            return text
    return ESCAPED + json.dumps(text)


def array(kind: str, values: Sequence[Any]) -> str:
    """Values of one type as an array's text; None is NULL."""
    match kind:
        case "text":
            parts = ["NULL" if value is None else _quoted(value) for value in values]
        case "bytea":
            parts = ["NULL" if value is None else f'"\\\\x{value.hex()}"' for value in values]
        case _:
            parts = [
                "NULL" if value is None else str(int(value) if value is True or value is False else value) for value in values
            ]
    return f"{{{','.join(parts)}}}"


def _quoted(value: str | bytes) -> str:
    text = value if isinstance(value, str) else value.decode("utf-8", "surrogatepass")
    if not text.isascii() or "\0" in text or text.startswith(ESCAPED):
        text = escaped(text)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def unnest(types: Sequence[str]) -> str:
    """A row source with a column for each of these types, to be given as arrays."""
    return f"unnest({', '.join(f'%s::{kind}[]' for kind in types)})"


def type_of(table: Table, column: str) -> str:
    """A column's bare type."""
    said = dict(table.columns)[column]
    return "double precision" if said.startswith("double") else said.split()[0]


@lru_cache(256)
def as_many(sql: str) -> Many | None:
    """The statement for all rows at once; None for one that must be repeated."""
    sql = " ".join(sql.split())
    if found := _INSERT.match(sql):
        return _insert(*found.groups())
    if found := _UPDATE.match(sql):
        return _update(*found.groups())
    if found := _DELETE.match(sql):
        return _delete(*found.groups())
    return None


def _insert(how: str | None, name: str, columns: str | None, rest: str) -> Many:
    table = ALL_TABLES[name]
    names = tuple(part.strip() for part in columns.split(",")) if columns else table.names
    types = tuple(type_of(table, column) for column in names)
    key = ", ".join(table.key)
    if how == "IGNORE":
        rest = " ON CONFLICT DO NOTHING"
    elif how == "REPLACE":
        sets = ", ".join(f"{quoted(column)} = excluded.{quoted(column)}" for column in names if column not in table.key)
        rest = f" ON CONFLICT ({key}) DO UPDATE SET {sets}"
    else:
        rest = re.sub(r"(?<![\w\"])offset\b", '"offset"', rest).replace("ON CONFLICT DO UPDATE", f"ON CONFLICT ({key}) DO UPDATE")
    places = tuple(names.index(column) for column in table.key) if "DO UPDATE" in rest else ()
    return Many(f"INSERT INTO {name} ({', '.join(map(quoted, names))}) SELECT * FROM {unnest(types)}{rest}", types, places)


def _update(name: str, sets: str, where: str) -> Many | None:
    table, types, key = ALL_TABLES[name], list[str](), list[int]()

    def assigned(found: re.Match[str]) -> str:
        types.append(type_of(table, found[1]))
        before = f"{name}.{quoted(found[2])} {found[3]} " if found[2] else ""
        return f"{quoted(found[1])} = {before}v.c{len(types)}"

    sets = _SET.sub(assigned, sets)
    first = len(types)
    where = _compared(table, where, types)
    key += range(first, len(types))
    if "?" in sets or "?" in where:
        return None
    return Many(f"UPDATE {name} SET {sets} FROM {unnest(types)} AS v({_names(types)}) WHERE {where}", tuple(types), tuple(key))


def _delete(name: str, where: str) -> Many | None:
    table, types = ALL_TABLES[name], list[str]()
    where = _compared(table, where, types)
    if "?" in where:
        return None
    return Many(f"DELETE FROM {name} USING {unnest(types)} AS v({_names(types)}) WHERE {where}", tuple(types), ())


def _compared(table: Table, where: str, types: list[str]) -> str:
    def compared(found: re.Match[str]) -> str:
        types.append(type_of(table, found[1]))
        return f"{table.name}.{quoted(found[1])} {found[2]} v.c{len(types)}"

    return _WHERE.sub(compared, where)


def _names(types: Sequence[str]) -> str:
    return ", ".join(f"c{n}" for n in range(1, len(types) + 1))
