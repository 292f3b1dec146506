"""Spider traps judged from the servers' own log: what a crawl found of the real pages, and what it spent inside machines."""

from __future__ import annotations

from collections import Counter

import pytest

from corpus.crawl.settings import TrustedHost
from corpus.reasons import REASONS
from corpus.testing.web import SimHost
from corpus.testing.web_answer import Answer, Ask
from corpus.testing.web_hosts import Page
from corpus.testing.web_log import Contact
from corpus.testing.web_text import paragraphs
from corpus.testing.web_traps import TRAPS, TrapWeb
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import HTML, Web, check_funnel

POLICY = (".txt", ".json")


def _pages(crawl: Crawl) -> list[Contact]:
    return [contact for contact in crawl.log if not contact.target.endswith(POLICY)]


def test_real_pages_are_found_and_traps_are_left_early() -> None:
    """On the trap web at least 95 % of the real pages are fetched, at most 5 % of the requests are spent inside traps,
    and every URL that was passed over has a counted reason of the table."""
    web = TrapWeb(3, 370)
    crawl = Crawl(web, settings(near_copies="link"))
    crawl.run()
    asked = _pages(crawl)
    real, trapped = web.real(asked), web.trapped(asked)
    assert len(real) >= 0.95 * len(web.pages())
    assert len(trapped) <= 0.05 * len(asked), Counter(contact.host for contact in trapped)
    passed_over = {reason: n for (state, reason), n in crawl.tally().items() if state == "excluded"}
    assert passed_over.keys() <= REASONS.keys()
    assert passed_over["trap"] > 200
    check_funnel(crawl)


def test_one_host_full_of_traps() -> None:
    """Six machines beside each other on one host: every real page is fetched, each machine is left after some dozens of requests."""
    web = TrapWeb(3, 60, ("all",))
    crawl = Crawl(web, settings(near_copies="store"))
    crawl.run()
    assert web.real(crawl.log) == web.pages()
    inside = Counter(contact.target.split("/")[1].split("?")[0] for contact in web.trapped(_pages(crawl)))
    assert len(inside) == len(TRAPS)
    assert max(inside.values()) <= 64, inside


def test_what_was_learnt_of_traps_survives_a_crash() -> None:
    """A crash and a restart do not walk into the same traps again from the beginning."""
    web = TrapWeb(5, 20)
    crawl = Crawl(web, settings(near_copies="link"))
    crawl.run(crash_after_s=90.0)
    closed = sum(len(store._data.yields.closed) for store in crawl.files.values())
    assert closed >= len(TRAPS)
    before = len(web.trapped(_pages(crawl)))
    crawl.run()
    after = len(web.trapped(_pages(crawl))) - before
    assert after <= before / 4
    assert web.real(crawl.log) == web.pages()


def test_a_trusted_host_is_never_judged_by_its_yield() -> None:
    """The operator's word for a host outweighs what its pages look like."""
    slugs = {f"/n/{n}": _article(f"/n/{n + 1}") for n in range(40)}
    web = Web({"t.test": {"/": _article("/n/0"), **slugs}})
    asked = []
    for trusted in ((), (TrustedHost(host="t.test", delay=0.5, why="agreed by mail"),)):
        crawl = Crawl(web, settings(trusted=trusted, max_depth=60, delay_start=0.5))
        crawl.run()
        asked.append(len(_pages(crawl)))
    assert asked[0] < 25
    assert asked[1] == 42, "the last link leads to a 404"


def _article(*links: str) -> Page:
    text = " ".join(paragraphs(1, "one article", "en", 600))
    body = f"<p>{text}</p>{''.join(f'<a href={link}>on</a>' for link in links)}".encode()
    return Page(lambda ask: Answer(headers=HTML, body=body))


def test_one_article_under_many_names_ends_by_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Same article under 700 slugs, all of them on one list: the domain's budget stops growing, the reason is counted, and
    another host with as many real pages loses none."""
    slugs = [f"/{'abcdefghij'[n % 10]}{n // 10:03d}/story" for n in range(700)]  # no two share a pattern
    monkeypatch.setattr("corpus.crawl.budget.YIELD_START", 200)

    class Copies(Web):
        def _plan(self, host: SimHost) -> dict[str, Page]:
            return (
                super()._plan(host)
                if host.name == "real.test"
                else {"/": _article(*slugs), **dict.fromkeys(slugs, _article("/"))}
            )

    real = {f"/p{n}": _prose(f"/p{n}") for n in range(100)}
    crawl = Crawl(
        Copies({"copies.test": {}, "real.test": {"/": _prose("/", *real), **real}}), settings(delay=0.05, delay_start=0.05)
    )
    crawl.run()
    fetched = Counter(contact.host for contact in _pages(crawl))
    assert fetched["real.test"] == 101
    assert fetched["copies.test"] <= 220
    assert crawl.tally()["excluded", "low-yield"] >= 450
    check_funnel(crawl)


def _prose(path: str, *links: str) -> Page:
    def respond(ask: Ask) -> Answer:
        text = " ".join(paragraphs(2, path, "en", 400))
        return Answer(headers=HTML, body=f"<p>{text}</p>{''.join(f'<a href={link}>{link}</a>' for link in links)}".encode())

    return Page(respond)


@pytest.mark.parametrize("near_copies", ["link", "store"])
def test_a_large_documentation_site_loses_nothing(near_copies: str) -> None:
    """One host: hundreds of pages of one template with more navigation than text, numbered chapters that are known only from
    the one before, an untranslated edition that repeats another, and twelve versions of a page: all are fetched."""
    standing = " ".join(paragraphs(4, "navigation", "en", 1_800))
    names = [f"/api/module{n}.html" for n in range(150)]
    books = {
        f"/{edition}/chapter-{n:02d}.html": _doc(
            standing, f"chapter {n}", f"/{edition}/chapter-{n + 1:02d}.html" if n < 40 else "/"
        )
        for edition in ("en", "de")
        for n in range(1, 41)
    }
    pages = {**{name: _doc(standing, name, names[(n * 7) % 150]) for n, name in enumerate(names)}, **books}
    pages |= {f"/release/{n}.{m}/changes.html": _doc(standing, f"{n}.{m}", "/") for n in range(12) for m in range(5)}
    home = _doc(
        standing, "home", *names, "/en/chapter-01.html", "/de/chapter-01.html", *[p for p in pages if p.startswith("/release")]
    )
    crawl = Crawl(Web({"docs.test": {"/": home, **pages}}), settings(near_copies=near_copies, max_depth=60))
    crawl.run()
    assert crawl.tally() == Counter({("fetched", ""): len(pages) + 1})


def _doc(standing: str, key: str, *links: str) -> Page:
    anchors = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)

    def respond(ask: Ask) -> Answer:
        own = " ".join(paragraphs(6, key, "en", 300))
        return Answer(
            headers=HTML,
            body=f"<html><body><nav>{standing}</nav><main><p>{own}</p></main><ul>{anchors}</ul></body></html>".encode(),
        )

    return Page(respond)


def test_a_page_that_names_its_own_address_is_no_original() -> None:
    """`rel=canonical` within a host: the address named is asked for, and of the two it is the one that others copy."""
    text = " ".join(paragraphs(3, "one", "en", 900))
    link = '<link rel="canonical" href="/story">'

    def shown(head: str) -> Page:
        return Page(lambda ask: Answer(headers=HTML, body=f"<html><head>{head}</head><body><p>{text}</p></body></html>".encode()))

    sites = {"c.test": {"/": _prose("/", "/story?view=print"), "/story?view=print": shown(link), "/story": shown("")}}
    crawl = Crawl(Web(sites), settings(near_copies="link"))
    crawl.run()
    assert crawl.state("http://c.test/story")[0] == "fetched"
    assert crawl.row("http://c.test/story")["near_original"] == ""
    away = {"d.test": {"/": shown('<link rel="canonical" href="http://other.test/">')}}
    crawl = Crawl(Web(away), settings())
    crawl.run()
    assert crawl.tally() == Counter({("fetched", ""): 1})
