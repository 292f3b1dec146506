"""What a dead owner leaves behind in PostgreSQL: its lease ends, the rest of its hosts lasts longer, and silence has an end."""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path

import pytest

from corpus.crawl.discover import Router, seed
from corpus.crawl.ports import Ack
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.traps import UrlRules
from corpus.errors import Locked, NoRoom, ServerGone
from corpus.store.frontier_filter import OwnerFilter
from corpus.store.frontier_rows import uid_of
from corpus.url.host import host_of
from corpus.url.scope import UrlScope
from tests.postgres_kit import Postgres

pytest.importorskip("psycopg")

import psycopg

from corpus.store import frontier_postgres
from corpus.store.frontier_pg_db import dial, sever, translated
from corpus.store.frontier_pg_read import pieces
from corpus.store.frontier_postgres import Lease, PostgresFrontier

pytestmark = pytest.mark.needs("postgres")
LONGER_S = 300.0


def opened(dsn: str, node: str, ttl_s: float = 0.2) -> PostgresFrontier:
    return PostgresFrontier(dsn, 0, lease=Lease(node, ttl_s, 30.0, LONGER_S))


def left_s(store: PostgresFrontier) -> float:
    return store.quiet_until - time.monotonic()


def test_hosts_of_a_dead_owner_rest_longer_than_its_lease(postgres_server: Postgres) -> None:
    """The file has an owner when the lease has ended; until when its hosts rest outlasts an owner that lets go in order, and one
    whose process is replaced; it counts from the dead one's last renewal."""
    dsn = postgres_server.dsn(prepared=True)
    dead = opened(dsn, "dead")
    dead.claim("a")
    assert left_s(dead) < 0, "nobody was there before"
    heir = opened(dsn, "heir")
    heir.claim("b")
    first = heir.quiet_until
    assert LONGER_S - 100 < left_s(heir) <= LONGER_S
    again = opened(dsn, "heir", 60.0)
    again.claim("b2")
    assert abs(again.quiet_until - first) < 5.0
    again.close(clean=True)
    third = opened(dsn, "third")
    third.claim("c")
    assert third.was_clean()
    assert abs(third.quiet_until - first) < 5.0
    for store in (dead, heir, third):
        store.close(clean=False)


def test_a_file_that_was_let_go_in_order_has_no_rest(postgres_server: Postgres) -> None:
    """A clean end leaves exact clocks and nothing in flight."""
    dsn = postgres_server.dsn(prepared=True)
    one = opened(dsn, "one", 60.0)
    one.claim("a")
    one.close(clean=True)
    two = opened(dsn, "two", 60.0)
    two.claim("b")
    assert left_s(two) < 0
    two.close(clean=True)


def test_a_file_that_is_let_go_without_being_whole_is_free_at_once(postgres_server: Postgres) -> None:
    """Nothing is in flight, so nobody waits for the lease; clocks may be missing, so it counts as unclean."""
    dsn = postgres_server.dsn(prepared=True)
    one = opened(dsn, "one", 600.0)
    one.claim("a")
    one.let_go()
    one.close(clean=False)
    two = PostgresFrontier(dsn, 0, lease=Lease("two", 600.0, 0.0, LONGER_S))
    two.claim("b")
    assert (left_s(two) < 0, two.was_clean()) == (True, False)
    two.close(clean=True)


def test_leases_of_an_older_version_learn_to_remember(postgres_server: Postgres) -> None:
    """The column is added when a file is opened."""
    dsn = postgres_server.dsn(prepared=True)
    con = dial(dsn, None)
    con.execute("ALTER TABLE frontier.lease DROP COLUMN quiet")
    store = opened(dsn, "one")
    store.claim("a")
    assert con.execute("SELECT count(quiet) FROM frontier.lease").fetchone() == (1,)
    store.close(clean=True)
    con.close()


def test_a_question_that_is_never_answered_can_be_ended(postgres_server: Postgres) -> None:
    """From another thread, as the error of a server that is gone; what it leaves on the server is freed there."""
    con = dial(postgres_server.dsn(), None)
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            with translated("here"):
                con.execute("SELECT pg_sleep(600)")
        except ServerGone as error:
            ended.append(error)

    asker = threading.Thread(target=ask)
    asker.start()
    time.sleep(0.3)
    sever(con)
    asker.join(60.0)
    assert len(ended) == 1
    con.close()
    sever(con)  # harmless afterwards
    fresh = dial(postgres_server.dsn(), None)
    assert fresh.execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("30s",)
    fresh.close()


def test_a_claim_that_has_no_patience_waits_for_no_open_transaction(postgres_server: Postgres) -> None:
    """A dead machine's transaction may stand open on the server for half a minute: whoever has other files to see to is told at once
    that this one is not free yet, and has it when it is."""
    dsn = postgres_server.dsn(prepared=True)
    dead = opened(dsn, "dead")
    dead.claim("a")
    time.sleep(0.3)
    with dial(dsn, 0) as stays_open:
        stays_open.execute("BEGIN")
        stays_open.execute("SELECT value FROM meta WHERE name = 'epoch' FOR SHARE")
        heir = PostgresFrontier(dsn, 0, lease=Lease("heir", 5.0, 0.0, LONGER_S))
        began = time.monotonic()
        with pytest.raises(Locked, match="still open"):
            heir.claim("b")
        assert time.monotonic() - began < 10.0
        stays_open.execute("ROLLBACK")
    assert heir.claim("b") == 2
    for store in (dead, heir):
        store.close(clean=False)


@pytest.mark.parametrize("locks", ["epoch", "lease"])
def test_the_last_session_of_a_dead_owner_is_ended(postgres_server: Postgres, locks: str) -> None:
    """A connection that the network swallowed in the middle of a transaction keeps the file locked for as long as it looks alive: an
    heir ends it, once the lease is over and not before; what was open is undone, and what had been committed stays."""
    dsn = postgres_server.dsn(prepared=True)
    dead = opened(dsn, "dead", 3.0)
    dead.claim("a")
    heir = PostgresFrontier(dsn, 0, lease=Lease("heir", 5.0, 0.0, LONGER_S))
    raw = dead._pg.raw
    raw.execute("SET idle_in_transaction_session_timeout = 0")
    raw.execute("BEGIN")
    raw.execute("SELECT value FROM meta WHERE name = 'epoch' FOR SHARE")
    if locks == "lease":
        raw.execute("UPDATE frontier.lease SET expires = clock_timestamp() + interval '1 hour' WHERE part = 0")
    with pytest.raises(Locked, match="a on dead"):
        heir.claim("b")
    raw.execute("SELECT 1")  # its lease is in force, so it lives
    ends = time.monotonic() + 60.0
    while True:
        try:
            assert heir.claim("b") == 2
            break
        except Locked:
            assert time.monotonic() < ends, "the dead owner's session is still there"
            time.sleep(0.1)
    with pytest.raises(psycopg.OperationalError):
        raw.execute("SELECT 1")
    for store in (dead, heir):
        store.close(clean=False)


def test_an_heir_ends_nobodys_session_but_the_last_owners(postgres_server: Postgres) -> None:
    """Somebody else who looks at the file meanwhile, and whoever was given the dead one's process number since, stay."""
    dsn = postgres_server.dsn(prepared=True)
    dead = opened(dsn, "dead")
    dead.claim("a")
    time.sleep(0.3)
    with dial(dsn, 0) as other, dial(dsn, 0) as reader:
        other.execute("BEGIN")
        other.execute("SELECT value FROM meta WHERE name = 'epoch' FOR SHARE")
        (number,) = other.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        heir = PostgresFrontier(dsn, 0, lease=Lease("heir", 5.0, 0.0, LONGER_S))
        reader.execute("UPDATE meta SET value = %s WHERE name = 'session'", (number,))
        with pytest.raises(Locked, match="still open"):
            heir.claim("b")
        assert other.execute("SELECT 1").fetchone() == reader.execute("SELECT 1").fetchone() == (1,)
        other.execute("ROLLBACK")
    assert heir.claim("b") == 2
    for store in (dead, heir):
        store.close(clean=False)


def test_letting_go_that_found_no_room_is_done_again(postgres_server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's disk was full: nothing is half-true, the same call succeeds later, and the next owner comes as after any orderly end."""
    dsn = postgres_server.dsn(prepared=True)
    one = opened(dsn, "one", 60.0)
    one.claim("a")
    write = one._write

    def full() -> None:
        raise NoRoom("no space left on device", "the server")

    monkeypatch.setattr(one, "_write", full)
    with pytest.raises(NoRoom):
        one.close(clean=True)
    monkeypatch.setattr(one, "_write", write)
    one.close(clean=True)
    two = opened(dsn, "two", 60.0)
    two.claim("b")
    assert two.was_clean()
    assert left_s(two) < 0
    two.close(clean=False)


def test_a_file_that_takes_long_to_come_costs_no_lease(
    postgres_server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its filter is read from a long table for more than twice as long as a lease lasts, in the thread that renews leases: nobody else
    can have it, or a file that was owned before, and the filter knows every URL, those included that are only counted."""
    dsn = postgres_server.dsn(prepared=True)
    urls = [f"http://h{n % 7}.test/{n}" for n in range(500)]
    router = Router(UrlRules(CrawlSettings(), UrlScope(any=True, exclude=(r"/\d*3$",))), 16)
    first = opened(dsn, "one", 60.0)
    first.claim("a")
    first.commit([Ack(own=tuple(router.judge([one for url in urls if (one := seed(url)) is not None])))])
    first.close(clean=True)
    tried: list[str] = []
    beside = PostgresFrontier(dsn, 1, lease=Lease("two", 2.0, 0.0))
    beside.claim("b")

    def meanwhile() -> None:
        time.sleep(0.25)
        beside.hold()
        for number in (0, 1):
            rival = PostgresFrontier(dsn, number, lease=Lease("rival", 2.0, 0.0))
            with pytest.raises(Locked) as caught:
                rival.claim("c")
            tried.append(str(caught.value))
            rival.close(clean=False)

    monkeypatch.setattr(frontier_postgres, "pieces", partial(pieces, at_once=25))
    seen = OwnerFilter(tmp_path / "p00.sqlite", "exact", 0.001)
    slow = PostgresFrontier(dsn, 0, lease=Lease("two", 2.0, 0.0), seen=seen, meanwhile=meanwhile)
    began = time.monotonic()
    slow.claim("b")
    assert time.monotonic() - began > 4.0
    assert len(tried) > 20
    keys = [(host_of(url), uid_of(url)) for url in urls]
    assert seen.worth_a_look(keys) == keys
    for store in (slow, beside):
        store.renew()
        store.close(clean=True)
