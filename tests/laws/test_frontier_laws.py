"""Laws of the frontier: both stores agree on everything, counts are exact, and what a sighting means has no order."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.crawl.ports import Ack, Due, FrontierStore, Judged, Settled
from corpus.crawl.priority import front
from corpus.crawl.seen import RecentSeen
from corpus.model import Kind, Sighting, UrlState
from corpus.store import frontier_batch
from corpus.store.frontier_memory import MemoryFrontier
from corpus.store.frontier_sqlite import SqliteFrontier

HOSTS = ("a.test", "www.a.test", "b.test")
REASONS = ("", "", "", "too-deep", "too-many-redirects", "blocked")


def _url(host: str, n: int) -> str:
    return f"https://{host}/{n}"


sightings = st.builds(
    lambda host, n, depth, hops, claim, kind, excluded: Judged(
        Sighting(_url(host, n), _url(host, n) + f"#{depth}", depth, kind, hops, f"https://via.test/{depth}", claim),
        host,
        host.removeprefix("www."),
        excluded,
    ),
    st.sampled_from(HOSTS),
    st.integers(0, 9),
    st.integers(0, 4),
    st.integers(0, 2),
    st.sampled_from((0.5, 0.5, 0.1, 0.9)),
    st.sampled_from((Kind.PAGE, Kind.PAGE, Kind.PAGE, Kind.SITEMAP)),
    st.sampled_from(REASONS),
)
settlements = st.builds(
    lambda host, n, outcome, at, attempts: Settled(
        _url(host, n), outcome[0], outcome[1], attempts=attempts, due=Due(float(at), 10.0) if outcome[2] else None,
        protocol="robots" if outcome[1] == "robots" else "", authority_digest="d1" if outcome[1] == "robots" else "",
    ),
    st.sampled_from(HOSTS),
    st.integers(0, 9),
    st.sampled_from(
        (
            (UrlState.FETCHED, "", False), (UrlState.FETCHED, "", True), (UrlState.QUEUED, "timeout", True), (UrlState.PARKED, "retry-after", True),
            (UrlState.REFUSED, "robots", False), (UrlState.GONE, "http-404", False), (UrlState.EXCLUDED, "taken-down", False),
        )
    ),
    st.integers(0, 50),
    st.integers(0, 3),
)  # fmt: skip
steps = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.lists(sightings, max_size=6), st.lists(settlements, max_size=2)),
        st.tuples(st.just("apply"), st.lists(sightings, min_size=1, max_size=4), st.integers(0, 3)),
        st.tuples(st.just("wake"), st.integers(0, 80), st.booleans()),
        st.tuples(st.sampled_from(("exclude", "readmit", "reopen")), st.sampled_from(HOSTS), st.booleans()),
    ),
    max_size=14,
)


def _do(store: FrontierStore, step: tuple[object, ...]) -> object:
    match step:
        case ("commit", list(own), list(news)):
            return store.commit([Ack(own=tuple(own)), Ack(settled=tuple(news))])
        case ("apply", list(own), int(seq)):
            return store.apply(2, [(seq + n, judged) for n, judged in enumerate(own)])
        case ("wake", int(wall), bool(revisit)):
            return store.wake(float(wall), revisit=revisit)
        case ("exclude", str(host), bool(revisits)):
            return store.exclude_queued(host, "host-budget", revisits=revisits)
        case ("readmit", str(host), _):
            return store.readmit(host, "host-budget")
        case ("reopen", str(host), _):
            return store.reopen(host, f"https://{host}:443", Kind.ROBOTS, "d2")
    raise AssertionError(step)


def _picture(store: FrontierStore) -> object:
    urls = [store.lookup(_url(host, n)) for host in HOSTS for n in range(10)]
    return (
        store.tally(),
        [store.heads(host, 20) for host in HOSTS],
        store.hosts(pending=False),
        urls,
        store.mark(2),
        store.next_wake(),
    )


@settings(max_examples=40, deadline=None)
@given(steps=steps, kept=st.sampled_from((2, 1000)))
def test_every_store_tells_the_same_story(steps: list[tuple[object, ...]], kept: int) -> None:
    """Memory, SQLite and SQLite behind a recent-set answer alike after every step; the tally counts the rows exactly."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(frontier_batch, "KEPT_EXCLUSIONS", kept)
        memory = MemoryFrontier()
        others = [SqliteFrontier(Path(folder) / "a"), SqliteFrontier(Path(folder) / "b", recent=RecentSeen(1 << 12))]
        for store in (memory, *others):
            store.claim("law")
        for step in steps:
            expected = _do(memory, step)
            for other in others:
                assert _do(other, step) == expected, step
                assert _picture(other) == _picture(memory), step
            urls = [row for host in HOSTS for n in range(10) if (row := memory.lookup(_url(host, n))) is not None]
            counts: dict[tuple[object, object], int] = {}
            for row in urls:
                key = (row["state"], row["reason"])
                counts[key] = counts.get(key, 0) + 1
            assert memory.tally().by_state == counts, step
            assert sum(host.queued for host in memory.hosts()) == sum(n for (state, _), n in counts.items() if state == "queued")
        for other in others:
            other.close(clean=True)


@settings(max_examples=60, deadline=None)
@given(seen=st.lists(sightings, min_size=1, max_size=12), data=st.data())
def test_the_order_of_sightings_does_not_matter(seen: list[Judged], data: st.DataObject) -> None:
    """Whatever the order and the batches in which sightings arrive: the same URLs are queued at the same depth and place.

    A sighting that lifts an exclusion brings its own depth, so the law is about sightings that pass the filters.
    """
    passing = [Judged(j.sighting, j.host, j.domain) for j in seen]
    shuffled = data.draw(st.permutations(passing))
    stores = []
    for order in (passing, shuffled):
        store = MemoryFrontier()
        store.claim("law")
        at = 0
        while at < len(order):
            step = data.draw(st.integers(1, 5))
            store.commit([Ack(own=tuple(order[at : at + step]))])
            at += step
        stores.append(store)
    lines = [
        [[(q.url, q.depth, q.hops, q.priority, q.kind) for q in store.heads(host, 50)] for host in HOSTS] for store in stores
    ]
    assert lines[0] == lines[1]
    for line in lines[0]:
        keys = [(front(depth, claim, kind), depth) for _, depth, _, claim, kind in line]
        assert all(a <= b for a, b in pairwise(keys))


@given(st.integers(0, 100), st.integers(0, 100), st.floats(allow_nan=True), st.sampled_from(Kind))
def test_priority_is_monotone_and_bounded(near: int, far: int, claim: float, kind: Kind) -> None:
    """A page nearer to a seed never stands behind a farther one of the same claim; a higher claim never lowers it."""
    assert 0 <= front(near, claim, kind) <= 255
    low, high = sorted((near, far))
    assert front(low, claim, kind) <= front(high, claim, kind)
    assert front(near, 1.0, kind) <= front(near, 0.5, kind) <= front(near, 0.0, kind)
    assert front(near, kind=Kind.SITEMAP) < front(0, 1.0)


def test_an_excluded_sighting_has_no_say_about_a_url_that_waits() -> None:
    """A nearer sighting that would be excluded neither moves a queued URL nor parts the stores, however often it comes."""

    def judged(hops: int, excluded: str) -> Judged:
        return Judged(
            Sighting(_url("a.test", 0), _url("a.test", 0), 0, Kind.PAGE, hops, "https://via.test/", 0.5),
            "a.test",
            "a.test",
            excluded,
        )

    with tempfile.TemporaryDirectory() as folder:
        stores = [
            MemoryFrontier(),
            SqliteFrontier(Path(folder) / "a"),
            SqliteFrontier(Path(folder) / "b", recent=RecentSeen(1 << 12)),
        ]
        for store in stores:
            store.claim("law")
            for sightings in ([judged(0, "too-deep"), judged(1, "")], [judged(0, "too-deep")]):
                _do(store, ("commit", sightings, []))
        first, *others = [_picture(store) for store in stores]
        assert all(other == first for other in others)
