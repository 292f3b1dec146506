"""What both contract suites of the frontier share: a partition file that is opened again and again, and short spellings."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.crawl.ports import Ack, FrontierStore, Judged, Settled
from corpus.crawl.seen import RecentSeen
from corpus.model import Sighting, UrlState
from corpus.store.frontier_filter import OwnerFilter
from corpus.store.frontier_memory import MemoryFrontier
from corpus.store.frontier_sqlite import SqliteFrontier

KINDS = ("memory", "sqlite", "recent", "seen", pytest.param("postgres", marks=pytest.mark.needs("postgres")))
HOST, DOMAIN = "www.site.test", "site.test"


class Shelf:
    """A partition file that can be opened again and again, as processes come and go."""

    def __init__(self, kind: str, folder: Path, dsn: str = "") -> None:
        self._kind, self._path, self._dsn = kind, folder / "p00.sqlite", dsn
        self._memory = MemoryFrontier()
        self._open: list[SqliteFrontier] = []

    def open(self) -> FrontierStore:
        if self._kind == "memory":
            return self._memory.reborn()
        if self._dsn:
            from corpus.store.frontier_postgres import PostgresFrontier

            self._open.append(PostgresFrontier(self._dsn, 0))
            return self._open[-1]
        recent = RecentSeen(1 << 16) if self._kind == "recent" else None
        seen = OwnerFilter(self._path, "exact", 0.001) if self._kind == "seen" else None
        store = SqliteFrontier(self._path, recent=recent, seen=seen)
        self._open.append(store)
        return store

    def close(self) -> None:
        for store in self._open:
            store.close(clean=False)


def new_shelf(request: pytest.FixtureRequest, folder: Path) -> Shelf:
    """The shelf of a fixture's parameter; for PostgreSQL with an empty database of its own."""
    if request.param != "postgres":
        return Shelf(request.param, folder)
    return Shelf("postgres", folder, request.getfixturevalue("postgres_server").dsn(prepared=True))


def url(n: int, host: str = HOST) -> str:
    return f"https://{host}/page/{n}"


def judged(target: str, depth: int = 1, excluded: str = "", host: str = HOST, **more: object) -> Judged:
    sighting = Sighting(target, target, depth, **more)  # type: ignore[arg-type]
    return Judged(sighting, host, ".".join(host.split(".")[-2:]), excluded)


def links(*items: Judged) -> list[Ack]:
    return [Ack(own=items)]


def settled(target: str, state: UrlState, **more: object) -> list[Ack]:
    return [Ack(settled=(Settled(target, state, **more),))]  # type: ignore[arg-type]


def states(store: FrontierStore) -> dict[tuple[str, str], int]:
    return store.tally().by_state


def row(store: FrontierStore, target: str) -> dict[str, object]:
    found = store.lookup(target)
    assert found is not None
    return found
