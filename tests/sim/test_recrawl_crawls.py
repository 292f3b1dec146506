"""Whole crawls that visit pages again: shares, a crawl without end, pages that change at their own pace, chains of versions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise

import pytest

from corpus.crawl.settings import RecrawlSettings
from corpus.testing.web import SimWeb, plain_hosts
from corpus.testing.web_answer import Answer, Ask
from corpus.testing.web_hosts import Page
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import HTML, Web, check_funnel, page

HOUR_S, DAY_S = 3600.0, 86_400.0


def _shares(crawl: Crawl, before: int, known: set[tuple[str, str]], settling: int = 0) -> float:
    """Share of revisits among page contacts of the last run, up to the moment when one kind had run out."""
    asked = [(c.host, c.target) for c in list(crawl.log)[before:] if _is_page(c.target)]
    again = [contact in known for contact in asked]
    last = min(len(again) - again[::-1].index(kind) for kind in (True, False))
    return sum(again[settling : last - 1]) / (last - 1 - settling)


def _pages_asked(crawl: Crawl) -> set[tuple[str, str]]:
    return {(c.host, c.target) for c in crawl.log if _is_page(c.target)}


def _is_page(target: str) -> bool:
    return target == "/" or target.startswith("/p/")


@pytest.mark.parametrize("share", [0.2, 0.8])
def test_the_share_holds_where_every_host_has_both(share: float) -> None:
    """Pages that are due and new ones wait at every host: while both do, revisits get their share of contacts, ± 5 points."""
    web = SimWeb(3, plain_hosts(12, 40, page_bytes=200, links=20))
    crawl = Crawl(web, settings(max_pages=12 * 20, slots=4), recrawl=RecrawlSettings(every=10 * DAY_S, share=share))
    crawl.run()
    known, before = _pages_asked(crawl), len(crawl.log)
    crawl.config = settings(slots=4)
    crawl.clock.jump(12 * DAY_S)
    crawl.run()
    assert abs(_shares(crawl, before, known) - share) <= 0.05
    check_funnel(crawl)


def test_a_spent_budget_excludes_new_pages_and_visits_the_stored_ones_again() -> None:
    """A host may have ten pages and has forty: what it stored is due every ten days all the same, and in every round new
    links meet the spent budget first. Nothing that was stored becomes excluded."""
    web = SimWeb(3, plain_hosts(2, 40, page_bytes=200, links=20))
    crawl = Crawl(web, settings(max_pages_per_host=10), recrawl=RecrawlSettings(every=10 * DAY_S))
    crawl.run()
    stored = {url for url, _, _ in crawl.sinks["pages"].kept}
    assert len(stored) == 20
    for _ in range(2):
        known, before = _pages_asked(crawl), len(crawl.log)
        crawl.clock.jump(12 * DAY_S)
        crawl.run()
        again = Counter((c.host, c.target) for c in list(crawl.log)[before:] if _is_page(c.target))
        assert again == Counter(known)
    assert {crawl.row(url)["state"] for url in stored} <= {"fetched", "not-modified"}
    check_funnel(crawl)


@pytest.mark.parametrize("share", [0.3, pytest.param(0.7, marks=pytest.mark.slow)])
def test_the_share_holds_where_hosts_have_one_kind_each(share: float) -> None:
    """Half of the hosts have only revisits, the others only new pages, and slots are short: the share holds all the same, once
    both kinds have begun (a host that is new to us starts later than one whose clock has run out)."""
    hosts = plain_hosts(40, 24, page_bytes=200, links=20)
    old = [f"http://{host.name}/" for host in hosts[:20]]
    new = [f"http://{host.name}/" for host in hosts[20:]]
    crawl = Crawl(SimWeb(3, hosts), settings(slots=2, delay=0.2, delay_start=0.2), recrawl=RecrawlSettings(every=10 * DAY_S, share=share))  # fmt: skip
    crawl.run(old)
    known, before = _pages_asked(crawl), len(crawl.log)
    crawl.clock.jump(12 * DAY_S)
    crawl.run(old + new)
    assert abs(_shares(crawl, before, known, settling=200) - share) <= 0.05


def test_a_crawl_without_end_visits_every_page_at_its_interval() -> None:
    """`until = "forever"`: pages come back within ±10 % of `every`, again and again, through the front queues and at the hosts'
    own pace, and nothing is asked in between."""
    every = 150.0
    crawl = Crawl(SimWeb(3, plain_hosts(4, 8, page_bytes=200)), settings(until="forever"), recrawl=RecrawlSettings(every=every))
    crawl.run(stop_after_s=3.45 * 150.0)
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for contact in crawl.log:
        if contact.target.startswith("/p/"):
            times[contact.host, contact.target].append(contact.arrived)
    assert len(times) == 32
    assert {len(visits) for visits in times.values()} <= {3, 4}
    apart = [b - a for visits in times.values() for a, b in pairwise(visits)]
    assert min(apart) >= 0.9 * every
    assert max(apart) <= 1.1 * every + 30.0, "due pages compete, and wait for their hosts"
    assert not crawl.ends or crawl.config.until == "forever"


def _changing(every_s: float, words: int = 80) -> Page:
    """A page with other words every so often, whoever asks."""

    def answer(ask: Ask) -> Answer:
        edition = int(ask.wall // every_s)
        text = " ".join(f"w{edition}x{n}" for n in range(words))
        return Answer(headers=HTML, body=f"<!DOCTYPE html><html><body><p>{text}</p></body></html>".encode())

    return Page(answer)


def test_news_are_asked_often_and_archives_seldom() -> None:
    """`by-change`: within half an hour the crawl has found that one page changes every ten seconds and another never."""
    web = Web({"a.test": {"/": page("/news", "/archive"), "/news": _changing(10.0), "/archive": page(text="old words " * 60)}})
    recrawl = RecrawlSettings(every=30 * DAY_S, mode="by-change", min_interval=10.0, max_interval=600.0)
    crawl = Crawl(web, settings(until="forever"), recrawl=recrawl)
    crawl.run(stop_after_s=HOUR_S / 2)
    visits = Counter(crawl.targets("a.test"))
    assert visits["/archive"] <= 8
    last_hour = [c for c in crawl.asked("a.test") if c.target == "/news" and c.arrived > HOUR_S / 3]
    assert len(last_hour) > 40, "about every ten seconds by then"


def _editions(*texts: str | None) -> Page:
    """A page that shows one text per visit; None: it is gone."""

    def answer(ask: Ask) -> Answer:
        text = texts[min(ask.nth, len(texts)) - 1]
        if text is None:
            return Answer(404, HTML, b"<p>gone</p>")
        return Answer(headers=HTML, body=f"<!DOCTYPE html><html><body><p>{text}</p></body></html>".encode())

    return Page(answer)


def test_the_crawl_records_the_versions_of_a_page() -> None:
    """Unchanged, minor (a date), major (other words), gone and back: the chain says which, and since when."""
    prose = " ".join(f"word{n} stands{n % 7} here{n % 5}" for n in range(300))
    other = " ".join(f"nothing{n} of{n % 3} that{n % 11}" for n in range(300))
    texts = (prose, prose, prose + " today", other, None, other)
    web = Web({"a.test": {"/": page("/x"), "/x": _editions(*texts)}})
    crawl = Crawl(web, settings(near_copies="store"), recrawl=RecrawlSettings(every=10 * DAY_S))
    for _ in texts:
        crawl.run()
        crawl.clock.jump(12 * DAY_S)
    store = next(store for store in crawl.files.values() if store.lookup("http://a.test/x"))
    chain = store.versions("http://a.test/x")
    assert [change for _, _, change, _ in chain] == ["", "minor", "major", "gone", "major"]
    assert chain[0][1] - chain[0][0] == pytest.approx(12 * DAY_S, abs=600.0), "the first version was confirmed once"
    assert chain[2][3] == chain[4][3] != chain[0][3]
    assert crawl.row("http://a.test/x")["state"] == "fetched"


def test_caches_are_recorded_per_fetch_and_misses_per_host() -> None:
    """What `X-Cache` and `Age` say stands in the URL's row, and hosts count hits and misses of all their contacts."""

    def says(*headers: tuple[str, str]) -> Callable[[Ask], Answer]:
        return lambda ask: Answer(headers=(*headers, *HTML), body=b"<p>words</p>")

    web = Web({"a.test": {"/": page("/hit", "/miss", "/silent"), "/hit": Page(says(("X-Cache", "HIT"), ("Age", "30"))), "/miss": Page(says(("CF-Cache-Status", "MISS"))), "/silent": page()}})  # fmt: skip
    crawl = Crawl(web, settings())
    crawl.run()
    rows = {path: crawl.row(f"http://a.test/{path}") for path in ("hit", "miss", "silent")}
    assert {path: (row["cache"], row["age_s"]) for path, row in rows.items()} == {"hit": ("hit", 30), "miss": ("miss", None), "silent": ("", None)}  # fmt: skip
    host = crawl.host("a.test")
    assert host is not None
    assert (host.cache_hits, host.cache_misses) == (1, 1)
