"""Release rows made from family rows: documents, signals, consent and cluster side by side, texts cut, tokens counted.

One segment at a time, in batches; what comes out is complete, and carries its place in the release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.export.edits import cut_column, spans_by_id
from corpus.export.measured import SignalRows, host_spans, read_rows, with_reduced
from corpus.export.ports import HOST_LINE, ReleasePolicy, Segment, TokenCounter
from corpus.export.schema import CONSENT_STRUCT, COPIED
from corpus.export.session import query
from corpus.model import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class RowMaker:
    """What every row of a release shares."""

    schema: pa.Schema
    policy: ReleasePolicy
    tokens: TokenCounter | None
    batch: int

    def of_segment(self, con: duckdb.DuckDBPyConnection, number: int, segment: Segment) -> Iterator[tuple[np.ndarray, pa.Table]]:
        """(positions in the release, rows of the frozen schema) of a segment's kept documents, in file order."""
        kept = query(con, f"SELECT * FROM kept WHERE file_no = {number} ORDER BY row_no")
        if not len(kept):
            return
        rows = np.asarray(kept["row_no"]).astype(np.int64)
        signals = SignalRows(segment)
        spans = pq.ParquetFile(segment.spans).read(columns=["id", "kind", "start", "end"]) if self.policy.cut else None
        at = 0
        for part, documents in read_rows(segment.documents, rows, [*COPIED, "text", "language"], self.batch):
            decided = kept.slice(at, len(part))
            at += len(part)
            cuts = {} if spans is None else spans_by_id(spans, self.policy.cut, documents["id"].combine_chunks())
            for name, found in (host_spans(con, documents["id"]) if HOST_LINE in self.policy.cut else {}).items():
                cuts.setdefault(name, []).extend(found)
            text = cut_column(documents["text"], documents["id"], cuts)
            measured = with_reduced(con, signals.take(part), self.schema.field("signals").type.names)
            yield np.asarray(decided["position"]), self._rows(documents, text, measured, decided)

    def _rows(self, documents: pa.Table, text: pa.ChunkedArray, signals: pa.Table, decided: pa.Table) -> pa.Table:
        size = len(documents)
        columns = {name: documents[name] for name in COPIED}
        columns["text"] = text
        columns["dump"] = documents["crawl_id"]
        columns["date"] = pc.strftime(documents["fetched_at"].cast(pa.timestamp("s"), safe=False), format="%Y-%m-%dT%H:%M:%SZ")
        columns["language"] = pc.fill_null(documents["language"], "und")
        columns["token_count"] = (
            pa.nulls(size, pa.int64()) if self.tokens is None else pa.array(self.tokens.count(text.to_pylist()), pa.int64())
        )
        columns["minhash_cluster_size"] = decided["cluster_size"]
        columns["minhash_cluster_id"] = decided["cluster_id"]
        columns["quality_score"] = decided["score"]
        columns["signals"] = _struct(self.schema.field("signals").type, signals)
        columns["consent"] = _struct(CONSENT_STRUCT, decided)
        columns["policy_digest"] = pa.array([self.policy.digest] * size, pa.string())
        columns["schema_version"] = pa.array(np.full(size, SCHEMA_VERSION, dtype=np.int32))
        arrays = [_as(columns[field.name], field.type) for field in self.schema]
        return pa.Table.from_arrays(arrays, schema=self.schema)


def _as(column: pa.Array | pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    """One array of a type; what has it already is not copied."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column if column.type == kind else column.cast(kind)


def _struct(kind: pa.StructType, table: pa.Table) -> pa.Array:
    """A struct column of a table's columns by name; a field that the table lacks is null."""
    fields, names = [kind.field(i) for i in range(kind.num_fields)], set(table.column_names)
    arrays = [_as(table[f.name], f.type) if f.name in names else pa.nulls(len(table), f.type) for f in fields]
    return pa.StructArray.from_arrays(arrays, fields=fields) if fields else pa.array([{}] * len(table), kind)
