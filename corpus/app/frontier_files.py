"""The partition files of one machine: where they lie, opening them to write, looking into them beside a writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from corpus.crawl.seen import RecentSeen
from corpus.errors import StoreError
from corpus.store.frontier_sqlite import SqliteFrontier
from corpus.store.layout import Layout
from corpus.url.partition import PARTITION_FILES


def frontier_path(layout: Layout, file: int) -> Path:
    """Where a partition file lies."""
    return layout.frontier / f"p{file:02d}.sqlite"


def open_file(layout: Layout, file: int, recent: RecentSeen | None = None) -> SqliteFrontier:
    """Open (or start) one partition file to write; the caller claims it. `recent` may be shared by files of one process."""
    layout.frontier.mkdir(parents=True, exist_ok=True)
    return SqliteFrontier(frontier_path(layout, file), recent=recent)


def read_all(layout: Layout, query: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows of a query over every partition file, file by file. Readers hold no lock and wait for no writer."""
    for file in range(PARTITION_FILES):
        path = frontier_path(layout, file)
        if path.exists():
            yield from read_one(path, query, parameters)


def read_one(path: Path, query: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Rows of a query over one partition file. Raises StoreError when it cannot be read."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10.0)) as connection:
            yield from connection.execute(query, parameters)
    except sqlite3.Error as error:
        raise StoreError(f"cannot be read: {error}", str(path), "corpus verify") from None
