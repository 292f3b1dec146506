"""Older versions in a release (`export.versions = "major"`): one row for each version that differs much from the next newer.

An older version passes the policy by its own text, and everything that is said about its URL today by the newest visit: a
refusal, a takedown or a page that is gone takes the whole chain along. It never enters as a near duplicate of another row,
and falls with a refused page it was found alike to. The funnel counts URLs; these rows are one separate line.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb
import pyarrow as pa

from corpus.export.facts import load_file
from corpus.export.session import load, query
from corpus.model import FunnelStep

STAGE = "versions"

_OLDER = """
CREATE TABLE older AS
SELECT f.*, v.visited_at, v."like" AS alike FROM versions v JOIN facts f ON f.id = v.id AND f.outcome = 'ok'
WHERE v.change = 'major' QUALIFY row_number() OVER (PARTITION BY f.id ORDER BY f.fetched_at, f.file_no, f.row_no) = 1
"""
_NONE = "CREATE TABLE older AS SELECT f.*, f.fetched_at AS visited_at, CAST([] AS VARCHAR[]) AS alike FROM facts f LIMIT 0"

_JUDGED = """
CREATE TABLE older_staged AS
SELECT o.*, o.id AS cluster_id, 1::BIGINT AS cluster_size, v.drop_rule, v."measured", v."limit", v.keep, v.score, v.chars,
    c.access, c.use, c.evidence_digest, c.checked_at, c.stale,
    CASE
        WHEN NOT $all_languages AND coalesce(o.language, 'und') NOT IN (SELECT language FROM wanted) THEN 'language'
        WHEN v.drop_rule IS NOT NULL THEN 'quality'
        WHEN t.url_id IS NOT NULL THEN 'taken-down'
        WHEN r.gone AND $drop_gone THEN 'gone'
        WHEN c.stale THEN 'stale'
        WHEN c.export IS NOT TRUE THEN CASE WHEN coalesce(c.reason, '') = '' THEN 'held' ELSE c.reason END
        WHEN $fall AND EXISTS (SELECT 1 FROM rep x JOIN refused f ON f.url_id = x.url_id WHERE list_contains(o.alike, x.id)) THEN 'cluster-refused'
    END AS reason, CAST(NULL AS VARCHAR) AS stage
FROM older o
JOIN rep r ON r.url_id = o.url_id
LEFT JOIN verdicts v ON v.id = o.id
LEFT JOIN consent c ON c.url_id = o.url_id
LEFT JOIN covered t ON t.url_id = o.url_id
"""

_STAGES = """
UPDATE older_staged SET stage = CASE WHEN reason = '' THEN 'exported' WHEN reason IN ('language', 'quality') THEN reason
    WHEN reason IN ('exact-duplicate', 'near-duplicate') THEN 'unique' ELSE 'allowed' END
"""

_RIVALS = """
SELECT o.id, o.alike, o.text_sha256, EXISTS (SELECT 1 FROM staged s WHERE s.reason = '' AND s.text_sha256 = o.text_sha256) AS twin,
    EXISTS (SELECT 1 FROM staged s WHERE s.reason = '' AND list_contains(o.alike, s.id)) AS near
FROM older_staged o WHERE o.reason IS NULL ORDER BY o.visited_at DESC, o.url, o.id
"""


def load_versions(con: duckdb.DuckDBPyConnection, path: Path | None) -> None:
    """Create `older`, the major older versions by the row of their first capture; empty without a file of versions."""
    if path is None:
        con.execute(_NONE)
        return
    load_file(con, "versions", path)
    con.execute(_OLDER)


def judge_versions(con: duckdb.DuckDBPyConnection, *, all_languages: bool, drop_gone: bool, fall: bool) -> FunnelStep:
    """Create `older_staged`, with stage and reason of each (reason empty: it is released), and the view `released` of all rows
    that are decided. Returns their line of the funnel.

    Of several alike the one visited last stays, then by URL and id; a row that stands for a URL goes before all of them.
    """
    con.execute(_JUDGED, {"all_languages": all_languages, "drop_gone": drop_gone, "fall": fall})
    rejected = _rejected(query(con, _RIVALS).to_pylist())
    load(con, "rejected", pa.table({"id": list(rejected), "reason": list(rejected.values())}, schema=_REJECTED))
    con.execute("UPDATE older_staged SET reason = r.reason FROM rejected r WHERE r.id = older_staged.id")
    con.execute("UPDATE older_staged SET reason = '' WHERE reason IS NULL")
    con.execute(_STAGES)
    con.execute("CREATE VIEW released AS SELECT * FROM staged UNION ALL BY NAME SELECT * FROM older_staged")
    return versions_step(con, "SELECT reason FROM older_staged")


def versions_step(con: duckdb.DuckDBPyConnection, reasons: str) -> FunnelStep:
    """The line of the funnel, from a SELECT of the reasons of major older versions."""
    counted = dict(con.execute(f"SELECT reason, count(*) FROM ({reasons}) GROUP BY 1 ORDER BY 1").fetchall())
    kept = counted.pop("", 0)
    return FunnelStep(STAGE, kept + sum(counted.values()), kept, counted)


_REJECTED = pa.schema([("id", pa.string()), ("reason", pa.string())])


def _rejected(rows: Iterable[dict[str, object]]) -> dict[str, str]:
    """Which older versions repeat a row that is released, in the order they are given."""
    ids: set[object] = set()
    texts: set[object] = set()
    found: dict[str, str] = {}
    for row in rows:
        alike = row["alike"]
        assert isinstance(alike, list), "a list column"
        if row["twin"] or row["text_sha256"] in texts:
            found[str(row["id"])] = "exact-duplicate"
        elif row["near"] or not ids.isdisjoint(alike):
            found[str(row["id"])] = "near-duplicate"
        else:
            ids.add(row["id"])
            texts.add(row["text_sha256"])
    return found
