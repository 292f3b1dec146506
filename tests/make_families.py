"""Small family files for tests of the reduce side: documents, signals, spans and signatures of made-up pages.

The shapes are those the map stage writes; the signature is a plain MinHash of word shingles, so that near copies are
near and nothing else is.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from corpus import model

EVIDENCE = pa.list_(
    pa.struct(
        [
            ("protocol", pa.string()),
            ("source", pa.string()),
            ("line_no", pa.int32()),
            ("raw", pa.string()),
            ("agent", pa.string()),
            ("file_digest", pa.string()),
            ("axis", pa.string()),
            ("verdict", pa.string()),
        ]
    )
)
DOCUMENTS = pa.schema(
    [(name, pa.string()) for name in ("id", "url", "url_id", "host", "domain", "crawl_id", "origin", "outcome")]
    + [("fetched_at", pa.timestamp("us")), ("depth", pa.int32()), ("http_status", pa.int16())]
    + [(name, pa.string()) for name in ("content_type", "charset", "charset_source", "content_sha256", "text", "text_sha256")]
    + [(name, pa.string()) for name in ("title", "author", "published", "license_url", "language")]
    + [("language_score", pa.float64()), ("language_script", pa.string()), ("extractor", pa.string())]
    + [("near_original", pa.string()), ("near_distance", pa.int32()), ("use", pa.string()), ("evidence", EVIDENCE)]
    + [("file_path", pa.string()), ("warc_offset", pa.int64()), ("warc_length", pa.int64())]
)
SIGNALS = pa.schema(
    [
        ("id", pa.string()),
        ("language", pa.string()),
        ("language_score", pa.float64()),
        ("chars", pa.int64()),
        ("words", pa.int64()),
        ("quality_score", pa.float64()),
    ]
)
SPANS = pa.schema([("id", pa.string()), ("kind", pa.string()), ("start", pa.int64()), ("end", pa.int64())])
SIGNATURES = pa.schema(
    [("id", pa.string()), ("scheme", pa.string()), ("minhash", pa.list_(pa.uint32(), 112)), ("shingle_count", pa.int32())]
)
DAY = datetime.datetime(2026, 11, 1)  # noqa: DTZ001  (families store UTC without a zone)


def shingles(texts: Sequence[str], n: int = 5) -> list[np.ndarray]:
    """Sorted 64-bit hashes of the word n-grams of each text."""
    made = []
    for text in texts:
        words = text.split()
        grams = {
            xxhash.xxh3_64_intdigest(" ".join(words[i : i + n]).encode("utf-8", "surrogatepass"))
            for i in range(len(words) - n + 1)
        }
        made.append(np.array(sorted(grams), dtype=np.uint64))
    return made


def minhash(texts: Sequence[str]) -> np.ndarray:
    """uint32 [n, 112]; all ones for a text without shingles."""
    random = np.random.default_rng(1)
    a = random.integers(1, 2**63, 112, dtype=np.uint64) | np.uint64(1)
    b = random.integers(0, 2**63, 112, dtype=np.uint64)
    table = np.full((len(texts), 112), 0xFFFFFFFF, dtype=np.uint32)
    for row, values in enumerate(shingles(texts)):
        if len(values):
            table[row] = ((values[:, None] * a + b) >> np.uint64(32)).min(axis=0).astype(np.uint32)
    return table


@dataclass(frozen=True)
class Page:
    """One capture. Everything not given is derived from the URL and the text."""

    url: str
    text: str | None = None
    day: float = 0.0
    outcome: str = "ok"
    near_original: str | None = None
    use: str = "unknown"
    body: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    spans: tuple[tuple[str, int, int], ...] = ()
    quality: float | None = 0.5

    def row(self) -> dict[str, Any]:
        host = self.url.split("/")[2]
        content = hashlib.sha256((self.body or self.text or self.url).encode("utf-8", "surrogatepass")).hexdigest()
        text = None if self.outcome != "ok" else (self.text or "")
        row = {
            "id": model.document_id(self.url, content), "url": self.url, "url_id": model.url_id(self.url), "host": host,
            "domain": ".".join(host.split(".")[-2:]), "crawl_id": "2026-11", "origin": "crawl", "outcome": self.outcome,
            "fetched_at": DAY + datetime.timedelta(days=self.day), "depth": 0, "http_status": 200, "content_type": "text/html",
            "charset": "utf-8", "charset_source": "http", "content_sha256": content, "text": text,
            "text_sha256": None if text is None else hashlib.sha256(" ".join(text.split()).encode("utf-8", "surrogatepass")).hexdigest(),
            "title": "T", "author": None, "published": None, "license_url": None, "language": "en", "language_score": 0.9,
            "language_script": "Latn", "extractor": "test-1", "near_original": self.near_original,
            "near_distance": 1 if self.near_original else None, "use": self.use, "evidence": [],
            "file_path": "warc/crawl_id=2026-11/s00-000001-000001.warc.gz", "warc_offset": 0, "warc_length": 100,
        }  # fmt: skip
        return row | self.extra


@dataclass(frozen=True)
class Family:
    """The files of one segment."""

    documents: Path
    signals: Path
    spans: Path
    signatures: Path


def write_family(folder: Path, name: str, pages: Iterable[Page], row_group: int = 1000) -> Family:
    """Write one segment's families, sorted as the map stage sorts them."""
    held = sorted(((page.row(), page) for page in pages), key=lambda item: (item[0]["domain"], item[0]["url"], item[0]["id"]))
    rows = [row for row, _ in held]
    good = [(row, page) for row, page in held if row["outcome"] == "ok"]
    texts = [row["text"] for row, _ in good]
    tables = {
        "documents": pa.Table.from_pylist(rows, schema=DOCUMENTS),
        "signals": pa.Table.from_pylist(
            [
                {
                    "id": r["id"],
                    "language": r["language"] or "und",
                    "language_score": 0.9,
                    "chars": len(r["text"]),
                    "words": len(r["text"].split()),
                    "quality_score": p.quality,
                }
                for r, p in good
            ],
            schema=SIGNALS,
        ),
        "spans": pa.Table.from_pylist(
            [{"id": r["id"], "kind": kind, "start": start, "end": end} for r, p in good for kind, start, end in p.spans],
            schema=SPANS,
        ),
        "signatures": pa.table(
            [
                pa.array([row["id"] for row, _ in good], pa.string()),
                pa.array(["a32-1"] * len(good), pa.string()),
                pa.FixedSizeListArray.from_arrays(pa.array(minhash(texts).reshape(-1), pa.uint32()), 112),
                pa.array([len(values) for values in shingles(texts)], pa.int32()),
            ],
            schema=SIGNATURES,
        ),
    }
    paths = {}
    for family, table in tables.items():
        paths[family] = folder / family / f"{name}.parquet"
        paths[family].parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, paths[family], row_group_size=row_group)
    return Family(**paths)
