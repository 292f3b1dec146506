"""The promises of `FrontierStore` about hosts, authority files, other partition files and the next owner."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from corpus.crawl.ports import Ack, AuthorityRow, Due, FrontierStore, HostRow, Judged
from corpus.model import Kind, Sighting, UrlState
from tests.contract.frontier_shelf import DOMAIN, HOST, KINDS, Shelf, judged, links, new_shelf, settled, states, url


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


# ---- hosts and authorities


def test_hosts_keep_their_clocks_and_share_their_domains(store: FrontierStore) -> None:
    """A host row comes back as it was acknowledged; the domain's clock (the latest) and page count are one value for all its hosts."""
    a = HostRow(
        "a.site.test", DOMAIN, "backing-off", "backing-off", 7.5, 0.2, 0.1, Due(100.0, 7.5), Due(100.0, 5.0), 3.0, 2, ("10.0.0.1", "::1"), 4
    )  # fmt: skip
    b = HostRow("b.site.test", DOMAIN, pages=3, domain_due=Due(200.0, 6.0))
    store.commit([Ack(host=a), Ack(host=b), Ack(host=replace(a, pages=5))])
    store.commit(links(judged(url(1, "b.site.test"), host="b.site.test")))
    assert store.host("a.site.test") == replace(a, pages=5, domain_due=Due(200.0, 6.0), domain_pages=8, queued=0, front=128)
    assert [host.host for host in store.hosts()] == ["b.site.test"]
    assert [host.host for host in store.hosts(pending=False)] == ["a.site.test", "b.site.test"]
    found = store.host("b.site.test")
    assert found is not None
    assert (found.domain_due, found.domain_pages, found.queued) == (Due(200.0, 6.0), 8, 1)
    assert store.host("c.site.test") is None


def test_authority_rows_are_kept_per_authority_and_kind(store: FrontierStore) -> None:
    """The latest reading of each file of each authority of a host, in a fixed order."""
    https, http = f"https://{HOST}:443", f"http://{HOST}:80"
    first = AuthorityRow(https, Kind.ROBOTS, "unreachable", 503, "", 1.0, 2.0, "503")
    rows = (
        AuthorityRow(http, Kind.ROBOTS, "absent", 404, "", 1.0, 2.0),
        AuthorityRow(https, Kind.ROBOTS, "ok", 200, "ab" * 32, 3.0, 90.0, "", f"https://{HOST}/robots.txt", True),
        AuthorityRow(https, Kind.TDMREP, "denied", 403, "", 3.0, 90.0),
    )
    store.commit([Ack(authorities=(first,)), Ack(authorities=rows)])
    assert store.authorities(HOST) == list(rows)
    assert store.authorities("b.test") == []


# ---- between files


def test_foreign_sightings_wait_in_the_outbox_until_forwarded(store: FrontierStore) -> None:
    """Outbox rows are numbered without gaps, kept in order, forgotten only up to what is durable elsewhere, and never renumbered."""
    sightings = [Sighting(url(n, "x.test"), url(n, "x.test") + "?raw", n, Kind.PAGE, 1, url(1), 0.25) for n in range(4)]
    store.commit([Ack(foreign=((7, sightings[0]), (9, sightings[1]), (7, sightings[2])))])
    rows = store.outbox(10)
    assert [(r.seq, r.dst, r.sighting) for r in rows] == [(1, 7, sightings[0]), (2, 9, sightings[1]), (3, 7, sightings[2])]
    assert [r.seq for r in store.outbox(2)] == [1, 2]
    store.forwarded({7: 3})
    assert [r.seq for r in store.outbox(10)] == [2]
    store.forwarded({9: 2})
    store.commit([Ack(foreign=((7, sightings[3]),))])
    assert [r.seq for r in store.outbox(10)] == [4]
    assert (store.tally().sent, store.tally().outbox) == (4, 1)


def test_apply_takes_every_batch_exactly_once(store: FrontierStore) -> None:
    """Rows at or below the mark of their source are skipped; sources do not mix; what is applied is counted."""
    rows = [(n, judged(url(n))) for n in (1, 2, 5)]
    assert store.apply(3, rows) == [HOST]
    assert store.apply(3, rows) == []
    assert store.apply(3, [(2, judged(url(77))), (6, judged(url(6)))]) == []
    assert store.apply(4, [(1, judged(url(8)))]) == []
    assert (store.mark(3), store.mark(4), store.mark(5)) == (6, 1, 0)
    assert states(store) == {("queued", ""): 5}
    assert store.tally().applied == 5


def test_a_sighting_sent_away_and_one_that_arrives_do_not_hide_each_other(store: FrontierStore) -> None:
    """A URL that went to the outbox is still new to the table."""
    target = url(1)
    store.commit([Ack(foreign=((5, Sighting(target, target, 1)),))])
    store.commit(links(judged(target)))
    assert states(store) == {("queued", ""): 1}


def test_the_next_owner_finds_everything(shelf: Shelf) -> None:
    """All that was committed is there after the owner died: rows, waits, marks, outbox, tally, ends."""
    first = shelf.open()
    first.claim("a")
    first.commit(links(judged(url(1)), judged(url(2), excluded="too-deep"), judged(url(3))))
    first.commit(settled(url(3), UrlState.PARKED, reason="retry-after", due=Due(5.0, 100.0)))
    first.commit([Ack(foreign=((7, Sighting(url(1, "x.test"), url(1, "x.test"), 1)),))])
    first.apply(2, [(9, judged(url(4)))])
    before = first.tally()
    second = shelf.open()
    second.claim("b")
    assert second.tally() == before
    assert second.mark(2) == 9
    assert [queued.url for queued in second.heads(HOST, 9)] == [queued.url for queued in first.heads(HOST, 9)]
    assert len(second.outbox(5)) == 1
    assert second.wake(105.0) == [HOST]


def test_sitemaps_are_counted_apart_from_pages(store: FrontierStore) -> None:
    """The funnel counts pages: known URLs that are no pages stand apart. A page that turns out to be a sitemap becomes one."""
    sitemap = f"https://{HOST}/map.xml"
    store.commit(links(judged(sitemap, depth=2), judged(url(1))))
    assert store.tally().not_pages == {}
    store.commit(links(judged(sitemap, depth=2, kind=Kind.SITEMAP)))
    assert store.tally().not_pages == {("queued", ""): 1}
    assert states(store) == {("queued", ""): 2}
    assert store.heads(HOST, 1)[0].kind is Kind.SITEMAP


def test_strange_texts_survive(store: FrontierStore) -> None:
    """Lone surrogates, NULs, IPv6 hosts and ports in URLs come back as they went in."""
    odd = [
        "https://www.site.test/\ud800",
        "http://www.site.test/a\0b",
        "https://www.site.test:8443/x",
        "http://[::1]/x",
        "https://www.site.test",
    ]
    for target in odd:
        host = "[::1]" if "[" in target else HOST
        store.commit(
            [Ack(own=(Judged(Sighting(target, target + "?\udfff", 1, via=target), host, host if "[" in target else DOMAIN),))]
        )
    heads = {queued.url: queued for host in (HOST, "[::1]") for queued in store.heads(host, 9)}
    assert set(heads) == set(odd)
    assert all(heads[target].found == target + "?\udfff" and heads[target].via == target for target in odd)
