"""The partition files of a corpus: where they lie, opening them to write, looking into them beside a writer.

They are SQLite files under `store.local`, or tables on the PostgreSQL server that `store.frontier` names; whoever asks
does so in SQLite's words either way (`store.frontier_pg_db`). PostgreSQL is loaded only where it is used.
"""

from __future__ import annotations

import socket
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.crawl.seen import RecentSeen
from corpus.crawl.settings import CrawlSettings
from corpus.errors import StoreError
from corpus.store.frontier_filter import OwnerFilter
from corpus.store.frontier_sqlite import SqliteFrontier
from corpus.store.layout import Layout

if TYPE_CHECKING:
    from corpus.store.frontier_pg_read import ServerFile
    from corpus.store.frontier_postgres import Lease, PostgresFrontier

NODE_WAIT_S = 10.0
"""How much longer than a lease lasts another machine's is waited for."""


def frontier_path(layout: Layout, file: int) -> Path:
    """Where a partition file lies in SQLite; beside it its owner's lock and filter, wherever its rows are."""
    return layout.frontier / f"p{file:02d}.sqlite"


def file_at(layout: Layout, file: int) -> Path | ServerFile:
    """A partition file to look into; both kinds have `exists()` and a `name`."""
    if not layout.server:
        return frontier_path(layout, file)
    from corpus.store.frontier_pg_read import ServerFile

    return ServerFile(layout.server, file, layout.spread)


def open_file(
    layout: Layout,
    file: int,
    recent: RecentSeen | None = None,
    *,
    settings: CrawlSettings | None = None,
    patient: bool = True,
    meanwhile: Callable[[], None] = lambda: None,
) -> SqliteFrontier:
    """Open (or start) one partition file to write; the caller claims it. `recent` may be shared by files of one process;
    with `settings`, those who own a file for long get a filter of seen URLs in front of its table. `patient`: whether a claim
    waits for another machine's lease. `meanwhile`: called now and then while a claim reads what is long."""
    layout.frontier.mkdir(parents=True, exist_ok=True)
    path = frontier_path(layout, file)
    seen = None if settings is None else OwnerFilter(path, settings.seen, settings.seen_fp)
    if not layout.server:
        return SqliteFrontier(path, recent=recent, seen=seen)
    return open_on_server(layout, file, recent, seen, patient=patient, meanwhile=meanwhile)


def open_on_server(
    layout: Layout,
    file: int,
    recent: RecentSeen | None,
    seen: OwnerFilter | None,
    *,
    patient: bool = True,
    meanwhile: Callable[[], None] = lambda: None,
) -> PostgresFrontier:
    """One partition file in PostgreSQL, under a lease of this machine's when it is claimed."""
    from corpus.store.frontier_postgres import PostgresFrontier

    lease = _lease(layout, patient=patient)
    return PostgresFrontier(layout.server, file, recent=recent, seen=seen, lease=lease, spread=layout.spread, meanwhile=meanwhile)


def longer_s(layout: Layout) -> float:
    """How much longer than a lease the hosts of a partition file are left alone whose owner died. It sent nothing past half of its
    lease; what was sent then may last as long as a request may."""
    ttl, longest = layout.lease
    return max(ttl / 2 + longest - ttl, 0.0)


def _lease(layout: Layout, *, patient: bool) -> Lease:
    from corpus.store.frontier_postgres import Lease

    ttl = layout.lease[0]
    return Lease(_node(layout), ttl, ttl + NODE_WAIT_S if patient else 0.0, longer_s(layout))


def _node(layout: Layout) -> str:
    """Who we are to others: a member's name, or this machine's folder's for as long as it lasts."""
    if layout.node:
        return layout.node
    path = layout.frontier / "node"
    with suppress(FileExistsError), path.open("x", encoding="utf-8") as file:
        file.write(f"{socket.gethostname()}-{uuid.uuid4().hex[:12]}")
    return path.read_text("utf-8")


def read_all(layout: Layout, query: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows of a query over every partition file, file by file. Readers hold no lock and wait for no writer."""
    if layout.server:
        from corpus.store.frontier_pg_read import rows_of_all

        yield from rows_of_all(layout.server, query, parameters)
        return
    for file in range(layout.spread):
        path = frontier_path(layout, file)
        if path.exists():
            yield from read_one(path, query, parameters)


def read_one(path: Path | ServerFile, query: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows of a query over one partition file. Raises StoreError when it cannot be read."""
    if not isinstance(path, Path):
        yield from path.rows(query, parameters)
        return
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10.0)) as connection:
            yield from connection.execute(query, parameters)
    except sqlite3.Error as error:
        raise StoreError(f"cannot be read: {error}", str(path), "corpus verify") from None


def columns_of(path: Path | ServerFile, table: str) -> set[str]:
    """Names of the columns of a table or view of one partition file; none when it has no such table."""
    if not isinstance(path, Path):
        return path.columns(table)
    return {row[1] for row in read_one(path, f"PRAGMA table_info({table})")}


def read_columns(layout: Layout, table: str, columns: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    """Rows of a table or view over every partition file. What a file written by an older version lacks is None; a table
    that it lacks has no rows."""
    for file in range(layout.spread):
        path = file_at(layout, file)
        if not path.exists():
            continue
        have = columns_of(path, table)
        if have:
            wanted = ", ".join(name if name in have else "NULL" for name in columns)
            yield from read_one(path, f"SELECT {wanted} FROM {table}")
