"""How a crawl treats hosts that are slow, closed, throttled, shared, huge or badly named, judged by what they saw."""

from __future__ import annotations

import asyncio
from collections import Counter

from corpus.crawl.settings import TrustedHost
from corpus.testing.audit import Group, gap_violations
from corpus.testing.web import Robots, SimHost, SimWeb, Throttle, address_of, plain_hosts
from corpus.testing.web_answer import Answer, Name
from corpus.testing.web_hosts import Page
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import HTML, Web, check_funnel, check_manners, page, reply


def test_a_429_with_retry_after_silences_the_host_and_no_other() -> None:
    """1,000 URLs queued, `Retry-After: 120` in 2 ms: nothing for 120 s, others go on, afterwards slower than before."""
    for form in ("seconds", "date"):
        busy = SimHost(
            "busy.test", address_of(99), pages=40, page_bytes=200, throttle=Throttle(after=12, wait_s=120.0, form=form)
        )
        crawl = Crawl(SimWeb(3, [busy, *plain_hosts(3, 30, page_bytes=200)]), settings(park_after=300.0, latency_factor=0.1))
        crawl.run()
        contacts = crawl.asked("busy.test")
        refused = [n for n, c in enumerate(contacts) if c.status == 429]
        assert refused
        assert not [c for c in contacts if c.tag == "early"]
        at = refused[0]
        before = contacts[at].arrived - contacts[at - 1].ended
        assert contacts[at + 1].arrived - contacts[at].ended >= 120.0
        assert contacts[at + 2].arrived - contacts[at + 1].ended > before
        assert max(c.ended for c in crawl.asked("site0000.test")) < contacts[at + 1].arrived
        assert crawl.tally()["fetched", ""] == sum(h.pages + 1 for h in crawl.web.hosts)


def test_a_retry_after_in_the_past_is_no_leave_to_hurry() -> None:
    """A date gone by asks for nothing: our own back-off counts, and no page is lost."""
    crawl = Crawl(
        SimWeb(3, [SimHost("past.test", address_of(1), pages=10, page_bytes=200, throttle=Throttle(after=5, form="past"))]),
        settings(),
    )
    crawl.run()
    contacts = crawl.asked("past.test")
    at = next(n for n, c in enumerate(contacts) if c.status == 429)
    assert contacts[at + 1].arrived - contacts[at].ended > contacts[at].arrived - contacts[at - 1].ended
    assert crawl.tally()["fetched", ""] == 11


def test_a_long_retry_after_parks_and_the_run_ends_at_once() -> None:
    """Longer than `park_after`: the host is parked and named, nothing waits for it, and a later run takes it up."""
    web = SimWeb(
        3,
        [
            SimHost("later.test", address_of(99), pages=6, page_bytes=200, throttle=Throttle(after=5, wait_s=3_600.0)),
            *plain_hosts(1, 2),
        ],
    )
    crawl = Crawl(web, settings())
    crawl.run()
    assert crawl.clock.monotonic() < 60
    assert crawl.ends[-1].parked == {"retry-after": 1}
    seen = len(crawl.asked("later.test"))
    crawl.run()
    assert len(crawl.asked("later.test")) == seen
    crawl.clock.jump(3_600.0)
    crawl.clock._now += 3_600.0  # the servers' clock as well
    crawl.run()
    assert len(crawl.asked("later.test")) > seen


def test_crawl_delay_600_parks_with_the_reason() -> None:
    """Neither clamped nor silently denied: robots.txt is read, the host is parked, the run ends."""
    crawl = Crawl(SimWeb(3, [SimHost("slow.test", address_of(1), robots=Robots.LONG_DELAY)]), settings())
    crawl.run()
    assert crawl.targets("slow.test") == ["/robots.txt"]
    assert crawl.ends[-1].parked == {"crawl-delay": 1}
    assert crawl.state(crawl.web.url("slow.test"))[0] == "parked"


def test_crawl_delay_binds_from_the_very_next_contact() -> None:
    """From the moment robots.txt is read: tdmrep.json and ai.txt, too, come that much later."""
    crawl = Crawl(SimWeb(3, [SimHost("d.test", address_of(1), pages=3, robots=Robots.DELAY, crawl_delay_s=7.0)]), settings())
    crawl.run()
    assert not gap_violations(crawl.log, 7.0)
    assert crawl.tally()["fetched", ""] == 4


def test_order_per_authority() -> None:
    """robots.txt, tdmrep.json, ai.txt at both addresses, then pages; a host that denies us hears of robots.txt only."""
    web = SimWeb(3, [SimHost("open.test", address_of(1), pages=1), SimHost("no.test", address_of(2), robots=Robots.ALL), SimHost("denied.test", address_of(3), robots=Robots.FORBIDDEN)])  # fmt: skip
    crawl = Crawl(web, settings())
    crawl.run()
    assert crawl.targets("open.test")[:5] == ["/robots.txt", "/.well-known/tdmrep.json", "/ai.txt", "/.well-known/ai.txt", "/"]
    assert crawl.targets("no.test") == ["/robots.txt"]
    assert crawl.targets("denied.test") == ["/robots.txt"]


def test_an_unreadable_robots_txt_defers_the_host_and_opens_later() -> None:
    """503 for an hour: no page is asked for; once it answers, the crawl goes on with every page."""
    host = SimHost("away.test", address_of(1), pages=4, page_bytes=200)
    web = SimWeb(3, [host])
    real = web._plan(host)["/robots.txt"]
    web._plan(host)["/robots.txt"] = Page(lambda ask: Answer(503, HTML, b"") if ask.at < 3_600 else real.respond(ask))
    crawl = Crawl(web, settings())
    crawl.run()
    assert set(crawl.targets("away.test")) == {"/robots.txt"}
    assert list(crawl.ends[-1].parked) in (["robots-unreachable"], ["backing-off"])
    crawl.clock.jump(3_600.0)
    crawl.clock._now += 3_600.0
    crawl.run()
    assert crawl.tally()["fetched", ""] == 5


def test_one_dead_authority_does_not_hold_up_the_other() -> None:
    """https of a host does not work, and one link leads there: all of its http pages are fetched all the same."""
    paths = [f"/{n}" for n in range(30)]
    web = Web({"half.test": {"/": page("https://half.test/secure", *paths), **{path: page() for path in paths}}})
    crawl = Crawl(web, settings())
    secure = crawl.web
    transport_up = secure.down()
    assert not transport_up
    crawl.run()
    assert all(crawl.state(f"http://half.test{path}")[0] == "fetched" for path in paths)


def test_robots_redirects_across_hosts_are_read_at_their_own_pace() -> None:
    """Five hops over other hosts are followed, each at its host's clock; the rules bind the host that was asked first."""
    moved = {f"m{n}.test": {"/robots.txt": reply(301, ("Location", f"http://m{n + 1}.test/robots.txt"))} for n in range(4)}
    rules = Page(lambda ask: Answer(headers=(("Content-Type", "text/plain"),), body=b"User-agent: *\nDisallow: /private\n"))
    sites = {
        "a.test": {"/": page("/private", "/open"), "/open": page(), "/private": page(), "/robots.txt": reply(301, ("Location", "http://m0.test/robots.txt"))},
        **moved, "m4.test": {"/robots.txt": rules},
    }  # fmt: skip
    crawl = Crawl(Web(sites), settings())
    crawl.run(["http://a.test/"])
    check_funnel(crawl)
    assert crawl.state("http://a.test/open")[0] == "fetched"
    assert crawl.state("http://a.test/private") == ("refused", "robots")
    assert crawl.targets("m4.test") == ["/robots.txt"]


def test_two_hosts_whose_robots_redirect_to_each_other_both_end() -> None:
    """No deadlock: each runs the other's errand while it waits for its own; too many hops is a no."""
    sites = {
        a: {"/": page(), "/robots.txt": reply(302, ("Location", f"http://{b}/robots.txt"))}
        for a, b in (("x.test", "y.test"), ("y.test", "x.test"))
    }
    crawl = Crawl(Web(sites), settings())
    crawl.run()
    assert {crawl.state(f"http://{host}/") for host in sites} == {("refused", "robots-redirects")}
    assert not gap_violations(crawl.log, crawl.config.delay)


def test_a_robots_redirect_to_a_parked_host_ends_the_run() -> None:
    """The host it leads to asks for a pause of an hour: nobody waits for it, and the host that asked is parked, too."""
    sites = {
        "p.test": {"/": page("/1"), "/1": reply(429, ("Retry-After", "3600"))},
        "q.test": {"/": page(), "/robots.txt": reply(302, ("Location", "http://p.test/robots-q.txt"))},
    }
    for order in (["http://p.test/", "http://q.test/"], ["http://q.test/", "http://p.test/"]):
        crawl = Crawl(Web(sites), settings(retries=2))
        crawl.run(order)
        assert crawl.clock.monotonic() < 600
        assert crawl.ends[-1].parked.get("retry-after") == 1


def test_many_hosts_on_one_address_and_one_domain_take_turns() -> None:
    """60 virtual hosts on one IP and 60 subdomains of one domain: one at a time each, and hosts elsewhere are not slowed."""
    hosts = [SimHost(f"v{n}.test", "127.9.0.1", pages=1, page_bytes=200) for n in range(60)]
    hosts += [SimHost(f"s{n}.big.test", address_of(300 + n), pages=1, page_bytes=200) for n in range(60)]
    hosts += [SimHost(f"alone{n}.test", address_of(600 + n), pages=5, page_bytes=200) for n in range(20)]
    crawl = Crawl(SimWeb(3, hosts), settings(delay=1.0))
    crawl.run()
    check_manners(crawl)
    assert crawl.tally()["fetched", ""] == sum(host.pages + 1 for host in hosts)
    assert max(c.ended for c in crawl.log if c.host.startswith("alone")) < 30


def test_a_giant_does_not_hold_up_the_small() -> None:
    """One host with 400 pages and 50 with 3: the small ones are done in a few of their own gaps."""
    hosts = [SimHost("giant.test", address_of(1), pages=400, links=40, page_bytes=200), *plain_hosts(50, 3, page_bytes=200)]
    crawl = Crawl(SimWeb(3, hosts), settings(slots=4))
    crawl.run()
    small = max(c.ended for c in crawl.log if c.host != "giant.test")
    assert small < 60
    assert crawl.tally()["fetched", ""] == 401 + 50 * 4


def test_a_trusted_host_gets_its_connections_and_no_page_twice() -> None:
    """Four connections at once where the owner agreed; every page is still asked for once."""
    host = SimHost("friend.test", address_of(1), pages=60, links=20, page_bytes=200, latency_s=0.5)
    crawl = Crawl(
        SimWeb(3, [host]), settings(trusted=(TrustedHost(host="friend.test", delay=0.05, connections=4, why="they said so"),))
    )
    crawl.run()
    assert crawl.tally()["fetched", ""] == 61
    assert max(Counter(crawl.targets("friend.test")).values()) == 1
    overlaps = sum(b.arrived < a.ended for a, b in zip(crawl.log, crawl.log[1:], strict=False))
    assert overlaps > 20


def test_clock_jumps_of_an_hour_move_no_gap() -> None:
    """The wall clock is set forward and back by an hour during a crawl: gaps are monotonic, the crawl ends, nothing is lost."""
    for hours in (-1, 1):
        crawl = Crawl(SimWeb(3, plain_hosts(5, 12, page_bytes=200)), settings())

        async def jump(crawl: Crawl = crawl, seconds: float = 3_600.0 * hours) -> None:
            await crawl.clock.sleep(4.0)
            crawl.clock.jump(seconds)

        whole = crawl._until_drained

        async def both(worker: object, stop: object, whole: object = whole, jump: object = jump) -> None:

            task = asyncio.create_task(jump())  # type: ignore[operator]
            await whole(worker, stop)  # type: ignore[operator]
            await task

        crawl._until_drained = both  # type: ignore[method-assign, assignment]
        crawl.run()
        assert crawl.tally()["fetched", ""] == 65
        assert set(Counter((c.host, c.target) for c in crawl.log).values()) == {1}, "nothing is asked for twice"
        for group in Group:
            assert not gap_violations(crawl.log, crawl.config.delay, group)


def test_names_that_lead_nowhere_fail_with_their_reason() -> None:
    """No such name, a silent resolver, an address inside: no contact, a bounded wait, the reason on the row."""
    hosts = [
        SimHost("nx.test", address_of(1), dns=Name(rcode=3)), SimHost("in.test", address_of(2), dns=Name(("10.0.0.1",))),
        SimHost("hole.test", address_of(3), dns=Name(silent=True)), *plain_hosts(1, 1),
    ]  # fmt: skip
    crawl = Crawl(SimWeb(3, hosts), settings())
    crawl.run()
    assert crawl.state("http://nx.test/") == ("failed", "dns")
    assert crawl.state("http://hole.test/") == ("failed", "dns")
    assert crawl.state("http://in.test/") == ("failed", "address-refused")
    assert {contact.host for contact in crawl.log} == {"site0000.test"}
    assert crawl.clock.monotonic() < 300
