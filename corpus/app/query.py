"""Query results as CONTRACT prints them: JSON, CSV, a table for a terminal, a Parquet file."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from corpus.errors import UsageError
from corpus.store.local_objects import named_output, sealed

CELL_MAX = 80


def as_document(table: pa.Table) -> dict[str, Any]:
    """`{"columns", "types", "rows", "row_count"}`; times ISO-8601 with Z, bytes as hex, no NaN."""
    columns = [[plain(value) for value in column.to_pylist()] for column in table.columns]
    return {
        "columns": table.column_names,
        "types": [str(field.type) for field in table.schema],
        "rows": [list(row) for row in zip(*columns, strict=True)],
        "row_count": table.num_rows,
    }


def plain(value: Any) -> Any:
    """A value as JSON can say it."""
    match value:
        case datetime():
            aware = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
            return aware.isoformat().removesuffix("+00:00") + "Z"
        case date():
            return value.isoformat()
        case bytes():
            return value.hex()
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case dict():
            return {str(key): plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [plain(inner) for inner in value]
        case str():
            return value.encode("utf-8", "replace").decode()
        case None | bool() | int():
            return value
        case _:  # intervals, times of day, UUIDs: as their own text
            return str(value)


def as_csv(table: pa.Table) -> str:
    """Comma-separated values with a head line; lists and structs as JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(table.column_names)
    writer.writerows([_nested(value) for value in row] for row in as_document(table)["rows"])
    return out.getvalue()


def _nested(value: Any) -> Any:
    """Lists and structs as JSON, everything else as it is."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def as_table(table: pa.Table) -> str:
    """Columns side by side, long cells cut; one line per row."""
    rows = [[_cell(value) for value in row] for row in as_document(table)["rows"]]
    widths = [max(map(len, column)) for column in zip(table.column_names, *rows, strict=True)] if table.num_columns else []
    numbers = [pa.types.is_integer(f.type) or pa.types.is_floating(f.type) for f in table.schema]

    def line(cells: list[str]) -> str:
        return "  ".join(c.rjust(w) if n else c.ljust(w) for c, w, n in zip(cells, widths, numbers, strict=True)).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(list(table.column_names)), rule, *map(line, rows), f"({table.num_rows} rows)", ""])


def _cell(value: Any) -> str:
    text = "" if value is None else f"{value:g}" if isinstance(value, float) else str(_nested(value))
    text = " ".join(text.split())
    return text if len(text) <= CELL_MAX else text[: CELL_MAX - 1] + "\u2026"


def write_jsonl(batches: Iterable[pa.RecordBatch], output: str | None) -> int:
    """One JSON object a line, zstd; the file appears whole or not at all. Returns the number of rows."""
    if output is None:
        raise UsageError("a JSON lines file needs a name", "-o", "add -o result.jsonl.zst")
    rows = 0
    with (
        sealed(named_output(output)) as part,
        part.open("wb") as raw,
        zstandard.ZstdCompressor(level=3).stream_writer(raw, closefd=False) as out,
    ):
        for batch in batches:
            for row in batch.to_pylist():
                out.write((json.dumps(plain(row), ensure_ascii=False, allow_nan=False) + "\n").encode())
            rows += batch.num_rows
    return rows


def write_parquet(table: pa.Table, output: str | None) -> Path:
    """Write a result to a file and return its path. Raises UsageError without a name."""
    if output is None:
        raise UsageError("a Parquet file needs a name", "-o", "add -o result.parquet")
    with sealed(named_output(output)) as part:
        pq.write_table(table, part, compression="zstd")
    return Path(output)


def write_text(text: str, output: str) -> Path:
    """Write a result that is text to a file, in the place of one that was there, and return its path."""
    with sealed(named_output(output)) as part, part.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
    return Path(output)
