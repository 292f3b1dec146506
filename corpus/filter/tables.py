"""The four families of one segment as Arrow tables, and their bytes as Parquet files. Same rows in, same bytes out.

The schema is explicit, also for no rows; nothing in a file depends on a clock, a path or the machine. Names are relative
to the store's root: `documents/crawl_id=<id>/<segment>.parquet` and its like.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.filter.schema import FAMILIES, file_schema

ROW_GROUP: Final = 1024
"""Rows of a row group: the export prunes by domain ranges, and a reader of one document reads one group."""
_LEVEL: Final = 3
_DICTIONARY: Final = {
    "documents": [
        "host", "domain", "crawl_id", "origin", "outcome", "content_type", "charset", "charset_source", "language", "language_script", "extractor",
        "license_url", "use", "file_path",
    ],
    "signals": ["language", "url_list_names", "contaminated_task"],
    "spans": ["kind", "id"],
    "signatures": ["scheme"],
}  # fmt: skip
assert set(_DICTIONARY) == set(FAMILIES), "every family says which columns repeat"


@dataclass(frozen=True, slots=True)
class SegmentTables:
    """What became of one segment. `skipped`: captures that are no pages of ours (not 2xx), `repeats`: captures of an id seen before."""

    crawl_id: str
    segment: str
    documents: pa.Table
    signals: pa.Table
    spans: pa.Table
    signatures: pa.Table
    skipped: int = 0
    repeats: int = 0

    def family(self, name: str) -> pa.Table:
        table: pa.Table = {
            "documents": self.documents,
            "signals": self.signals,
            "spans": self.spans,
            "signatures": self.signatures,
        }[name]
        return table


@dataclass(frozen=True, slots=True)
class Written:
    """One family file: name relative to the store's root, SHA-256 (hex) of its bytes, rows."""

    path: str
    sha256: str
    rows: int


def encode(family: str, table: pa.Table) -> bytes:
    """A family's table as one Parquet file."""
    sink = io.BytesIO()
    schema = file_schema(family, table)
    pq.write_table(
        table.select(schema.names).cast(schema),
        sink,
        row_group_size=ROW_GROUP,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=_DICTIONARY[family],
        write_statistics=True,
        write_page_index=True,
        version="2.6",
        data_page_version="1.0",
        store_schema=True,
    )
    return sink.getvalue()


def encoded(tables: SegmentTables) -> Iterator[tuple[str, bytes, int]]:
    """(name, bytes, rows) of each family, in the order of `FAMILIES`."""
    for family in FAMILIES:
        table = tables.family(family)
        yield f"{family}/crawl_id={tables.crawl_id}/{tables.segment}.parquet", encode(family, table), table.num_rows


def write_tables(tables: SegmentTables, put: Callable[[str, bytes], object]) -> list[Written]:
    """Hand every family file to `put(name, bytes)`, which keeps it durably and refuses other bytes under the same name."""
    written = []
    for name, data, rows in encoded(tables):
        put(name, data)
        written.append(Written(name, hashlib.sha256(data).hexdigest(), rows))
    return written
