"""What the frontier knows, for stages after it: visits, states by reason, one URL's row. Read-only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from corpus.app.frontier_files import frontier_path, read_all, read_one
from corpus.app.project import Project
from corpus.export.ports import FRONTIER
from corpus.model import UrlState
from corpus.url.host import host_of, registered_domain
from corpus.url.partition import partition_file

BATCH = 50_000

URL_COLUMNS = (
    "url", "url_id", "host", "domain", "kind", "state", "reason", "depth", "hops", "via", "attempts", "next_at", "http_status", "content_type",
    "fetched_at", "warc_file", "warc_offset", "warc_length", "content_sha256", "near_original", "target", "rule", "rule_line",
    "authority_digest", "protocol",
)  # fmt: skip


def visited(project: Project) -> pa.Table:
    """A `FRONTIER` table: URLs that are gone, or whose latest visit is younger than their stored page (304)."""
    states = (UrlState.GONE.value, UrlState.NOT_MODIFIED.value)
    query = "SELECT url, state, fetched_at FROM urls WHERE state IN (?, ?) AND kind = 'page'"
    rows = [(url, state == states[0], round((at or 0.0) * 1e6)) for url, state, at in read_all(project.layout, query, states)]
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    return pa.table(
        {name: pa.array(column, type=FRONTIER.field(name).type) for name, column in zip(FRONTIER.names, columns, strict=True)}
    )


def url_row(project: Project, url: str) -> dict[str, Any] | None:
    """The frontier's row of a canonical URL, or None when it was never seen."""
    path = frontier_path(project.layout, partition_file(registered_domain(host_of(url))))
    if not path.exists():
        return None
    query = f"SELECT {', '.join(URL_COLUMNS)} FROM urls WHERE host = ? AND url = ?"
    row = next(read_one(path, query, (host_of(url), url)), None)
    return dict(zip(URL_COLUMNS, row, strict=True)) if row else None


def host_row(project: Project, host: str) -> dict[str, Any] | None:
    """The frontier's row of a host."""
    path = frontier_path(project.layout, partition_file(registered_domain(host)))
    columns = ("host", "domain", "ips", "state", "reason", "pace", "next_contact", "crawl_delay", "queued", "pages")
    row = next(read_one(path, f"SELECT {', '.join(columns)} FROM hosts WHERE host = ?", (host,)), None) if path.exists() else None
    return dict(zip(columns, row, strict=True)) if row else None


def tally(project: Project) -> dict[tuple[str, str], int]:
    """Pages by (state, reason), exclusions that are only counted included."""
    found: dict[tuple[str, str], int] = {}
    for state, reason, n in read_all(project.layout, "SELECT state, reason, n FROM tally WHERE page = 1"):
        found[state, reason] = found.get((state, reason), 0) + n
    return found


def host_states(project: Project) -> Iterator[tuple[str, str, str, int]]:
    """(host, state, reason, queued) of every host."""
    for row in read_all(project.layout, "SELECT host, state, reason, queued FROM hosts"):
        yield row[0], row[1], row[2], row[3]
