"""The frontier after a takedown: covered URLs are excluded for good and keep nothing of their visits; copies that were linked to
them are asked for themselves.

What stays of a URL is its row, because a URL that is forgotten would be asked for again. Purged URLs keep their way back.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.app.frontier_files import file_at, open_file, read_one
from corpus.app.project import Project
from corpus.app.takedown_targets import Targets
from corpus.crawl.ports import Ack, Settled
from corpus.model import Kind, UrlState
from corpus.reasons import REASONS

if TYPE_CHECKING:
    from corpus.store.frontier_pg_read import ServerFile

OWNER = "takedown"
_BATCH = 5_000
_DOWN = "taken-down"
_URLS = (
    "SELECT url, kind, state, reason, http_status, fetched_at, warc_file, content_sha256, near_original FROM urls"
    " WHERE kind IN ('page', 'sitemap')"
)
_STORED = frozenset({UrlState.FETCHED.value, UrlState.NOT_MODIFIED.value})


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be settled in one partition file. `rows`: how many rows still say something of a covered page's visit."""

    settled: tuple[Settled, ...]
    rows: int


def excluded_rows(project: Project, targets: Targets, causes: dict[str, str]) -> int:
    """How many rows still hold something of a page that is covered."""
    return sum(_wanted(path, targets, causes).rows for _, path in _files(project))


def exclude(project: Project, targets: Targets, causes: dict[str, str]) -> int:
    """Settle what orders cover; returns how many rows changed. `causes`: reason code of a purge by `url_id` or domain.

    The caller holds the crawl's lock.
    """
    changed = 0
    for number, path in _files(project):
        wanted = _wanted(path, targets, causes)
        if wanted.settled:
            store = open_file(project.layout, number)
            try:
                store.claim(OWNER)
                clean = store.was_clean()
                for at in range(0, len(wanted.settled), _BATCH):
                    store.commit([Ack(settled=wanted.settled[at : at + _BATCH])])
            finally:
                store.close(clean=clean)
            changed += len(wanted.settled)
        _forget(path)
    return changed


def _files(project: Project) -> Iterator[tuple[int, Path | ServerFile]]:
    for number in range(project.layout.spread):
        path = file_at(project.layout, number)
        if path.exists():
            yield number, path


def _wanted(path: Path | ServerFile, targets: Targets, causes: dict[str, str]) -> Wanted:
    settled: list[Settled] = []
    held = 0
    for row in read_one(path, _URLS):
        url, kind, state, reason, status, fetched_at, file, content, original = row
        if _final(targets, url):
            held += bool(file or content)
            if (state, reason) != (UrlState.EXCLUDED.value, _DOWN) or file or content:
                settled.append(Settled(url, UrlState.EXCLUDED, _DOWN, http_status=None, fetched_at=None))
        elif state in _STORED and kind == Kind.PAGE.value:
            if targets.covers(url, at=fetched_at):
                held += 1
                settled.append(Settled(url, *_of_cause(_cause(targets, causes, url)), http_status=status, fetched_at=fetched_at))
            elif original and original != url and _final(targets, original):
                settled.append(Settled(url, UrlState.QUEUED))
    return Wanted(tuple(settled), held)


def _final(targets: Targets, url: str) -> bool:
    """Whether a takedown covers a URL, not only a purge."""
    return Targets(targets.version, targets.domains, targets.url_ids).covers(url)


def _cause(targets: Targets, causes: dict[str, str], url: str) -> str:
    from corpus.app.takedown_targets import suffixes
    from corpus.model import url_id
    from corpus.url.host import host_of

    named: Sequence[Any] = [url_id(url), *suffixes(host_of(url))]
    return next((causes[name] for name in named if name in causes), "operator-list")


def _of_cause(cause: str) -> tuple[UrlState, str]:
    gone = cause in REASONS and REASONS[cause].verdict == "gone"
    return (UrlState.GONE if gone else UrlState.REFUSED), cause


def _forget(path: Path | ServerFile) -> None:
    """No history of a page that was taken down, and nothing of old rows in the write-ahead log."""
    down = "SELECT u.host, u.uid FROM url u JOIN word w ON w.id = u.reason JOIN state_name s ON s.code = u.state WHERE w.text = ? AND s.name = ?"
    if not isinstance(path, Path):
        path.scrub(f"DELETE FROM version WHERE (host, uid) IN ({down})", (_DOWN, UrlState.EXCLUDED.value))
        return
    with closing(sqlite3.connect(path, timeout=10.0)) as connection:
        connection.execute("PRAGMA secure_delete = ON")
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'version'").fetchone():
            connection.execute(f"DELETE FROM version WHERE (host, uid) IN ({down})", (_DOWN, UrlState.EXCLUDED.value))
            connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
