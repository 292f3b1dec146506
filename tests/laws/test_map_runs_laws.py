"""Rows on their way to their place: where runs and pieces end changes no byte of a segment's files, and what waits is bounded."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.errors import StoreError
from corpus.filter import runs as module
from corpus.filter.runs import Runs, group_ends
from corpus.filter.schema import FAMILIES, SCHEMAS
from corpus.filter.tables import SegmentTables, encode, write_tables
from corpus.store.scratch import ScratchFile

SIZES = st.lists(st.integers(0, 3_000), max_size=60)


def _value(field: pa.Field, key: str, number: int) -> object:
    if field.name == "domain":
        return f"d{number % 3}.example"
    if pa.types.is_string(field.type):
        return key if field.name in {"id", "url"} else f"{field.name}-{number % 4}"
    if pa.types.is_fixed_size_list(field.type):
        return list(range(number, number + field.type.list_size))
    return [] if pa.types.is_list(field.type) else number


def _batch(first: int, texts: list[int]) -> dict[str, pa.Table]:
    """One batch of documents whose texts have these lengths; a length of 0 stands for a page without text, and has no other rows."""
    rows = [(first + i, hashlib.sha256(b"%d" % (first + i)).hexdigest()[:32], size) for i, size in enumerate(texts)]
    tables = {}
    for family in FAMILIES:
        own = [(n, key, size, 1) for n, key, size in rows if size or family == "documents"]
        if family == "spans":
            own = [(n + k, key, size, 1) for n, key, size, _ in own for k in range(size % 5)]
        records = [{f.name: _value(f, key, n) for f in SCHEMAS[family]} for n, key, _, _ in own]
        if family == "documents":
            for record, (_, key, size, _) in zip(records, own, strict=True):
                record["text"] = (key * (size // 32 + 1))[:size] if size else None
        tables[family] = pa.Table.from_pylist(records, schema=SCHEMAS[family])
    own_signal = pa.array(["x"] * len(tables["signals"]), pa.string())
    tables["signals"] = tables["signals"].append_column("z_own", own_signal) if len(own_signal) else tables["signals"]
    return tables


def _files(runs: Runs, folder: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}

    @contextmanager
    def place(name: str) -> Iterator[Path]:
        yield folder / "part"
        found[name.partition("/")[0]] = (folder / "part").read_bytes()

    write_tables(SegmentTables("c", "s", runs), place)
    return found


@settings(max_examples=40, deadline=None)
@given(SIZES, st.integers(1, 20), st.integers(1, 40_000), st.integers(1, 2_000), st.integers(2, 9))
def test_runs_and_pieces_change_no_byte(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], batch: int, run: int, piece: int, group: int
) -> None:
    """However many rows are sorted together, kept and read back together, the files are those of one run in memory, and those that
    whole tables give."""
    folder = tmp_path_factory.mktemp("runs")
    batches = [_batch(at, sizes[at : at + batch]) for at in range(0, len(sizes), batch)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROW_GROUP", group)
        patch.setattr(module, "GROUP_BYTES", 4_000)
        whole = Runs()
        for tables in batches:
            whole.add(tables)
        whole.finish()
        expected = _files(whole, folder)
        patch.setattr(module, "RUN_BYTES", run)
        patch.setattr(module, "_PIECE_BYTES", piece)
        with ScratchFile(folder) as scratch:
            parted = Runs(scratch)
            for tables in reversed(batches):
                parted.add(tables)
            parted.finish()
            assert _files(parted, folder) == expected
        read = {family: pq.read_table(io.BytesIO(data)) for family, data in expected.items()}
        assert {family: encode(family, table) for family, table in read.items()} == expected
    keys = [(row["domain"], row["url"], row["id"]) for row in read["documents"].select(["domain", "url", "id"]).to_pylist()]
    assert keys == sorted(keys)
    place = {key[2]: n for n, key in enumerate(keys)}
    for family in FAMILIES[1:]:
        order = [place[key] for key in read[family]["id"].to_pylist()]
        assert order == sorted(order)
        assert len(order) == sum(len(tables[family]) for tables in batches)
    spans = read["spans"].select(["id", "start"]).to_pylist()
    assert [row["start"] for row in spans] == [
        row["start"] for row in sorted(spans, key=lambda row: (place[row["id"]], row["start"]))
    ]


@given(st.lists(st.integers(0, 50 * 2**20), max_size=3_000))
def test_a_row_group_ends_by_rows_or_by_bytes(weights: list[int]) -> None:
    """Each row is in one group; a group has a thousand rows at most, and 16 MB of text unless one row alone has more; none is needless."""
    ends = group_ends(len(weights), np.array(weights, np.int64))
    starts = [0, *ends[:-1]] if ends else []
    assert (ends[-1] if ends else 0) == len(weights)
    for start, end in zip(starts, ends, strict=True):
        assert 1 <= end - start <= module.ROW_GROUP
        assert sum(weights[start:end]) <= module.GROUP_BYTES or end - start == 1
        assert end == len(weights) or end - start == module.ROW_GROUP or sum(weights[start : end + 1]) > module.GROUP_BYTES


def test_groups_of_light_rows_are_a_thousand_rows() -> None:
    """Ordinary pages: the files of before row groups were cut by bytes."""
    assert group_ends(2_500, np.full(2_500, 10_000, np.int64)) == [1024, 2048, 2500]
    assert group_ends(2_500, np.zeros(0, np.int64)) == [1024, 2048, 2500]


def test_what_waits_in_memory_is_bounded_by_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty times the run's and the group's bytes go through: Arrow never holds more than a few runs and groups."""
    monkeypatch.setattr(module, "RUN_BYTES", 2**20)
    monkeypatch.setattr(module, "GROUP_BYTES", 2**20)
    monkeypatch.setattr(module, "_PIECE_BYTES", 2**14)
    before, most = pa.total_allocated_bytes(), 0

    class Watched(ScratchFile):
        def append(self, data: memoryview) -> int:
            nonlocal most
            most = max(most, pa.total_allocated_bytes() - before)
            return super().append(data)

        def read(self, offset: int, size: int) -> bytes:
            nonlocal most
            most = max(most, pa.total_allocated_bytes() - before)
            return super().read(offset, size)

    with Watched(tmp_path) as scratch:
        runs = Runs(scratch)
        for at in range(0, 80, 4):
            runs.add(_batch(at, [500_000] * 4))
        runs.finish()
        files = _files(runs, tmp_path)
    assert pq.read_metadata(io.BytesIO(files["documents"])).num_row_groups == 40
    assert 2**20 < most < 12 * 2**20


def test_a_scratch_that_is_refused_says_so(tmp_path: Path) -> None:
    """A folder that is not there is our error with its name; nothing is made until something is kept, and nothing is left."""
    with ScratchFile(tmp_path / "none") as scratch, pytest.raises(StoreError, match="refused"):
        scratch.append(memoryview(b"x"))
    with ScratchFile(tmp_path) as scratch:
        places = [scratch.append(memoryview(b"ab" * n)) for n in range(4)]
        assert [scratch.read(place, 2 * n) for n, place in enumerate(places)] == [b"ab" * n for n in range(4)]
        assert not list(tmp_path.iterdir())
