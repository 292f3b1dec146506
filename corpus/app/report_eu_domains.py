"""The domains of a release by the size of what was fetched from them, and the two readings of the rule which of them to name.

The template asks for the domain names "in the top 10 %" by size. Read by number, that is the largest tenth of all domains;
read by size, the largest domains that together make up a tenth of all bytes. Both are the beginning of one list (most bytes
first, then by name), so a reading is a number of rows. Nothing is estimated, and no list is cut without saying where.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from corpus.export.domains import share
from corpus.export.escape import csv_cell
from corpus.export.summary import DomainRow

HEADER = (
    "rank", "domain", "pages_fetched", "bytes_fetched", "share", "cumulative_share", "pages_kept", "text_bytes_kept", "text_share",
    "first_fetched", "last_fetched",
)  # fmt: skip
_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Provider:
    """What a kind of provider must name: the top `percent` of domains, at most `cap` of them (None: no cap)."""

    percent: int
    cap: int | None


PROVIDERS = {"any": Provider(10, None), "sme": Provider(5, 1000)}
READINGS = ("by_number", "by_size")

_FETCHED = """
CREATE TABLE fetched AS
SELECT domain, count(*) AS pages, sum(CASE WHEN outcome = 'near-copy' THEN 0 ELSE coalesce(warc_length, 0) END)::BIGINT AS bytes,
    strftime(min(fetched_at), '%Y-%m-%dT%H:%M:%SZ') AS first, strftime(max(fetched_at), '%Y-%m-%dT%H:%M:%SZ') AS last
FROM scraped GROUP BY domain
"""
_RANKED = """
CREATE TABLE ranked AS
SELECT row_number() OVER up AS rank, *, sum(bytes) OVER (up ROWS UNBOUNDED PRECEDING)::BIGINT AS running
FROM (
    SELECT domain, coalesce(f.pages, 0) AS pages, coalesce(f.bytes, 0) AS bytes, coalesce(k.pages, 0) AS kept, coalesce(k.text_bytes, 0) AS text,
        coalesce(least(f.first, k.first_fetched), f.first, k.first_fetched) AS first,
        coalesce(greatest(f.last, k.last_fetched), f.last, k.last_fetched) AS last
    FROM fetched f FULL JOIN kept k USING (domain)
) WINDOW up AS (ORDER BY bytes DESC, domain)
"""


class DomainTable:
    """The ranked domains in a DuckDB connection that has a relation `scraped` (domain, outcome, warc_length, fetched_at): one row
    per stored answer. `kept` are the domains of the release itself. A linked copy of a stored page counts as a page of no bytes."""

    def __init__(self, con: duckdb.DuckDBPyConnection, kept: list[DomainRow]) -> None:
        self._con = con
        rows = {
            name: [getattr(row, name) for row in kept]
            for name in ("domain", "pages", "text_bytes", "first_fetched", "last_fetched")
        }
        types = [pa.string(), pa.int64(), pa.int64(), pa.string(), pa.string()]
        table = pa.table([pa.array(column, kind) for column, kind in zip(rows.values(), types, strict=True)], names=list(rows))
        con.register("kept", table)
        con.execute(_FETCHED)
        con.execute(_RANKED)
        con.unregister("kept")
        self.domains, self.bytes, self.text = self._numbers("count(*), coalesce(sum(bytes), 0), coalesce(sum(text), 0)")

    def rules(self) -> dict[str, Any]:
        """For each kind of provider and reading: how many domains must be named, and how many of equal size just miss it."""
        return {name: self._rule(provider) for name, provider in PROVIDERS.items()}

    def listed(self, rules: dict[str, Any], provider: str) -> int:
        """Rows that satisfy both readings of a provider's rule."""
        return max(int(rules[provider][reading]["domains"]) for reading in READINGS)

    def rows(self, first: int) -> Iterator[dict[str, Any]]:
        """The first rows of the list, as HEADER names them; shares are text with six digits."""
        result = self._con.cursor().execute(
            "SELECT rank, domain, pages, bytes, running, kept, text, first, last FROM ranked WHERE rank <= $n ORDER BY rank",
            {"n": first},
        )
        while batch := result.fetchmany(_BATCH):
            for rank, domain, pages, size, running, kept, text, begin, end in batch:
                cells = (
                    rank, domain, pages, size, share(size, self.bytes), share(running, self.bytes), kept, text, share(text, self.text), begin, end,
                )  # fmt: skip
                yield dict(zip(HEADER, cells, strict=True))

    def csv(self) -> Iterator[str]:
        """Every domain, with a column for each provider and reading that says whether it must be named."""
        rules = self.rules()
        limits = {f"{name}_{reading}": rules[name][reading]["domains"] for name in PROVIDERS for reading in READINGS}
        yield _line([*HEADER, *limits])
        for row in self.rows(self.domains):
            named = ["yes" if row["rank"] <= limit else "no" for limit in limits.values()]
            yield _line([*(csv_cell(cell) if name == "domain" else cell for name, cell in row.items()), *named])

    def _rule(self, provider: Provider) -> dict[str, Any]:
        by_number = -(-self.domains * provider.percent // 100)
        found = self._numbers(
            "coalesce(min(rank) FILTER (running::HUGEINT * 100 >= $total::HUGEINT * $percent AND bytes > 0), 0)",
            {"total": self.bytes, "percent": provider.percent},
        )
        sizes = {"by_number": by_number, "by_size": found[0]}
        cap = provider.cap
        return {
            "percent": provider.percent,
            "cap": cap,
            **{
                reading: {
                    "uncapped": n,
                    "domains": min(n, cap) if cap is not None else n,
                    "as_large_but_not_named": self._tied(min(n, cap) if cap is not None else n),
                }
                for reading, n in sizes.items()
            },
        }

    def _tied(self, last: int) -> int:
        """Domains after place `last` that are as large as the one there: only their name put them behind."""
        return self._numbers(
            "count(*) FILTER (rank > $last AND bytes = (SELECT bytes FROM ranked WHERE rank = $last))", {"last": last}
        )[0]

    def _numbers(self, what: str, given: dict[str, int] | None = None) -> list[int]:
        row = self._con.execute(f"SELECT {what} FROM ranked", given or {}).fetchone()
        return [int(value) for value in row or ()]


def _line(cells: list[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()
