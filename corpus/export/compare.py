"""A release beside the one before it, page by page: what came, what went, what has another body now. Reads no texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from corpus.export.session import one

_COMPARED = """
SELECT count(*) FILTER (old.url IS NULL), count(*) FILTER (new.url IS NULL), count(*) FILTER (old.ids <> new.ids)
FROM (SELECT url, list(id ORDER BY id) AS ids FROM released WHERE reason = '' GROUP BY url) new
FULL JOIN (SELECT url, list(id ORDER BY id) AS ids FROM read_parquet([{files}], hive_partitioning = false) GROUP BY url) old ON old.url = new.url
"""


@dataclass(frozen=True, slots=True)
class Compared:
    """Pages (URLs): in this release alone, in the earlier one alone, in both with other versions."""

    added: int
    removed: int
    changed: int


def compared(con: duckdb.DuckDBPyConnection, shards: Sequence[Path]) -> Compared | None:
    """Compare the table `released` with the shards of an earlier release; None where there are none."""
    if not shards:
        return None
    files = ", ".join("'" + str(path).replace("'", "''") + "'" for path in shards)
    added, removed, changed = one(con, _COMPARED.format(files=files))
    return Compared(added, removed, changed)
