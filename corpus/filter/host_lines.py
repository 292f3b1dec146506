"""Lines that many pages of one host have: navigation, notices, footers that extraction took for text.

Counted over a whole snapshot, one text a URL, near copies as one page; a line on `pages` different pages of a host becomes a
span in each of them. A pure function of documents and clusters: order, sharding and memory change no byte. Never looks at a
policy, never cuts. Lines wait in Parquet files of the scratch folder and DuckDB joins them within its budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from corpus.errors import StoreError
from corpus.filter.hex_ids import Words, to_hex, to_words
from corpus.filter.representatives import Facts, Places, read_facts, representatives, with_text
from corpus.filter.tokens import measured_part

VERSION: Final = 1
"""Part of the stage key: bumped when the same documents give other lines."""
LEAST_BYTES: Final = 16
"""UTF-8 bytes of a folded line that counts: three short words, or five ideographs. Shorter ones ("Example", "}", "---") recur by chance."""
HOST_LINES: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("host_lines", pa.int64(), nullable=False),
        ("host_line_ratio", pa.float64()),
        ("host_line_char_ratio", pa.float64()),
        pa.field("starts", pa.list_(pa.int32()), nullable=False),
        pa.field("ends", pa.list_(pa.int32()), nullable=False),
    ]
)
"""One row a text, in id order. `starts` and `ends` are code points of the stored text, runs of host lines joined."""
_LINES = pa.schema(
    [
        ("key", pa.uint64()),
        ("page", pa.int32()),
        ("doc", pa.int32()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("before", pa.int32()),
    ]
)
"""`page`: the near-duplicate cluster; `before`: the end of the line with text before this one, -1 without one."""
_SHARED = """
CREATE TABLE shared AS SELECT key FROM (SELECT DISTINCT key, page FROM read_parquet($files)) GROUP BY key HAVING count(*) >= $pages
"""
_HITS = 'SELECT doc, start, "end", before FROM read_parquet($files) SEMI JOIN shared USING (key) ORDER BY doc, start'
_TEXT_ROWS = 1024
_SLICE = 65_536

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class HostLinesSummary:
    """Texts looked at, lines that recur on some host, texts with at least one, and code points in them."""

    texts: int
    shared: int
    touched: int
    chars: int


@dataclass(slots=True)
class _Batch:
    """Columns of `_LINES` on their way to a file."""

    columns: dict[str, list[int]] = field(default_factory=lambda: {name: [] for name in _LINES.names})

    def add(self, *values: int) -> None:
        for column, value in zip(self.columns.values(), values, strict=True):
            column.append(value)

    def table(self) -> pa.Table:
        return pa.table(self.columns, schema=_LINES)


def write_host_lines(
    documents: Sequence[Path], clusters: Path, pages: int, out: Path, *, scratch: Path, memory: int, threads: int = 1
) -> HostLinesSummary:
    """Write `out` for the texts of a snapshot. `documents` in the order in which they were clustered; `scratch` is an empty
    folder for about 30 bytes a line and DuckDB's spills. Raises StoreError where `clusters` are of other documents."""
    facts = read_facts(documents)
    texts = with_text(facts, representatives(facts))
    facts = facts.without_urls().without_texts()
    page = _pages(facts, texts, clusters)
    place = np.full(int(facts.starts[-1]), -1, dtype=np.int32)
    place[texts] = np.arange(len(texts), dtype=np.int32)
    sizes = np.zeros((len(texts), 2), dtype=np.int32)
    files = []
    for number, path in enumerate(documents):
        files.append(scratch / f"lines-{number:06d}.parquet")
        _write_lines(path, place[facts.starts[number] : facts.starts[number + 1]], page, sizes, files[-1])
    ids = facts.id[texts]
    del facts, place, page
    with _session(memory, threads, scratch) as con:
        named = [str(path) for path in files]
        con.execute(_SHARED, {"files": named, "pages": pages})
        shared = int(con.execute("SELECT count(*) FROM shared").fetchall()[0][0])
        touched, chars = _write(ids, sizes, _hits(con, named), out)
    return HostLinesSummary(len(ids), shared, touched, chars)


def _session(memory: int, threads: int, scratch: Path) -> duckdb.DuckDBPyConnection:
    return duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{max(memory // 2**20, 64)}MiB",
            "threads": str(threads),
            "temp_directory": str(scratch / "spill"),
            "preserve_insertion_order": "false",
        },
    )


def _pages(facts: Facts, texts: Places, clusters: Path) -> Ints:
    """Each text's cluster, as the place of the text that gives it its name: the smallest id in it."""
    ids = facts.id[texts]
    found = np.full(len(texts), -1, dtype=np.int32)
    for batch in pq.ParquetFile(clusters).iter_batches(batch_size=_SLICE, columns=["id", "cluster_id"]):
        at = _find(ids, to_words(batch.column("id"), 32, str(clusters)))
        named = _find(ids, to_words(batch.column("cluster_id"), 32, str(clusters)))
        found[at[at >= 0]] = named[at >= 0]
    if (found < 0).any():
        raise StoreError("documents with text are in no cluster", str(clusters), "run corpus dedup on this snapshot again")
    return found


def _find(ids: Words, sought: Words) -> Places:
    """The place of each identity in `ids` (sorted), -1 where it is not there."""
    if not len(ids):
        return np.full(len(sought), -1, dtype=np.int64)
    kind = np.dtype([("high", ">u8"), ("low", ">u8")])

    def packed(words: Words) -> npt.NDArray[np.void]:
        return np.ascontiguousarray(words.astype(">u8")).view(kind).reshape(-1)

    at = np.minimum(np.searchsorted(packed(ids), packed(sought)), len(ids) - 1)
    return np.where((ids[at] == sought).all(axis=1), at, -1)


def _write_lines(path: Path, place: Ints, page: Ints, sizes: Ints, out: Path) -> None:
    """The lines of one documents file's texts; `sizes[doc]` becomes (lines with text, code points measured)."""
    source = pq.ParquetFile(path)
    start = 0
    with pq.ParquetWriter(out, _LINES, compression="zstd", compression_level=1) as writer:
        for group in range(source.num_row_groups):
            stop = start + source.metadata.row_group(group).num_rows
            rows = np.flatnonzero(place[start:stop] >= 0)
            if len(rows):
                table = source.read_row_group(group, columns=["host", "text"], use_threads=False)
                for low in range(0, len(rows), _TEXT_ROWS):
                    some = rows[low : low + _TEXT_ROWS]
                    writer.write_table(_lines(table.take(pa.array(some)), place[start + some], page, sizes))
            start = stop


def _lines(table: pa.Table, docs: Ints, page: Ints, sizes: Ints) -> pa.Table:
    batch = _Batch()
    for doc, host, whole in zip(docs.tolist(), table["host"].to_pylist(), table["text"].to_pylist(), strict=True):
        salt = f"{host}\n".encode()
        text = measured_part(whole)
        at, before, filled = 0, -1, 0
        number = int(page[doc])
        for line in text.split("\n"):
            end = at + len(line)
            folded = " ".join(line.lower().split()).encode("utf-8", "surrogatepass")
            if folded:
                filled += 1
                if len(folded) >= LEAST_BYTES:
                    batch.add(xxhash.xxh3_64_intdigest(salt + folded), number, doc, at, end, before)
                before = end
            at = end + 1
        sizes[doc] = filled, len(text)
    return batch.table()


def _hits(con: duckdb.DuckDBPyConnection, files: list[str]) -> Iterator[npt.NDArray[np.int64]]:
    """Rows (doc, start, end, before) of shared lines, by document and place, in arrays of some length."""
    for batch in con.sql(_HITS, params={"files": files}).to_arrow_reader(_SLICE):
        yield np.stack([np.asarray(batch.column(name)).astype(np.int64) for name in ("doc", "start", "end", "before")], axis=1)


def _write(ids: Words, sizes: Ints, hits: Iterator[npt.NDArray[np.int64]], out: Path) -> tuple[int, int]:
    """Every text's row in fixed slices; returns how many have a host line, and the code points in all of these."""
    held = np.empty((0, 4), dtype=np.int64)
    touched = chars = 0
    with pq.ParquetWriter(out, HOST_LINES, compression="zstd", compression_level=3, write_page_index=True) as writer:
        for low in range(0, max(len(ids), 1), _SLICE):
            high = min(low + _SLICE, len(ids))
            while not len(held) or held[-1, 0] < high:
                more = next(hits, None)
                if more is None:
                    break
                held = np.concatenate((held, more))
            cut = int(np.searchsorted(held[:, 0], high))
            table, inside = _table(ids[low:high], sizes[low:high], held[:cut] - np.array([low, 0, 0, 0]))
            touched += int(np.count_nonzero(np.asarray(table["host_lines"])))
            chars += inside
            writer.write_table(table, row_group_size=_SLICE)
            held = held[cut:]
    return touched, chars


def _table(ids: Words, sizes: Ints, hits: npt.NDArray[np.int64]) -> tuple[pa.Table, int]:
    doc, start, end, before = hits.T
    size = len(ids)
    number = np.bincount(doc, minlength=size)
    inside = np.bincount(doc, weights=end - start, minlength=size).astype(np.int64)
    follows = np.zeros(len(doc), dtype=bool)
    follows[1:] = (doc[1:] == doc[:-1]) & (before[1:] == end[:-1])
    first = np.flatnonzero(~follows)
    last = np.append(first[1:], len(doc)) - 1 if len(first) else first
    offsets = np.concatenate(([0], np.cumsum(np.bincount(doc[first], minlength=size)))).astype(np.int32)
    columns = [
        to_hex(ids),
        pa.array(number, pa.int64()),
        _ratio(number, sizes[:, 0]),
        _ratio(inside, sizes[:, 1]),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(start[first].astype(np.int32))),
        pa.ListArray.from_arrays(pa.array(offsets), pa.array(end[last].astype(np.int32))),
    ]
    return pa.Table.from_arrays(columns, schema=HOST_LINES), int(inside.sum())


def _ratio(part: npt.NDArray[np.int64], whole: Ints) -> pa.Array:
    return pa.array(part / np.maximum(whole, 1), pa.float64(), mask=whole == 0)
