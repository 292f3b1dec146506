"""Rows of one segment on their way to their place: sorted runs, and from them the row groups of each family's file.

What waits in memory is a run of some megabytes and, of every document, what it is sorted by; the rest waits in a `Scratch`. So memory
grows with the number of documents by their keys alone, and not with their text. Without a scratch all rows stay in memory. Where runs
end changes no row and no row group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpus.filter.schema import FAMILIES, SCHEMAS

ROW_GROUP: Final = 1024
"""Rows of a row group: the export prunes by domain ranges, and a reader of one document reads one group."""
GROUP_BYTES: Final = 16 * 2**20
"""Bytes of text that end a row group earlier. Whoever writes or reads one holds all of its text, several times over: of a thousand
texts of a megabyte each that would be gigabytes."""
RUN_BYTES = 16 * 2**20
"""Bytes of rows that are sorted together."""
_PIECE_BYTES: Final = 2**17
"""Bytes of rows that are read back together: while files are written, each run has one such piece in memory."""
_KEYS: Final = ("domain", "url", "id")

Numbers = npt.NDArray[np.int64]


class Scratch(Protocol):
    """A place for bytes that nobody else sees and nobody misses."""

    def append(self, data: memoryview) -> int:
        """Keep the bytes; returns where they are."""

    def read(self, offset: int, size: int) -> bytes:
        """Bytes that were kept."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one family, in order: held, or where they are in the scratch."""

    rows: int
    held: pa.Table | None
    place: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class _Run:
    """Sorted rows of all families. `counts`: by family, how many rows each document has in it."""

    keys: pa.Table
    weights: Numbers
    counts: dict[str, Numbers]
    schemas: dict[str, pa.Schema]
    pieces: dict[str, list[_Piece]]


class Runs:
    """The rows of a segment. Tables are added batch by batch; then `groups` gives a family in the order (domain, url, id) of its
    documents, as often as asked."""

    def __init__(self, scratch: Scratch | None = None) -> None:
        self._scratch = scratch
        self._runs: list[_Run] = []
        self._waiting: dict[str, list[pa.Table]] = {family: [] for family in FAMILIES}
        self._size = 0
        self._order: npt.NDArray[np.int32] | None = None

    def add(self, tables: Mapping[str, pa.Table]) -> None:
        """A batch: its documents in any order, each once in the segment; rows of the other families by document, in theirs."""
        for family in FAMILIES:
            self._waiting[family].append(tables[family])
            self._size += tables[family].nbytes
        if self._scratch is not None and self._size >= RUN_BYTES:
            self._end_run(self._scratch)

    def finish(self) -> None:
        """No more batches. The last run stays in memory."""
        if self._waiting["documents"]:
            self._end_run(None)
        keys = pa.concat_tables([DOCUMENT_KEYS.empty_table(), *(run.keys for run in self._runs)])
        of = np.repeat(np.arange(len(self._runs), dtype=np.int32), [len(run.keys) for run in self._runs])
        self._order = of[_sorting(keys)]
        pa.default_memory_pool().release_unused()

    def schema(self, family: str) -> pa.Schema:
        """The columns of a family: those all segments have and, of signals, the operator's own."""
        empty = [run.schemas[family].empty_table() for run in self._runs]
        return pa.concat_tables([SCHEMAS[family].empty_table(), *empty], promote_options="default").schema

    def rows(self, family: str) -> int:
        """How many rows a family has."""
        return sum(int(run.counts[family].sum()) for run in self._runs)

    def groups(self, family: str) -> Iterator[pa.Table]:
        """The rows of a family, a row group at a time, each column in one chunk; one empty table where there are none."""
        assert self._order is not None, "groups() before finish()"
        schema, empty = self.schema(family), np.zeros(0, np.int64)
        counts = self._in_order([run.counts[family] for run in self._runs])
        weights = self._in_order([run.weights for run in self._runs]) if family == "documents" else empty
        ends = np.cumsum(counts)
        cursors = [_Cursor(run.pieces[family], run.schemas[family], self._scratch) for run in self._runs]
        start = 0
        for end in group_ends(int(counts.sum()), weights):
            first, last = np.searchsorted(ends, (start, end - 1), side="right")
            runs = np.repeat(self._order[first : last + 1], counts[first : last + 1])
            before = start - int(ends[first] - counts[first])
            yield _gathered(runs[before : before + end - start], cursors, schema)
            start = end
        if not start:
            yield schema.empty_table()

    def _in_order(self, of_runs: Sequence[Numbers]) -> Numbers:
        """A number of each document of each run, in the order of the whole."""
        found = np.zeros(len(self._order) if self._order is not None else 0, np.int64)
        for run, values in enumerate(of_runs):
            found[self._order == run] = values
        return found

    def _end_run(self, scratch: Scratch | None) -> None:
        documents = self._joined("documents")
        documents = documents.take(pa.array(_sorting(documents)))
        weights = _text_bytes(documents)
        keys, ids = documents.select(list(_KEYS)).cast(DOCUMENT_KEYS), documents["id"].combine_chunks()
        counts, schemas = {"documents": np.ones(len(documents), np.int64)}, {"documents": documents.schema}
        pieces = {"documents": _pieces(documents, weights, scratch)}
        del documents
        for family in FAMILIES[1:]:
            table = self._joined(family)
            places = np.asarray(pc.index_in(table["id"].combine_chunks(), value_set=ids))
            table = table.take(pa.array(np.argsort(places, kind="stable")))
            counts[family], schemas[family] = np.bincount(places, minlength=len(ids)).astype(np.int64), table.schema
            pieces[family] = _pieces(table, np.zeros(0, np.int64), scratch)
        self._runs.append(_Run(keys, weights, counts, schemas, pieces))
        self._size = 0

    def _joined(self, family: str) -> pa.Table:
        """All that waits, in one chunk a column; nothing waits any more."""
        tables = self._waiting[family]
        self._waiting[family] = []
        return pa.concat_tables([SCHEMAS[family].empty_table(), *tables], promote_options="default").combine_chunks()


DOCUMENT_KEYS: Final = pa.schema([SCHEMAS["documents"].field(name) for name in _KEYS])


class _Cursor:
    """Reads the pieces of one family of one run from the first to the last."""

    def __init__(self, pieces: Sequence[_Piece], schema: pa.Schema, scratch: Scratch | None) -> None:
        self._left, self._schema, self._scratch = iter(pieces), schema, scratch
        self._now: pa.Table | None = None
        self._at = 0

    def next(self, rows: int) -> list[pa.Table]:
        """The next rows, as tables in order."""
        found = []
        while rows:
            if self._now is None:
                self._now, self._at = self._loaded(next(self._left)), 0
            whole, start = self._now, self._at
            self._at = min(start + rows, len(whole))
            found.append(whole if self._at - start == len(whole) else whole.slice(start, self._at - start))
            rows -= self._at - start
            if self._at == len(whole):
                self._now = None
        return found

    def _loaded(self, piece: _Piece) -> pa.Table:
        if piece.held is not None:
            return piece.held
        assert self._scratch is not None, "a piece is held or was kept in the scratch"
        return pa.Table.from_batches([pa.ipc.read_record_batch(pa.py_buffer(self._scratch.read(*piece.place)), self._schema)])


def group_ends(rows: int, weights: Numbers) -> list[int]:
    """Where row groups end, of so many rows: `weights` are the bytes of each one's text, or nothing where no text is among them."""
    return _ends(rows, weights, ROW_GROUP, GROUP_BYTES)


def _ends(rows: int, weights: Numbers, most: int, size: int) -> list[int]:
    """Ends of parts of at most `most` rows, and of `size` bytes unless a single row has more."""
    total = np.cumsum(weights)
    ends: list[int] = []
    start = 0
    while start < rows:
        end = min(start + most, rows)
        if len(total):
            before = int(total[start - 1]) if start else 0
            end = min(end, max(int(np.searchsorted(total, before + size, side="right")), start + 1))
        ends.append(end)
        start = end
    return ends


def grouped(family: str, table: pa.Table) -> Iterator[pa.Table]:
    """A whole table of a family as its row groups."""
    start = 0
    for end in group_ends(len(table), _text_bytes(table) if family == "documents" else np.zeros(0, np.int64)):
        yield table.slice(start, end - start)
        start = end
    if not start:
        yield table


def _text_bytes(documents: pa.Table) -> Numbers:
    lengths: Numbers = np.asarray(pc.fill_null(pc.binary_length(documents["text"]), 0)).astype(np.int64)
    return lengths


def _sorting(documents: pa.Table) -> Any:
    """Row numbers in the order (domain, url, id)."""
    return np.asarray(pc.sort_indices(documents, sort_keys=[(name, "ascending") for name in _KEYS]))


def _pieces(table: pa.Table, weights: Numbers, scratch: Scratch | None) -> list[_Piece]:
    """A run's rows of one family, kept where they belong."""
    if scratch is None:
        return [_Piece(len(table), table)]
    rows = max(_PIECE_BYTES * len(table) // max(table.nbytes - int(weights.sum()), 1), 1)
    found, start = [], 0
    for end in _ends(len(table), weights, rows, _PIECE_BYTES):
        (batch,) = table.slice(start, end - start).to_batches()
        data = batch.serialize()
        found.append(_Piece(end - start, None, (scratch.append(memoryview(data)), data.size)))
        start = end
    return found


def _gathered(runs: npt.NDArray[np.int32], cursors: Sequence[_Cursor], schema: pa.Schema) -> pa.Table:
    """The next rows of the cursors, in the order in which `runs` names them."""
    order = np.argsort(runs, kind="stable")
    parts: list[pa.Table] = []
    for run, rows in zip(*np.unique(runs, return_counts=True), strict=True):
        parts += cursors[run].next(int(rows))
    alike = all(part.schema.equals(schema) for part in parts)
    table = pa.concat_tables(parts) if alike else pa.concat_tables([schema.empty_table(), *parts], promote_options="default")
    del parts
    table = table.combine_chunks()
    if (np.diff(order) == 1).all():
        return table
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return table.take(pa.array(places))
