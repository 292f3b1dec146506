"""CONTRACT's views over one corpus folder, in a DuckDB that lives in memory and only reads.

`documents`, `decisions`' inputs and releases are read_parquet over the files that commit records and manifests name;
frontier tables come in as Arrow, batch by batch, and only when a query names their view. Nothing is written, no
database file is opened, no extension is loaded, and a statement that is not a query is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from corpus.app.clusters import CLUSTERS
from corpus.app.consent_views import AUTHORITY_SCHEMA, DECISION_SCHEMA, authority_batches, decision_batches
from corpus.app.frontier_files import read_all, read_columns
from corpus.app.host_lines import FILE as HOST_LINES
from corpus.app.ledger_views import (
    CONSENT_VIEW,
    DECISIONS_VIEW,
    EVIDENCE_SCHEMA,
    LEDGER_SCHEMA,
    LEDGER_VIEW,
    evidence_batches,
    ledger_batches,
)
from corpus.app.process import map_records
from corpus.app.project import Project
from corpus.app.records_view import Narrowing
from corpus.app.release import DECISIONS, SIGNAL_FIELDS, releases, shard_files
from corpus.app.snapshot import latest_snapshot
from corpus.app.taken_down_views import decided_now, hidden, pages_now, standing
from corpus.errors import UsageError
from corpus.export.schema import release_schema
from corpus.model import SCHEMA_VERSION
from corpus.store.commits import CommitRecord

MEMORY_SHARE = 2
"""A query gets this part of `engine.memory`: it may run beside a crawl."""

PAGES = """
CREATE VIEW all_pages AS SELECT url, url_id, host, domain, crawl_id, CASE WHEN state = 'fetched' AND measured THEN 'parsed' ELSE state END AS state,
    reason, http_status, make_timestamp(CAST(fetched_at * 1000000 AS BIGINT)) AS fetched_at, depth, warc_file, warc_offset, warc_length
FROM (SELECT f.*, nullif(regexp_extract(f.warc_file, 'crawl_id=([^/]+)/', 1), '') AS crawl_id,
    regexp_extract(f.warc_file, '([^/]+)[.]warc', 1) IN (SELECT segment FROM measured_segments) AS measured
    FROM frontier_urls f WHERE f.kind = 'page')
UNION ALL SELECT url, url_id, host, domain, crawl_id, 'parsed', '', http_status, fetched_at, depth, file_path, warc_offset, warc_length
FROM measured_documents WHERE origin = 'ingest' AND url_id NOT IN (SELECT url_id FROM frontier_urls)
QUALIFY row_number() OVER (PARTITION BY url_id ORDER BY fetched_at DESC, file_path DESC, warc_offset DESC) = 1
"""
HOSTS = """
CREATE VIEW hosts AS SELECT h.host, h.domain, h.ips, h.state, h.pace, make_timestamp(CAST(h.next_contact * 1000000 AS BIGINT)) AS next_contact,
    h.crawl_delay, h.robots_digest, make_timestamp(CAST(h.robots_read_at * 1000000 AS BIGINT)) AS robots_read_at,
    h.budget, k.kept_share, k.unique_share, h.reason, h.queued, h.pages, h.cache_hits, h.cache_misses, h.quality
FROM frontier_hosts h LEFT JOIN (
    SELECT host, count(*) FILTER (WHERE reason IS NULL OR reason IN ('', 'near-duplicate', 'exact-duplicate')) / count(*) AS kept_share,
        count(*) FILTER (WHERE reason IS NULL OR reason = '') / count(*) AS unique_share
    FROM document_decisions GROUP BY host) k ON k.host = h.host
"""
DOMAINS = """
CREATE VIEW domains AS SELECT domain, count(*) AS urls, count(*) FILTER (WHERE state IN ('fetched', 'parsed', 'not-modified')) AS pages,
    count(*) FILTER (WHERE state = 'refused') AS refused, count(*) FILTER (WHERE state IN ('failed', 'gone')) AS failed FROM pages GROUP BY domain
"""
DOCUMENTS = """
CREATE VIEW documents AS SELECT d.text, d.id, d.crawl_id AS dump, d.url, strftime(d.fetched_at, '%Y-%m-%dT%H:%M:%SZ') AS date, d.file_path,
    d.language, d.language_score, NULL::BIGINT AS token_count, e.cluster_size AS minhash_cluster_size, d.title, d.author, d.published,
    d.license_url, d.host, d.domain, d.crawl_id, d.fetched_at, d.http_status, d.content_type, d.charset, d.warc_offset, d.warc_length,
    d.content_sha256, d.text_sha256, d.url_id, d.language_script, d.extractor, e.cluster_id AS minhash_cluster_id,
    NULL::DOUBLE AS quality_score, {signals} AS signals,
    {{'access': e.access, 'use': coalesce(e.use, d.use), 'evidence_digest': e.evidence_digest, 'checked_at': e.checked_at}} AS consent,
    NULL::VARCHAR AS policy_digest, {schema} AS schema_version, e.drop_rule, e.measured, e."limit", e.keep,
    d.outcome, e.stage, e.reason, e.keep_id, d.origin, d.near_original, d.evidence
FROM measured_documents d
LEFT JOIN document_decisions e ON e.id = d.id AND e.file_path = d.file_path AND e.warc_offset = d.warc_offset {join}
"""
CLUSTERS_VIEW = """
CREATE VIEW clusters AS SELECT c.cluster_id, c.id, d.url, c.id = coalesce(e.keep_id, c.cluster_id) AS keep, c.similarity, c.cluster_size
FROM cluster_rows c LEFT JOIN (SELECT DISTINCT ON (id) id, url FROM measured_documents) d ON d.id = c.id
    LEFT JOIN document_decisions e ON e.id = c.id
"""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Views:
    """A read-only DuckDB over one project. Close it, or use it as a context manager."""

    def __init__(self, project: Project, *, threads: int | None = None) -> None:
        self._project = project
        self._made: set[str] = set()
        self._narrowing = Narrowing()
        project.layout.spill.mkdir(parents=True, exist_ok=True)
        self.connection = _connect(project, threads)

    def __enter__(self) -> Views:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def query(self, sql: str) -> pa.Table:
        """The result of one SELECT as an Arrow table. Raises UsageError for SQL that fails or that would write."""
        with _explained():
            return self._execute(sql).to_arrow_table()

    def stream(self, sql: str, batch_rows: int) -> Iterator[pa.RecordBatch]:
        """The result of one SELECT batch by batch, for what is too large to hold. Raises as `query` does."""
        with _explained():
            yield from self._execute(sql).to_arrow_reader(batch_rows)

    def _execute(self, sql: str) -> duckdb.DuckDBPyRelation:
        self._prepare(sql)
        statements = self.connection.extract_statements(sql)
        if len(statements) != 1:
            what = (
                f"only a single query is answered; {len(statements)} statements were given"
                if statements
                else "the query is empty"
            )
            raise UsageError(what, "sql", "write one SELECT")
        if statements[0].type != duckdb.StatementType.SELECT:  # EXPLAIN ANALYZE runs what it explains
            raise UsageError("only a single query is answered; nothing here is ever written", "sql", "write one SELECT")
        return self.connection.sql(sql)

    def _prepare(self, sql: str) -> None:
        """Make the views a statement names, and what they stand on; a name in a string costs only time."""
        words = {word.lower() for word in _WORD.findall(sql)}
        self._narrowing.before(self.connection, self._project, sql, self._made)
        # the measured signals are joined only where a query speaks of them: they are a second file of every segment
        self._make("documents_with_signals" if {"documents", "signals"} <= words else "")
        for word in sorted(words):
            self._make(word)

    def make(self, *names: str) -> None:
        """Make views by name, for statements of our own."""
        for name in names:
            self._make(name)

    def _make(self, name: str) -> None:
        if name in self._made or name not in _MAKERS:
            return
        self._made.add(name)
        if name == "documents_with_signals":
            self._made.add("documents")
        needs, make = _MAKERS[name]
        for need in needs:
            self._make(need)
        make(self.connection, self._project)


@contextmanager
def _explained() -> Iterator[None]:
    """DuckDB's errors as ours, without the part that repeats the query."""
    try:
        yield
    except duckdb.Error as error:
        raise UsageError(str(error).split("\n\nLINE")[0].strip(), "sql", _hint(str(error))) from None


def _connect(project: Project, threads: int | None) -> duckdb.DuckDBPyConnection:
    memory = max(project.config.engine.memory // MEMORY_SHARE // 2**20, 64)
    connection = duckdb.connect(
        ":memory:", config={"threads": str(threads or project.config.engine.workers or 2), "memory_limit": f"{memory}MiB"}
    )
    connection.execute(f"SET temp_directory = '{_quoted(project.layout.spill)}'")
    connection.execute("SET parquet_metadata_cache = true")  # footers of a large release are read once a connection
    return connection


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _hint(message: str) -> str:
    return f"the views are {', '.join(sorted(PUBLIC))}" if "does not exist" in message else ""


def _table(connection: duckdb.DuckDBPyConnection, name: str, schema: pa.Schema, batches: Iterator[list[tuple[Any, ...]]]) -> None:
    """Create a table and fill it batch by batch: the frontier is never held twice in memory."""
    connection.register("incoming", schema.empty_table())
    connection.execute(f"CREATE TABLE {name} AS SELECT * FROM incoming")
    connection.unregister("incoming")
    for rows in batches:
        columns = list(zip(*rows, strict=True))
        table = pa.table(
            [pa.array(column, type=field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
        )
        connection.register("incoming", table)
        connection.execute(f"INSERT INTO {name} SELECT * FROM incoming")
        connection.unregister("incoming")


def in_batches(rows: Iterator[tuple[Any, ...]], size: int = 50_000) -> Iterator[list[tuple[Any, ...]]]:
    """The same rows in lists of at most `size`; no empty list."""
    batch: list[tuple[Any, ...]] = []
    for row in rows:
        batch.append(row)
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


_S, _I, _F = pa.string(), pa.int64(), pa.float64()
FRONTIER_URLS = pa.schema(
    [
        ("url", _S), ("url_id", _S), ("host", _S), ("domain", _S), ("kind", _S), ("state", _S), ("reason", _S), ("http_status", _I), ("fetched_at", _F),
        ("depth", _I), ("warc_file", _S), ("warc_offset", _I), ("warc_length", _I), ("via", _S), ("rule", _S), ("rule_line", _I),
        ("authority_digest", _S), ("protocol", _S), ("target", _S), ("near_original", _S),
    ]
)  # fmt: skip
DECIDED = pa.schema(
    [
        ("id", _S), ("url_id", _S), ("url", _S), ("host", _S), ("domain", _S), ("crawl_id", _S), ("file_path", _S), ("warc_offset", _I), ("latest", pa.bool_()),
        ("stage", _S), ("reason", _S), ("drop_rule", _S), ("measured", _F), ("limit", _F), ("keep", _S), ("access", _S), ("use", _S),
        ("evidence_digest", _S), ("checked_at", pa.timestamp("us")), ("cluster_id", _S), ("cluster_size", _I), ("similarity", _F),
        ("keep_id", _S), ("keep_url", _S),
    ]
)  # fmt: skip
"""The columns of `decisions.parquet` that views name, for folders where nothing was decided yet."""
FRONTIER_HOSTS = pa.schema(
    [
        ("host", _S), ("domain", _S), ("ips", _S), ("state", _S), ("reason", _S), ("pace", _F), ("next_contact", _F), ("crawl_delay", _F),
        ("robots_digest", _S), ("robots_read_at", _F), ("queued", _I), ("pages", _I),
        ("cache_hits", _I), ("cache_misses", _I), ("quality", _F), ("budget", _I),
    ]
)  # fmt: skip


def _frontier_urls(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    columns = ", ".join(FRONTIER_URLS.names)
    _table(connection, "frontier_urls", FRONTIER_URLS, in_batches(read_all(project.layout, f"SELECT {columns} FROM urls")))


def _frontier_hosts(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    limit = project.config.crawl.max_pages_per_host
    rows = ((*row, limit) for row in read_columns(project.layout, "hosts", tuple(FRONTIER_HOSTS.names[:-1])))
    _table(connection, "frontier_hosts", FRONTIER_HOSTS, in_batches(rows))


def _measured(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    from corpus.filter.schema import DOCUMENTS as SCHEMA

    records = map_records(project)
    _parquet(connection, "measured_documents", _family(project, records, "documents"), SCHEMA)
    segments = pa.table({"segment": pa.array([str(r.info["segment"]) for r in records.values()], _S)})
    connection.register("measured_segments", segments)


def _signals(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    from corpus.filter.schema import SIGNALS_SCHEMA

    _parquet(connection, "map_signals", _family(project, map_records(project), "signals"), SIGNALS_SCHEMA)
    folder = latest_snapshot(project, HOST_LINES) if project.config.filter.host_line_pages is not None else None
    lines = f"read_parquet('{_quoted(folder / HOST_LINES)}', hive_partitioning = false)" if folder else ""
    joined = (
        f", h.* EXCLUDE (id, starts, ends) FROM map_signals s LEFT JOIN {lines} h ON h.id = s.id"
        if lines
        else " FROM map_signals s"
    )
    connection.execute(f"CREATE VIEW measured_signals AS SELECT s.*{joined}")


def _family(project: Project, records: Mapping[str, CommitRecord], family: str) -> list[str]:
    """The files of one family that map records name, on this disk."""
    wanted = {path: digest for r in records.values() for path, digest in r.outputs.items() if path.startswith(f"{family}/")}
    return [str(path) for path in project.files.all_local(wanted)]


def _documents(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    _documents_view(connection, project, "NULL", "")


def _documents_with_signals(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    join = "LEFT JOIN (SELECT DISTINCT ON (id) id, measured_signals AS s FROM measured_signals) g ON g.id = d.id"
    _documents_view(connection, project, "g.s", join)


def _documents_view(connection: duckdb.DuckDBPyConnection, project: Project, signals: str, join: str) -> None:
    where = standing(connection, project, "measured_documents", "d")
    connection.execute("DROP VIEW IF EXISTS documents")  # an earlier query of this connection may have done without signals
    connection.execute(DOCUMENTS.format(signals=signals, join=f"{join} WHERE {where}" if where else join, schema=SCHEMA_VERSION))


def _parquet(
    connection: duckdb.DuckDBPyConnection, name: str, files: list[str], schema: pa.Schema, *, alike: bool = False
) -> None:
    """A view over files, or an empty one of the same columns when there are none. `alike`: all have one schema, so one is read."""
    if files:
        listed = ", ".join(f"'{_quoted(Path(file))}'" for file in files)
        connection.execute(
            f"CREATE VIEW {name} AS SELECT * FROM read_parquet([{listed}], union_by_name = {not alike}, hive_partitioning = false)"
        )
    else:
        connection.register(name, schema.empty_table())


def _reduced(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    snapshot = latest_snapshot(project, DECISIONS)
    _parquet(connection, "decided", [str(snapshot / DECISIONS)] if snapshot else [], DECIDED)
    decided_now(connection, project, "document_decisions", "decided")


def _clusters(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    schema = pa.schema([("id", _S), ("cluster_id", _S), ("cluster_size", _I), ("center", pa.bool_()), ("similarity", _F)])
    snapshot = latest_snapshot(project, CLUSTERS)
    _parquet(connection, "cluster_rows", [str(snapshot / CLUSTERS)] if snapshot else [], schema)


def _records(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    made = releases(project)
    files = shard_files(project, *made[-1], empty=True) if made else []
    _parquet(connection, "released", files, release_schema(SIGNAL_FIELDS), alike=True)
    hidden(connection, project, "records", "released")


def _releases(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    rows = [
        (name, str(m["identity"]["snapshot"]), int(m["rows"]), int(m["text_bytes"]), len(m["shards"]), bool(m.get("withdrawn")))
        for name, m in releases(project)
    ]
    schema = pa.schema([("name", _S), ("snapshot", _S), ("rows", _I), ("bytes", _I), ("shards", _I), ("withdrawn", pa.bool_())])
    _table(connection, "releases", schema, iter([rows] if rows else []))


def _funnel(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    from corpus.app.funnel import told_funnel

    rows: list[tuple[Any, ...]] = []
    for step in told_funnel(project):
        rows += [
            (step.stage, step.n_in, step.n_out, reason, n)
            for reason, n in [*sorted(step.dropped.items()), *([] if step.dropped else [("", 0)])]
        ]
    schema = pa.schema([("stage", _S), ("n_in", _I), ("n_out", _I), ("reason", _S), ("n", _I)])
    _table(connection, "funnel", schema, iter([rows] if rows else []))


def _decisions(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    urls = (row[0] for row in connection.execute("SELECT url FROM pages").fetchall())
    _table(connection, "decision_rows", DECISION_SCHEMA, decision_batches(project, urls))
    connection.execute(DECISIONS_VIEW)


def _consent(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    _table(connection, "consent_entries", AUTHORITY_SCHEMA, authority_batches(project))


def _ledger(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    urls = (row[0] for row in connection.execute("SELECT DISTINCT url FROM pages ORDER BY url").fetchall())
    _table(connection, "ledger_rows", LEDGER_SCHEMA, ledger_batches(project, urls))
    connection.execute(LEDGER_VIEW)


def _statements(connection: duckdb.DuckDBPyConnection, project: Project) -> None:
    _table(connection, "statement_rows", EVIDENCE_SCHEMA, evidence_batches(project))
    connection.execute("CREATE VIEW statements AS SELECT DISTINCT * FROM statement_rows")


def _sql(text: str) -> Callable[[duckdb.DuckDBPyConnection, Project], None]:
    def make(connection: duckdb.DuckDBPyConnection, _: Project) -> None:
        connection.execute(text)

    return make


_MAKERS: dict[str, tuple[tuple[str, ...], Callable[[duckdb.DuckDBPyConnection, Project], None]]] = {
    "frontier_urls": ((), _frontier_urls),
    "frontier_hosts": ((), _frontier_hosts),
    "measured_documents": ((), _measured),
    "document_decisions": ((), _reduced),
    "cluster_rows": ((), _clusters),
    "all_pages": (("frontier_urls", "measured_documents"), _sql(PAGES)),
    "pages": (("all_pages",), lambda connection, project: pages_now(connection, project, "all_pages")),
    "hosts": (("frontier_hosts", "document_decisions"), _sql(HOSTS)),
    "domains": (("pages",), _sql(DOMAINS)),
    "measured_signals": ((), _signals),
    "documents": (("measured_documents", "document_decisions"), _documents),
    "documents_with_signals": (("measured_documents", "document_decisions", "measured_signals"), _documents_with_signals),
    "clusters": (("cluster_rows", "measured_documents", "document_decisions"), _sql(CLUSTERS_VIEW)),
    "records": ((), _records),
    "releases": ((), _releases),
    "funnel": ((), _funnel),
    "decisions": (("pages", "frontier_urls", "measured_documents", "consent_entries"), _decisions),
    "consent_entries": ((), _consent),
    "consent": (("consent_entries",), _sql(CONSENT_VIEW)),
    "ledger": (("pages", "frontier_urls", "measured_documents", "consent_entries"), _ledger),
    "statements": ((), _statements),
}
PUBLIC = (
    "pages", "documents", "records", "decisions", "consent", "ledger",
    "statements", "hosts", "domains", "clusters", "funnel", "releases",
)  # fmt: skip
assert set(PUBLIC) <= set(_MAKERS), "every public view has a maker"
