"""One `corpus run` with processing beside the crawl and one without, in turn: wall clock, CPU of the whole tree, the same release.

    make bench-data
    python -m tests.bench.bench_overlap --pages 800 --rounds 2

Real documentation pages on loopback at a pace that a polite crawl has (the crawl waits more than it works), in small archives, so
that there are several. Prints one JSON object a run, and the medians.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

CONFIG = "configs/docs-site.toml"


def children_cpu_s() -> float:
    """User and system time of every child that was waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(bench_data: str, folder: Path, pages: int, overlap: bool, delay: str) -> dict[str, Any]:
    """One run from nothing to a release. CPU counts the server of the pages too: the same in both."""
    settings = (
        f'store.root="{folder}"', 'store.segment_bytes="512KiB"', f"crawl.max_pages={pages}", f'crawl.delay="{delay}"',
        f'crawl.delay_start="{delay}"', f"engine.overlap={str(overlap).lower()}",
    )  # fmt: skip
    flags = [part for setting in settings for part in ("--set", setting)]
    before = children_cpu_s()
    command = [
        sys.executable,
        "-m",
        "corpus.testing.sites",
        bench_data,
        "--",
        sys.executable,
        "-m",
        "corpus",
        "run",
        "-c",
        CONFIG,
        *flags,
    ]
    subprocess.run(command, check=True, capture_output=True)
    (path,) = (folder / "runs").glob("*/summary.json")
    summary = json.loads(path.read_text("utf-8"))
    rows = sum(pq.read_metadata(file).num_rows for file in (folder / "releases" / "v1" / "data").rglob("*.parquet"))
    return {
        "bench": "overlap", "overlap": overlap, "pages": summary["fetch"]["pages"], "wall_s": summary["wall_s"],
        "cpu_s": round(children_cpu_s() - before, 1), "rows": rows, **{f"beside_{k}": v for k, v in summary["overlap"].items()},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench-data", default="bench-data")
    parser.add_argument("--pages", type=int, default=800)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--delay", default="500ms")
    given = parser.parse_args()
    found: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for round_no in range(given.rounds):
        for overlap in (bool(round_no % 2), not round_no % 2):
            with tempfile.TemporaryDirectory() as folder:
                made = run(given.bench_data, Path(folder, "corpus"), given.pages, overlap, given.delay)
            print(json.dumps(made), flush=True)
            found[overlap].append(made)
    for overlap, runs in found.items():
        medians = {name: round(statistics.median(run[name] for run in runs), 1) for name in ("wall_s", "cpu_s")}
        print(json.dumps({"bench": "overlap medians", "overlap": overlap, **medians}))


if __name__ == "__main__":
    main()
