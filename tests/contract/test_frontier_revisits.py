"""What both frontier stores promise about pages that are visited again: lines of their own, histories, chains, rates."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corpus.crawl.ports import Ack, Change, Due, FrontierStore, History, HostRow, Settled
from corpus.crawl.recrawl import rate_bin
from corpus.model import UrlState
from corpus.store.frontier_reader import FrontierReader
from corpus.store.frontier_schema import SCHEMA
from corpus.store.frontier_sqlite import SqliteFrontier
from tests.contract.frontier_shelf import HOST, KINDS, judged, links, new_shelf, row, states, url


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FrontierStore]:
    shelf = new_shelf(request, tmp_path)
    opened = shelf.open()
    opened.claim("test")
    yield opened
    shelf.close()


def _visit(store: FrontierStore, n: int, at: float, state: UrlState = UrlState.FETCHED, **more: object) -> None:
    settled = Settled(url(n), state, fetched_at=at, due=Due(at, 100.0), history=History(checked_at=at), **more)  # type: ignore[arg-type]
    store.commit([Ack(settled=(settled,))])


def test_revisits_have_a_line_of_their_own(store: FrontierStore) -> None:
    """Pages that fall due are told apart from new ones, in `heads` and in the host's row, until they were asked again."""
    store.commit(links(judged(url(1)), judged(url(2))))
    _visit(store, 1, 1000.0, content_sha256="ab" * 32, etag='"x"', simhash=1 << 63)
    assert store.wake(1150.0, revisit=True) == [HOST]
    assert [(q.url, q.again) for q in store.heads(HOST, 9, again=True)] == [(url(1), True)]
    assert [(q.url, q.again) for q in store.heads(HOST, 9, again=False)] == [(url(2), False)]
    assert {q.url for q in store.heads(HOST, 9)} == {url(1), url(2)}
    due = store.heads(HOST, 9, again=True)[0]
    assert (due.simhash, due.etag, due.history) == (1 << 63, '"x"', History(checked_at=1000.0))
    host = store.host(HOST)
    assert host is not None
    assert host.new_waits
    assert host.due_waits
    store.commit([Ack(settled=(Settled(url(1), UrlState.QUEUED, "timeout", attempts=1, due=Due(1160.0, 5.0)),))])
    store.wake(1170.0)
    assert store.heads(HOST, 9, again=True)[0].attempts == 1, "a retry of a revisit is a revisit"
    _visit(store, 1, 1200.0, content_sha256="ab" * 32)
    host = store.host(HOST)
    assert host is not None
    assert host.new_waits
    assert not host.due_waits


def test_a_budget_leaves_revisits_in_line_and_a_retired_host_does_not(store: FrontierStore) -> None:
    """`exclude_queued` takes what was never stored out of line, ready, waiting or parked; `revisits` those too."""
    store.commit(links(*(judged(url(n)) for n in range(1, 7))))
    for n in (1, 2, 3):
        _visit(store, n, 1000.0, content_sha256="ab" * 32)
    store.wake(1150.0, revisit=True)
    for n, state in ((2, UrlState.QUEUED), (3, UrlState.PARKED), (5, UrlState.QUEUED), (6, UrlState.PARKED)):
        store.commit([Ack(settled=(Settled(url(n), state, "timeout", attempts=1, due=Due(1160.0, 500.0)),))])
    assert store.exclude_queued(HOST, "host-budget") == 3
    assert states(store) == {
        ("excluded", "host-budget"): 3,
        ("queued", ""): 1,
        ("queued", "timeout"): 1,
        ("parked", "timeout"): 1,
    }
    host = store.host(HOST)
    assert host is not None
    assert (host.new_waits, host.due_waits, host.queued) == (False, True, 2)
    assert [(q.url, q.again) for q in store.heads(HOST, 9)] == [(url(1), True)]
    store.wake(1700.0)
    assert {q.url for q in store.heads(HOST, 9)} == {url(1), url(2), url(3)}, "what waited is still a revisit"
    assert store.exclude_queued(HOST, "host-retired", revisits=True) == 3
    assert store.heads(HOST, 9) == []
    assert store.readmit(HOST, "host-retired") == 3


def test_a_settlement_says_in_which_front_a_page_comes_back(store: FrontierStore) -> None:
    """`front` of a settlement is where it stands when it is due; without one it stands where it stood."""
    store.commit(links(judged(url(1)), judged(url(2))))
    before = row(store, url(1))["front"]
    _visit(store, 1, 1000.0, front=7)
    _visit(store, 2, 1000.0)
    store.wake(2000.0, revisit=True)
    assert [row(store, url(n))["front"] for n in (1, 2)] == [7, before]
    host = store.host(HOST)
    assert host is not None
    assert host.front == 7
    assert not host.new_waits


def test_histories_survive_what_brings_none(store: FrontierStore) -> None:
    """A failure or a refusal between two visits does not forget how often a page changed; pages are counted by rate."""
    store.commit(links(judged(url(1)), judged(url(2))))
    known = History(2.5, 1.5, 900.0, 1000.0)
    store.commit([Ack(settled=(Settled(url(1), UrlState.FETCHED, fetched_at=1000.0, due=Due(1000.0, 1.0), history=known, content_sha256="aa" * 32),))])  # fmt: skip
    assert store.rates() == {rate_bin(known): 1}
    store.wake(1002.0, revisit=True)
    store.commit([Ack(settled=(Settled(url(1), UrlState.FAILED, "timeout", fetched_at=1003.0, due=Due(1003.0, 1.0)),))])
    store.wake(1005.0, revisit=True)
    assert store.heads(HOST, 9, again=True)[0].history == known
    _visit(store, 2, 1000.0)
    assert store.rates() == {rate_bin(known): 1}, "a page visited once has no rate"


def test_the_version_chain_of_a_page(store: FrontierStore) -> None:
    """First version, confirmed, changed, gone, back: each with when it was first and last seen. One visit makes no chain."""
    store.commit(links(judged(url(1))))
    a, b = "aa" * 32, "bb" * 32
    _visit(store, 1, 1000.0, content_sha256=a)
    assert store.versions(url(1)) == []
    steps = [
        (1100.0, UrlState.NOT_MODIFIED, Change.UNCHANGED, a), (1200.0, UrlState.FETCHED, Change.MINOR, b),
        (1300.0, UrlState.FETCHED, Change.UNCHANGED, b), (1400.0, UrlState.GONE, Change.GONE, ""),
        (1500.0, UrlState.GONE, Change.UNCHANGED, ""), (1600.0, UrlState.FETCHED, Change.MAJOR, a),
    ]  # fmt: skip
    for at, state, change, sha in steps:
        store.wake(at, revisit=True)
        _visit(store, 1, at, state, change=change, content_sha256=sha)
    assert store.versions(url(1)) == [
        (1000.0, 1100.0, "", a), (1200.0, 1300.0, "minor", b), (1400.0, 1500.0, "gone", ""), (1600.0, 1600.0, "major", a),
    ]  # fmt: skip


def test_grades_and_caches_of_hosts(store: FrontierStore) -> None:
    """What processing found stays when the owner writes the host's row; cache counts are the row's own; strangers are passed over."""
    store.commit(links(judged(url(1))))
    store.grade({HOST: 0.25, "nobody.test": 0.9})
    kept = store.host(HOST)
    assert kept is not None
    assert kept.quality == 0.25
    store.commit([Ack(host=replace(kept, quality=None, cache_hits=3, cache_misses=4, pages=1))])
    after = store.host(HOST)
    assert after is not None
    assert (after.quality, after.cache_hits, after.cache_misses) == (0.25, 3, 4)
    assert store.host("nobody.test") is None
    _visit(store, 1, 5.0, cache="miss", age_s=7)
    assert (row(store, url(1))["cache"], row(store, url(1))["age_s"]) == ("miss", 7)


def test_a_file_of_an_older_version_is_brought_up(tmp_path: Path) -> None:
    """Every URL and visit of a version-1 file is there afterwards, in line, and the new columns say "not known"."""
    path = tmp_path / "p00.sqlite"
    with sqlite3.connect(path) as con:
        con.executescript(Path(__file__).with_name("frontier_v1.sql").read_text("utf-8"))
    store = SqliteFrontier(path)
    store.claim("newer")
    try:
        assert states(store) == {("fetched", ""): 1, ("queued", ""): 2}
        assert [q.url for q in store.heads(HOST, 9, again=False)] == [url(2), url(3)]
        assert store.wake(2000.0, revisit=True) == [HOST]
        due = store.heads(HOST, 9, again=True)
        assert [(q.url, q.content_sha256, q.history) for q in due] == [(url(1), "ab" * 32, History(checked_at=1000.0))]
        host = store.host(HOST)
        assert host is not None
        assert (host.quality, host.cache_misses, host.pages) == (None, 0, 1)
        assert isinstance(host, HostRow)
    finally:
        store.close(clean=True)
    with FrontierReader(path) as reader:
        assert reader.meta()["schema"] == SCHEMA
        assert {"again", "cache", "checked_at"} <= set(reader.columns("urls"))
    SqliteFrontier(path).close(clean=False)  # and once more: nothing left to do
