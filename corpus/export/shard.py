"""Shards written, one after the other, piece by piece. The bytes of a shard depend on its rows and on the writer's version alone."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.errors import CorpusError
from corpus.export.pieces import PieceStore
from corpus.export.plan import Plan, Shard
from corpus.export.schema import LOW_CARDINALITY, STATISTICS

BLOOM_FPP = 0.01
_CHUNKING: dict[str, int] = {"min_chunk_size": 16 * 2**10, "max_chunk_size": 2**21, "norm_level": 0}
"""Pages of about 1 MB. The least size is small because the writer counts on from one row group into the next: with a large
one, pages behind a change fall into step again only after several row groups."""
_READ = 1 << 20


@dataclass(frozen=True, slots=True)
class Written:
    """One shard as the manifest lists it. Sizes are bytes; `text_bytes` counts UTF-8 after cuts."""

    path: str
    crawl_id: str
    split: str
    language: str
    sha256: str
    bytes: int
    rows: int
    row_groups: int
    text_bytes: int
    first_domain: str
    last_domain: str


def write_shards(
    plan: Plan, store: PieceStore, schema: pa.Schema, folder: Path, seen: Callable[[pa.Table], None]
) -> Iterator[Written]:
    """Write every shard of the plan under `folder`, one after the other; `seen` is shown every piece."""
    pieces = plan.pieces.tolist()
    for shard in plan.shards:
        chosen = [i for i, start in enumerate(pieces) if shard.start <= start < shard.stop]
        path = folder / shard.path
        path.parent.mkdir(parents=True, exist_ok=True)
        yield _write(shard, (store.read(piece, schema) for piece in chosen), schema, path, seen)


def _write(shard: Shard, pieces: Iterable[pa.Table], schema: pa.Schema, path: Path, seen: Callable[[pa.Table], None]) -> Written:
    text_bytes = 0
    bounds = list(shard.bounds)
    domains: list[str] = []
    with shard_writer(path, schema, max((b - a for a, b in itertools.pairwise(bounds)), default=1)) as writer:
        at = shard.start
        for table in pieces:
            seen(table)
            while len(table):
                rows = bounds[bounds.index(at) + 1] - at
                if len(table) < rows:
                    raise CorpusError(f"{len(table)} rows where the plan has {rows}", shard.path)
                group = table.slice(0, rows)
                writer.write_table(group, row_group_size=rows)
                text_bytes += pc.sum(pc.binary_length(group["text"])).as_py() or 0
                domains = [domains[0] if domains else group["domain"][0].as_py(), group["domain"][-1].as_py()]
                at, table = at + rows, table.slice(rows)
    if at != shard.stop:
        raise CorpusError(f"{at - shard.start} rows written, {shard.stop - shard.start} planned", shard.path)
    first, last = domains or ["", ""]
    return Written(
        shard.path, shard.crawl_id, shard.split, shard.language, file_sha256(path), path.stat().st_size, shard.stop - shard.start,
        len(bounds) - 1, text_bytes, first, last,
    )  # fmt: skip


def shard_writer(path: Path, schema: pa.Schema, group_rows: int) -> pq.ParquetWriter:
    """A writer of one shard; `group_rows`: the most rows of a row group."""
    order = [("domain", "ascending"), ("url", "ascending"), ("id", "ascending")]
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=3,
        use_dictionary=list(LOW_CARDINALITY),
        write_statistics=list(STATISTICS),
        write_page_index=True,
        write_page_checksum=True,
        use_content_defined_chunking=_CHUNKING,
        bloom_filter_options={"id": {"ndv": group_rows, "fpp": BLOOM_FPP}},
        sorting_columns=pq.SortingColumn.from_ordering(schema, order),
    )


def file_sha256(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_READ):
            digest.update(block)
    return digest.hexdigest()
