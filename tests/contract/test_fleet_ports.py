"""What machines of a fleet share, under one suite with what processes of one machine share: the inbox and the near-copy gate;
and the promises that only a fleet needs: members, runs, budgets, letters, orders."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corpus.crawl.desk import Errand
from corpus.crawl.gate import Fingerprint, Gate, NearIndex
from corpus.crawl.ports import Inbox, OutboxRow, Request
from corpus.crawl.regions import Way
from corpus.errors import FenceLost, Locked, NewerSchema, UsageError
from corpus.model import Failed, Failure, Kind, Response, Sighting
from corpus.store.inbox import ObjectInbox
from corpus.store.local_objects import LocalObjects
from tests.postgres_kit import Postgres

pytest.importorskip("psycopg")

from corpus.store.fleet_inbox import PostgresInbox
from corpus.store.fleet_members import Fleet, members_there, tell_of_order
from corpus.store.fleet_near import PostgresNearIndex
from corpus.store.fleet_schema import STEPS, fleet_schema, open_fleet
from corpus.store.frontier_pg_bound import bind
from corpus.store.frontier_postgres import Lease, PostgresFrontier

POSTGRES = pytest.param("postgres", marks=pytest.mark.needs("postgres"))


def rows(first: int, last: int) -> list[OutboxRow]:
    """Outbox rows for file 7; strange texts among them."""
    odd = "http://x.test/\ud800\0ä"
    return [
        OutboxRow(n, 7, Sighting(f"http://x.test/{n}", odd if n % 2 else f"http://x.test/{n}", n, Kind.PAGE, 1, odd, 0.25))
        for n in range(first, last + 1)
    ]


# ---- the inbox


@pytest.fixture(params=["objects", POSTGRES])
def inbox(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Inbox]:
    """A function that opens the same inbox once more, as another process would."""
    if request.param == "objects":
        return lambda: ObjectInbox(LocalObjects(tmp_path))
    dsn = request.getfixturevalue("postgres_server").dsn()
    return lambda: PostgresInbox(dsn)


def test_a_batch_arrives_as_it_was_sent(inbox: Callable[[], Inbox]) -> None:
    """Sequence numbers, order and every field, for whoever owns the destination; dropping it ends it."""
    a, b = inbox(), inbox()
    a.publish(7, 3, 1, rows(1, 5))
    (name,) = b.waiting(7)
    assert b.read(name) == (3, [(row.seq, row.sighting) for row in rows(1, 5)])
    assert b.waiting(8) == []
    b.drop(name)
    b.drop(name)
    assert a.waiting(7) == []


def test_a_batch_waits_from_the_moment_it_was_sent(inbox: Callable[[], Inbox]) -> None:
    """Also in an inbox that this very process has just seen to be empty."""
    a = inbox()
    for _ in range(2):
        assert [a.waiting(dst) for dst in (7, 8)] == [[], []]
    assert a.waiting(7) == []
    a.publish(8, 3, 1, rows(1, 5))
    assert len(a.waiting(8)) == 1


def test_publishing_twice_changes_nothing_and_batches_wait_in_order(inbox: Callable[[], Inbox]) -> None:
    """The same rows once; another cut of them beside it; each source's in the order of its numbers."""
    a = inbox()
    a.publish(7, 3, 1, rows(11, 20))
    a.publish(7, 3, 1, rows(1, 10))
    a.publish(7, 3, 1, rows(1, 10))
    a.publish(7, 5, 1, rows(2, 2))
    a.publish(7, 3, 2, rows(1, 12))
    found = [a.read(name) for name in inbox().waiting(7)]
    firsts = [[seqs[0][0] for src, seqs in found if src == source] for source in (3, 5)]
    assert firsts[1] == [2]
    assert firsts[0] == sorted(firsts[0])
    assert sorted((seqs[0][0], seqs[-1][0]) for src, seqs in found if src == 3) == [(1, 10), (1, 12), (11, 20)]


@pytest.mark.needs("postgres")
def test_batches_that_a_single_machine_left_move_in(postgres_server: Postgres, tmp_path: Path) -> None:
    """Files of an earlier run are published on the server before they are dropped; a batch that another owner applied is a fence."""
    old, new = ObjectInbox(LocalObjects(tmp_path)), PostgresInbox(postgres_server.dsn())
    old.publish(7, 3, 1, rows(1, 5))
    old.publish(8, 3, 1, rows(6, 6))
    new.take_in(old, (7,))
    assert [new.read(name) for name in new.waiting(7)] == [(3, [(row.seq, row.sighting) for row in rows(1, 5)])]
    assert (old.waiting(7), len(old.waiting(8))) == ([], 1)
    (name,) = new.waiting(7)
    new.drop(name)
    with pytest.raises(FenceLost):
        new.read(name)


# ---- near copies


@pytest.fixture(params=["embedded", POSTGRES])
def gate(request: pytest.FixtureRequest) -> Callable[[int], Gate]:
    """A new, empty gate for a k."""
    if request.param == "embedded":
        return NearIndex
    server: Postgres = request.getfixturevalue("postgres_server")
    return lambda k: PostgresNearIndex(server.dsn(), k)


def page(url: str, body: str, simhash: int | None, *, alias: bool = False) -> Fingerprint:
    return Fingerprint(url, hashlib.sha256(body.encode()).hexdigest(), simhash, url + "#", 1.5, alias)


@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_first_page_is_the_original(gate: Callable[[int], Gate], k: int) -> None:
    """Same payload: identical; at most k bits apart: near; a page is never its own copy; an alias is never an original."""
    index, base = gate(k), 0xF0F0F0F0F0F0F0F0
    near, far = base ^ ((1 << k) - 1), base ^ ((1 << (k + 1)) - 1)
    assert index.ask([page("a", "A", base), page("a", "A", base), page("few", "F", None)]) == [None, None, None]
    (same, close, apart, few) = index.ask([page("b", "A", None), page("c", "C", near), page("d", "D", far), page("e", "F", None)])
    assert same is not None
    assert (same.original.url, same.original.found, same.original.fetched_at, same.identical) == ("a", "a#", 1.5, True)
    assert close is not None
    assert (close.original.url, close.distance, close.identical) == ("a", k, False)
    assert few is not None
    assert few.original.url == "few"
    assert apart is None
    other = 0x0123456789ABCDEF
    assert index.ask([page("alias", "X", other, alias=True), page("real", "Y", other), page("again", "Z", other)])[:2] == [
        None,
        None,
    ]


@pytest.mark.needs("postgres")
def test_both_gates_say_the_same_of_any_crawl(postgres_server: Postgres) -> None:
    """Batches of pages that copy each other in all ways, with crowded bands: equal answers, also after a rebuild."""
    rng, embedded, served = random.Random(3), NearIndex(3), PostgresNearIndex(postgres_server.dsn(), 3)
    bases = [rng.getrandbits(64) for _ in range(20)]
    known: list[Fingerprint] = []
    for n in range(12):
        pages = []
        for _ in range(120):
            simhash = rng.choice(bases) ^ sum(1 << rng.randrange(64) for _ in range(rng.randrange(5)))
            pages.append(
                page(
                    f"u{rng.randrange(900)}",
                    str(rng.randrange(700)),
                    simhash if rng.random() < 0.9 else None,
                    alias=rng.random() < 0.1,
                )
            )
        answers = served.ask(pages)
        assert answers == embedded.ask(pages)
        known += [p for p, copy in zip(pages, answers, strict=True) if copy is None and not p.alias]
        if n == 6:
            assert served.rebuild(known) == len(known)
            embedded = NearIndex(3, known)


@pytest.mark.needs("postgres")
def test_two_machines_that_see_a_page_at_once_have_one_original(postgres_server: Postgres) -> None:
    """Batches are one after the other: of two askers for the same pages exactly one is told that they are new."""
    dsn = postgres_server.dsn()
    indexes = [PostgresNearIndex(dsn, 3) for _ in range(2)]
    told: list[list[bool]] = [[], []]

    def ask(n: int) -> None:
        for one in range(30):
            copies = indexes[n].ask([page(f"m{n}/{one}/{i}", f"{one}/{i}", None) for i in range(5)])
            told[n] += [copy is None for copy in copies]

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [a != b for a, b in zip(*told, strict=True)] == [True] * 150


# ---- members and their run


@pytest.fixture
def database(postgres_server: Postgres) -> str:
    return postgres_server.dsn(prepared=True)


@pytest.fixture
def join(database: str) -> Iterator[Callable[..., tuple[Fleet, int]]]:
    fleets: list[Fleet] = []

    def enter(held_s: float = 30.0, stored: int = 0, **shape: str) -> tuple[Fleet, int]:
        fleet = Fleet(database, held_s, 2.0, lambda: 41)
        fleets.append(fleet)
        number, _ = fleet.enter(
            "2026-12", ("here", 1, "north"), lambda: stored, {key.replace("_", "."): value for key, value in shape.items()}
        )
        return fleet, number

    yield enter
    for fleet in fleets:
        fleet.close()


pg = pytest.mark.needs("postgres")


@pytest.mark.needs("postgres")
def test_members_have_one_configuration_and_one_root(join: Callable[..., tuple[Fleet, int]]) -> None:
    """Who differs in a key is refused by its name; once all have gone a key may be another, and the root never."""
    like: dict[str, str] = {"crawl_delay": "2s", "store.root": "here"}
    first, number = join(**like)
    join(**like)
    for other, key in (({"crawl_delay": "1s"}, "crawl.delay"), ({"store.root": "there"}, "store.root")):
        with pytest.raises(UsageError, match=key):
            join(**like | other)
    for gone in (number, number + 1):
        first.leave(gone)
    with pytest.raises(UsageError, match=r"store\.root"):
        join(**like | {"store.root": "there"})
    join(**like | {"crawl_delay": "1s"})


@pg
def test_members_share_a_run_until_it_ends(join: Callable[..., tuple[Fleet, int]], database: str) -> None:
    """The second member joins the first one's run; an end is given once and heard by all; who comes while they leave hears it too;
    the first after that begins a new one. Numbers are never given again."""
    (a, first), (b, second) = join(), join()
    assert (first, second, a.run) == (100, 101, b.run)
    assert a.generation == b.generation == 42
    assert [m.id for m in b.beat(second, {"x": 1}, "live").members if m.live] == [100, 101]
    a.end("done")
    b.end("budget")
    assert b.beat(second, {}, "draining").run.ended == "done"
    c, third = join()
    assert c.beat(third, {}, "live").run.ended == "done"
    for fleet, number in ((a, first), (b, second), (c, third)):
        fleet.leave(number)
    assert members_there(database) == []
    d, fourth = join(stored=7)
    assert (d.run, fourth) == (a.run + 1, 103)
    assert d.beat(fourth, {}, "live").run.dealt == 7


@pg
def test_a_silent_member_is_lost_by_the_servers_clock(join: Callable[..., tuple[Fleet, int]]) -> None:
    """Past its time a member is lost, once, and a beat of its own does not bring it back; an interrupted run is gone on with."""
    (b, second), (a, first) = join(), join(held_s=0.05)
    threading.Event().wait(0.1)
    beat = b.beat(second, {}, "live")
    assert beat.lost == (first,)
    assert b.beat(second, {}, "live").lost == ()
    mine = a.beat(first, {}, "live").member(first)
    assert mine is not None
    assert not mine.there
    b.leave(second)
    c, _ = join()
    assert c.run == b.run


@pg
def test_a_run_of_one_machine_keeps_members_out(join: Callable[..., tuple[Fleet, int]], database: str) -> None:
    """While another machine's lease on a partition file is in force nobody can begin a fleet."""
    store = PostgresFrontier(database, 0, lease=Lease("a-machine", 30.0, 0.0))
    store.claim("fetch-0")
    with pytest.raises(Locked, match="fetch-0 on a-machine"):
        join()
    store.close(clean=True)
    join()


@pg
def test_pages_are_dealt_to_the_limit_and_not_beyond(join: Callable[..., tuple[Fleet, int]]) -> None:
    """Two members that take at once never get more than is left; what is given back can be taken; a recount needs quiet."""
    (a, number), (b, _) = join(stored=10), join()
    got: list[int] = []

    def take(fleet: Fleet) -> None:
        got.extend(fleet.deal(7, 100) for _ in range(20))

    threads = [threading.Thread(target=take, args=(fleet,)) for fleet in (a, b)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sum(got) == 90
    assert set(got) <= {7, 6, 0}
    a.give_back(5)
    assert (b.deal(9, 100), b.deal(9, 50)) == (5, 0)
    a.recount(99, 20)
    assert a.beat(number, {}, "live").run.dealt == 100
    a.recount(100, 20)
    assert a.beat(number, {}, "live").run.dealt == 20


@pg
def test_letters_reach_the_owner_and_the_asker_once(join: Callable[..., tuple[Fleet, int]]) -> None:
    """An errand goes to whoever owns the file, its answer to the one who asked, bytes and headers as they were."""
    (a, first), (b, second) = join(), join()
    errand = Errand(
        "https://x.test:443", Kind.ROBOTS, "https://y.test/robots.txt", 1, "x.test", first, "https://x.test/robots.txt"
    )
    a.post.ask(7, errand)
    assert b.post.take((8,), second) == ([], [])
    assert b.post.take((7,), second) == ([errand], [])
    assert b.post.take((7,), second) == ([], [])
    request = Request("https://y.test/robots.txt", "y.test", "203.0.113.1", Kind.ROBOTS, (("If-None-Match", "x"),))
    response = Response(
        200, (("A", "\xff"), ("a", "2")), b"\0\xff", b"\0\xff", "HTTP/1.1 200 OK", b"GET", "203.0.113.1", 1.5, 2.5, 0.1, 9
    )
    failed = Failed(Failure.TIMEOUT, "slow", 1.0, 2.0)
    for result in (response, failed):
        b.post.answer(errand, request, result)
    b.post.answer(errand, None, None)
    assert b.post.take((7,), second) == ([], [])
    assert a.post.take((7,), first)[1] == [(errand, request, response), (errand, request, failed), (errand, None, None)]


def _first(ask: Callable[[], int]) -> int:
    """What is true in the end: a notice comes when the server has told of it, and nobody waits inside `heard`."""
    until = time.monotonic() + 30.0
    while not (found := ask()) and time.monotonic() < until:
        time.sleep(0.01)
    return found


@pg
def test_members_hear_of_orders(join: Callable[..., tuple[Fleet, int]], database: str) -> None:
    """A notice comes at once, and every beat says the highest number, so a notice that was missed loses nothing."""
    fleet, number = join()
    for n in (3, 2):
        tell_of_order(database, n)
    assert _first(fleet.heard) == 3
    assert _first(lambda: fleet.heard() == 0)  # the notice of 2 may come a moment after that of 3
    assert fleet.beat(number, {}, "live").control == 3


@pg
def test_workers_that_start_at_the_same_moment_make_the_tables_once(postgres_server: Postgres) -> None:
    """Nobody of many who find an empty database fails, and all find the same tables."""
    dsn, failed, together = postgres_server.dsn(), list[BaseException](), threading.Barrier(8)

    def start() -> None:
        try:
            together.wait(30)
            bind(dsn, "x", 32)
            open_fleet(dsn).close()
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failed
    with open_fleet(dsn) as con:
        assert fleet_schema(con) == len(STEPS)


@pg
def test_tables_of_a_newer_version_are_refused(database: str) -> None:
    """The fleet's tables have a schema number of their own; current ones are only looked at, newer ones left alone."""
    with open_fleet(database) as con:
        assert fleet_schema(con) == len(STEPS)
        con.execute("UPDATE frontier.fleet SET schema = 99")
    with pytest.raises(NewerSchema, match="99"):
        open_fleet(database)


@pg
def test_what_regions_measured_becomes_one_decision(join: Callable[..., tuple[Fleet, int]], database: str) -> None:
    """Members of two regions note how long connections took; all read which region is far from which file, and the decision stands
    for some minutes whatever is measured next."""
    (a, first), (b, second) = join(), join()
    a.note_ways("north", {0: Way(50, 0.01), 1: Way(50, 0.3)})
    assert b.beat(second, {}, "live").run.far == {}
    b.note_ways("south", {0: Way(50, 0.2), 1: Way(50, 0.02), 2: Way(50, 0.02)})
    for fleet, number in ((a, first), (b, second)):
        assert fleet.beat(number, {}, "live").run.far == {0: ("south",), 1: ("north",)}
    b.note_ways("south", {0: Way(50, 0.01)})
    assert a.beat(first, {}, "live").run.far == {0: ("south",), 1: ("north",)}
    with open_fleet(database) as con:
        con.execute("UPDATE frontier.run SET far_since = far_since - interval '1 hour'")
    b.note_ways("south", {0: Way(50, 0.01)})
    assert a.beat(first, {}, "live").run.far == {1: ("north",)}
