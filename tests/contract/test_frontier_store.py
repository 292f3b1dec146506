"""One promise of `FrontierStore` per test, kept by every implementation: memory, SQLite, SQLite behind a recent-set, PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corpus.crawl.ports import Ack, Due, FrontierStore, HostRow, Judged, Settled
from corpus.errors import FenceLost, IllegalTransition
from corpus.model import CaptureRef, Kind, Sighting, UrlState
from corpus.store.frontier_batch import KEPT_EXCLUSIONS
from corpus.store.frontier_sqlite import SqliteFrontier
from tests.contract.frontier_shelf import DOMAIN, HOST, KINDS, Shelf, judged, links, new_shelf, row, settled, states, url


@pytest.fixture(params=KINDS)
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    shelf = new_shelf(request, tmp_path)
    yield shelf
    shelf.close()


@pytest.fixture
def store(shelf: Shelf) -> FrontierStore:
    opened = shelf.open()
    opened.claim("test")
    return opened


# ---- ownership


def test_a_claim_gives_a_larger_epoch_and_fences_the_last_owner(shelf: Shelf) -> None:
    """Every write of a superseded owner fails with FenceLost and changes nothing."""
    old, new = shelf.open(), shelf.open()
    first = old.claim("old")
    old.commit(links(judged(url(1))))
    assert new.claim("new") > first
    writes: list[Callable[[], object]] = [
        lambda: old.commit(links(judged(url(2)))),
        lambda: old.apply(3, [(1, judged(url(2)))]),
        lambda: old.forwarded({1: 1}),
        lambda: old.exclude_queued(HOST, "host-budget"),
        lambda: old.readmit(HOST, "host-budget"),
        lambda: old.reopen(HOST, f"https://{HOST}:443", Kind.ROBOTS, "x"),
    ]
    for write in writes:
        with pytest.raises(FenceLost):
            write()
    assert states(new) == {("queued", ""): 1}
    new.commit(links(judged(url(2))))
    assert states(new) == {("queued", ""): 2}


def test_was_clean_tells_whether_the_last_owner_closed_in_order(shelf: Shelf) -> None:
    """A new file is clean; a killed owner leaves an unclean one; a clean close is seen once."""
    first = shelf.open()
    first.claim("a")
    assert first.was_clean()
    second = shelf.open()  # the first died
    second.claim("b")
    assert not second.was_clean()
    if isinstance(second, SqliteFrontier):
        shelf._open.remove(second)
    second.close(clean=True)
    third = shelf.open()
    third.claim("c")
    assert third.was_clean()


# ---- sightings


def test_sightings_are_queued_once_and_wake_their_host_once(store: FrontierStore) -> None:
    """A URL seen twice is one row; commit names a host only when it had nothing queued before."""
    assert store.commit(links(judged(url(1)), judged(url(2)), judged(url(1)))) == [HOST]
    assert store.commit(links(judged(url(1)), judged(url(3)))) == []
    assert states(store) == {("queued", ""): 3}
    assert store.host(HOST) == replace(HostRow(HOST, DOMAIN), queued=3, front=store.hosts()[0].front)


def test_heads_come_by_front_depth_and_url_id_and_taking_moves_nothing(store: FrontierStore) -> None:
    """The order of a host's line is total and does not depend on the order of discovery; reading it twice gives the same."""
    deep, near, claimed = judged(url(1), depth=4), judged(url(2), depth=1), judged(url(3), depth=2, priority=1.0)
    sitemap = judged(f"https://{HOST}/sitemap.xml", depth=0, kind=Kind.SITEMAP)
    store.commit(links(deep, near, claimed, sitemap))
    order = [queued.url for queued in store.heads(HOST, 10)]
    assert order == [sitemap.sighting.url, url(2), url(3), url(1)]
    assert [queued.url for queued in store.heads(HOST, 2)] == order[:2] == [q.url for q in store.heads(HOST, 2)]
    head = store.heads(HOST, 3)[2]
    assert (head.found, head.host, head.domain, head.kind, head.depth, head.priority) == (url(3), HOST, DOMAIN, Kind.PAGE, 2, 1.0)


def test_a_better_sighting_lowers_the_depth_of_a_queued_url(store: FrontierStore) -> None:
    """Depth is the minimum over sightings; the better sighting's spelling is what is asked for; a worse one changes nothing."""
    store.commit(links(judged(url(1), depth=5, via="https://www.site.test/far")))
    better = Judged(Sighting(url(1), url(1) + "#x", 2, via="https://www.site.test/near"), HOST, DOMAIN)
    store.commit(links(better))
    store.commit(links(judged(url(1), depth=9, via="https://www.site.test/farther")))
    head = store.heads(HOST, 1)[0]
    assert (head.depth, head.via, head.found) == (2, "https://www.site.test/near", url(1) + "#x")
    assert states(store) == {("queued", ""): 1}


@pytest.mark.parametrize(
    ("reason", "first", "second"),
    [
        ("too-deep", {"depth": 21}, {"depth": 3}),
        ("too-many-redirects", {"depth": 2, "hops": 6}, {"depth": 4, "hops": 0}),
        ("out-of-scope", {"depth": 1}, {"depth": 1}),
    ],
)
def test_a_sighting_that_passes_the_filters_reopens_an_excluded_url(
    store: FrontierStore, reason: str, first: dict[str, int], second: dict[str, int]
) -> None:
    """Seen first too deep, after too many redirects, or out of a scope that was widened: the URL is queued after all."""
    assert store.commit(links(judged(url(1), excluded=reason, **first))) == []
    assert states(store) == {("excluded", reason): 1}
    assert store.commit(links(judged(url(1), **second))) == [HOST]
    assert states(store) == {("queued", ""): 1}
    head = store.heads(HOST, 1)[0]
    assert (head.depth, head.hops) == (second["depth"], second.get("hops", 0))


def test_a_block_is_not_lifted_by_a_sighting(store: FrontierStore) -> None:
    """Budgets, blocks and takedowns hold against every later sighting; `readmit` lifts them."""
    store.commit(links(judged(url(1), depth=3)))
    assert store.exclude_queued(HOST, "blocked") == 1
    assert store.commit(links(judged(url(1), depth=1))) == []
    assert states(store) == {("excluded", "blocked"): 1}
    assert store.readmit(HOST, "blocked") == 1
    assert states(store) == {("queued", ""): 1}
    assert store.heads(HOST, 1)[0].depth == 1


def test_excluded_rows_are_kept_to_a_number_and_then_counted_exactly(store: FrontierStore) -> None:
    """Past 1,000 rows per (host, reason) only a count grows: exact, blind to repeats, and undone when a URL gets in after all."""
    many = KEPT_EXCLUSIONS + 50
    for _ in range(2):
        store.commit(links(*(judged(url(n), excluded="too-deep", depth=30) for n in range(many))))
        assert states(store) == {("excluded", "too-deep"): many}
    counted = [n for n in range(many) if row(store, url(n))["counted"]]
    assert len(counted) == 50
    assert row(store, url(counted[0]))["reason"] == "too-deep"
    store.commit(links(judged(url(counted[0]), depth=2)))
    assert states(store) == {("excluded", "too-deep"): many - 1, ("queued", ""): 1}
    store.commit(links(*(judged(url(n, "b.test"), excluded="too-deep", host="b.test") for n in range(3))))
    assert states(store)["excluded", "too-deep"] == many + 2


def test_a_budget_excludes_all_that_is_queued_and_the_tally_stays_exact(store: FrontierStore) -> None:
    """`exclude_queued` empties the line of one host: kept rows first, the rest counted; other hosts are untouched."""
    many = KEPT_EXCLUSIONS + 30
    store.commit(links(*(judged(url(n)) for n in range(many)), judged(url(0, "b.test"), host="b.test")))
    assert store.exclude_queued(HOST, "host-budget") == many
    assert states(store) == {("excluded", "host-budget"): many, ("queued", ""): 1}
    assert store.heads(HOST, 5) == []
    assert [host.host for host in store.hosts()] == ["b.test"]
    assert store.readmit(HOST, "host-budget") == KEPT_EXCLUSIONS
    assert states(store) == {("queued", ""): KEPT_EXCLUSIONS + 1}
    store.commit(links(*(judged(url(n)) for n in range(many))))
    assert states(store) == {("queued", ""): many + 1}, "counted URLs come back when they are seen again"
    assert store.exclude_queued(HOST, "host-budget") == many
    assert sum(not row(store, url(n))["counted"] for n in range(many)) == KEPT_EXCLUSIONS, "readmitted rows make room again"


# ---- settlements


def test_a_settlement_is_stored_whole_and_looked_up_whole(store: FrontierStore) -> None:
    """What a contact brought is what `lookup` shows, to the last field."""
    store.commit(links(judged(url(1))))
    news = Settled(
        url(1), UrlState.FETCHED, attempts=1, http_status=200, content_type="text/html", fetched_at=1234.5,
        capture=CaptureRef("warc/crawl_id=c/s00-000001-000001.warc.gz", 17, 400), segment_end=900, content_sha256="ab" * 32,
        simhash=2**64 - 5, near_original=url(7), etag='"\ud800x"', last_modified="yesterday", target=url(9), rule="Disallow: /\0x",
        rule_line=3, authority_digest="cd" * 32, protocol="robots",
    )  # fmt: skip
    store.commit([Ack(settled=(news,))])
    found = row(store, url(1))
    for name in (
        "http_status",
        "content_type",
        "fetched_at",
        "content_sha256",
        "simhash",
        "near_original",
        "etag",
        "last_modified",
    ):
        assert found[name] == getattr(news, name), name
    for name in ("target", "rule", "rule_line", "authority_digest", "protocol", "attempts"):
        assert found[name] == getattr(news, name), name
    assert news.capture is not None
    assert (found["file"], found["offset"], found["length"]) == (news.capture.file, 17, 400)
    assert (found["state"], found["reason"], found["depth"], found["url"]) == ("fetched", "", 1, url(1))
    assert store.acked_end(news.capture.file) == 900
    assert store.acked_end("warc/other") == 0
    assert store.lookup("https://nobody.test/") is None
    assert store.lookup(url(99)) is None


def test_links_and_the_page_become_true_together(store: FrontierStore) -> None:
    """Within one ack sightings come first, so that a redirect's target can be settled in the same breath."""
    store.commit(links(judged(url(1))))
    ack = Ack(
        own=(judged(url(2)),),
        settled=(Settled(url(1), UrlState.REDIRECTED, "redirected", target=url(2)), Settled(url(2), UrlState.FETCHED)),
    )
    assert store.commit([ack]) == []
    assert states(store) == {("redirected", "redirected"): 1, ("fetched", ""): 1}
    assert store.hosts() == []


def test_an_illegal_settlement_changes_nothing_of_the_batch(store: FrontierStore) -> None:
    """A broken promise of ours raises, and not even the good acks before it are visible."""
    store.commit(links(judged(url(1))))
    bad = [Ack(own=(judged(url(2)),)), Ack(settled=(Settled(url(1), UrlState.IN_FLIGHT),))]
    with pytest.raises(IllegalTransition):
        store.commit(bad)
    assert states(store) == {("queued", ""): 1}
    assert store.lookup(url(2)) is None
    store.commit(links(judged(url(2))))
    assert states(store) == {("queued", ""): 2}


def test_a_takedown_is_final(store: FrontierStore) -> None:
    """An answer that arrives after a takedown does not bring the URL back."""
    store.commit(links(judged(url(1))))
    store.commit(settled(url(1), UrlState.EXCLUDED, reason="taken-down"))
    store.commit(settled(url(1), UrlState.FETCHED, http_status=200))
    assert states(store) == {("excluded", "taken-down"): 1}
    store.commit(links(judged(url(1), depth=0)))
    assert states(store) == {("excluded", "taken-down"): 1}


def test_an_answer_counts_even_if_the_budget_ran_out_meanwhile(store: FrontierStore) -> None:
    """A page in flight when its host was excluded is stored, and so it is fetched."""
    store.commit(links(judged(url(1))))
    store.exclude_queued(HOST, "host-budget")
    store.commit(settled(url(1), UrlState.FETCHED, http_status=200))
    assert states(store) == {("fetched", ""): 1}


def test_a_url_that_waits_is_not_at_the_head_until_woken(store: FrontierStore) -> None:
    """A retry and a parked URL come back when their wait is over, by the store's time and not before."""
    store.commit(links(judged(url(1)), judged(url(2)), judged(url(3))))
    store.commit(settled(url(1), UrlState.QUEUED, reason="timeout", attempts=1, due=Due(1000.0, 30.0)))
    store.commit(settled(url(2), UrlState.PARKED, reason="retry-after", attempts=2, due=Due(1000.0, 600.0)))
    assert [queued.url for queued in store.heads(HOST, 5)] == [url(3)]
    assert store.hosts()[0].queued == 2
    assert store.next_wake() == 1030.0
    assert store.wake(1029.0) == []
    assert store.wake(1030.0) == [HOST]
    heads = {queued.url: queued.attempts for queued in store.heads(HOST, 5)}
    assert heads == {url(1): 1, url(3): 0}
    assert states(store) == {("queued", ""): 2, ("parked", "retry-after"): 1}
    assert store.wake(1600.0) == [HOST]
    assert store.next_wake() is None
    assert {queued.url: queued.attempts for queued in store.heads(HOST, 5)} == {url(1): 1, url(2): 2, url(3): 0}


def test_a_clock_that_ran_backwards_costs_the_whole_wait_and_no_more(store: FrontierStore) -> None:
    """An hour back: the wait starts anew from now; it is not lengthened by the hour."""
    store.commit(links(judged(url(1))))
    store.commit(settled(url(1), UrlState.QUEUED, reason="timeout", attempts=1, due=Due(10_000.0, 30.0)))
    assert store.wake(6_400.0) == []
    assert store.wake(6_429.0) == []
    assert store.wake(6_430.0) == [HOST]


def test_a_store_that_saw_nothing_due_still_sees_what_is_set_later(store: FrontierStore) -> None:
    """Asked in vain twice, then told of a URL with a time of its own: it wakes at that time."""
    store.commit(links(judged(url(1)), judged(url(2))))
    assert store.wake(1000.0) == store.wake(1001.0) == store.outbox(9) == []
    sent = Ack(foreign=((3, judged(url(7)).sighting),))
    store.commit([*settled(url(1), UrlState.QUEUED, reason="timeout", attempts=1, due=Due(1001.0, 5.0)), sent])
    assert [row.sighting.url for row in store.outbox(9)] == [url(7)]
    assert store.tally().outbox == 1
    assert store.wake(1005.0) == []
    assert store.wake(1006.0) == [HOST]
    store.forwarded({3: 1})
    assert store.outbox(9) == []
    assert store.tally().outbox == 0


def test_a_url_nobody_linked_to_is_counted_in_its_hosts_queue(store: FrontierStore) -> None:
    """The end of a redirect on a host that was never seen, to be tried again: its host is known, with one URL in line."""
    store.commit(settled(url(1), UrlState.QUEUED, reason="timeout", attempts=1))
    assert [(row.host, row.queued) for row in store.hosts()] == [(HOST, 1)]
    assert [queued.url for queued in store.heads(HOST, 5)] == [url(1)]


def test_visited_urls_come_back_only_when_a_revisit_is_asked_for(store: FrontierStore) -> None:
    """`due` of a fetched URL is its next visit; a plain wake leaves it; the next take carries the last visit's validators."""
    store.commit(links(judged(url(1))))
    store.commit(
        settled(url(1), UrlState.FETCHED, http_status=200, etag='"v1"', content_sha256="ab" * 32, attempts=1, due=Due(0.0, 100.0))
    )
    assert store.wake(1000.0) == []
    assert store.next_wake() is None
    assert store.wake(1000.0, revisit=True) == [HOST]
    head = store.heads(HOST, 1)[0]
    assert (head.etag, head.content_sha256, head.attempts) == ('"v1"', "ab" * 32, 0)
    store.commit(settled(url(1), UrlState.QUEUED, reason="timeout", attempts=1, due=Due(1000.0, 1.0)))
    store.wake(2000.0)
    assert store.heads(HOST, 1)[0].etag == '"v1"', "a failed try does not erase what the last visit brought"
    store.commit(settled(url(1), UrlState.NOT_MODIFIED, http_status=304, etag='"v1"'))
    assert states(store) == {("not-modified", ""): 1}


def test_refusals_reopen_when_their_authority_has_another_digest(store: FrontierStore) -> None:
    """Only URLs of that authority, refused by that kind of file under another digest; never a refusal by a response."""
    authority = f"https://{HOST}:443"
    plain = f"http://{HOST}/page/8"
    store.commit(links(*(judged(url(n)) for n in range(6)), judged(plain)))
    cases = [
        (url(0), "robots", "old"), (url(1), "robots-peer", "old"), (url(2), "robots", "new"), (url(3), "tdmrep", "old"),
        (url(4), "x-robots-tag", ""), (url(5), "robots-denied", ""), (plain, "robots", "old"),
    ]  # fmt: skip
    for target, protocol, digest in cases:
        store.commit(
            settled(target, UrlState.REFUSED, reason=protocol, protocol=protocol, authority_digest=digest, rule="Disallow: /")
        )
    assert store.reopen(HOST, authority, Kind.ROBOTS, "new") == 3
    assert {queued.url for queued in store.heads(HOST, 9)} == {url(0), url(1), url(5)}
    assert store.reopen(HOST, authority, Kind.ROBOTS, "new") == 0
    assert store.reopen(HOST, authority, Kind.TDMREP, "other") == 1
    assert store.reopen("nobody.test", "https://nobody.test:443", Kind.ROBOTS, "new") == 0
