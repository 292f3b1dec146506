"""What becomes of single URLs: redirects, budgets, orders, refusals that fall, visits that fall due again."""

from __future__ import annotations

from collections import Counter

from corpus.crawl.settings import RecrawlSettings
from corpus.model import UrlState
from corpus.testing.web import SimHost, SimWeb, Trait, address_of, plain_hosts
from corpus.testing.web_answer import Answer, Ask
from corpus.testing.web_hosts import Page
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import HTML, Web, check_funnel, page, reply


def test_redirects_are_bounded_and_lose_nothing() -> None:
    """Self, loop, chain, off-scope, to a private address, and 40 old pages that all redirect to /login: fetched once."""
    old = {f"/old/{n}": reply(302, ("Location", "/login")) for n in range(40)}
    outside = {
        "/out": reply(302, ("Location", "http://other.test/")),
        "/inner": reply(302, ("Location", "http://169.254.169.254/latest/")),
    }
    loops = {
        "/self": reply(302, ("Location", "/self"), ("Set-Cookie", "a=1")),
        "/a": reply(302, ("Location", "/b")),
        "/b": reply(302, ("Location", "/a")),
    }
    chain = {f"/c{n}": reply(301, ("Location", f"/c{n + 1}")) for n in range(9)}
    pages = {**old, **outside, **loops, **chain}
    web = Web(
        {
            "r.test": {"/": page("/self", "/a", "/c0", "/out", "/inner", *old), "/login": page(), **pages},
            "other.test": {"/": page()},
        }
    )
    crawl = Crawl(web, settings())
    crawl.run(["http://r.test/"])
    asked = Counter(crawl.targets("r.test"))
    assert asked["/login"] == asked["/self"] == asked["/a"] == asked["/b"] == 1
    assert not crawl.asked("other.test")
    assert not crawl.asked("169.254.169.254")
    assert crawl.state("http://r.test/self") == ("redirected", "too-many-redirects")
    assert crawl.state("http://r.test/a") == ("redirected", "redirected")
    assert crawl.state("http://r.test/c6") == ("excluded", "too-many-redirects")
    assert crawl.state("http://other.test/") == ("excluded", "out-of-scope")
    assert [url for url, _, _ in crawl.sinks["pages"].kept].count("http://r.test/login") == 1
    assert {crawl.state(f"http://r.test/old/{n}") for n in range(40)} == {("redirected", "redirected")}


def test_a_redirect_to_another_spelling_is_followed_to_the_page() -> None:
    """A site strips our tracking parameters by a redirect: the key is the same, and the page is not lost."""

    def strip(ask: Ask) -> Answer:
        return (
            Answer(301, (("Location", "/x"), *HTML), b"")
            if "utm" in ask.target
            else Answer(headers=HTML, body=b"<p>the page</p>")
        )

    crawl = Crawl(Web({"s.test": {"/": page("/x?utm_source=feed"), "/x": Page(strip)}}), settings())
    crawl.run()
    assert crawl.state("http://s.test/x")[0] == "fetched"
    assert Counter(crawl.targets("s.test"))["/x"] == 1


def test_budgets_are_met_exactly() -> None:
    """max_pages, max_pages_per_host and max_pages_per_domain: not one page more, and not one less."""
    web = SimWeb(3, [SimHost(f"s{n}.one.test", address_of(n), pages=20, page_bytes=200) for n in range(3)])
    crawl = Crawl(web, settings(max_pages=17))
    crawl.run()
    assert crawl.tally()["fetched", ""] == 17
    assert crawl.ends[-1].starving
    crawl.run()
    assert crawl.tally()["fetched", ""] == 17
    crawl = Crawl(web, settings(max_pages_per_host=5))
    crawl.run()
    assert Counter(
        contact.host for contact in crawl.log if contact.target.startswith("/p/") or contact.target == "/"
    ) == dict.fromkeys([h.name for h in web.hosts], 5)
    assert {state for state, _ in crawl.tally()} == {"fetched", "excluded"}
    crawl = Crawl(web, settings(max_pages_per_domain=11))
    crawl.run()
    assert crawl.tally()["fetched", ""] == 11
    assert crawl.tally()["excluded", "domain-budget"] > 0


def test_a_budget_is_not_spent_on_pages_that_fail() -> None:
    """Pages in flight hold their place in the budget; when one fails, the place goes to another."""
    sites = {
        f"h{n}.test": {"/": page(*[f"/{i}" for i in range(6)]), **{f"/{i}": page() if i % 2 else reply(404) for i in range(6)}}
        for n in range(4)
    }
    crawl = Crawl(Web(sites), settings(max_pages=14))
    crawl.run()
    assert crawl.tally()["fetched", ""] == 14


def test_a_url_first_seen_too_deep_is_fetched_when_seen_nearer() -> None:
    """A better sighting reopens an exclusion by depth."""
    sites = {
        "a.test": {"/": page("/1"), "/1": page("/2"), "/2": page("http://a.test/deep"), "/deep": page()},
        "b.test": {
            "/": page(*[f"/{n}" for n in range(9)], "/to"),
            "/to": page("http://a.test/deep"),
            **{f"/{n}": page() for n in range(9)},
        },
    }
    crawl = Crawl(Web(sites), settings(max_depth=2))
    crawl.run()
    assert crawl.state("http://a.test/deep")[0] == "fetched"


def test_refused_urls_come_back_when_robots_txt_changes() -> None:
    """A refusal by a file falls when the file says something else; nobody has to link to the page again."""
    now = {"rules": b"User-agent: *\nDisallow: /a\n"}
    robots = Page(lambda ask: Answer(headers=(("Content-Type", "text/plain"),), body=now["rules"]))
    crawl = Crawl(Web({"c.test": {"/": page("/a"), "/a": page(), "/late": page(), "/robots.txt": robots}}), settings())
    crawl.run()
    assert crawl.state("http://c.test/a") == ("refused", "robots")
    now["rules"] = b"User-agent: *\nDisallow: /b\n"
    crawl.clock.jump(2 * 86_400.0)
    crawl.run(["http://c.test/", "http://c.test/late"])
    assert crawl.state("http://c.test/a")[0] == "fetched"


def test_an_operators_orders_are_obeyed_before_the_next_take() -> None:
    """Blocked and listed URLs are never requested, and the rows say on whose order."""
    web = Web({"o.test": {"/": page("/blocked", "/listed", "/ok"), "/ok": page(), "/blocked": page(), "/listed": page()}})
    crawl = Crawl(web, settings())
    crawl.run(blocked={"http://o.test/blocked": "blocked", "http://o.test/listed": "operator-list"})
    assert crawl.state("http://o.test/blocked") == ("excluded", "blocked")
    assert crawl.state("http://o.test/listed") == ("refused", "operator-list")
    assert not {"/blocked", "/listed"} & set(crawl.targets("o.test"))


def test_a_second_run_with_nothing_due_asks_nothing() -> None:
    """CONTRACT: nothing is due, so nobody is contacted, however short a time ago the first run was."""
    crawl = Crawl(
        SimWeb(3, [*plain_hosts(3, 5), SimHost("c.test", address_of(9), traits=(Trait.CONDITIONAL, Trait.REDIRECTS))]),
        settings(),
        recrawl=RecrawlSettings(),
    )
    crawl.run()
    seen = len(crawl.log)
    crawl.clock.jump(20 * 86_400.0)
    crawl.run()
    assert len(crawl.log) == seen


def test_due_pages_are_asked_again_conditionally() -> None:
    """After `recrawl.every` pages are asked once more: 304 keeps what there is (a revisit record), other pages are compared."""
    web = SimWeb(3, [SimHost("c.test", address_of(1), pages=3, traits=(Trait.CONDITIONAL,))])
    crawl = Crawl(web, settings(max_pages=6), recrawl=RecrawlSettings(every=30 * 86_400.0))
    crawl.run()
    assert crawl.tally()["fetched", ""] == 6
    crawl.clock.jump(34 * 86_400.0)
    crawl.run()
    twice = Counter(crawl.targets("c.test"))
    assert {twice["/"], twice["/p/0001"], twice["/etag/1"], twice["/etag/2"]} == {2}
    for n in (1, 2):
        row = crawl.row(f"http://c.test/etag/{n}")
        assert (row["state"], row["http_status"]) == ("not-modified", 304)
        assert row["etag"]
        assert row["content_sha256"]
    pages = ["", "etag/1", "etag/2", "p/0001", "p/0002", "p/0003"]  # 304, or the same bytes again: nothing is kept twice
    assert sorted(crawl.sinks["pages"].revisits) == [(f"http://c.test/{path}",) * 2 for path in pages]
    crawl.clock.jump(34 * 86_400.0)
    crawl.run()
    assert Counter(crawl.targets("c.test"))["/etag/1"] == 3
    check_funnel(crawl)


def test_visits_are_spread_over_a_tenth_of_the_interval() -> None:
    """Each URL within ±10 % of `every`, and what was crawled in one burst does not come back in one."""
    crawl = Crawl(SimWeb(3, plain_hosts(20, 20, page_bytes=200)), settings(), recrawl=RecrawlSettings(every=1_000_000.0))
    crawl.run()
    rows = [row for store in crawl.files.values() for row in store._data.rows.values() if row.state is UrlState.FETCHED]
    waits = [row.due.wait_s for row in rows if row.due is not None]
    assert len(waits) == len(rows) == 420
    assert min(waits) >= 900_000
    assert max(waits) <= 1_100_000
    tenths = Counter(int((wait - 900_000) / 20_000) for wait in waits)
    assert max(tenths.values()) < 2 * 42


def test_sitemaps_are_read_whatever_their_robots_header_says() -> None:
    """`X-Robots-Tag: noindex` on a sitemap is about the sitemap: its pages are found, and judged themselves."""
    xml = b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://m.test/only</loc></url></urlset>'
    sites = {
        "m.test": {
            "/": page(), "/only": page(), "/robots.txt": Page(lambda ask: Answer(headers=(("Content-Type", "text/plain"),), body=b"Sitemap: http://m.test/s.xml\n")),
            "/s.xml": Page(lambda ask: Answer(headers=(("Content-Type", "application/xml"), ("X-Robots-Tag", "noindex")), body=xml)),
        }
    }  # fmt: skip
    crawl = Crawl(Web(sites), settings())
    crawl.run()
    assert crawl.state("http://m.test/only")[0] == "fetched"
