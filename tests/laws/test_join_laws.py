"""The band join in pieces: whatever the grouping of files and the number of ranges, the pairs are those of the join in one process."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.filter.bands import KeyColumns, Pairs, band_keys, distinct, join, salted
from corpus.filter.join_files import join_range, ranges_for, read_pairs, sort_keys

BANDS, ROWS = 3, 2
_row = st.tuples(st.lists(st.integers(0, 2), min_size=6, max_size=6), st.booleans(), st.booleans(), st.integers(0, 1))
"""A signature, whether its row heads a node, whether its text has shingles, and its crawl."""


def _whole(signatures: np.ndarray, node: np.ndarray, crawl: np.ndarray) -> set[int]:
    columns = KeyColumns(BANDS, 10**9, None)
    columns.append(salted(band_keys(signatures, BANDS, ROWS), crawl))
    return {int(pair) for pairs in join(columns, node, 10**9) for pair in pairs}


def _in_pieces(folder: Path, files: Sequence[tuple[Path, np.ndarray, np.ndarray]], ranges: int, groups: int) -> list[Pairs]:
    """Keys of the files in so many groups, then every range of every band, in a shuffled order."""
    keys = []
    for at, group in enumerate(np.array_split(np.arange(len(files)), groups)):
        sources = [files[i][0] for i in group]
        node, crawl = (np.concatenate([files[i][column] for i in group] or [np.empty(0, np.int32)]) for column in (1, 2))
        keys.append(folder / f"keys-{at}")
        sort_keys(sources, node, crawl, (BANDS, ROWS), ranges, keys[-1])
    pieces = [(band, part) for band in range(BANDS) for part in range(ranges)]
    random.Random(ranges).shuffle(pieces)
    found: list[Pairs] = []
    for band, part in pieces:
        out = folder / f"pairs-{band}-{part}"
        opened = [path.open("rb") for path in keys]
        count = join_range(opened, band, part, (BANDS, ranges), out)
        for file in opened:
            file.close()
        pairs = list(read_pairs(out))
        assert sum(map(len, pairs)) == count
        found += pairs
    return found


@settings(max_examples=120, deadline=None)
@given(st.lists(_row, max_size=60), st.integers(1, 5), st.integers(1, 7), st.integers(1, 4), st.randoms(use_true_random=False))
def test_pieces_find_the_pairs_of_the_whole(rows, cuts, ranges, groups, order) -> None:
    """Any split into files, groups of files and key ranges gives the same set of pairs, giant buckets included."""
    numbers = np.arange(len(rows), dtype=np.int32)
    order.shuffle(numbers)
    signatures = np.array([row[0] for row in rows], dtype=np.uint32).reshape(len(rows), 6)
    heads, speaks = (np.array([row[i] for row in rows], dtype=bool) for i in (1, 2))
    crawl = np.array([row[3] for row in rows], dtype=np.int32)
    node = np.where(heads, numbers, -1).astype(np.int32)
    with TemporaryDirectory() as name:
        folder, files = Path(name), []
        for at, part in enumerate(np.array_split(np.arange(len(rows)), cuts)):
            path = folder / f"signatures-{at}"
            minhash = pa.FixedSizeListArray.from_arrays(pa.array(signatures[part].reshape(-1), pa.uint32()), 6)
            counts = pa.array(speaks[part].astype(np.int32) * 9)
            pq.write_table(pa.table({"minhash": minhash, "shingle_count": counts}), path, row_group_size=7)
            files.append((path, node[part], crawl[part]))
        pieces = _in_pieces(folder, files, ranges, groups)
    found = {int(pair) for pairs in pieces for pair in pairs}
    chosen = heads & speaks
    expected = _whole(signatures[chosen], node[chosen], crawl[chosen])
    assert found == expected
    assert all((pairs == distinct(pairs.copy())).all() for pairs in pieces)


@given(st.integers(0, 10**9), st.integers(1, 10**10))
def test_a_range_stays_within_its_memory(rows: int, memory: int) -> None:
    """As many ranges as the budget asks for, and never none."""
    ranges = ranges_for(rows, memory)
    assert ranges >= 1
    assert ranges == 1 or rows * 34 / ranges <= memory
