"""Pieces: whatever order and whatever batches rows arrive in, and however little memory there is, a piece has its rows in order."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.export.measured import read_rows
from corpus.export.pieces import PieceStore

ROWS = pa.schema([("text", pa.string()), ("signals", pa.struct([("words", pa.int64()), ("ratio", pa.float64())]))])


def rows(positions: np.ndarray) -> pa.Table:
    """Made-up rows that tell where they belong."""
    made = {"text": [f"row {n} " * (n % 5) for n in positions], "signals": [{"words": int(n), "ratio": None} for n in positions]}
    return pa.table(made, schema=ROWS)


@settings(deadline=None)  # up to 60 files an example
@given(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.permutations(range(n)), st.sets(st.integers(0, n - 1)), st.integers(1, 9))),
    st.sampled_from((1, 700, 10**9)),
)
def test_a_piece_has_its_rows_in_order(case: tuple[list[int], set[int], int], memory: int) -> None:
    """One run for every batch, a few runs, or none at all: read piece by piece it is the whole in release order."""
    order, cuts, batch = case
    starts = sorted({0, *cuts})
    with TemporaryDirectory() as folder:
        store = PieceStore(np.array(starts), memory, Path(folder))
        for at in range(0, len(order), batch):
            chosen = np.array(order[at : at + batch])
            store.add(chosen, rows(chosen))
        for number, (start, stop) in enumerate(zip(starts, [*starts[1:], len(order)], strict=True)):
            assert store.read(number, ROWS).equals(rows(np.arange(start, stop)))
        store.close()
        assert not list(Path(folder).iterdir())


def test_files_grow_with_rows_and_not_with_segments(tmp_path: Path) -> None:
    """A thousand segments of which each touches every piece leave as many files as their bytes ask for, with one batch a piece."""
    starts = np.arange(0, 20_000, 100)
    store = PieceStore(starts, 600_000, tmp_path)
    for segment in range(1_000):
        chosen = np.arange(segment, 20_000, 1_000)
        store.add(chosen, rows(chosen))
    files = list(tmp_path.iterdir())
    assert 2 <= len(files) <= 8
    for file in files:
        with pa.OSFile(str(file), "rb") as source:
            assert pa.ipc.open_file(source).num_record_batches <= len(starts)
    assert store.read(150, ROWS).equals(rows(np.arange(15_000, 15_100)))


def test_a_piece_without_rows_is_an_empty_table(tmp_path: Path) -> None:
    """A release without rows has shards all the same."""
    store = PieceStore(np.zeros(1, dtype=np.int64), 1, tmp_path)
    assert store.read(0, ROWS).equals(ROWS.empty_table())


def test_a_few_rows_do_not_keep_their_whole_file_in_memory(tmp_path: Path) -> None:
    """What a segment's reader hands on is its rows; only where they are much of what was read it is not copied."""
    pq.write_table(pa.table({"text": ["a text of some length " * 20] * 2_000}), tmp_path / "rows.parquet")

    def kept(rows: list[int]) -> int:
        ((_, table),) = read_rows(tmp_path / "rows.parquet", np.array(rows), ["text"], 4_096)
        return sum(buffer.size for buffer in table["text"].chunk(0).buffers() if buffer is not None)

    assert kept([700]) < 1_000
    assert kept([700, 701, 702]) < 3_000
    assert kept(list(range(1_000))) > 400_000
