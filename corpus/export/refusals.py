"""What a refusal does to copies of the refused page: members verified against it fall with it, and nobody else.

Otherwise a mirror could launder a page whose author said no. A mirror that refuses could also delete an encyclopedia, so
losses of other domains are counted per refusing domain and warned about. Being held back or merely lacking a permission is
no refusal.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

from corpus.export.session import query

WARN_ABOVE = 100
"""Rows of other domains that one refusing domain may take along before a person should look."""

_REFUSED = """
CREATE TABLE refused AS
SELECT r.cluster_id, r.url_id, r.domain, coalesce(r.text_sha256, o.text_sha256) AS text
FROM rep r JOIN consent c USING (url_id)
LEFT JOIN rep o ON r.outcome = 'near-copy' AND r.similarity IS NOT NULL AND o.url = r.near_original
WHERE NOT c.export AND (c.use = 'no' OR c.access = 'no') AND c.reason NOT IN ('stale', 'held', 'no-permission')
    AND r.cluster_id IS NOT NULL
"""

_ALIKE = """
CREATE TABLE alike AS
WITH centre AS (SELECT DISTINCT cluster_id, text_sha256 AS text FROM rep WHERE center AND text_sha256 IS NOT NULL),
touched AS (SELECT DISTINCT cluster_id FROM refused),
star AS (
    SELECT DISTINCT r.cluster_id, c.text AS one, r.text_sha256 AS other FROM rep r JOIN centre c USING (cluster_id) JOIN touched USING (cluster_id)
    WHERE r.text_sha256 IS NOT NULL AND r.similarity >= $threshold
),
pair AS (
    SELECT a.cluster_id, a.text_sha256 AS one, b.text_sha256 AS other FROM pairs p JOIN rep a ON a.id = p.a JOIN rep b ON b.id = p.b
    JOIN touched t ON t.cluster_id = a.cluster_id WHERE a.cluster_id = b.cluster_id AND p.similarity >= $threshold
),
own AS (SELECT DISTINCT cluster_id, text_sha256 AS one, text_sha256 AS other FROM rep JOIN touched USING (cluster_id) WHERE text_sha256 IS NOT NULL)
SELECT * FROM star UNION SELECT cluster_id, other, one FROM star
UNION SELECT * FROM pair UNION SELECT cluster_id, other, one FROM pair UNION SELECT * FROM own
"""

_FALLEN = """
CREATE TABLE fallen AS
SELECT m.url_id, m.domain, min(f.domain) AS refusing_domain
FROM refused f JOIN alike a ON a.cluster_id = f.cluster_id AND a.one = f.text
JOIN rep m ON m.cluster_id = f.cluster_id AND m.text_sha256 = a.other
WHERE m.outcome = 'ok' AND m.url_id NOT IN (SELECT url_id FROM refused)
GROUP BY m.url_id, m.domain
"""


def fall(con: duckdb.DuckDBPyConnection, threshold: float, *, drop: bool) -> None:
    """Create `fallen(url_id, domain, refusing_domain)`; empty where the operator chose to promote copies."""
    con.execute(_REFUSED)
    if not drop:
        con.execute("CREATE TABLE fallen (url_id VARCHAR, domain VARCHAR, refusing_domain VARCHAR)")
        return
    con.execute(_ALIKE, {"threshold": threshold})
    con.execute(_FALLEN)


def losses(con: duckdb.DuckDBPyConnection) -> pa.Table:
    """Rows lost to another URL's refusal (that would else have been candidates): refusing domain, rows, rows of other domains."""
    return query(
        con,
        "SELECT f.refusing_domain AS domain, count(*) AS rows, count(*) FILTER (f.domain <> f.refusing_domain) AS other_domains"
        " FROM fallen f JOIN staged s USING (url_id) WHERE s.reason = 'cluster-refused' GROUP BY ALL ORDER BY rows DESC, domain",
    )
