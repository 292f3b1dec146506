"""Rows on their way to shards: they arrive in file order, are sorted in runs, and leave piece by piece in release order.

A run is as many rows as the memory allows, sorted by place, in one Arrow file with one batch for each piece; so the work of a row
grows with the number of runs, not with the number of segments. Where a row comes to lie never depends on the runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints = npt.NDArray[np.int64]

RUN_BYTES_MAX = 2**30
"""String columns of one array hold less than 2 GiB."""
_POSITION = "position"


@dataclass(frozen=True, slots=True)
class _Run:
    """Rows with their places. Piece `pieces[i]` has `rows[order[cuts[i]:cuts[i + 1]]]`, or batch i of the file where there is one."""

    pieces: Ints
    cuts: Ints
    order: Ints
    rows: pa.Table
    file: Path | None = None


class PieceStore:
    """Gathers pieces: `starts[i]` is the first place of the i-th. At most `memory` bytes are held, the rest lies under `scratch`."""

    def __init__(self, starts: Ints, memory: int, scratch: Path) -> None:
        self._starts, self._scratch = starts, scratch
        self._most = min(memory // 2, RUN_BYTES_MAX)  # while a run is put in order there are two of it
        self._held: list[pa.Table] = []
        self._bytes = 0
        self._runs: list[_Run] = []

    def add(self, positions: Ints, rows: pa.Table) -> None:
        """Take rows in any order."""
        self._held.append(rows.append_column(_POSITION, pa.array(positions, pa.int64())))
        self._bytes += self._held[-1].nbytes
        if self._bytes > self._most:
            self._runs.append(self._write(self._run()))

    def read(self, piece: int, schema: pa.Schema) -> pa.Table:
        """A piece's rows in release order. Pieces are read after the last `add`."""
        if self._held:
            self._runs.append(self._run())
        tables = [table for run in self._runs if (table := _of(run, piece)) is not None]
        if not tables:
            return schema.empty_table()
        table = pa.concat_tables(tables)
        positions = np.asarray(table[_POSITION])
        table = table.drop_columns([_POSITION])
        return table if len(tables) == 1 else table.take(pa.array(np.argsort(positions)))

    def close(self) -> None:
        """Remove the files."""
        for run in self._runs:
            if run.file is not None:
                run.file.unlink()
        self._runs = []

    def _run(self) -> _Run:
        """What is held, put in order."""
        rows = pa.concat_tables(self._held).combine_chunks()
        self._held, self._bytes = [], 0
        positions = np.asarray(rows[_POSITION])
        order = np.argsort(positions)
        piece = np.searchsorted(self._starts, positions[order], side="right") - 1
        first = np.flatnonzero(np.diff(piece, prepend=-1))
        return _Run(piece[first], np.append(first, len(piece)), order, rows)

    def _write(self, run: _Run) -> _Run:
        path = self._scratch / f"run-{len(self._runs):06d}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, run.rows.schema) as writer:
            for at in range(len(run.pieces)):
                writer.write_batch(_sorted(run, at).combine_chunks().to_batches()[0])
        nothing = np.empty(0, np.int64)
        return _Run(run.pieces, nothing, nothing, run.rows.schema.empty_table(), path)


def _of(run: _Run, piece: int) -> pa.Table | None:
    """The rows of a piece in a run, in order; None where it has none."""
    at = int(np.searchsorted(run.pieces, piece))
    if at == len(run.pieces) or run.pieces[at] != piece:
        return None
    if run.file is None:
        return _sorted(run, at)
    with pa.OSFile(str(run.file), "rb") as source:
        return pa.Table.from_batches([pa.ipc.open_file(source).get_batch(at)])


def _sorted(run: _Run, at: int) -> pa.Table:
    """The rows of the run's piece number `at`; what lies together already is not copied."""
    chosen = run.order[run.cuts[at] : run.cuts[at + 1]]
    if len(chosen) and chosen[-1] - chosen[0] + 1 == len(chosen) and bool((np.diff(chosen) == 1).all()):
        return run.rows.slice(chosen[0], len(chosen))
    return run.rows.take(pa.array(chosen))
