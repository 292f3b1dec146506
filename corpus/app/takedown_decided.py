"""What a release's decisions come to once some pages are taken down: the same funnel without them, and whom that promotes.

Works on `decisions.parquet` of the release's snapshot, which holds no text. Nothing is decided anew but one thing: where the
kept page of a near-duplicate cluster goes, the copy that came next by the release's own rule takes its place.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.app.takedown_targets import Targets
from corpus.export.decide import Decisions
from corpus.export.funnel import funnel
from corpus.export.session import append, count, load, query
from corpus.export.versions import versions_step

_COLUMNS = (
    "id", "url_id", "url", "host", "domain", "crawl_id", "fetched_at", "file_path", "warc_offset", "latest", "stage", "reason", "drop_rule", "access", "use",
    "evidence_digest", "checked_at", "refusing_domain", "cluster_id", "cluster_size", "chars",
)  # fmt: skip
_BATCH = 65_536
_CANDIDATES = """
WITH freed AS (
    SELECT DISTINCT cluster_id FROM decided WHERE latest AND covered AND (stage = 'exported' OR id IN (SELECT id FROM promoted)) AND cluster_id IS NOT NULL
    EXCEPT SELECT cluster_id FROM decided WHERE latest AND NOT covered AND (stage = 'exported' OR id IN (SELECT id FROM promoted)) AND cluster_id IS NOT NULL
)
SELECT id, url_id, url, domain, crawl_id, fetched_at, file_path, warc_offset, access, use, evidence_digest, checked_at, cluster_id, cluster_size, chars
FROM decided WHERE latest AND NOT covered AND stage = 'unique' AND cluster_id IN (SELECT cluster_id FROM freed) ORDER BY cluster_id, url, id
"""
_LOSSES = """
SELECT refusing_domain AS domain, count(*) AS rows, count(*) FILTER (domain <> refusing_domain) AS other_domains FROM staged
WHERE reason = 'cluster-refused' GROUP BY 1 ORDER BY 2 DESC, 1
"""
_VERSIONS = "SELECT coalesce(reason, '') AS reason FROM decided WHERE NOT latest AND NOT covered AND coalesce(reason, '') <> 'older-version'"
_USES = """
SELECT use, count(*) FROM (SELECT use FROM staged WHERE reason = '' UNION ALL SELECT use FROM decided d WHERE NOT latest AND NOT covered
    AND coalesce(reason, '') = '') GROUP BY 1 ORDER BY 1
"""
_RULES = "SELECT drop_rule, count(*) FROM staged WHERE reason = 'quality' GROUP BY 1 ORDER BY 1"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A copy that may take the place of a page that goes; the columns of `decisions.parquet`, by name."""

    row: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.row["id"])

    @property
    def cluster(self) -> str:
        return str(self.row["cluster_id"])


def load_decisions(con: duckdb.DuckDBPyConnection, path: Path, targets: Targets, promoted: Iterable[str]) -> None:
    """Create `decided` (with `covered`) and `promoted(id)`: copies that earlier takedowns put into the release."""
    source = pq.ParquetFile(path)
    schema = pa.schema([source.schema_arrow.field(name) for name in _COLUMNS]).append(pa.field("covered", pa.bool_()))
    load(con, "decided", schema.empty_table())
    for batch in source.iter_batches(batch_size=_BATCH, columns=list(_COLUMNS)):
        table = pa.Table.from_batches([batch]).select(list(_COLUMNS))
        covered = targets.rows(table)
        append(con, "decided", table.append_column("covered", pa.array(np.asarray(covered, dtype=bool))))
    load(con, "promoted", pa.table({"id": pa.array(sorted(promoted), pa.string())}))


def candidates(con: duckdb.DuckDBPyConnection) -> list[Candidate]:
    """Copies that passed everything but the election, of clusters whose kept page goes."""
    return [Candidate(row) for row in query(con, _CANDIDATES).to_pylist()]


def decisions_now(con: duckdb.DuckDBPyConnection, promoted: Iterable[str], path: Path, *, versions: bool) -> Decisions:
    """The decisions without the covered pages, with the `promoted` ids exported: what card and manifest speak of.

    `versions`: the release holds older versions too.
    """
    con.execute("DELETE FROM promoted")
    append(con, "promoted", pa.table({"id": pa.array(sorted(promoted), pa.string())}))
    con.execute(
        "CREATE OR REPLACE TABLE staged AS SELECT CASE WHEN p.id IS NULL THEN stage ELSE 'exported' END AS stage,"
        " CASE WHEN p.id IS NULL THEN coalesce(reason, '') ELSE '' END AS reason, drop_rule, use, domain, coalesce(refusing_domain, '') AS refusing_domain"
        " FROM decided d LEFT JOIN promoted p ON p.id = d.id WHERE latest AND NOT covered"
    )
    consent = dict(con.execute(_USES).fetchall())
    rules = dict(con.execute(_RULES).fetchall())
    older = count(con, "SELECT count(*) FROM decided WHERE NOT latest AND NOT covered")
    line = versions_step(con, _VERSIONS) if versions else None
    return Decisions(funnel(con), rules, query(con, _LOSSES), consent, older, path, line)
