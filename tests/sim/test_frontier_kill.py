"""kill -9 in the middle of commits: what a commit returned from is there, what it did not return from is whole or absent."""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from corpus.crawl.ports import Ack, Due, HostRow, Judged, Settled
from corpus.model import CaptureRef, Sighting, UrlState
from corpus.store.frontier_sqlite import SqliteFrontier

HOSTS = 3
LINKS = 40


def _url(page: int, n: int) -> str:
    return f"https://h{page % HOSTS}.test/p{page}/{n}"


def _ack(page: int) -> Ack:
    """Page `page` of its host: settles its first link, brings 40 new ones, sends two away, moves its host's clock."""
    host = f"h{page % HOSTS}.test"
    own = tuple(Judged(Sighting(_url(page, n), _url(page, n), 1), host, host) for n in range(LINKS))
    capture = CaptureRef("warc/s00-000001-000001.warc.gz", page * 100, 90)
    settled = Settled(_url(page, 0), UrlState.FETCHED, attempts=1, http_status=200, capture=capture, segment_end=page * 100 + 100)
    foreign = tuple((9, Sighting(f"https://x.test/{page}/{n}", "https://x.test/", 1)) for n in range(2))
    return Ack(HostRow(host, host, pages=page // HOSTS + 1, due=Due(float(page), 2.0)), (settled,), (), own, foreign)


def _crawl(path: str, first: int, pipe: Connection) -> None:
    store = SqliteFrontier(Path(path))
    store.claim("child")
    page = first
    while True:
        store.commit([_ack(page), _ack(page + 1)])
        store.apply(4, [(page + 1, Judged(Sighting(f"https://in.test/{page}", "https://in.test/", 2), "in.test", "in.test"))])
        page += 2
        pipe.send(page)


def _pages_there(store: SqliteFrontier, upto: int) -> int:
    """How many pages are wholly there; fails when one is there in part, or when one is missing before another."""
    there = 0
    for page in range(upto):
        first = store.lookup(_url(page, 0))
        rest = [store.lookup(_url(page, n)) for n in range(1, LINKS)]
        if first is None:
            assert not any(rest), f"page {page} is there in part"
            continue
        assert first["state"] == "fetched"
        assert first["offset"] == page * 100
        assert all(row is not None and row["state"] == "queued" for row in rest), f"page {page} is there in part"
        assert there == page, f"page {page} is there, and an earlier one is not"
        there = page + 1
    return there


@pytest.mark.parametrize("seed", range(5))
def test_a_killed_owner_loses_nothing_it_was_told_is_stored(tmp_path: Path, seed: int) -> None:
    """Three owners in a row are killed at seeded moments; each finds all that was acknowledged, whole batches only."""
    context = multiprocessing.get_context("spawn")
    path, rng, told = tmp_path / "p.sqlite", random.Random(seed), 0
    for _ in range(2):
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_crawl, args=(str(path), told, there))
        child.start()
        there.close()
        last = here.recv()  # it works: now let it run for a moment that the seed chooses, and no longer
        deadline = time.monotonic() + rng.uniform(0.0, 0.12)
        while time.monotonic() < deadline:
            if here.poll(0.001):
                last = here.recv()
        child.kill()
        child.join(10)
        while here.poll():
            try:
                last = here.recv()
            except EOFError:
                break
        here.close()
        store = SqliteFrontier(path)
        store.claim("heir")
        assert not store.was_clean()
        found = _pages_there(store, last + 4)
        assert last <= found <= last + 2, f"seed {seed}: acknowledged {last}, found {found}"
        assert found % 2 == 0, "two pages of one commit are one"
        applied = store.mark(4)
        assert last - 1 <= applied <= found
        tally = store.tally()
        assert tally.by_state["fetched", ""] == found
        assert tally.by_state["queued", ""] == found * (LINKS - 1) + tally.applied
        assert sum(host.queued for host in store.hosts()) == tally.by_state["queued", ""]
        assert (tally.sent, tally.outbox) == (2 * found, 2 * found)
        assert store.acked_end("warc/s00-000001-000001.warc.gz") == found * 100
        told = found
        store.close(clean=True)
