"""The numbers of a release, taken once from the decisions: what the card, the manifest and the Croissant file speak of.

`checked` reads the same numbers back from the written shards; a release whose card and data disagree is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from corpus.errors import CorpusError
from corpus.export.session import count, one
from corpus.export.shard import Written


@dataclass(frozen=True, slots=True)
class DomainRow:
    """One registered domain of a release. Times are ISO-8601 UTC; `text_bytes` counts the text as released."""

    domain: str
    pages: int
    text_bytes: int
    first_fetched: str
    last_fetched: str


@dataclass(frozen=True, slots=True)
class Counts:
    """What can be counted in the decisions and in the shards alike."""

    rows: int
    languages: dict[str, int]
    use: dict[str, int]
    domains: int
    crawls: tuple[str, ...]
    first_fetched: str
    last_fetched: str
    clustered: int
    """Rows whose cluster has more than one member."""
    largest_cluster: int


_ISO = "%Y-%m-%dT%H:%M:%SZ"
_TIME = "strftime({}, '%Y-%m-%dT%H:%M:%SZ')"


def counts(con: duckdb.DuckDBPyConnection) -> Counts:
    """The counts of the decisions."""
    return _counts(con, "SELECT language, use, domain, crawl_id, fetched_at, cluster_size FROM kept")


def _counts(con: duckdb.DuckDBPyConnection, source: str) -> Counts:
    total = one(
        con,
        f"SELECT count(*), count(DISTINCT domain), {_TIME.format('min(fetched_at)')}, {_TIME.format('max(fetched_at)')},"
        f" count(*) FILTER (cluster_size > 1), max(cluster_size) FROM ({source})",
    )

    def by(column: str) -> dict[str, int]:
        return dict(con.execute(f"SELECT {column}, count(*) FROM ({source}) GROUP BY 1 ORDER BY 2 DESC, 1").fetchall())

    return Counts(
        total[0],
        by("language"),
        by("use"),
        total[1],
        tuple(sorted(by("crawl_id"))),
        total[2] or "",
        total[3] or "",
        total[4],
        total[5] or 0,
    )


class DomainTotals:
    """Adds up the domains of the rows that are written, row group by row group."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Any]] = {}

    def add(self, rows: pa.Table) -> None:
        """Count rows of the release schema; `text` is taken as it is written."""
        sized = pa.table(
            {"domain": rows["domain"], "size": pc.binary_length(rows["text"]).cast(pa.int64()), "at": rows["fetched_at"]}
        )
        grouped = sized.group_by("domain").aggregate([("size", "count"), ("size", "sum"), ("at", "min"), ("at", "max")])
        for row in grouped.to_pylist():
            found = self._rows.setdefault(row["domain"], [0, 0, row["at_min"], row["at_max"]])
            found[0] += row["size_count"]
            found[1] += row["size_sum"]
            found[2], found[3] = min(found[2], row["at_min"]), max(found[3], row["at_max"])

    def ranked(self) -> list[DomainRow]:
        """All domains, most text first."""
        rows = [
            DomainRow(name, n, size, f"{first:{_ISO}}", f"{last:{_ISO}}") for name, (n, size, first, last) in self._rows.items()
        ]
        return sorted(rows, key=lambda row: (-row.text_bytes, row.domain))


def checked(
    con: duckdb.DuckDBPyConnection, expected: Counts, shards: Sequence[Written], folder: Path, *, versions: bool = False
) -> int | None:
    """Read the shards back and compare. Returns the tokens of the release (None without a tokenizer).

    Raises CorpusError when a number differs, or a URL or an id stands twice (a URL may, in a release with older `versions`).
    """
    found, tokens = counts_of_shards(con, shards, folder, versions=versions)
    if shards and found != expected:
        raise CorpusError(f"the card says {expected}, the shards hold {found}", str(folder), "this is a fault of corpus export")
    return tokens


def counts_of_shards(
    con: duckdb.DuckDBPyConnection, shards: Sequence[Written], folder: Path, *, versions: bool = False
) -> tuple[Counts, int | None]:
    """What the shards hold, and their tokens (None without a tokenizer). Raises CorpusError when an id stands twice, or (without
    older `versions`) a URL."""
    files = ", ".join("'" + str(folder / shard.path).replace("'", "''") + "'" for shard in shards)
    if not files:
        return Counts(0, {}, {}, 0, (), "", "", 0, 0), None
    con.execute(
        "CREATE TEMP VIEW written AS SELECT id, url, language, consent.use AS use, domain, crawl_id, fetched_at,"
        f" minhash_cluster_size AS cluster_size, token_count FROM read_parquet([{files}], hive_partitioning = false)"
    )
    found = _counts(con, "SELECT language, use, domain, crawl_id, fetched_at, cluster_size FROM written")
    for column in ("id",) if versions else ("id", "url"):
        if count(con, f"SELECT count(*) - count(DISTINCT {column}) FROM written"):
            raise CorpusError(f"a {column} stands twice in the shards", str(folder), "this is a fault of corpus export")
    tokens = one(con, "SELECT sum(token_count)::BIGINT FROM written")[0]
    con.execute("DROP VIEW written")
    return found, None if tokens is None else int(tokens)
