"""Looking at a partition file beside its running owner: the rows behind the SQL views, `why` and `status`.

Opens the file read-only and takes no lock that a writer could wait for. Each call sees one consistent moment; long scans
keep the owner's write-ahead log from being folded back while they run, and cost it nothing else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from corpus.crawl.ports import HostRow, Tally
from corpus.errors import UsageError
from corpus.store import frontier_select as select
from corpus.store.frontier_db import Names, connect_readonly, translated
from corpus.store.frontier_rows import uid_of
from corpus.store.frontier_view import lookup_row
from corpus.url.host import host_of

BATCH = 10_000


class FrontierReader:
    """A read-only look at one partition file. Raises StoreError when it cannot be read, NewerSchema when it is too new."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._con = connect_readonly(path)
        self._names = Names(self._con)

    def __enter__(self) -> FrontierReader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._con.close()

    def columns(self, view: str = "urls") -> dict[str, str]:
        """Names and SQL types of a view's columns (`urls` or `hosts`), in order."""
        return {row[1]: row[2] for row in self._con.execute(f"PRAGMA table_info({_view(view)})")}

    def rows(self, columns: Sequence[str], *, view: str = "urls", batch: int = BATCH) -> Iterator[list[tuple[Any, ...]]]:
        """Batches of tuples of these columns, in the file's own order (host, then url_id). Raises UsageError for an unknown column.

        Columns of `urls`: url url_id host domain kind state reason depth hops via front priority attempts next_at http_status
        content_type fetched_at warc_file warc_offset warc_length content_sha256 near_original target rule rule_line
        authority_digest protocol. Of `hosts`: host domain ips state reason pace next_contact crawl_delay strikes pages queued
        domain_pages robots_digest robots_read_at. Excluded URLs that are only counted have no row; `tally` has their number.
        """
        unknown = [name for name in columns if name not in self.columns(view)]
        if unknown or not columns:
            raise UsageError(f"the view {view} has no column {', '.join(unknown) or '(none was asked for)'}", str(self.path))
        with translated(self.path):
            cursor = self._con.execute(f"SELECT {', '.join(columns)} FROM {view}")
            while rows := cursor.fetchmany(batch):
                yield [tuple(_legible(value) for value in row) for row in rows]

    def hosts(self, *, pending: bool = False) -> list[HostRow]:
        with translated(self.path):
            return list(select.hosts(self._con, "h.queued > 0" if pending else "1"))

    def lookup(self, url: str) -> dict[str, object] | None:
        """The stored row of a canonical URL, as `FrontierStore.lookup`."""
        host = host_of(url)
        with translated(self.path), _moment(self._con):
            known, visit = select.known(self._con, self._names, (host, uid_of(url)))
        return None if known is None else lookup_row(url, host, known, visit)

    def tally(self) -> Tally:
        with translated(self.path), _moment(self._con):
            return select.tally(self._con)

    def meta(self) -> dict[str, Any]:
        """schema, epoch, owner, clean, sent, applied."""
        with translated(self.path):
            return dict(self._con.execute("SELECT name, value FROM meta ORDER BY name").fetchall())


def _view(name: str) -> str:
    if name not in ("urls", "hosts"):
        raise UsageError(f"there is no view {name!r}", hint="the views are urls and hosts")
    return name


def _legible(value: Any) -> Any:
    """Text with lone surrogates is stored as bytes; whoever reads rows gets text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


@contextmanager
def _moment(con: sqlite3.Connection) -> Iterator[None]:
    """One read transaction: several questions about the same moment."""
    con.execute("BEGIN")
    try:
        yield
    finally:
        con.execute("ROLLBACK")
