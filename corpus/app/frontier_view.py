"""What the frontier knows, for stages after it: visits, states by reason, one URL's row. Read-only."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from corpus.app.frontier_files import columns_of, file_at, read_all, read_one
from corpus.app.project import Project
from corpus.model import UrlState
from corpus.store.frontier_rows import uid_of
from corpus.url.host import host_of, registered_domain
from corpus.url.partition import partition_file

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 50_000
PARKED_SHOWN = 50
CHALLENGE = "challenge"
"""The one failure that is somebody's answer to crawlers."""

URL_COLUMNS = (
    "url", "url_id", "host", "domain", "kind", "state", "reason", "depth", "hops", "via", "attempts", "next_at", "http_status", "content_type",
    "fetched_at", "warc_file", "warc_offset", "warc_length", "content_sha256", "near_original", "target", "rule", "rule_line",
    "authority_digest", "protocol",
)  # fmt: skip


def visited(project: Project) -> pa.Table:
    """A `FRONTIER` table: URLs that are gone, or whose latest visit is younger than their stored page (304)."""
    import pyarrow as pa

    from corpus.export.ports import FRONTIER

    states = (UrlState.GONE.value, UrlState.NOT_MODIFIED.value)
    query = "SELECT url, state, fetched_at FROM urls WHERE state IN (?, ?) AND kind = 'page'"
    rows = [(url, state == states[0], round((at or 0.0) * 1e6)) for url, state, at in read_all(project.layout, query, states)]
    columns: list[tuple[Any, ...]] = list(zip(*rows, strict=True)) if rows else [(), (), ()]
    return pa.table(
        {name: pa.array(column, type=FRONTIER.field(name).type) for name, column in zip(FRONTIER.names, columns, strict=True)}
    )


def url_row(project: Project, url: str) -> dict[str, Any] | None:
    """The frontier's row of a canonical URL, or None when it was never seen."""
    path = file_at(project.layout, partition_file(registered_domain(host_of(url)), project.layout.spread))
    if not path.exists():
        return None
    query = f"SELECT {', '.join(URL_COLUMNS)} FROM urls WHERE host = ? AND url = ?"
    row = next(read_one(path, query, (host_of(url), url)), None)
    return dict(zip(URL_COLUMNS, row, strict=True)) if row else None


def host_row(project: Project, host: str) -> dict[str, Any] | None:
    """The frontier's row of a host."""
    path = file_at(project.layout, partition_file(registered_domain(host), project.layout.spread))
    columns = ("host", "domain", "ips", "state", "reason", "pace", "next_contact", "crawl_delay", "queued", "pages")
    row = next(read_one(path, f"SELECT {', '.join(columns)} FROM hosts WHERE host = ?", (host,)), None) if path.exists() else None
    return dict(zip(columns, row, strict=True)) if row else None


def tally(project: Project) -> dict[tuple[str, str], int]:
    """Pages by (state, reason), exclusions that are only counted included."""
    found: dict[tuple[str, str], int] = {}
    for state, reason, n in read_all(project.layout, "SELECT state, reason, n FROM tally WHERE page = 1"):
        found[state, reason] = found.get((state, reason), 0) + n
    return found


def turned_away(project: Project) -> dict[str, int]:
    """Pages by the reason for which no request of ours got them: the web said no, or put a challenge in the way."""
    found: dict[str, int] = {}
    for (state, reason), n in tally(project).items():
        if n and (state == UrlState.REFUSED.value or reason == CHALLENGE):
            found[reason] = found.get(reason, 0) + n
    return dict(sorted(found.items()))


def host_states(project: Project) -> Iterator[tuple[str, str, str, int]]:
    """(host, state, reason, queued) of every host."""
    for row in read_all(project.layout, "SELECT host, state, reason, queued FROM hosts"):
        yield row[0], row[1], row[2], row[3]


def parked_hosts(project: Project) -> list[dict[str, Any]]:
    """At most `PARKED_SHOWN` parked hosts by name: host, reason, queued, next_contact (ISO 8601, UTC)."""
    query = "SELECT host, reason, queued, next_contact FROM hosts WHERE state = 'parked'"
    parked: list[dict[str, Any]] = []
    for host, reason, queued, next_contact in read_all(project.layout, query):
        if len(parked) == PARKED_SHOWN:
            break
        at = datetime.fromtimestamp(next_contact, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        parked.append({"host": host, "reason": reason, "queued": queued, "next_contact": at})
    return sorted(parked, key=lambda row: str(row["host"]))


def slowest_pending(project: Project) -> tuple[str, int, float] | None:
    """(host, queued URLs, gap in seconds) of the host that will need longest for what is queued of it now; None: nothing is queued."""
    query = (
        "SELECT host, queued, max(pace, coalesce(crawl_delay, 0.0), 0.001) FROM hosts WHERE queued > 0 AND state NOT IN ('blocked', 'retired')"
        " ORDER BY queued * max(pace, coalesce(crawl_delay, 0.0), 0.001) DESC, host LIMIT 1"
    )
    found = [(str(host), int(queued), float(gap)) for host, queued, gap in read_all(project.layout, query)]
    return max(found, key=lambda row: (row[1] * row[2], row[0]), default=None)


def versions(project: Project, url: str) -> list[dict[str, Any]]:
    """The chain of versions that visits found of a canonical URL, oldest first: since when, last confirmed, the change against
    the one before (empty for the first), content digest. Empty for a page visited once."""
    path = file_at(project.layout, partition_file(registered_domain(host_of(url)), project.layout.spread))
    if not path.exists() or not columns_of(path, "version"):
        return []
    query = (
        "SELECT v.first_at, v.last_at, v.change, lower(hex(v.content_sha256)) FROM version v JOIN host h ON h.id = v.host"
        " WHERE h.name = ? AND v.uid = ? ORDER BY v.n"
    )
    rows = read_one(path, query, (host_of(url), uid_of(url)))
    return [dict(zip(("first_at", "last_at", "change", "content_sha256"), row, strict=True)) for row in rows]
