"""How fast releases are made and read, on made-up families: `python -m tests.bench.bench_release [--pages N] [--rows N]`.

Prints one JSON object a measurement. CPU time is this process's, so a busy machine changes little. Export writes every
column of the real schema with measured signals and GPT-2-like texts; reads are through the views that `corpus sql` uses.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.app.release import SIGNAL_FIELDS
from corpus.export.build import Parts, ReleaseResult, build_release
from corpus.export.ports import CONSENT, ReleaseOptions, Segment, SnapshotInputs
from corpus.export.schema import LOW_CARDINALITY, SignalFields, release_schema
from corpus.filter.tables import encode
from corpus.model import document_id, url_id
from tests.make_families import DAY, DOCUMENTS

DAY_US = 86_400 * 10**6
SEGMENT_ROWS = 4_000
Strings = list[str]


def texts(count: int, words: int, seed: int) -> Strings:
    """Texts of a Zipf-like vocabulary, which compress like prose."""
    random = np.random.default_rng(seed)
    vocabulary = np.array(
        ["".join(random.choice(list("etaoinshrdlucmfwyp"), random.integers(2, 11))) for _ in range(20_000)], dtype=object
    )
    ranks = np.minimum((random.pareto(0.9, count * words) * 8).astype(np.int64), len(vocabulary) - 1)
    chosen = vocabulary[ranks].reshape(count, words)
    return [". ".join(" ".join(row[i : i + 17]) for i in range(0, words, 17)) for row in chosen]


class Judge:
    """Allows everything."""

    def judge(self, urls: pa.Array, use: pa.Array, evidence: pa.Array, fetched_at: pa.Array) -> pa.Table:
        n = len(urls)
        columns = [["yes"] * n, ["unknown"] * n, [True] * n, [""] * n, ["e" * 64] * n, [DAY] * n, [False] * n]
        return pa.table([pa.array(c, type=f.type) for c, f in zip(columns, CONSENT, strict=True)], schema=CONSENT)


class Policy:
    """Keeps everything and cuts nothing."""

    name, digest = "everything", "0" * 64
    cut: Sequence[str] = ()
    signals: Sequence[str] = ("words",)

    def sql(self, signals: str) -> str:
        return f'SELECT id, NULL::VARCHAR AS drop_rule, NULL::DOUBLE AS "measured", NULL::DOUBLE AS "limit", NULL::VARCHAR AS keep FROM {signals}'


def _documents(first: int, body: Strings) -> pa.Table:
    n = len(body)
    hosts = [
        f"www{(first + i) % 7}.site{(first + i) * 7919 % 1009:06d}.example" for i in range(n)
    ]  # every segment has every domain
    urls = [f"https://{host}/section/{first + i}/page-{(first + i) * 7919 % 10**6}.html" for i, host in enumerate(hosts)]
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in body]
    at = DAY.replace(tzinfo=datetime.UTC).timestamp() * 10**6
    made: dict[str, Any] = {
        "id": [document_id(url, digest) for url, digest in zip(urls, digests, strict=True)], "url": urls, "url_id": [url_id(url) for url in urls],
        "host": hosts, "domain": [host.partition(".")[2] for host in hosts], "crawl_id": ["2026-11"] * n, "origin": ["crawl"] * n,
        "outcome": ["ok"] * n, "fetched_at": [int(at) + (first + i) * 10**5 for i in range(n)], "http_status": [200] * n,
        "content_type": ["text/html"] * n, "charset": ["utf-8"] * n, "content_sha256": digests, "text": body, "text_sha256": digests,
        "title": [text[:40] for text in body], "language": ["en"] * n, "language_score": [0.98] * n, "language_script": ["Latn"] * n,
        "extractor": ["bench-1"] * n, "use": ["unknown"] * n, "evidence": [[]] * n,
        "file_path": ["warc/crawl_id=2026-11/s00-000001-000001.warc.gz"] * n, "warc_offset": list(range(n)), "warc_length": [9_999] * n,
    }  # fmt: skip
    columns = [pa.array(made[f.name], f.type) if f.name in made else pa.nulls(n, f.type) for f in DOCUMENTS]
    return pa.table(columns, schema=DOCUMENTS).sort_by([("domain", "ascending"), ("url", "ascending"), ("id", "ascending")])


def _signals(documents: pa.Table, random: np.random.Generator) -> pa.Table:
    n = len(documents)
    columns: dict[str, Any] = {name: documents[name] for name in ("id", "language", "language_score")}
    for name, kind in SIGNAL_FIELDS:
        numbers = random.integers(0, 5_000, n) if pa.types.is_integer(kind) else random.integers(0, 1_000, n) / 1_000
        columns[name] = pa.array(numbers).cast(kind) if not pa.types.is_string(kind) else pa.nulls(n, kind)
    return pa.table(columns)


def families(folder: Path, pages: int, words: int) -> SnapshotInputs:
    """Segments and clusters of `pages` distinct pages."""
    folder.mkdir(parents=True)
    random, segments, ids = np.random.default_rng(3), [], []
    for number, first in enumerate(range(0, pages, SEGMENT_ROWS)):
        name = f"s00-000001-{number:06d}"
        segment = Segment(
            f"2026-11/{name}", *(folder / f"{name}.{family}.parquet" for family in ("documents", "signals", "spans"))
        )
        documents = _documents(first, texts(min(SEGMENT_ROWS, pages - first), words, number))
        segment.documents.write_bytes(encode("documents", documents))
        segment.signals.write_bytes(encode("signals", _signals(documents, random)))
        pq.write_table(pa.table({"id": [""], "kind": [""], "start": [0], "end": [0]}).slice(0, 0), segment.spans)
        ids += documents["id"].to_pylist()
        segments.append(segment)
    ids.sort()
    n = len(ids)
    clusters = pa.table({"id": ids, "cluster_id": ids, "cluster_size": [1] * n, "center": [True] * n, "similarity": [1.0] * n})
    pq.write_table(clusters, folder / "clusters.parquet")
    return SnapshotInputs("d" * 64, tuple(segments), folder / "clusters.parquet")


def export(inputs: SnapshotInputs, folder: Path) -> tuple[ReleaseResult, dict[str, Any]]:
    """Build a release and say what it took."""
    (folder / "spill").mkdir(parents=True)
    parts = Parts(Judge(), Policy(), SIGNAL_FIELDS, None)
    cpu, wall = time.process_time(), time.perf_counter()
    options = ReleaseOptions(memory=2 * 10**9, threads=1)
    result = build_release(
        inputs, parts, options, folder / "releases", decisions_path=folder / "decisions.parquet", scratch=folder / "spill"
    )
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    size = result.manifest["text_bytes"]
    return result, {
        "what": "export", "pages": result.manifest["rows"], "text_mb": round(size / 1e6, 1), "cpu_s": round(cpu, 2), "wall_s": round(wall, 2),
        "text_mb_per_cpu_s": round(size / 1e6 / cpu, 1),
    }  # fmt: skip


def wide_release(folder: Path, rows: int, shard_rows: int, signals: SignalFields) -> list[Path]:
    """Shards as the exporter writes them, with short texts, so that many rows fit on a small disk."""
    from corpus.export.plan import Shard
    from corpus.export.shard import shard_writer

    schema, random, made = release_schema(signals), np.random.default_rng(5), []
    for number, start in enumerate(range(0, rows, shard_rows)):
        n = min(shard_rows, rows - start)
        shard = Shard(
            f"data/crawl_id=2026-11/train-{number:05d}-of-{-(-rows // shard_rows):05d}.parquet", "2026-11", "train", "", (0, n)
        )
        path = folder / shard.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with shard_writer(path, schema, 1000) as writer:
            for at in range(0, n, 1000):
                writer.write_table(_wide(schema, start + at, min(1000, n - at), random), row_group_size=1000)
        made.append(path)
    return made


def _wide(schema: pa.Schema, first: int, n: int, random: np.random.Generator) -> pa.Table:
    columns = []
    for field in schema:
        if pa.types.is_struct(field.type):
            kinds = [field.type.field(i) for i in range(field.type.num_fields)]
            inner = [
                pa.array(random.integers(0, 999, n)).cast(k.type)
                if pa.types.is_integer(k.type) or pa.types.is_floating(k.type)
                else pa.nulls(n, k.type)
                for k in kinds
            ]
            columns.append(pa.StructArray.from_arrays(inner, fields=kinds))
        elif field.name in ("id", "url_id", "content_sha256", "text_sha256", "minhash_cluster_id"):
            columns.append(
                pa.array(
                    [
                        hashlib.sha256(f"{field.name}{first + i}".encode()).hexdigest()[: 64 if "sha" in field.name else 32]
                        for i in range(n)
                    ]
                )
            )
        elif pa.types.is_timestamp(field.type):
            columns.append(pa.array(np.full(n, 1_790_000_000_000_000)).cast(field.type))
        elif pa.types.is_string(field.type):
            few = field.name in LOW_CARDINALITY
            columns.append(pa.array([f"{field.name}{(first + i) // 400 if few else first + i:07d}" for i in range(n)]))
        else:
            columns.append(pa.array(random.integers(0, 200, n)).cast(field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def reads(files: Sequence[Path], rows: int) -> list[dict[str, Any]]:
    """Group-bys over all rows, and look-ups of single ids, the first and the median of five; footers are read by the first query."""
    listed = ", ".join(f"'{path}'" for path in files)
    with duckdb.connect(":memory:", config={"threads": "2", "memory_limit": "2GB"}) as con:
        con.execute("SET parquet_metadata_cache = true")
        con.execute(
            f"CREATE VIEW records AS SELECT * FROM read_parquet([{listed}], union_by_name = false, hive_partitioning = false)"
        )
        wanted = [hashlib.sha256(f"id{n}".encode()).hexdigest()[:32] for n in range(7, rows, max(rows // 5, 1))]
        queries = {
            "group by language": ["SELECT language, count(*), avg(token_count) FROM records GROUP BY 1"] * 5,
            "group by domain": ["SELECT domain, count(*) n, sum(token_count) FROM records GROUP BY 1 ORDER BY n DESC LIMIT 20"]
            * 5,
            "group by a signal": ["SELECT signals.words // 100, count(*) FROM records GROUP BY 1"] * 5,
            "id look-up": [f"SELECT url, title, text FROM records WHERE id = '{one}'" for one in wanted],
        }
        return [
            {
                "what": name,
                "rows": rows,
                "files": len(files),
                "bytes": sum(path.stat().st_size for path in files),
                **_ms(con, each),
            }
            for name, each in queries.items()
        ]


def _ms(con: duckdb.DuckDBPyConnection, queries: Sequence[str]) -> dict[str, float]:
    took = []
    for query in queries:
        started = time.perf_counter()
        assert con.execute(query).fetchall(), query
        took.append(round(1000 * (time.perf_counter() - started), 1))
    return {"first_ms": took[0], "median_ms": sorted(took)[len(took) // 2]}


def main() -> None:
    """Run all measurements in a folder that is removed afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000, help="pages exported")
    parser.add_argument("--words", type=int, default=600, help="words a page")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the release that is queried; 0: none")
    parser.add_argument("--shard-rows", type=int, default=100_000)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if told.pages:
            print(json.dumps(export(families(folder / "families", told.pages, told.words), folder / "out")[1]), flush=True)
        if told.rows:
            for line in reads(wide_release(folder / "wide", told.rows, told.shard_rows, SIGNAL_FIELDS), told.rows):
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
