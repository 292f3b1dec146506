"""A flip table at size: a corpus folder of made-up measurements, the same folder re-decided twice. Prints one JSON line.

    python -m tests.bench.bench_flips [--documents 1000000] [--edit fineweb_short_lines.max=0.5]

The first table opens every file (cold), the second finds them in the system's cache (warm). Both are what `corpus sample
--flips` does; the counts are compared with two full decisions, rule by rule.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.app.map_task import STAGE
from corpus.app.project import Project, open_project
from corpus.app.sample import flip_table
from corpus.config.load import load_config
from corpus.filter.flips import edited
from corpus.filter.policy import load_policy
from corpus.filter.schema import DOCUMENTS, SIGNALS_SCHEMA
from corpus.store.commits import CommitRecord, file_sha256
from tests.bench.bench_clusters import _peak

SEGMENT = 100_000
POLICY = "fineweb"


HIGH = {
    "alpha_word_ratio": (0.78, 0.2), "end_mark_line_ratio": (0.1, 0.9), "bare_end_mark_line_ratio": (0.1, 0.9), "mean_word_length": (2.9, 6.0),
    "short_line_ratio": (0.0, 0.8), "letter_ratio": (0.5, 0.5), "language_score": (0.5, 0.5),
}  # fmt: skip
"""Signals that a good text has high: from, and how far up. Other shares are low, so that about half of the rows are kept."""


def _signals(random: np.random.Generator, ids: list[str]) -> pa.Table:
    """Rows whose signals lie on both sides of the limits."""
    columns: dict[str, Any] = {}
    for field in SIGNALS_SCHEMA:
        if field.name == "id":
            columns[field.name] = pa.array(ids)
        elif field.name == "language":
            columns[field.name] = pa.array(random.choice(["en", "de", "fr"], len(ids)))
        elif pa.types.is_integer(field.type):
            most = 1 if field.name.endswith(("_curly", "_lorem_ipsum")) else 2000
            columns[field.name] = pa.array(random.integers(0, most, len(ids)), field.type)
        elif pa.types.is_floating(field.type):
            low, reach = HIGH.get(field.name, (0.0, 0.0))
            shares = random.random(len(ids))
            columns[field.name] = pa.array(low + reach * shares if reach else shares**16 / 4, field.type)
        else:
            columns[field.name] = pa.nulls(len(ids), field.type)
    return pa.table(columns, schema=SIGNALS_SCHEMA)


def _documents(ids: list[str], segment: str) -> pa.Table:
    size = len(ids)
    given: dict[str, Any] = {
        "id": ids, "url_id": ids, "url": [f"https://h.example/{name}" for name in ids], "host": ["h.example"] * size, "domain": ["h.example"] * size,
        "crawl_id": ["2026-11"] * size, "origin": ["ingest"] * size, "outcome": ["ok"] * size, "use": ["unknown"] * size,
        "fetched_at": np.zeros(size, dtype="datetime64[us]"), "evidence": [[]] * size, "file_path": [segment] * size,
    }  # fmt: skip
    columns = [pa.array(given[f.name], f.type) if f.name in given else pa.nulls(size, f.type) for f in DOCUMENTS]
    return pa.Table.from_arrays(columns, schema=DOCUMENTS)


def make(folder: Path, documents: int) -> Project:
    """A folder with measured segments, and the map records that name them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "corpus.toml").write_text(f'[corpus]\nname = "flips"\n[filter]\npolicy = "{POLICY}"\n', "utf-8")
    project = open_project(load_config(folder / "corpus.toml", environment={}))
    random = np.random.default_rng(1)
    for number, start in enumerate(range(0, documents, SEGMENT)):
        ids = [f"{at:032x}" for at in range(start, min(start + SEGMENT, documents))]
        segment = f"s00-000001-{number:06d}"
        outputs = {}
        for family, table in (("documents", _documents(ids, segment)), ("signals", _signals(random, ids))):
            name = f"{family}/crawl_id=2026-11/{segment}.parquet"
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, folder / name, compression="zstd", row_group_size=20_000)
            outputs[name] = file_sha256(folder / name)
        info = {"segment": segment, "crawl_id": "2026-11", "origin": "ingest"}
        project.commits.put(CommitRecord(STAGE, segment, outputs=outputs, info=info))
    return project


def full_counts(folder: Path, edit: str) -> dict[str, int]:
    """Kept before and after, by two full decisions."""
    before = load_policy(POLICY)
    files = [str(path) for path in sorted(folder.glob("signals/*/*.parquet"))]
    found = {}
    with duckdb.connect(config={"memory_limit": "1GiB"}) as con:
        for name, policy in (("kept_before", before), ("kept_after", edited(before, edit))):
            query = (
                f"SELECT count(*) FROM ({policy.sql('read_parquet($files, hive_partitioning = false)')}) WHERE drop_rule IS NULL"
            )
            found[name] = int(con.execute(query, {"files": files}).fetchall()[0][0])
    return found


def run(documents: int, edit: str, folder: Path) -> dict[str, Any]:
    """Facts of a cold and a warm table."""
    project = make(folder, documents)
    made = _peak()
    walls, cpu = [], []
    for _ in range(2):
        begin, used = time.monotonic(), time.process_time()
        table = flip_table(project, [edit], count=20)
        walls.append(round(time.monotonic() - begin, 2))
        cpu.append(round(time.process_time() - used, 2))
    peak = _peak()
    counts = full_counts(folder, edit)
    return {
        "documents": table["documents"],
        "flipped": sum(table["newly_kept"].values()) + sum(table["newly_dropped"].values()),
        "cold_s": walls[0],
        "warm_s": walls[1],
        "warm_cpu_s": cpu[1],
        "peak_rss_bytes": peak,
        "peak_rss_making_bytes": made,
        "equal": {name: table[name] == value for name, value in counts.items()},
    }


def main() -> None:
    """Run with the sizes of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--edit", default="fineweb_short_lines.max=0.5")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(run(given.documents, given.edit, Path(folder) / "corpus")))


if __name__ == "__main__":
    main()
