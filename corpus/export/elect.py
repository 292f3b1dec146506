"""Which member of a near-duplicate cluster a release keeps: exactly one, among those that passed everything else.

By rule (`longest` text, `newest` or `oldest` visit, `best` score), then by smallest URL. So a kept page that is withdrawn
is replaced by a copy that is still allowed, and the order of the input never matters.
"""

from __future__ import annotations

import duckdb

ORDERS: dict[str, str] = {
    "longest": "chars DESC",
    "newest": "visited_at DESC",
    "oldest": "fetched_at ASC",
    "best": "score DESC NULLS LAST, chars DESC",
}

_ELECT = """
CREATE TABLE elected AS
SELECT cluster_id, id AS keep_id, url AS keep_url, text_sha256 AS keep_text
FROM (SELECT *, row_number() OVER (PARTITION BY cluster_id ORDER BY {order}, url, id) AS place FROM staged
    WHERE stage IS NULL AND cluster_size > 1)
WHERE place = 1
"""

_REJECT = """
UPDATE staged SET stage = 'unique', reason = CASE WHEN staged.text_sha256 = e.keep_text THEN 'exact-duplicate' ELSE 'near-duplicate' END
FROM elected e WHERE staged.stage IS NULL AND staged.cluster_id = e.cluster_id AND staged.id <> e.keep_id
"""


def elect(con: duckdb.DuckDBPyConnection, keep: str) -> None:
    """Create `elected(cluster_id, keep_id, …)`, of clusters with more than one member, and drop the others of each cluster from `staged` at `unique`."""
    con.execute(_ELECT.format(order=ORDERS[keep]))
    con.execute(_REJECT)
