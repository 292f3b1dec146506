"""The four families of one segment as Arrow tables, and as Parquet files. Same rows in, same bytes out.

The schema is explicit, also for no rows; nothing in a file depends on a clock, a path or the machine. Names are relative
to the store's root: `documents/crawl_id=<id>/<segment>.parquet` and its like. Files are written a row group at a time.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.filter.runs import ROW_GROUP, Runs, grouped
from corpus.filter.schema import FAMILIES, file_schema

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
    """What became of one segment. `skipped`: captures that are no pages of ours (not 2xx), `repeats`: captures of an id seen before,
    `stuck`: content digests of bodies with that outcome."""

    crawl_id: str
    segment: str
    runs: Runs
    skipped: int = 0
    repeats: int = 0
    stuck: frozenset[str] = frozenset()

    def family(self, name: str) -> pa.Table:
        """All rows of a family at once: for segments that are known to be small."""
        return pa.concat_tables(self.groups(name)).combine_chunks()

    def groups(self, name: str) -> Iterator[pa.Table]:
        """The rows of a family, a row group at a time."""
        return self.runs.groups(name)

    @property
    def documents(self) -> pa.Table:
        return self.family("documents")

    @property
    def signals(self) -> pa.Table:
        return self.family("signals")

    @property
    def spans(self) -> pa.Table:
        return self.family("spans")

    @property
    def signatures(self) -> pa.Table:
        return self.family("signatures")


@dataclass(frozen=True, slots=True)
class Written:
    """One family file: name relative to the store's root, SHA-256 (hex) of its bytes, rows."""

    path: str
    sha256: str
    rows: int


def encode(family: str, table: pa.Table) -> bytes:
    """A family's table as one Parquet file."""
    sink = io.BytesIO()
    _write(family, table.schema, grouped(family, table), sink)
    return sink.getvalue()


def _write(family: str, columns: pa.Schema, groups: Iterable[pa.Table], sink: Any) -> None:
    schema = file_schema(family, columns.empty_table())
    with pq.ParquetWriter(
        sink,
        schema,
        compression="zstd",
        compression_level=_LEVEL,
        use_dictionary=_DICTIONARY[family],
        write_statistics=True,
        write_page_index=True,
        version="2.6",
        data_page_version="1.0",
        store_schema=True,
    ) as writer:
        for group in groups:
            writer.write_table(group if group.schema.equals(schema) else group.select(schema.names).cast(schema), ROW_GROUP)


def write_tables(tables: SegmentTables, place: Callable[[str], AbstractContextManager[Path]]) -> list[Written]:
    """Write every family file, in the order of `FAMILIES`, to the path that `place(name)` gives: on leaving it, what stands there is
    kept durably under that name, or nothing is."""
    written = []
    for family in FAMILIES:
        name = f"{family}/crawl_id={tables.crawl_id}/{tables.segment}.parquet"
        with place(name) as path:
            with pa.OSFile(str(path), "wb") as sink:
                _write(family, tables.runs.schema(family), tables.groups(family), sink)
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        written.append(Written(name, digest, tables.runs.rows(family)))
    return written
