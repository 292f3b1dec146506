"""The first look-up of an id in a large release: `python -m tests.bench.bench_lookup [--rows N] [--folder F]`.

Each measurement is a process of its own, so that nothing is warm but the system's cache: with the catalog, without it, and
a second one of the same connection. One JSON object a line; `--folder` keeps (or uses) a corpus instead of a temporary one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from corpus.app.catalog import catalogue
from corpus.app.project import Project, open_project
from corpus.app.release import RELEASE_STAGE, SIGNAL_FIELDS
from corpus.config.load import load_config
from corpus.store.commits import CommitRecord, file_sha256
from tests.bench.bench_release import wide_release

_CONFIG = '[corpus]\nname = "made-up"\n'
_LOOK_UP = """
import sys, time
from corpus import open
corpus = open(sys.argv[1])
corpus.sql("SELECT 1")
for one in sys.argv[2:]:
    started, cpu = time.perf_counter(), time.process_time()
    rows = corpus.sql(f"SELECT url, title, text FROM records WHERE id = '{one}'").num_rows
    print(rows, 1000 * (time.perf_counter() - started), 1000 * (time.process_time() - cpu))
"""


def made_up(folder: Path, rows: int, shard_rows: int) -> Project:
    """A corpus of one release `v1` of short texts."""
    release = folder / "releases" / "v1"
    return with_release(folder, wide_release(release, rows, shard_rows, SIGNAL_FIELDS))


def with_release(folder: Path, shards: Sequence[Path]) -> Project:
    """A corpus whose release `v1` consists of shards that stand there already."""
    (folder / "corpus.toml").write_text(_CONFIG, "utf-8")
    project = open_project(load_config(folder / "corpus.toml", environment={}))
    release = project.layout.release_dir("v1")
    told = [
        {
            "path": path.relative_to(release).as_posix(),
            "rows": pq.read_metadata(path).num_rows,
            "sha256": file_sha256(path),
            "bytes": path.stat().st_size,
        }
        for path in shards
    ]
    manifest = {
        "name": "v1",
        "rows": sum(shard["rows"] for shard in told),
        "shards": told,
        "funnel": [],
        "identity": {"snapshot": "0" * 32},
    }
    (release / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    outputs = {project.layout.relative(path): file_sha256(path) for path in [*shards, release / "manifest.json"]}
    info = {"name": "v1", "snapshot": "0" * 32, "previous": "", "order": 1}
    project.commits.put(CommitRecord(RELEASE_STAGE, "v1", {"snapshot": "0" * 32}, outputs, info=info))
    return project


def look_up(project: Project, ids: Sequence[str]) -> list[tuple[float, float]]:
    """Milliseconds (wall, CPU) of look-ups in a fresh process, one connection each."""
    command = [sys.executable, "-c", _LOOK_UP, str(project.layout.root), *ids]
    told = [line.split() for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()]
    assert [row[0] for row in told] == ["1"] * len(ids), told
    return [(round(float(row[1]), 1), round(float(row[2]), 1)) for row in told]


def measure(project: Project, ids: Sequence[str], processes: int = 5) -> list[dict[str, Any]]:
    """The first and the second look-up, with and without the catalog: the median of some processes."""
    found = []
    files = list(project.layout.release_dir("v1").rglob("*.parquet"))
    about = {
        "rows": sum(pq.read_metadata(path).num_rows for path in files), "bytes": sum(path.stat().st_size for path in files),
        "row_groups": sum(pq.read_metadata(path).num_row_groups for path in files),
    }  # fmt: skip
    for what in ("without a catalog", "with the catalog"):
        started = time.perf_counter()
        built = catalogue(project, "v1") if what.startswith("with the") else 0
        took = round(time.perf_counter() - started, 1)
        runs = [look_up(project, [ids[2 * n], ids[2 * n + 1]]) for n in range(processes)]
        first, second, cpu = (sorted(run[at][of] for run in runs)[processes // 2] for at, of in ((0, 0), (1, 0), (0, 1)))
        size = project.layout.catalog.stat().st_size if built else 0
        told = {
            "first_ms": first,
            "first_cpu_ms": cpu,
            "second_ms": second,
            "catalog_bytes": size,
            "catalog_s": took if built else 0,
        }
        found.append({"what": f"id look-up {what}", **about, **told})
    return found


def ids_of(project: Project, count: int) -> list[str]:
    """Some ids of the release, spread over its shards."""
    files = sorted(project.layout.release_dir("v1").rglob("*.parquet"))
    chosen = []
    for number in range(count):
        file = pq.ParquetFile(files[number * len(files) // count])
        group = int(hashlib.sha256(str(number).encode()).hexdigest()[:8], 16) % file.num_row_groups
        chosen.append(file.read_row_group(group, columns=["id"])["id"][number].as_py())
    return chosen


def main() -> None:
    """Measure, and remove what was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--shard-rows", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="a corpus whose releases/v1 holds shards already")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if told.folder:
            project = with_release(told.folder, sorted((told.folder / "releases" / "v1").rglob("*.parquet")))
        else:
            project = made_up(Path(name), told.rows, told.shard_rows)
        project.layout.catalog.unlink(missing_ok=True)
        for line in measure(project, ids_of(project, 10)):
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
