"""What one more item costs when there are many already: process, dedup, export and the frontier at growing sizes, as one table.

    python -m tests.bench.bench_growth --sizes 100000 1000000 [--stages process dedup export frontier]

CPU per item at each size, and how much more that is than at the smallest. Measuring a page never looks beyond its archive, so what
can grow in `process` is finding out what is to be done: all records of N documents in archives of 4,000 pages, and nothing to do.
Every measurement is a process of its own; made-up input is not counted. Each also tells the largest memory of its process, which
includes making the input where there is no way to tell them apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

SEGMENT_PAGES = 4_000
STAGES = ("process", "dedup", "export", "frontier")
GOAL = {"frontier": 1.8}
"""How much more the largest may cost a piece; 1.3 where nothing else is said."""


def process_us(documents: int, folder: Path) -> float:
    """A round over archives that are all measured."""
    from corpus.app.index_file import STAGE as INDEX
    from corpus.app.index_file import index_name
    from corpus.app.map_task import STAGE, map_key
    from corpus.app.process import map_settings, process
    from corpus.app.project import open_project
    from corpus.app.segments import STAGE as SEGMENT
    from corpus.app.segments import page_segments
    from corpus.config.load import load_config
    from corpus.engine.local import InlineEngine
    from corpus.store.commits import CommitRecord

    (folder / "corpus.toml").write_text('[corpus]\nname = "growth"\n', "utf-8")
    project = open_project(load_config(folder / "corpus.toml", environment={}))
    commits = project.commits
    for number in range(documents // SEGMENT_PAGES):
        name = f"s00-000001-{number:06d}"
        info = {"kind": "pages", "crawl_id": "c", "origin": "crawl", "bytes": 10**8}
        file = f"warc/crawl_id=c/{name}.warc.gz"
        commits.put(CommitRecord(SEGMENT, f"pages.c.{name}", outputs={file: "0" * 64}, rows={"pages": SEGMENT_PAGES}, info=info))
        index = index_name(f"pages.c.{name}")
        commits.put(CommitRecord(INDEX, f"pages.c.{name}", {file: "0" * 64}, {index: "1" * 64}, {"captures": SEGMENT_PAGES}))
    settings = map_settings(project)
    for segment in page_segments(project):
        families = {
            f"{family}/crawl_id=c/{segment.name}.parquet": "2" * 64 for family in ("documents", "signals", "spans", "signatures")
        }
        rows = {"documents": SEGMENT_PAGES, "skipped": 0, "repeats": 0}
        about = {"segment": segment.name, "crawl_id": "c", "origin": "crawl"}
        commits.put(
            CommitRecord(STAGE, map_key(segment, settings, frozenset()), {segment.file: segment.digest}, families, rows, about)
        )
    before = time.process_time()
    end = process(project, InlineEngine(), lambda *_, **__: None)
    assert (end.segments, end.measured) == (documents // SEGMENT_PAGES, 0), end
    return (time.process_time() - before) / documents * 1e6


def dedup_us(documents: int, folder: Path) -> float:
    """Band join, verification of signatures and star clusters; making signatures is part of measuring."""
    from tests.bench.bench_clusters import Sizes, run

    told: dict[str, Any] = run(Sizes(documents, 24, 2 * 10**9, exact=False), folder)
    return float(told["us_per_document"])


def export_us(documents: int, folder: Path) -> float:
    """A release of distinct pages of 60 words with every column and every signal."""
    from tests.bench.bench_release import export, families

    inputs = families(folder / "families", documents, 60)
    with suppress(OSError):  # where the kernel cannot forget a peak, that of making the input counts too
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    told = export(inputs, folder / "out")[1]
    return float(told["cpu_s"]) / documents * 1e6


def frontier_us(urls: int, folder: Path) -> float:
    """Take and acknowledgement of a page with 20 links, where so many URLs are known."""
    from tests.bench.bench_frontier import lines

    (told, *_) = lines([urls], folder, owner=False, plain=False)
    return float(str(told["us_per_page"]))


def table(found: dict[str, dict[int, float]]) -> str:
    """One row a stage, one column a size; the ratio of the largest to the smallest with its bound."""
    sizes = sorted({size for row in found.values() for size in row})
    lines = [
        "| µs of CPU an item, with so many there | " + " | ".join(f"{size:,}" for size in sizes) + " | × | bound |",
        "|---|" + "--:|" * (len(sizes) + 2),
    ]
    for stage, row in found.items():
        cells = " | ".join(f"{row[size]:.2f}" if size in row else "" for size in sizes)
        ratio = row[max(row)] / row[min(row)]
        lines.append(f"| {stage} | {cells} | {ratio:.2f} | {GOAL.get(stage, 1.3)} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=list(STAGES))
    parser.add_argument("--rounds", type=int, default=2, help="the cheapest of so many is taken: other work only ever adds")
    parser.add_argument("--one", nargs=2, metavar=("STAGE", "SIZE"), help="measure one of them in this process")
    given = parser.parse_args()
    if given.one:
        from tests.bench.bench_clusters import _peak

        stage, size = given.one[0], int(given.one[1])
        measure = {"process": process_us, "dedup": dedup_us, "export": export_us, "frontier": frontier_us}[stage]
        with tempfile.TemporaryDirectory() as folder:
            us = round(measure(size, Path(folder)), 3)
            print(json.dumps({"stage": stage, "items": size, "us": us, "peak_mb": _peak() // 2**20}))
        return
    found: dict[str, dict[int, float]] = {stage: {} for stage in given.stages}
    for _ in range(given.rounds):
        for stage in given.stages:
            for size in given.sizes:
                command = [sys.executable, "-m", "tests.bench.bench_growth", "--one", stage, str(size)]
                told = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
                print(json.dumps(told), flush=True)
                found[stage][size] = min(told["us"], found[stage].get(size, float("inf")))
    print(table(found))


if __name__ == "__main__":
    main()
