"""Hosts and addresses that stop answering, over whole crawls in virtual time: how often they are asked, and what becomes of
their URLs."""

from __future__ import annotations

from collections import Counter

import pytest

from corpus.crawl.breaker import ADDRESS_AFTER, RETIRED_S
from corpus.testing.web import SimHost, SimWeb, address_of, plain_hosts
from corpus.testing.web_answer import Answer, Ask, Fault
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import Web, check_funnel, page, reply

DAY = 86_400.0


class Dying(SimWeb):
    """`dies.test` answers its first contacts, then resets every connection until `well` again."""

    well = False

    def answer(self, ask: Ask) -> Answer:
        if ask.host == "dies.test" and ask.host_nth > 12 and not self.well:
            return Answer(fault=Fault.RESET)
        return super().answer(ask)


def _later(crawl: Crawl, seconds: float) -> None:
    crawl.clock._now += seconds


def test_a_host_that_keeps_failing_is_retired_and_comes_back() -> None:
    """It is parked within a few contacts, probed once in each later run, retired after days with a counted reason, left alone
    for a month, and crawled whole once it answers again. Another host never notices."""
    web = Dying(3, [SimHost("dies.test", address_of(1), pages=40, page_bytes=200, links=40), *plain_hosts(1, 5)])
    crawl = Crawl(web, settings())
    crawl.run()
    first = len(crawl.asked("dies.test")) - 12
    assert first <= 8
    probes = []
    for _ in range(12):
        _later(crawl, DAY)
        before = len(crawl.asked("dies.test"))
        crawl.run()
        probes.append(len(crawl.asked("dies.test")) - before)
        host = crawl.host("dies.test")
        assert host is not None
        if host.state == "retired":
            break
    assert max(probes) == 1
    assert (host.state, host.reason) == ("retired", "host-retired")
    gone = crawl.tally()["excluded", "host-retired"]
    assert gone >= 25
    assert crawl.tally()["queued", ""] + crawl.tally()["parked", "backing-off"] == 0
    check_funnel(crawl)
    asked = len(crawl.asked("dies.test"))
    _later(crawl, RETIRED_S - DAY)
    crawl.run([*web.seeds(), web.url("dies.test", "/p/0033"), web.url("dies.test", "/new")])
    assert len(crawl.asked("dies.test")) == asked
    assert crawl.state(web.url("dies.test", "/new")) == ("excluded", "host-retired")
    web.well = True
    _later(crawl, 2 * DAY)
    crawl.run()
    assert crawl.tally()["excluded", "host-retired"] == 0
    fetched = Counter(contact.target for contact in crawl.asked("dies.test") if contact.status == 200)
    assert sum(target.startswith("/p/") for target in fetched) >= 36  # the probes cost a few URLs their last try
    check_funnel(crawl)


def test_a_dead_address_is_not_asked_by_each_of_its_hosts() -> None:
    """Sixty hosts on one machine that is down: after a few of them its breaker is open, and the others wait without asking."""
    dead = [SimHost(f"v{n}.test", "127.9.0.9", pages=3, down=True) for n in range(60)]
    crawl = Crawl(SimWeb(3, [*dead, *plain_hosts(2, 4)]), settings())
    tries: list[str] = []
    fetch = crawl.transport.fetch

    async def counted(request):  # type: ignore[no-untyped-def]
        tries.append(request.host)
        return await fetch(request)

    crawl.transport.fetch = counted  # type: ignore[method-assign]
    crawl.run()
    assert ADDRESS_AFTER <= sum(host.startswith("v") for host in tries) <= 2 * ADDRESS_AFTER
    assert sum(crawl.ends[-1].parked.values()) == 60
    assert sum(1 for contact in crawl.log if contact.status == 200 and "/p/" in contact.target) == 8


class Lawless(Web):
    """`law.test` resets every connection; robots.txt of `far.test` is there."""

    def answer(self, ask: Ask) -> Answer:
        return Answer(fault=Fault.RESET) if ask.host == "law.test" else super().answer(ask)


@pytest.mark.parametrize("asked_itself", [True, False])
def test_robots_that_lie_with_a_host_that_is_given_up_keep_nobody_waiting(*, asked_itself: bool) -> None:
    """Whether the host was given up before, or while such files are asked of it: what binds the others counts as unreachable, their
    URLs wait as they do for any such file, and every run ends."""
    moved = reply(301, ("Location", "http://law.test/r.txt"))
    far = {f"far{n}.test": {"/robots.txt": moved, "/": page()} for n in range(4)}
    web = Lawless({"law.test": {"/": page()}, **far})
    crawl, others = Crawl(web, settings()), [f"http://{name}/" for name in far]
    for _ in range(40):
        crawl.run(["http://law.test/"] if asked_itself else others)
        _later(crawl, DAY)
        host = crawl.host("law.test")
        if host is not None and host.state == "retired":
            break
    assert host is not None
    assert host.state == "retired"
    asked = len(crawl.asked("law.test"))
    crawl.run(others)
    assert len(crawl.asked("law.test")) == asked
    assert {crawl.state(url) for url in others} == {("parked", "robots-unreachable")}
    check_funnel(crawl)
