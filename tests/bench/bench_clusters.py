"""Clustering at size, over made-up shingle sets: CPU per document of the join, and the largest memory of the process.

    python -m tests.bench.bench_clusters [--documents 1000000] [--memory 2000000000] [--exact] [--shingles 24]

One document in ten has a near copy (one shingle in twenty replaced), one in a hundred a distant relative (a third
replaced) that must not join. Documents are made block by block; signatures lie in a mapped file, as they do in the stage.
With `--exact` candidates are verified by their shingle sets, else by their signatures.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corpus.filter.bands import KeyColumns, PairRuns, band_keys, join
from corpus.filter.signatures import VALUES, signatures
from corpus.filter.stars import stars
from corpus.filter.verify_pairs import Edges, ShingleFile, estimate, exact, give_back, prefilter, slack, split, verified

BLOCK = 50_000
THRESHOLD = 0.75
BANDS, ROWS = 14, 8


@dataclass(frozen=True, slots=True)
class Sizes:
    documents: int
    shingles: int
    memory: int
    exact: bool


def made(block: int, sizes: Sizes) -> NDArray[np.uint64]:
    """Shingle sets of one block `[n, shingles]`: a function of the block's number alone."""
    count = min(BLOCK, sizes.documents - block * BLOCK)
    random = np.random.default_rng(block)
    sets = random.integers(0, 1 << 64, (count, sizes.shingles), dtype=np.uint64)
    near, far = np.arange(1, count, 10), np.arange(5, count, 100)
    fresh = random.integers(0, 1 << 64, sets.shape, dtype=np.uint64)
    for rows, replaced in ((near, max(sizes.shingles // 20, 1)), (far, sizes.shingles // 3)):
        sets[rows] = sets[rows - 1]
        sets[rows, :replaced] = fresh[rows, :replaced]
    return sets


def _blocks(sizes: Sizes) -> Iterator[tuple[int, NDArray[np.uint64]]]:
    for block in range(-(-sizes.documents // BLOCK)):
        yield block * BLOCK, made(block, sizes)


def run(sizes: Sizes, scratch: Path) -> dict[str, object]:
    """Facts of one clustering."""
    cpu: dict[str, float] = {}
    peaks: dict[str, int] = {}
    begin = time.process_time()

    def lap(name: str) -> None:
        nonlocal begin
        cpu[name], begin = cpu.get(name, 0.0) + time.process_time() - begin, time.process_time()
        peaks[name] = _peak()

    count = sizes.documents
    table = np.memmap(scratch / "signatures.u32", dtype=np.uint32, mode="w+", shape=(count, VALUES))
    columns = KeyColumns(BANDS, sizes.memory // 8, scratch)
    for at, sets in _blocks(sizes):
        bounds = np.arange(len(sets) + 1, dtype=np.int64) * sizes.shingles
        values = signatures(sets.reshape(-1), bounds)
        lap("making")
        columns.append(band_keys(values, BANDS, ROWS))
        lap("join")
        table[at : at + len(values)] = values
        give_back(table)
        lap("making")
    rows = np.arange(count, dtype=np.int32)
    candidates = PairRuns(count, sizes.memory // 8, scratch, "pairs")
    for pairs in join(columns, rows, sizes.memory // 2):
        candidates.add(pairs)
    lap("join")
    edges = _verify(sizes, scratch, candidates, table, rows)
    lap("verify")
    centre = stars(count, edges, np.ones(count, dtype=np.int64))
    lap("stars")
    near = np.arange(0, count, BLOCK)[:, None] + np.arange(1, BLOCK, 10)
    near = near[near < count]
    return {
        "documents": count,
        "exact": sizes.exact,
        "planted": len(near),
        "found": int((centre[near] == centre[near - 1]).sum()),
        "edges": len(edges.a),
        "join_us_per_document": round(cpu["join"] / count * 1e6, 2),
        "us_per_document": round(sum(cpu[name] for name in ("join", "verify", "stars")) / count * 1e6, 3),
        "cpu_s": {name: round(value, 1) for name, value in cpu.items()},
        "peak_rss_bytes": peaks["stars"],
        "peak_rss_after": peaks,
    }


def _peak() -> int:
    """Largest resident size of this program alone; `ru_maxrss` remembers the parent's from before the exec."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text("ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _verify(sizes: Sizes, scratch: Path, candidates: PairRuns, table: NDArray[np.uint32], rows: NDArray[np.int32]) -> Edges:
    if not sizes.exact:
        return Edges.gather(verified(candidates, lambda pairs: estimate(table, rows, pairs), THRESHOLD))
    wanted = np.zeros(sizes.documents, dtype=bool)
    likely = PairRuns(sizes.documents, sizes.memory // 8, scratch, "likely")

    def hopeful(pairs: NDArray[np.uint64]) -> NDArray[np.bool_]:
        passed: NDArray[np.bool_] = estimate(table, rows, pairs) >= THRESHOLD - slack(THRESHOLD, VALUES)
        for side in split(pairs[passed]):
            wanted[side] = True
        return passed

    prefilter(candidates, likely, hopeful)
    sets = ShingleFile(scratch / "shingles.u64", sizes.documents)
    for at, block in _blocks(sizes):
        need = np.flatnonzero(wanted[at : at + len(block)])
        sets.write((need + at).astype(np.int32), list(block[need]))
    try:
        return Edges.gather(verified(likely, lambda pairs: exact(pairs, sets.sizes, sets.read, THRESHOLD), THRESHOLD))
    finally:
        sets.close()


def main() -> None:
    """Run with the sizes of the command line and print one JSON line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--memory", type=int, default=2 * 10**9)
    parser.add_argument("--shingles", type=int, default=24)
    parser.add_argument("--exact", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        print(json.dumps(run(Sizes(given.documents, given.shingles, given.memory, given.exact), Path(scratch))))


if __name__ == "__main__":
    main()
