"""Seeded virtual crawls over the real schedule: the shapes of the web that break crawlers, at a size that shows it."""

from __future__ import annotations

import random
from collections import Counter

from corpus.crawl.cdn import CdnTable
from corpus.crawl.ports import HostRow
from corpus.crawl.schedule import Begun, Busy, Schedule
from corpus.crawl.settings import CrawlSettings
from tests.sim.schedule_engine import SimHost, closest, crawl

ALONE = CdnTable([])


def _ip(n: int) -> str:
    return f"{20 + n // 65536}.{n // 256 % 256}.{n % 256}.1"


def _lone(n: int, urls: int, front: int = 128) -> SimHost:
    return SimHost(f"h{n}.test", f"h{n}.test", _ip(n), urls, front)


def test_zipf_hosts_keep_the_slots_full_and_the_gaps_whole() -> None:
    """4,000 hosts with Zipf sizes and a giant, 10⁵ contacts: ≥ 98 % of what was possible is used, and no gap is short."""
    rng = random.Random(7)
    hosts = [_lone(0, 5_000)] + [_lone(n, 1 + int(12_000 / n), rng.randrange(256)) for n in range(1, 4_000)]
    gaps = {host.name: rng.choice((2.0, 2.0, 3.0, 10.0)) for host in hosts}
    run = crawl(
        Schedule(CrawlSettings(delay=2.0, slots=256, max_pages_per_host=10_000), ALONE),
        hosts,
        slots=256,
        gap=gaps.__getitem__,
        duration=lambda name, n: rng.uniform(0.05, 3.0),
    )
    assert len(run.contacts) == sum(host.urls for host in hosts) > 100_000
    least = closest(run.contacts, lambda name: name)
    assert all(gap >= gaps[name] - 1e-9 for name, gap in least.items())
    assert run.busy_s / run.possible_s >= 0.98


def test_virtual_hosts_and_subdomains_share_one_clock_and_slow_nobody_else() -> None:
    """300 hosts on one address and 300 subdomains of one domain go one at a time, a gap apart; 1,000 other hosts do not notice."""
    vhosts = [SimHost(f"v{n}.test", f"v{n}.test", "203.0.113.1", 1) for n in range(300)]
    subs = [SimHost(f"s{n}.farm.test", "farm.test", _ip(9000 + n), 1) for n in range(300)]
    others = [_lone(n, 3) for n in range(1000)]
    table = {host.name: host for host in [*vhosts, *subs, *others]}
    config = CrawlSettings(delay=2.0, slots=200)
    run = crawl(
        Schedule(config, ALONE),
        [*vhosts, *subs, *others],
        slots=200,
        gap=lambda _: 2.0,
        duration=lambda *_: 0.5,
        ip_gap=2.0,
        known_ips=False,
    )
    by_ip, by_domain = closest(run.contacts, lambda n: table[n].ip), closest(run.contacts, lambda n: table[n].domain)
    assert by_ip["203.0.113.1"] >= 2.0 - 1e-9
    assert by_domain["farm.test"] >= 2.0 - 1e-9
    assert len(run.contacts) == 3600
    last = max(c.end for c in run.contacts if table[c.host] in others)
    assert last < 30.0, "1,000 hosts × 3 pages on 200 slots: nothing waits behind the two groups"


def test_one_giant_does_not_hold_the_small_ones() -> None:
    """One host with a million URLs and 999 with ten: the small ones finish in about ten gaps; the giant never has a second slot."""
    hosts = [_lone(0, 1_000_000, front=0)] + [_lone(n, 10) for n in range(1, 1000)]
    run = crawl(
        Schedule(CrawlSettings(delay=2.0, slots=64), ALONE),
        hosts,
        slots=64,
        gap=lambda _: 2.0,
        duration=lambda *_: 0.1,
        until=60.0,
    )
    counts = Counter(contact.host for contact in run.contacts)
    assert all(counts[host.name] == 10 for host in hosts[1:])
    assert max(c.end for c in run.contacts if c.host != "h0.test") < 10 * 2.1 + 16
    assert closest([c for c in run.contacts if c.host == "h0.test"], lambda n: n)["h0.test"] >= 2.0 - 1e-9


def test_low_priority_waits_but_never_starves() -> None:
    """Under more good hosts than slots, spam hosts get a share that is small and not nothing; good hosts get at least three times as much."""
    good = [_lone(n, 10_000, front=30) for n in range(60)]
    spam = [_lone(n, 10_000, front=250) for n in range(100, 160)]
    run = crawl(
        Schedule(CrawlSettings(delay=1.0, slots=4), ALONE),
        [*spam, *good],
        slots=4,
        gap=lambda _: 1.0,
        duration=lambda *_: 1.0,
        until=2500.0,
    )
    counts = Counter(contact.host for contact in run.contacts)
    best, worst = (sum(counts[host.name] for host in group) for group in (good, spam))
    assert best >= 3 * worst
    assert all(counts[host.name] > 0 for host in spam), "whoever waits is asked in the end"
    first = {host.name: min(c.start for c in run.contacts if c.host == host.name) for host in good}
    assert max(first.values()) < 400.0, "among equals everyone has a turn soon"


def test_a_cdn_has_a_cap_and_no_clock() -> None:
    """40 hosts behind one edge: `ip_slots` at once, and no gap between different hosts; a response header says so as well as the table."""
    config = CrawlSettings(delay=2.0, slots=100, ip_slots=8)
    for table, header in ((CdnTable([("203.0.113.0/24", "edge")]), False), (ALONE, True)):
        schedule = Schedule(config, table)
        if header:
            schedule.mark_cdn("203.0.113.7")
        hosts = [SimHost(f"c{n}.test", f"c{n}.test", "203.0.113.7", 2) for n in range(40)]
        run = crawl(schedule, hosts, slots=100, gap=lambda _: 2.0, duration=lambda *_: 1.0)
        edges = sorted([(c.start, 1) for c in run.contacts] + [(c.end, -1) for c in run.contacts])
        level = most = 0
        for _, step in edges:
            level += step
            most = max(most, level)
        assert most == 8
        assert len(run.contacts) == 80
        assert max(c.end for c in run.contacts) < 15.0
        assert min(closest(run.contacts, lambda n: n).values()) >= 2.0


def test_a_host_that_moved_to_a_busy_address_waits_for_it() -> None:
    """`begin` at an address another host holds is refused, holds nothing, and the host comes back when the address is free."""
    schedule = Schedule(CrawlSettings(delay=2.0, slots=8), ALONE)
    for n in (1, 2):
        schedule.add(HostRow(f"h{n}.test", f"h{n}.test"), 0.0, 0.0)
    assert schedule.ready(0.0, 8) == ["h1.test", "h2.test"]
    assert isinstance(schedule.begin("h1.test", "203.0.113.1", 0.0), Begun)
    assert isinstance(schedule.begin("h2.test", "203.0.113.1", 0.0), Busy)
    assert schedule.ready(1.0, 8) == []
    assert schedule.stats().in_flight == 1
    schedule.end("h1.test", 1.0, 9.0)
    assert schedule.next_due(1.0) == 3.0
    assert schedule.ready(2.9, 8) == []
    assert schedule.ready(3.0, 8) == ["h2.test"]
    assert isinstance(schedule.begin("h2.test", "203.0.113.1", 3.0), Begun)


def test_a_park_that_ends_during_a_contact_hurries_nobody() -> None:
    """A host whose park is over, or that is added again, while its contact runs is busy; then its own gap counts, not the park."""
    schedule = Schedule(CrawlSettings(delay=2.0, slots=8), ALONE)
    schedule.add(HostRow("h.test", "h.test"), 0.0, 0.0)
    assert schedule.ready(0.0, 8) == ["h.test"]
    schedule.begin("h.test", "203.0.113.1", 0.0)
    schedule.park("h.test", 5.0)
    assert schedule.stats().parked == 1
    assert schedule.ready(6.0, 8) == []
    assert (schedule.stats().parked, schedule.stats().active) == (0, 1)
    schedule.remove("h.test")
    schedule.add(HostRow("h.test", "h.test"), 6.0, 6.0)
    assert (schedule.stats().sleeping, schedule.stats().active) == (0, 1)
    schedule.park("h.test", 8.0)
    schedule.end("h.test", 7.0, 10.0, domain_s=1.0)
    assert schedule.next_due(7.0) is None, "a parked host keeps nobody waiting"
    assert schedule.ready(8.5, 8) == []
    assert schedule.next_due(8.5) == 17.0
    assert schedule.ready(17.0, 8) == ["h.test"]


def test_memory_of_a_schedule_does_not_grow_with_hosts_that_are_done() -> None:
    """Hosts that came, were asked and left are forgotten once their clocks have run out; so are their groups."""
    schedule = Schedule(CrawlSettings(delay=2.0, slots=8), ALONE)
    for n in range(15_000):
        now, name = n * 0.1, f"h{n}.test"
        schedule.add(HostRow(name, name), now, now)
        for ready in schedule.ready(now, 8):
            schedule.begin(ready, _ip(n), now)
            schedule.end(ready, now, 2.0)
            schedule.remove(ready)
    stats = schedule.stats()
    assert stats.known < 5_000
    assert stats.groups < 5_000
    assert len(schedule._hosts.names) < 5_000
