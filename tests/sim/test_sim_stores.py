"""A crawl over stores that are slow to be sure, full, or away: nothing is acknowledged too early, and nobody is asked in vain."""

from __future__ import annotations

from collections import Counter

import pytest

from corpus.crawl.hosts import Hosts
from corpus.errors import NoRoom
from corpus.testing.web import SimHost, SimWeb, Trait, address_of, plain_hosts
from corpus.url.partition import PARTITION_FILES, partition_file
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import Web, check_funnel, check_manners, page


def web() -> SimWeb:
    """Hosts without a limit that a clock decides, one of them with a chain of pages each of which is known only by the last."""
    chain = SimHost("chain.test", address=address_of(90), pages=30, traits=(Trait.SITEMAP,))
    return SimWeb(11, [*plain_hosts(6, pages=25), chain])


def states(crawl: Crawl) -> dict[tuple[str, str], int]:
    return {key: n for key, n in crawl.tally().items() if n}


@pytest.fixture(scope="module")
def plain() -> Crawl:
    """The web crawled over a folder that is always sure."""
    crawl = Crawl(web(), settings())
    crawl.run()
    return crawl


def unsealed(crawl: Crawl) -> list[str]:
    """URLs that the frontier holds for stored whose capture lies behind the last seal."""
    return [url for url, _, _ in crawl.sinks["pages"].kept[crawl.sinks["pages"].sealed :] if crawl.row(url)["state"] == "fetched"]


def test_pages_wait_for_their_seal_and_links_do_not(plain: Crawl) -> None:
    """Where only sealed segments are durable the crawl ends with the same states, in about the same time, in few segments."""
    crawl = Crawl(web(), settings(), ack_sealed=True)
    crawl.run()
    assert states(crawl) == states(plain)
    assert Counter(url for url, _, _ in crawl.sinks["pages"].kept) == Counter(url for url, _, _ in plain.sinks["pages"].kept)
    assert crawl.clock.monotonic() < plain.clock.monotonic() * 1.05 + 2
    assert crawl.sinks["pages"].sealed == len(crawl.sinks["pages"].kept)
    assert len(crawl.sinks["pages"].seals) <= crawl.sinks["pages"].size / 60_000 + 1
    check_funnel(crawl)
    check_manners(crawl)


@pytest.mark.parametrize("after_s", [6.0, 11.5, 17.0])
def test_a_crash_loses_only_what_was_not_sealed(plain: Crawl, after_s: float) -> None:
    """After a crash no acknowledged page lies in an open segment; what did is fetched again, politely, and all comes out the same."""
    crawl = Crawl(web(), settings(), ack_sealed=True)
    crawl.run(crash_after_s=after_s)
    assert crawl.sinks["pages"].kept
    assert not unsealed(crawl)
    for sink in crawl.sinks.values():
        sink.crash()
    crawl.run()
    assert states(crawl) == states(plain)
    assert {url for url, _, _ in crawl.sinks["pages"].kept} == {url for url, _, _ in plain.sinks["pages"].kept}
    check_manners(crawl)


@pytest.mark.parametrize("ack_sealed", [False, True])
def test_a_full_disk_is_waited_out(plain: Crawl, ack_sealed: bool) -> None:
    """While the disk is full nobody new is asked and the run says why; with room again it ends with nothing lost and nothing twice."""
    crawl = Crawl(web(), settings(), ack_sealed=ack_sealed)
    began, ended = crawl.clock.monotonic() + 8.0, crawl.clock.monotonic() + 40.0
    crawl.sinks["pages"].refuse = lambda: began <= crawl.clock.monotonic() < ended
    start = crawl.clock.wall() - crawl.clock.monotonic()
    crawl.run()
    late = [c for c in crawl.log if began + 1.5 <= c.arrived_wall - start < ended]
    assert not late, f"{len(late)} contacts while nothing could be kept"
    assert any("no space" in report.stalled for report in crawl.reports)
    assert not crawl.reports[-1].stalled
    assert states(crawl) == states(plain)
    assert Counter(url for url, _, _ in crawl.sinks["pages"].kept) == Counter(url for url, _, _ in plain.sinks["pages"].kept)
    check_funnel(crawl)
    check_manners(crawl)


def test_a_host_whose_pages_all_wait_is_asked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that went out of line with all its known pages in hand gets back in by the links they bring, before any seal."""
    put_back: list[str] = []
    lines_up = Hosts.linked

    def linked(hosts: Hosts, host: str) -> None:
        was_idle = host in hosts.desks and hosts.desks[host].idle
        lines_up(hosts, host)
        if was_idle and not hosts.desks[host].idle:
            put_back.append(host)

    monkeypatch.setattr(Hosts, "linked", linked)
    chain = SimHost("chain.test", address=address_of(90), pages=15, links=1, latency_s=0.01)
    crawl = Crawl(
        SimWeb(3, [*plain_hosts(6, pages=10), chain]), settings(delay=0.05, delay_start=0.05, latency_factor=0.1), ack_sealed=True
    )
    crawl.run()
    assert put_back
    assert len(crawl.sinks["pages"].kept) >= 15


def test_a_full_disk_can_be_given_up(plain: Crawl) -> None:
    """Told to give up, a process whose disk stays full ends with that error; whoever goes on loses nothing and stores nothing twice."""
    crawl = Crawl(web(), settings(), ack_sealed=True)
    began = crawl.clock.monotonic() + 8.0

    def refuse() -> bool:
        now = crawl.clock.monotonic()
        if now >= began + 12.0:
            crawl.worker.give_up()
        return now >= began

    crawl.sinks["pages"].refuse = refuse
    with pytest.raises(NoRoom):
        crawl.run()
    assert any(report.full for report in crawl.reports)
    assert crawl.clock.monotonic() < began + 60.0
    for sink in crawl.sinks.values():
        sink.crash()
        sink.refuse = lambda: False
    crawl.run()
    assert states(crawl) == states(plain)
    assert {url for url, _, _ in crawl.sinks["pages"].kept} == {url for url, _, _ in plain.sinks["pages"].kept}
    check_manners(crawl)


def test_hosts_of_a_lost_owner_rest(plain: Crawl) -> None:
    """Until its last contacts are surely over, and one gap more, nobody of a file is asked, however a host gets in line; hosts of other
    files are, and the crawl ends the same."""
    crawl = Crawl(web(), settings())
    crawl.run(crash_after_s=8.0)
    hosts = sorted({contact.host for contact in crawl.log})
    resting = {crawl.file_of(host) for host in hosts[::2]}
    begins = crawl.clock.monotonic()
    crawl.quiet = dict.fromkeys(resting, begins + 120.0)
    before = len(crawl.log)
    crawl.run()
    start = crawl.clock.wall() - crawl.clock.monotonic()
    asked = [(crawl.file_of(c.host) in resting, c.arrived_wall - start - begins) for c in crawl.log[before:]]
    assert min(at for rests, at in asked if rests) >= 120.0 + crawl.config.delay_start
    assert min(at for rests, at in asked if not rests) < 60.0
    assert states(crawl) == states(plain)
    check_manners(crawl)


def test_a_host_first_seen_in_the_quiet_time_of_its_file_waits_too() -> None:
    """The dead owner may have asked it without a word of that being kept; it makes no difference that an owner in between ended in order."""
    crawl = Crawl(
        Web({"near.test": {"/": page("http://distant.test/")}, "distant.test": {"/": page()}}), settings(scope={"any": True})
    )
    crawl.run(seeds=[])
    until = crawl.clock.monotonic() + 60.0
    crawl.quiet = {partition_file("distant.test", PARTITION_FILES): until}
    crawl.run(seeds=["http://near.test/"])
    first = min(contact.arrived for contact in crawl.asked("distant.test"))
    assert first >= until + crawl.config.delay_start
    assert max(contact.ended for contact in crawl.asked("near.test")) < until
    assert crawl.tally()["fetched", ""] == 2
