"""Ownership of a partition file in PostgreSQL: kill -9 of owner, backend and server; take-over; zombies; leases; older schemas."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from corpus.crawl.ports import FrontierStore
from corpus.errors import FenceLost, NewerSchema, StoreError
from tests.contract.frontier_shelf import judged, links, states, url
from tests.postgres_kit import Postgres, postgres
from tests.sim.test_frontier_kill import HOSTS, LINKS, _ack, _pages_there

pytest.importorskip("psycopg")
pytestmark = pytest.mark.needs("postgres")

from corpus.store.frontier_pg_db import spoken  # noqa: E402
from corpus.store.frontier_postgres import Lease, PostgresFrontier  # noqa: E402

assert HOSTS


@pytest.fixture(scope="module")
def durable() -> Iterator[Postgres]:
    """A server with every durability setting as it comes."""
    with postgres() as server:
        yield server


def _crawl(dsn: str, first: int, pipe: Connection) -> None:
    store = PostgresFrontier(dsn, 0)
    store.claim("child")
    page = first
    while True:
        store.commit([_ack(page), _ack(page + 1)])
        page += 2
        pipe.send(page)


def _child(dsn: str, first: int) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_crawl, args=(dsn, first, there))
    child.start()
    there.close()
    return child, here


def _last(here: Connection, until: float) -> int:
    last = int(here.recv())
    while time.monotonic() < until:
        if here.poll(0.001):
            last = here.recv()
    return last


def _drained(here: Connection, last: int) -> int:
    while here.poll():
        try:
            last = here.recv()
        except EOFError:
            break
    here.close()
    return last


@pytest.mark.parametrize("victim", ["owner", "server"])
def test_a_kill_loses_nothing_that_was_acknowledged(durable: Postgres, victim: str) -> None:
    """kill -9 of the owner, or of the server and all its processes: whole batches only, and none that a commit returned from is gone."""
    dsn, rng, told = durable.dsn(prepared=True), random.Random(victim), 0
    for _ in range(2):
        child, here = _child(dsn, told)
        last = _last(here, time.monotonic() + rng.uniform(0.05, 0.4))
        if victim == "owner":
            child.kill()
        else:
            durable.kill()
        child.join(20)
        assert child.exitcode
        last = _drained(here, last)
        if victim == "server":
            durable.restart()
        store = PostgresFrontier(dsn, 0)
        store.claim("heir")
        assert not store.was_clean()
        found = _pages_there(store, last + 4)
        assert last <= found <= last + 2
        assert found % 2 == 0
        tally = store.tally()
        assert tally.by_state["fetched", ""] == found
        assert tally.by_state["queued", ""] == found * (LINKS - 1)
        assert (tally.sent, tally.outbox) == (2 * found, 2 * found)
        told = found
        store.close(clean=True)


def test_a_killed_backend_is_an_error_and_the_next_owner_goes_on(durable: Postgres) -> None:
    """The server's process for one connection ended (and so all of them): StoreError, nothing of the batch; a new connection works."""
    dsn = durable.dsn(prepared=True)
    store = PostgresFrontier(dsn, 0)
    store.claim("one")
    store.commit(links(judged(url(1))))
    os.kill(store._pg.raw.info.backend_pid, signal.SIGKILL)
    with pytest.raises(StoreError, match="does not answer"):
        store.commit(links(judged(url(2))))
    durable._wait()
    heir = PostgresFrontier(dsn, 0)
    heir.claim("two")
    assert states(heir) == {("queued", ""): 1}
    heir.close(clean=True)


def test_a_take_over_waits_for_an_open_transaction_and_the_zombie_is_rejected(postgres_server: Postgres) -> None:
    """The heir's claim returns only after the old owner's transaction; what that wrote is there, what it writes later is not."""
    dsn = postgres_server.dsn(prepared=True)
    old, heir = PostgresFrontier(dsn, 0), PostgresFrontier(dsn, 0)
    old.claim("old")
    claimed = threading.Event()

    def take() -> None:
        heir.claim("heir")
        claimed.set()

    thread = threading.Thread(target=take)
    with old._write() as con:
        thread.start()
        assert not claimed.wait(0.4), "the claim did not wait"
        con.execute("INSERT INTO mark VALUES (?, ?)", (3, 7))
    thread.join(10)
    assert claimed.is_set()
    assert heir.mark(3) == 7
    with pytest.raises(FenceLost, match="superseded by 2 \\(heir\\)"):
        old.commit(links(judged(url(1))))
    heir.commit(links(judged(url(2))))
    assert states(heir) == {("queued", ""): 1}


def test_a_lease_keeps_other_machines_out_until_it_has_ended(postgres_server: Postgres) -> None:
    """Another machine waits for the whole lease since its last renewal; the same machine, whose lock is free, does not; a clean end frees at once."""
    dsn = postgres_server.dsn(prepared=True)
    one = PostgresFrontier(dsn, 0, lease=Lease("here", 1.0, 0.0))
    began = time.monotonic()
    one.claim("a")
    one.renew()
    with pytest.raises(StoreError, match="a on here owns this file"):
        PostgresFrontier(dsn, 0, lease=Lease("there", 1.0, 0.0)).claim("b")
    again = PostgresFrontier(dsn, 0, lease=Lease("here", 1.0, 0.0))
    again.claim("a2")
    other = PostgresFrontier(dsn, 0, lease=Lease("there", 60.0, 10.0))
    other.claim("b")
    assert time.monotonic() - began >= 1.0
    assert not other.was_clean()
    with pytest.raises(FenceLost):
        again.renew()
    other.close(clean=True)
    third = PostgresFrontier(dsn, 0, lease=Lease("here", 1.0, 0.0))
    third.claim("c")
    assert third.was_clean()


def test_an_older_file_is_brought_up_and_a_newer_one_refused(postgres_server: Postgres) -> None:
    """What schema 2 added is taken away by hand; opening adds it again and loses nothing. A newer schema is refused."""
    from corpus.store.frontier_pg_schema import ALL_TABLES, SCHEMA

    dsn = postgres_server.dsn(prepared=True)
    store = PostgresFrontier(dsn, 0)
    store.claim("old")
    store.commit(links(judged(url(1))))
    raw = store._pg.raw
    for statement in (
        "DROP VIEW urls", "DROP VIEW hosts", "DROP TABLE version", "DROP TABLE frontier.version", "DROP INDEX host_retired", "DROP INDEX url_line",
        "ALTER TABLE frontier.url DROP COLUMN again", "ALTER TABLE frontier.visit DROP COLUMN seen", "ALTER TABLE frontier.host DROP COLUMN failures",
        "CREATE INDEX url_line ON url (host, front)", "CREATE INDEX host_pending ON host (name) WHERE queued > 0", "UPDATE meta SET value = 1 WHERE name = 'schema'",
    ):  # fmt: skip
        raw.execute(statement)
    store.close(clean=False)
    fresh = PostgresFrontier(dsn, 0)
    fresh.claim("new")
    assert [queued.url for queued in fresh.heads("www.site.test", 5)] == [url(1)]
    sql = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'p00' AND table_name = %s"
    for table in ALL_TABLES.values():
        there = {name for (name,) in fresh._pg.raw.execute(sql, (table.name,)).fetchall()}
        assert set(table.names) <= there, table.name
    assert fresh._pg.raw.execute("SELECT to_regclass('p00.host_pending')").fetchone() == (None,)
    fresh._pg.raw.execute(f"UPDATE meta SET value = {SCHEMA + 1} WHERE name = 'schema'")
    with pytest.raises(NewerSchema):
        PostgresFrontier(dsn, 0)


def test_no_commit_is_ever_asynchronous(postgres_server: Postgres) -> None:
    """A role or database set to lose commits is overruled for our sessions."""
    import psycopg

    dsn = postgres_server.dsn()
    with psycopg.connect(dsn, autocommit=True) as con:
        con.execute(f"ALTER DATABASE {dsn.rpartition('/')[2]} SET synchronous_commit = off".encode())
    store: FrontierStore = PostgresFrontier(dsn, 5)
    assert isinstance(store, PostgresFrontier)
    assert store._pg.raw.execute("SHOW synchronous_commit").fetchone() == ("on",)
    store.close(clean=False)


def test_statements_are_spoken_whole() -> None:
    """Placeholders, the one reserved name, and what SQLite alone understands."""
    assert spoken("SELECT v.offset, offset FROM visit v WHERE x LIKE '/%' AND y = ? LIMIT ?") == (
        "SELECT v.offset, \"offset\" FROM visit v WHERE x LIKE '/%%' AND y = %s LIMIT nullif(%s, -1)"
    )
    assert spoken("INSERT OR REPLACE INTO mark VALUES (?, ?)") == (
        "INSERT INTO mark VALUES (%s, %s) ON CONFLICT (src) DO UPDATE SET seq = excluded.seq"
    )
    assert spoken("INSERT OR IGNORE INTO counted VALUES (?,?,?)").endswith("VALUES (%s,%s,%s) ON CONFLICT DO NOTHING")


def test_a_password_in_the_configuration_is_refused(tmp_path: Path) -> None:
    """It would end in logs; the message says where it belongs, and never repeats it."""
    from corpus.config.check import wrong_frontier

    found = wrong_frontier("postgresql://u:secret@h/db")
    assert found is not None
    assert "PGPASSWORD" in found[1]
    assert "secret" not in "".join(found)
    assert wrong_frontier("postgresql://u@h/db") is None
    assert wrong_frontier("mysql://u@h/db") is not None
