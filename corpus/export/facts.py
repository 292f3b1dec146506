"""The documents of a snapshot as SQL sees them: one `facts` row per documents row, without its text, and `rep`, the row
that stands for each URL.

Which version stands for a URL was chosen when clusters were made; here it is looked up, and for URLs without text the
latest visit stands. Never reads a text.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.errors import StoreError
from corpus.export.ports import HOST_LINES, SnapshotInputs
from corpus.export.session import append, count, load

_KEPT = [
    "id", "url", "url_id", "host", "domain", "crawl_id", "outcome", "fetched_at", "text_sha256", "language",
    "language_script", "near_original", "file_path", "warc_offset",
]  # fmt: skip


def load_facts(con: duckdb.DuckDBPyConnection, inputs: SnapshotInputs) -> None:
    """Fill `facts`, `clusters`, `pairs`, `frontier` and `host_lines`."""
    con.execute(
        "CREATE TABLE facts (file_no INTEGER, row_no INTEGER, id VARCHAR, url VARCHAR, url_id VARCHAR, host VARCHAR, domain VARCHAR,"
        " crawl_id VARCHAR, outcome VARCHAR, fetched_at TIMESTAMP, text_sha256 VARCHAR, language VARCHAR,"
        " language_script VARCHAR, near_original VARCHAR, file_path VARCHAR, warc_offset BIGINT)"
    )
    columns = ", ".join(_KEPT)
    for number, segment in enumerate(inputs.segments):
        con.execute(
            f"INSERT INTO facts BY NAME SELECT {number} AS file_no, file_row_number AS row_no, {columns}"
            " FROM read_parquet($file, file_row_number = true, hive_partitioning = false)",
            {"file": str(segment.documents)},
        )
    load_file(con, "clusters", inputs.clusters)
    if inputs.pairs is not None:
        load_file(con, "pairs", inputs.pairs)
    else:
        con.execute("CREATE TABLE pairs (a VARCHAR, b VARCHAR, similarity DOUBLE)")
    load(con, "frontier", inputs.frontier)
    load_host_lines(con, inputs.host_lines)


def stand_apart(con: duckdb.DuckDBPyConnection) -> None:
    """Let go of the rows that `rep` has as well: `superseded` keeps the others, and `facts` is a view of both from here on."""
    con.execute("CREATE TABLE superseded AS SELECT f.* FROM facts f ANTI JOIN rep USING (file_no, row_no)")
    con.execute("DROP TABLE facts")
    facts_in(con, "rep")


def facts_in(con: duckdb.DuckDBPyConnection, table: str) -> None:
    """`facts` is a view of `superseded` and a table that has all other rows."""
    columns = ", ".join(("file_no", "row_no", *_KEPT))
    con.execute(f"CREATE OR REPLACE VIEW facts AS SELECT {columns} FROM {table} UNION ALL SELECT {columns} FROM superseded")


def load_host_lines(con: duckdb.DuckDBPyConnection, path: Path | None) -> None:
    """Create `host_lines`, which the writer of rows looks into; empty where lines were not compared."""
    if path is not None:
        load_file(con, "host_lines", path)
    else:
        load(con, "host_lines", HOST_LINES.empty_table())


def load_file(con: duckdb.DuckDBPyConnection, table: str, path: Path) -> None:
    """Create a table from a Parquet file, batch by batch."""
    source = pq.ParquetFile(path)
    load(con, table, source.schema_arrow.empty_table())
    for batch in source.iter_batches(batch_size=131_072):
        append(con, table, pa.Table.from_batches([batch]))


_REPRESENTATIVES = """
CREATE TABLE rep AS
WITH several AS (SELECT url_id FROM facts GROUP BY url_id HAVING count(*) > 1),
visits AS (SELECT url, bool_or(gone) AS gone, max(visited_at) AS visited_at FROM frontier GROUP BY url),
placed AS (
    SELECT f.url_id, f.file_no, f.row_no, c.id IS NOT NULL AS clustered,
        row_number() OVER (PARTITION BY f.url_id ORDER BY c.id IS NULL, f.outcome <> 'ok' AND c.id IS NOT NULL,
            CASE WHEN c.id IS NULL THEN -epoch_us(f.fetched_at) ELSE epoch_us(f.fetched_at) END,
            CASE WHEN c.id IS NULL THEN f.id END DESC, f.file_no, f.row_no) AS rank,
        row_number() OVER (PARTITION BY f.url_id ORDER BY f.fetched_at DESC, f.file_no DESC, f.row_no DESC) AS recent,
        max(f.fetched_at) OVER (PARTITION BY f.url_id) AS seen_at
    FROM facts f SEMI JOIN several USING (url_id) LEFT JOIN clusters c ON c.id = f.id
)
SELECT f.*, greatest(f.fetched_at, coalesce(q.visited_at, f.fetched_at)) AS visited_at, coalesce(q.gone, false) AS gone,
    f.file_no AS newest_file, f.row_no AS newest_row, c.id IS NOT NULL AS clustered, c.cluster_id, c.cluster_size, c.center, c.similarity
FROM facts f ANTI JOIN several USING (url_id) LEFT JOIN clusters c ON c.id = f.id LEFT JOIN visits q ON q.url = f.url
UNION ALL
SELECT f.*, greatest(p.seen_at, coalesce(q.visited_at, p.seen_at)) AS visited_at, coalesce(q.gone, false) AS gone,
    n.file_no AS newest_file, n.row_no AS newest_row, p.clustered,
    c.cluster_id, c.cluster_size, c.center, c.similarity
FROM placed p
JOIN facts f ON f.file_no = p.file_no AND f.row_no = p.row_no
JOIN placed n ON n.url_id = p.url_id AND n.recent = 1
LEFT JOIN clusters c ON c.id = f.id
LEFT JOIN visits q ON q.url = f.url
WHERE p.rank = 1
"""
"""Most URLs were captured once and need no ordering."""


def choose_representatives(con: duckdb.DuckDBPyConnection, where: str) -> None:
    """Create `rep`: one row per URL. Raises StoreError when the clusters were not made from these documents."""
    con.execute(_REPRESENTATIVES)
    faults = {
        "clusters name documents that are not in the snapshot": "SELECT count(*) FROM clusters c WHERE NOT EXISTS (SELECT 1 FROM facts f WHERE f.id = c.id)",
        "clusters hold two versions of one URL": "SELECT count(*) FROM (SELECT f.url_id FROM facts f JOIN clusters c USING (id)"
        " GROUP BY f.url_id HAVING count(DISTINCT f.id) > 1)",
        "documents with text are in no cluster": "SELECT count(*) FROM rep WHERE outcome = 'ok' AND NOT clustered",
    }
    for what, query in faults.items():
        if found := count(con, query):
            raise StoreError(f"{what} ({found})", where, "run corpus dedup on this snapshot again")
