"""The measured rows of a snapshot: documents columns and signals side by side, segment by segment.

Both the policy and the writer of shards read them here, so the alignment of the two families is checked in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.errors import StoreError
from corpus.export.ports import HOST_LINES, Segment
from corpus.export.session import query

Places = npt.NDArray[np.int64]
_FEW = 8
"""Fewer rows than one in so many are copied out of their table."""


class SignalRows:
    """The signals of one segment, reachable by documents row number."""

    def __init__(self, segment: Segment, columns: Sequence[str] | None = None) -> None:
        documents = pq.ParquetFile(segment.documents).read(columns=["id", "outcome"], use_threads=False)
        good = np.asarray(pc.equal(documents["outcome"], "ok"))
        source = pq.ParquetFile(segment.signals)
        names = source.schema_arrow.names
        wanted = None if columns is None else ["id", *(c for c in columns if c in names and c != "id")]
        self.table = source.read(columns=wanted, use_threads=False)  # narrow columns: starting threads costs more than they do
        if not self.table["id"].equals(documents["id"].filter(pa.array(good))):
            raise StoreError("signals and documents differ in their rows", str(segment.signals), "run corpus verify --repair")
        self._at = np.cumsum(good) - 1

    def take(self, rows: Places) -> pa.Table:
        """The signals of documents rows whose outcome is ok."""
        return _chosen(self.table, self._at[rows])


def read_rows(path: Path, rows: Places, columns: Sequence[str], batch: int) -> Iterator[tuple[Places, pa.Table]]:
    """Ascending `rows` of a Parquet file in batches of at most `batch`, reading only the row groups that hold any."""
    source = pq.ParquetFile(path)
    start = 0
    for group in range(source.num_row_groups):
        stop = start + source.metadata.row_group(group).num_rows
        low, high = np.searchsorted(rows, (start, stop))
        if low < high:
            table = source.read_row_group(group, columns=list(columns), use_threads=False)
            for at in range(low, high, batch):
                part = rows[at : min(at + batch, high)]
                yield part, _chosen(table, part - start)
        start = stop


def _chosen(table: pa.Table, at: Places) -> pa.Table:
    """Ascending rows of a table. Neighbours are not copied, unless they are few: whoever keeps them would keep the whole table."""
    whole = len(at) > 0 and at[-1] - at[0] + 1 == len(at) and len(at) * _FEW >= len(table)
    return table.slice(at[0], len(at)) if whole else table.take(pa.array(at))


def reduced_signals(con: duckdb.DuckDBPyConnection) -> list[str]:
    """Signals that the whole snapshot was asked for: the columns of the table `host_lines` beyond its spans."""
    columns = [str(row[0]) for row in con.execute("DESCRIBE host_lines").fetchall()]
    return [name for name in columns if name not in HOST_LINES.names]


def with_reduced(con: duckdb.DuckDBPyConnection, measured: pa.Table, wanted: Sequence[str]) -> pa.Table:
    """Measured rows (with their `id`) and beside them those of `wanted` that only the whole snapshot could tell; NULL where it did not."""
    names = [name for name in reduced_signals(con) if name in wanted]
    if not names:
        return measured
    con.register("asked", measured.append_column("place", pa.array(np.arange(len(measured)))))
    try:
        columns = ", ".join(f'h."{name}"' for name in names)
        return query(
            con, f"SELECT a.* EXCLUDE (place), {columns} FROM asked a LEFT JOIN host_lines h ON h.id = a.id ORDER BY a.place"
        )
    finally:
        con.unregister("asked")


def host_spans(con: duckdb.DuckDBPyConnection, ids: pa.ChunkedArray) -> dict[str, list[tuple[int, int]]]:
    """The spans of lines that the host repeats, of these documents."""
    con.register("asked", pa.table({"id": ids}))
    try:
        rows = con.execute("SELECT id, starts, ends FROM host_lines SEMI JOIN asked USING (id) WHERE len(starts) > 0").fetchall()
    finally:
        con.unregister("asked")
    return {name: list(zip(starts, ends, strict=True)) for name, starts, ends in rows}


def require_signals(segments: Sequence[Segment], wanted: Iterable[str]) -> None:
    """Stop when a segment was measured without a signal that the policy names."""
    for segment in segments:
        names = set(pq.ParquetFile(segment.signals).schema_arrow.names)
        if missing := sorted(set(wanted) - names):
            raise StoreError(
                f"the policy names signals that segment {segment.name} lacks: {', '.join(missing)}",
                str(segment.signals),
                "run corpus process: it measures what is missing",
            )
