"""The measured rows of a snapshot: documents columns and signals side by side, segment by segment.

Both the policy and the writer of shards read them here, so the alignment of the two families is checked in one place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.errors import StoreError
from corpus.export.ports import Segment

Places = npt.NDArray[np.int64]


class SignalRows:
    """The signals of one segment, reachable by documents row number."""

    def __init__(self, segment: Segment, columns: Sequence[str] | None = None) -> None:
        documents = pq.ParquetFile(segment.documents).read(columns=["id", "outcome"])
        good = np.asarray(pc.equal(documents["outcome"], "ok"))
        source = pq.ParquetFile(segment.signals)
        names = source.schema_arrow.names
        self.table = source.read(columns=None if columns is None else ["id", *(c for c in columns if c in names and c != "id")])
        if not self.table["id"].equals(documents["id"].filter(pa.array(good))):
            raise StoreError("signals and documents differ in their rows", str(segment.signals), "run corpus verify --repair")
        self._at = np.cumsum(good) - 1

    def take(self, rows: Places) -> pa.Table:
        """The signals of documents rows whose outcome is ok."""
        at = self._at[rows]
        whole = len(at) > 0 and at[-1] - at[0] + 1 == len(at)
        return self.table.slice(at[0], len(at)) if whole else self.table.take(pa.array(at))


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
                whole = part[-1] - part[0] + 1 == len(part)
                yield part, table.slice(part[0] - start, len(part)) if whole else table.take(pa.array(part - start))
        start = stop


def require_signals(segments: Sequence[Segment], wanted: Sequence[str]) -> None:
    """Stop when a segment was measured without a signal that the policy names."""
    for segment in segments:
        names = set(pq.ParquetFile(segment.signals).schema_arrow.names)
        if missing := sorted(set(wanted) - names):
            raise StoreError(
                f"the policy names signals that segment {segment.name} lacks: {', '.join(missing)}",
                str(segment.signals),
                "run corpus process: it measures what is missing",
            )
