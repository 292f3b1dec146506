"""The band join in one process, and as tasks of an engine: CPU-seconds, and the largest memory of a task's process.

    python -m tests.bench.bench_join [--documents 1000000] [--engine whole|local|ray] [--memory 2000000000] [--scratch FOLDER]

Signatures are made up: one document in ten is a near copy of the one before it (one value in ten differs). They lie in Parquet
files of 100,000 rows, as the map stage writes them. `whole` is `filter.bands.join` as `corpus dedup` calls it; the others run
the tasks of `app.join`, without its records. Pairs are then judged by their signatures and made stars of in one process.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.engine.local import LocalPool
from corpus.engine.tasks import Crashed, Engine, Task
from corpus.filter.bands import KeyColumns, PairRuns, Pairs, band_keys, join
from corpus.filter.join_files import join_range, ranges_for, read_pairs, sort_keys
from corpus.filter.stars import stars
from corpus.filter.verify_pairs import Edges, estimate, give_back, verified
from tests.bench.bench_clusters import BANDS, ROWS, THRESHOLD, VALUES, _peak

FILE_ROWS, GROUP_FILES = 100_000, 10
HERE = "tests.bench.bench_join"


@dataclass(frozen=True, slots=True)
class KeysSpec:
    sources: tuple[str, ...]
    first: int
    ranges: int
    out: str


@dataclass(frozen=True, slots=True)
class RangeSpec:
    sources: tuple[str, ...]
    band: int
    part: int
    ranges: int
    out: str


def _measured(rows: int, began: float) -> tuple[int, float, int]:
    return rows, time.process_time() - began, _peak()


def keys_of(spec: KeysSpec) -> tuple[int, float, int]:
    """In a task: rows, CPU-seconds, largest resident size of the process so far."""
    began = time.process_time()
    rows = sum(pq.read_metadata(source).num_rows for source in spec.sources)
    node = np.arange(spec.first, spec.first + rows, dtype=np.int32)
    done = sort_keys([Path(s) for s in spec.sources], node, node * 0, (BANDS, ROWS), spec.ranges, Path(spec.out))
    return _measured(done, began)


def range_of(spec: RangeSpec) -> tuple[int, float, int]:
    """In a task: pairs, CPU-seconds, largest resident size of the process so far."""
    began = time.process_time()
    with ExitStack() as stack:
        opened = [stack.enter_context(Path(source).open("rb")) for source in spec.sources]
        rows = join_range(opened, spec.band, spec.part, (BANDS, spec.ranges), Path(spec.out))
    return _measured(rows, began)


def made(folder: Path, documents: int) -> list[Path]:
    """The signatures files; a function of their number alone."""
    files = []
    for at, start in enumerate(range(0, documents, FILE_ROWS)):
        count = min(FILE_ROWS, documents - start)
        random = np.random.default_rng(at)
        values = random.integers(0, 1 << 32, (count, VALUES), dtype=np.uint32)
        near = np.arange(1, count, 10)
        kept = random.random((len(near), VALUES)) > 0.1
        values[near] = np.where(kept, values[near - 1], values[near])
        minhash = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), VALUES)
        table = pa.table({"minhash": minhash, "shingle_count": pa.array(np.full(count, 300, dtype=np.int32))})
        files.append(folder / f"s{at:05d}.parquet")
        pq.write_table(table, files[-1], compression="zstd", compression_level=1, use_dictionary=False)
    return files


def _rows(files: list[Path]) -> Iterator[np.ndarray]:
    for path in files:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=16_384, columns=["minhash"]):
            yield np.asarray(batch.column(0).flatten()).reshape(len(batch), -1)


def _run(engine: Engine, function: str, specs: list[Any], facts: dict[str, Any], name: str) -> None:
    cpu, peak, slowest = 0.0, 0, 0.0
    for outcome in engine.run(f"{HERE}:{function}", [Task(f"{name}-{at}", spec) for at, spec in enumerate(specs)]):
        if isinstance(outcome, Crashed):
            raise SystemExit(f"{outcome.key}: {outcome.detail}")
        _, seconds, resident = outcome.value
        cpu, peak, slowest = cpu + seconds, max(peak, resident), max(slowest, seconds)
    facts[name] = {"tasks": len(specs), "cpu_s": round(cpu, 1), "slowest_cpu_s": round(slowest, 1), "peak_rss_bytes": peak}


def in_tasks(
    engine: Engine, files: list[Path], documents: int, memory: int, folder: Path, facts: dict[str, Any]
) -> Iterator[Pairs]:
    """The pairs by tasks."""
    ranges = ranges_for(documents, memory // 2)
    groups = [files[at : at + GROUP_FILES] for at in range(0, len(files), GROUP_FILES)]
    keys = [
        KeysSpec(tuple(map(str, group)), at * GROUP_FILES * FILE_ROWS, ranges, str(folder / f"keys-{at}"))
        for at, group in enumerate(groups)
    ]
    _run(engine, "keys_of", keys, facts, "keys")
    sources = tuple(spec.out for spec in keys)
    pieces = [
        RangeSpec(sources, band, part, ranges, str(folder / f"pairs-{band}-{part}"))
        for band in range(BANDS)
        for part in range(ranges)
    ]
    _run(engine, "range_of", pieces, facts, "ranges")
    facts["shuffle_bytes"] = sum(Path(spec.out).stat().st_size for spec in (*keys, *pieces))
    for spec in pieces:
        yield from read_pairs(Path(spec.out))


def at_once(files: list[Path], documents: int, memory: int, folder: Path) -> Iterator[Pairs]:
    """The pairs in this process."""
    columns = KeyColumns(BANDS, memory // 8, folder)
    for values in _rows(files):
        columns.append(band_keys(values, BANDS, ROWS))
    yield from join(columns, np.arange(documents, dtype=np.int32), memory // 2)


def run(documents: int, kind: str, memory: int, folder: Path) -> dict[str, Any]:
    """Facts of one clustering."""
    files = made(folder, documents)
    facts: dict[str, Any] = {"documents": documents, "engine": kind}
    began = time.process_time()
    candidates = PairRuns(documents, memory // 8, folder, "pairs")
    if kind == "whole":
        source = at_once(files, documents, memory, folder)
    else:
        engine: Engine = LocalPool(2)
        if kind == "ray":
            from corpus.engine.ray import RayEngine

            engine = RayEngine(workers=2, memory=4 * 10**9)
        source = in_tasks(engine, files, documents, memory, folder, facts)
    for pairs in source:
        candidates.add(pairs)
    facts["join_here_cpu_s"], began = round(time.process_time() - began, 1), time.process_time()
    table = np.memmap(folder / "signatures.u32", dtype=np.uint32, mode="w+", shape=(documents, VALUES))
    at = 0
    for values in _rows(files):
        table[at : at + len(values)] = values
        at += len(values)
        give_back(table)
    every = np.arange(documents, dtype=np.int32)
    edges = Edges.gather(verified(candidates, lambda pairs: estimate(table, every, pairs), THRESHOLD))
    centre = stars(documents, edges, np.ones(documents, dtype=np.int64))
    facts["union_cpu_s"] = round(time.process_time() - began, 1)
    in_task = sum(facts.get(name, {}).get("cpu_s", 0.0) for name in ("keys", "ranges"))
    facts["join_us_per_document"] = round((facts["join_here_cpu_s"] + in_task) / documents * 1e6, 2)
    near = np.arange(0, documents, FILE_ROWS)[:, None] + np.arange(1, FILE_ROWS, 10)
    near = near[near < documents]
    facts["planted"], facts["found"] = len(near), int((centre[near] == centre[near - 1]).sum())
    return {**facts, "edges": len(edges.a), "peak_rss_here_bytes": _peak()}


def main() -> None:
    """Run with the sizes of the command line and print one JSON line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--engine", choices=("whole", "local", "ray"), default="whole")
    parser.add_argument("--memory", type=int, default=2 * 10**9)
    parser.add_argument("--scratch", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.scratch) as folder:
        facts = run(given.documents, given.engine, given.memory, Path(folder))
    print(json.dumps(facts))


if __name__ == "__main__":
    import_module(HERE).main()  # by the name that a task's process can import
