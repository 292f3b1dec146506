"""The plan of a release: which row goes to which shard and row group, decided before any text is read.

Rows are ordered by (crawl, split, language where asked, domain, url, id). The plan is a function of the kept rows alone;
memory and batch sizes never move a boundary.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpus.export.ports import ReleaseOptions
from corpus.export.session import query
from corpus.export.splits import TRAIN, rank_sql, split_sql

Ints = npt.NDArray[np.int64]

GROUP_REACH, GROUP_ROWS_MAX = 384, 1536
GROUP_BYTES_MAX = 64 * 2**20
"""Row groups hold 385 rows at least (the ends of a shard aside), about 750, and stay under the hub's 100 MB. Smaller ones cost
more in footers than they spare when a page is taken down; measured."""
_PIECE_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Shard:
    """One file: the rows [start, stop) of the release, cut into row groups at `bounds` (first and last included)."""

    path: str
    crawl_id: str
    split: str
    language: str
    bounds: tuple[int, ...]

    @property
    def start(self) -> int:
        return self.bounds[0]

    @property
    def stop(self) -> int:
        return self.bounds[-1]


@dataclass(frozen=True, slots=True)
class Plan:
    """All shards in order. `pieces[i]` is the first row of the i-th piece: whole row groups that are held in memory together."""

    shards: tuple[Shard, ...]
    pieces: Ints
    rows: int


_WIDTH = """CASE coalesce(s.language_script, 'Latn') WHEN 'Latn' THEN 1 WHEN 'Cyrl' THEN 2 WHEN 'Grek' THEN 2 WHEN 'Arab' THEN 2
    WHEN 'Hebr' THEN 2 WHEN 'Armn' THEN 2 ELSE 3 END"""
"""UTF-8 bytes a code point takes in a script, about: a shard only aims at its size, and so no text is read to plan it."""

_KEPT = """
CREATE TABLE kept AS
SELECT s.file_no, s.row_no, row_number() OVER (ORDER BY s.crawl_id, {split}, {language}, s.domain, s.url, s.id) - 1 AS position,
    s.crawl_id, {split} AS split, {language} AS part, s.chars * {width} AS weight, {rank} AS rank, s.cluster_id, s.cluster_size, s.access, s.use,
    s.evidence_digest, s.checked_at, s.score, coalesce(s.language, 'und') AS language, s.domain, s.fetched_at
FROM released s WHERE s.reason = '' ORDER BY s.file_no, s.row_no
"""


def make_plan(con: duckdb.DuckDBPyConnection, options: ReleaseOptions) -> Plan:
    """Create the table `kept` and lay its rows out. Without rows there is one empty train shard per crawl of the snapshot."""
    language = "coalesce(s.language, 'und')" if options.by_language else "''"
    split = split_sql(options.validation).replace("url_id", "s.url_id")
    con.execute(_KEPT.format(width=_WIDTH, split=split, language=language, rank=rank_sql().replace("url_id", "s.url_id")))
    table = query(con, "SELECT crawl_id, split, part, weight, rank FROM kept ORDER BY position")
    if not len(table):
        crawls = [row[0] for row in con.execute("SELECT DISTINCT crawl_id FROM facts ORDER BY 1").fetchall()]
        shards = [Shard(_path(crawl, TRAIN, "", 0, 1), crawl, TRAIN, "", (0,)) for crawl in crawls]
        return Plan(tuple(shards), np.zeros(1, dtype=np.int64), 0)
    sizes = np.asarray(table["weight"]).astype(np.int64)
    ranks = np.asarray(table["rank"]).astype(np.int64)
    shards = [shard for group in _groups(table) for shard in _shards(table, group, sizes, ranks, options.shard_bytes)]
    return Plan(tuple(shards), _pieces(shards, sizes), len(table))


def _groups(table: pa.Table) -> Iterator[tuple[int, int]]:
    """Runs of rows of one crawl, split and language."""
    change = np.zeros(len(table), dtype=bool)
    for name in ("crawl_id", "split", "part"):
        codes = np.asarray(table[name].combine_chunks().dictionary_encode().indices)
        change[1:] |= codes[1:] != codes[:-1]
    cuts = [0, *np.flatnonzero(change).tolist(), len(table)]
    yield from itertools.pairwise(cuts)


def _shards(table: pa.Table, group: tuple[int, int], sizes: Ints, ranks: Ints, shard_bytes: int) -> list[Shard]:
    start, stop = group
    before = np.cumsum(sizes[start:stop]) - sizes[start:stop]
    number = before // shard_bytes
    cuts = [start, *(np.flatnonzero(number[1:] != number[:-1]) + 1 + start).tolist(), stop]
    crawl, split, language = (table[name][start].as_py() for name in ("crawl_id", "split", "part"))
    return [
        Shard(_path(crawl, split, language, at, len(cuts) - 1), crawl, split, language, _bounds(low, high, sizes, ranks))
        for at, (low, high) in enumerate(itertools.pairwise(cuts))
    ]


def _path(crawl: str, split: str, language: str, at: int, of: int) -> str:
    folder = f"data/crawl_id={crawl}/lang={language}" if language else f"data/crawl_id={crawl}"
    return f"{folder}/{split}-{at:05d}-of-{of:05d}.parquet"


def _bounds(start: int, stop: int, sizes: Ints, ranks: Ints) -> tuple[int, ...]:
    """Ends of row groups: at local minima of the ranks; further ones only for rows or bytes in excess.

    `ranks[row]` is negative where no group may end. What stands more than `GROUP_REACH` rows away decides nothing.
    """
    total = np.concatenate(([0], np.cumsum(sizes[start:stop])))
    keys = np.flatnonzero(ranks[start:stop] >= 0)
    bounds = [start]
    for high in [*(_minima(keys, ranks[start:stop]) + 1 + start).tolist(), stop]:
        while (low := bounds[-1]) < high:
            by_bytes = int(np.searchsorted(total, total[low - start] + GROUP_BYTES_MAX, side="right")) - 1 + start
            limit = min(low + GROUP_ROWS_MAX, max(by_bytes, low + 1))
            bounds.append(high if high <= limit else _best(keys + start, ranks, low, limit))
    return tuple(bounds)


def _minima(places: Ints, ranks: Ints) -> Ints:
    """Those of `places` whose rank is the lowest among all of them up to `GROUP_REACH` rows away (of equals the first)."""
    if not len(places):
        return places
    order = np.append(ranks[places] * 2**33 + places, np.iinfo(np.int64).max)
    low = np.searchsorted(places, places - GROUP_REACH)
    high = np.searchsorted(places, places + GROUP_REACH, side="right")
    lowest = np.minimum.reduceat(order, np.stack((low, high), axis=1).ravel())[::2]
    chosen: Ints = places[lowest == order[:-1]]
    return chosen


def _best(places: Ints, ranks: Ints, low: int, limit: int) -> int:
    """Where a group that is too large ends: at the lowest rank of its second half, so that others choose the same place."""
    inside = places[np.searchsorted(places, (low + limit) // 2) : np.searchsorted(places, limit)]
    return int(inside[np.argmin(ranks[inside])]) + 1 if len(inside) else limit


def _pieces(shards: list[Shard], sizes: Ints) -> Ints:
    total = np.concatenate(([0], np.cumsum(sizes)))
    starts: list[int] = []
    for shard in shards:
        starts.append(shard.start)
        for low, high in zip(shard.bounds[:-1], shard.bounds[1:], strict=True):
            if low > starts[-1] and total[high] - total[starts[-1]] > _PIECE_BYTES:
                starts.append(low)
    return np.array(starts, dtype=np.int64)
