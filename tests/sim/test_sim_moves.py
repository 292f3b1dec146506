"""Partition files that move between members while a crawl goes on: nothing is lost, nothing is asked too early, nobody stops."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from corpus.crawl import commit
from corpus.crawl.commit import Committer
from corpus.crawl.discover import seed
from corpus.crawl.ports import Ack, OutboxRow, Resolved
from corpus.model import Failed
from corpus.testing.audit import Group, gap_violations
from corpus.testing.transport import SimResolver
from corpus.testing.web import SimHost, SimWeb, Trait, address_of, plain_hosts, zoo
from corpus.testing.web_hosts import Page
from corpus.url.partition import PARTITION_FILES, partition_file
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import Web, check_funnel, check_manners, page, reply
from tests.sim.members_kit import Fleet


def web(hosts: int, pages: int) -> SimWeb:
    """Hosts that link to each other, some of which redirect, recover, or are known by a sitemap."""
    odd = [
        SimHost("turns.test", address_of(900), pages=pages, traits=(Trait.REDIRECTS, Trait.RECOVERS), page_bytes=200),
        SimHost("map.test", address_of(901), pages=pages, traits=(Trait.SITEMAP,), page_bytes=200),
    ]
    return SimWeb(hosts, [*plain_hosts(hosts, pages, page_bytes=200), *odd])


def check_gaps(crawl: Crawl) -> None:
    for group in Group:
        gap_s = crawl.config.ip_gap_s if group is Group.IP else crawl.config.delay
        assert not gap_violations(crawl.log, gap_s, group), gap_violations(crawl.log, gap_s, group)[0]


def check(fleet: Fleet, whole: Crawl) -> None:
    """The crawl of a fleet ended as that of one process that never moved anything."""
    crawl = fleet.crawl
    for member in fleet.members.values():
        fleet.keep(member)
    assert crawl.tally() == whole.tally()
    check_gaps(crawl)
    check_funnel(crawl)
    kept = Counter(url for url, _, _ in crawl.sinks["pages"].kept)
    assert set(kept) == {url for url, _, _ in whole.sinks["pages"].kept}


@pytest.mark.parametrize(("seed", "spread"), [(0, 16), (1, 16), (2, 64), (3, 256)])
def test_files_that_move_lose_nothing_and_hurry_nobody(seed: int, spread: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares are dealt out anew every few seconds, links are many and pass through small batches; the states are those of one process."""
    monkeypatch.setattr(commit, "OUTBOX_BATCH", 7)
    whole = Crawl(web(24, 12), settings())
    whole.run()
    fleet = Fleet(Crawl(web(24, 12), settings(), ack_sealed=True, spread=spread), random.Random(seed), commit_s=0.02)
    fleet.run(3, moves_every_s=4.0, moves=12)
    assert fleet.moved > 60
    assert fleet.slowest_s < 5.0
    check(fleet, whole)


@pytest.mark.parametrize("seed", range(3))
def test_members_that_die_while_files_move(seed: int) -> None:
    """What a dead member owned is taken up after its quiet time, with whole gaps; nothing is lost all the same."""
    slow = settings(delay=4.0, delay_start=6.0, ip_delay=0.0)  # claims on addresses would hide what hosts need
    whole = Crawl(web(16, 12), slow)
    whole.run()
    fleet = Fleet(Crawl(web(16, 12), slow, ack_sealed=True), random.Random(100 + seed), commit_s=0.4)
    fleet.run(3, moves_every_s=4.0, moves=16, crashes=6)
    assert fleet.crashed >= 2
    check(fleet, whole)


def test_every_kind_of_host_is_treated_alike_wherever_its_file_goes() -> None:
    """The zoo (robots.txt of every kind, some at other hosts; throttled, slow and lost ones) keeps its manners over many moves."""
    crawl = Crawl(SimWeb(5, zoo()), settings(max_depth=6, max_pages_per_host=30), ack_sealed=True)
    fleet = Fleet(crawl, random.Random(7), commit_s=0.01)
    fleet.run(3, moves_every_s=6.0, moves=30)
    assert fleet.moved > 100
    check_funnel(crawl)
    check_manners(crawl)


@pytest.mark.parametrize("seed", range(3))
def test_robots_that_lie_with_another_member_are_read_wherever_files_go(seed: int) -> None:
    """Hosts whose robots.txt is at one host of another owner: the letters follow the files, and nobody waits for one that was lost."""
    sites: dict[str, dict[str, Page]] = {"law.test": {f"/r{n}.txt": reply(200, body=b"User-agent: *\n") for n in range(40)}}
    for n in range(40):
        moved = reply(301, ("Location", f"http://law.test/r{n}.txt"))
        sites[f"far{n:02d}.test"] = {"/robots.txt": moved, "/": page("/a", "/b"), "/a": page(), "/b": page()}
    crawl = Crawl(Web(sites), settings(delay=1.0), ack_sealed=True)
    fleet = Fleet(crawl, random.Random(seed), commit_s=0.02)
    fleet.run(4, moves_every_s=2.0, moves=30)
    assert crawl.tally()["fetched", ""] == 3 * 40
    assert crawl.clock.monotonic() < 250.0
    assert len(crawl.asked("law.test")) < 200, "letters that nobody waits for any more pile up there"
    check_gaps(crawl)


def test_a_file_waits_for_the_visits_of_its_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a name or an answer takes: no visit is broken off, so every page is asked for once, and the crawl finds its end."""
    resolve = SimResolver.resolve

    async def slowly(self: SimResolver, host: str) -> Resolved | Failed:
        await self._clock.sleep(3.0)
        return await resolve(self, host)

    monkeypatch.setattr(SimResolver, "resolve", slowly)
    hosts = [*plain_hosts(12, 4), *(SimHost(f"slow{n}.test", address_of(800 + n), pages=2, latency_s=9.0) for n in range(12))]
    crawl = Crawl(SimWeb(1, hosts), settings(), ack_sealed=True)
    fleet = Fleet(crawl, random.Random(5))
    fleet.run(2, moves_every_s=6.0, moves=12)
    assert fleet.slowest_s > 6.0, "nothing was waited for"
    assert crawl.tally()["fetched", ""] == 12 * 5 + 12 * 3
    assert set(Counter(contact.url for contact in crawl.log if contact.target == "/" or "/p/" in contact.target).values()) == {1}
    check_manners(crawl)


def test_what_a_former_owner_published_is_applied_before_our_own_rows() -> None:
    """Links from one file to another have one order, and what lies below the last one applied is taken for known: a batch that waits
    in the inbox must not be passed over because both files are ours now."""
    src, dst = partition_file("other.test", PARTITION_FILES), partition_file("distant.test", PARTITION_FILES)
    links = [f"http://distant.test/{n}" for n in range(6)]
    crawl = Crawl(Web({"distant.test": {}}), settings(scope={"any": True}))
    rows = [OutboxRow(n + 1, dst, sighting) for n, url in enumerate(links) if (sighting := seed(url)) is not None]
    files = {number: crawl.files[number] for number in (src, dst)}
    for store in files.values():
        store.claim("both")
    pages = [Ack(foreign=((dst, row.sighting),)) for row in rows]
    files[src].commit(pages)
    early = files[src].outbox(4)
    crawl.inbox.publish(dst, src, 1, early)
    files[src].forwarded({dst: early[-1].seq})
    router = crawl.router([])
    committer = Committer(
        files, {src: 1, dst: 1}, crawl.sinks, crawl.consent, crawl.inbox, crawl.gate, router, near_copies="store", on_sealed=lambda: None
    )  # fmt: skip
    committer.commit([])
    assert [url for url in links if files[dst].lookup(url) is None] == []
