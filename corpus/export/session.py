"""A bounded DuckDB in memory: what a release decides with. It never opens a database file and never loads an extension."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa


def open_session(memory: int, threads: int, scratch: Path) -> duckdb.DuckDBPyConnection:
    """A connection that keeps at most `memory` bytes and spills to `scratch`."""
    return duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{max(memory // 2**20, 64)}MiB",
            "threads": str(threads),
            "temp_directory": str(scratch),
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "python_enable_replacements": "false",
        },
    )


def steady_memory() -> None:
    """Let Arrow allocate with jemalloc in this process, where it is built in: the usual allocator asks the kernel for zeroed huge
    pages again and again, which costs a sixth of an export. No byte of any output depends on it."""
    if "jemalloc" in pa.supported_memory_backends() and pa.default_memory_pool().backend_name == "mimalloc":
        pa.set_memory_pool(pa.jemalloc_memory_pool())


def append(con: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Insert Arrow rows into a table of the same columns, by name."""
    con.register("incoming", rows)
    try:
        con.execute(f"INSERT INTO {table} BY NAME SELECT * FROM incoming")
    finally:
        con.unregister("incoming")


def load(con: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Create a table from Arrow rows."""
    con.register("incoming", rows)
    try:
        con.execute(f"CREATE TABLE {table} AS SELECT * FROM incoming")
    finally:
        con.unregister("incoming")


def query(con: duckdb.DuckDBPyConnection, statement: str) -> pa.Table:
    """The whole result as an Arrow table."""
    return con.sql(statement).to_arrow_table()


def stream(con: duckdb.DuckDBPyConnection, statement: str, rows: int) -> Iterator[pa.Table]:
    """The result in tables of exactly `rows` rows (the last may be shorter), however DuckDB batches it."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in con.sql(statement).to_arrow_reader(rows):
        held.append(batch)
        size += len(batch)
        while size >= rows:
            table = pa.Table.from_batches(held)
            yield table.slice(0, rows).combine_chunks()
            held, size = table.slice(rows).to_batches(), size - rows
    if size:
        yield pa.Table.from_batches(held).combine_chunks()


def one(con: duckdb.DuckDBPyConnection, statement: str) -> tuple[Any, ...]:
    """The one row of an aggregate (read to its end: DuckDB 2 refuses other work on a connection with rows left)."""
    row: tuple[Any, ...] = con.execute(statement).fetchall()[0]
    return row


def count(con: duckdb.DuckDBPyConnection, statement: str) -> int:
    """The single number a statement returns."""
    value = one(con, statement)[0]
    return int(value) if value is not None else 0
