"""What a removed domain costs a hub that stores files by chunk: `python -m tests.bench.bench_takedown [--pages N] [--words N]`.

A shard of made-up pages is written as an export writes it, and again without one of its domains; new is what stands in
64 KiB-mean content-defined chunks that the first file does not have. One JSON object, shares of the shard.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.export.plan import _bounds
from corpus.export.shard import shard_writer
from tests.bench.bench_release import export, families
from tests.bench.chunker import new_bytes

DOMAINS = (7, 100, 233, 377, 500, 600, 700, 810, 900, 1000)


def written(rows: pa.Table, path: Path) -> bytes:
    """A shard of some rows, cut and encoded by the export's own code."""
    digits = np.array([int(name[24:32], 16) for name in rows["url_id"].to_pylist()], dtype=np.int64)
    sizes = np.asarray(pc.binary_length(rows["text"])).astype(np.int64)
    bounds = _bounds(0, len(rows), sizes, np.where(digits < 2**27, digits, -1))
    with shard_writer(path, rows.schema, max(np.diff(bounds).tolist())) as writer:
        for low, high in itertools.pairwise(bounds):
            writer.write_table(rows.slice(low, high - low), row_group_size=high - low)
    return path.read_bytes()


def costs(rows: pa.Table, folder: Path, domains: Sequence[int] = DOMAINS) -> dict[str, Any]:
    """Shares of a shard's bytes that are new once a domain is gone: the mean and the worst of some domains."""
    before = written(rows, folder / "before.parquet")
    shares, pages = [], 0
    for number in domains:
        rest = rows.filter(pc.not_equal(rows["domain"], f"site{number:06d}.example"))
        assert len(rest) < len(rows), "a domain of the shard"
        pages += len(rows) - len(rest)
        shares.append(new_bytes(before, written(rest, folder / "after.parquet")) / len(before))
    return {
        "what": "a domain removed", "shard_bytes": len(before), "rows": len(rows), "domains": len(domains), "rows_removed_mean": pages / len(domains),
        "new_share_mean": round(float(np.mean(shares)), 4), "new_share_max": round(max(shares), 4),
    }  # fmt: skip


def shard(folder: Path, pages: int, words: int) -> pa.Table:
    """The rows of an exported shard, a thousand domains in it."""
    result, _ = export(families(folder / "families", pages, words), folder / "out")
    return pq.ParquetFile(result.folder / result.manifest["shards"][0]["path"]).read()


def main() -> None:
    """Measure, and remove everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument(
        "--words", type=int, default=220, help="words a page: fewer make a smaller shard, which is the harder case"
    )
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        print(json.dumps(costs(shard(Path(name), told.pages, told.words), Path(name))))


if __name__ == "__main__":
    main()
