"""Law D for the schedule: whatever the hosts, groups, gaps and durations, no two contacts of a group come too close."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.crawl.ports import Due, HostRow
from corpus.crawl.schedule import Begun, Schedule
from corpus.crawl.settings import CrawlSettings, TrustedHost
from tests.sim.schedule_engine import SimHost, closest, crawl

TOLERANCE = 1e-9


def _settings(slots: int, ip_delay: float) -> CrawlSettings:
    return CrawlSettings(delay=1.0, delay_start=2.0, ip_delay=ip_delay, slots=slots, allow_private=("10.0.0.0/8",))


hosts = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(1, 6), st.integers(0, 255)),
    min_size=1,
    max_size=14,
)


def _hosts(rows: list[tuple[int, int, int, int]]) -> list[SimHost]:
    return [SimHost(f"h{n}.d{d}.test", f"d{d}.test", f"10.0.0.{ip}", urls, front) for n, (d, ip, urls, front) in enumerate(rows)]


@settings(max_examples=60, deadline=None)
@given(
    rows=hosts,
    slots=st.integers(1, 5),
    known=st.booleans(),
    gaps=st.lists(st.sampled_from([0.5, 1.0, 3.0, 10.0]), min_size=5, max_size=5),
    lasts=st.lists(st.sampled_from([0.0, 0.2, 1.0, 7.0]), min_size=7, max_size=7),
)
def test_groups_keep_their_gaps_and_no_slot_idles(rows, slots, known, gaps, lasts):
    """Host, domain and IP gaps hold; every URL is asked exactly once; with known addresses no slot idles beside a ready host."""
    sim = _hosts(rows)
    ip_gap = 0.7
    table = {host.name: host for host in sim}

    def gap(name: str) -> float:
        return gaps[len(name + table[name].ip) % 5]

    run = crawl(
        Schedule(_settings(slots, ip_gap)),
        sim,
        slots=slots,
        gap=gap,
        duration=lambda name, n: lasts[(n + sum(map(ord, name))) % 7],
        known_ips=known,
        oracle=known,
        ip_gap=ip_gap,
    )
    assert len(run.contacts) == sum(host.urls for host in sim), "every URL is asked exactly once"
    for name, least in closest(run.contacts, lambda name: name).items():
        assert least >= gap(name) - TOLERANCE
    assert all(least >= ip_gap - TOLERANCE for least in closest(run.contacts, lambda n: table[n].ip).values())
    assert all(least >= min(gaps) - TOLERANCE for least in closest(run.contacts, lambda n: table[n].domain).values())
    assert not run.idle_faults


@settings(max_examples=40, deadline=None)
@given(rows=hosts, events=st.lists(st.tuples(st.integers(0, 13), st.sampled_from("pPrasb"), st.floats(0, 3)), max_size=60))
def test_any_order_of_calls_keeps_the_gap(rows, events):
    """Parks, removals, re-adds, skips and begins in any order never bring two contacts of a host or domain closer than the gap."""
    sim = _hosts(rows)
    table = {host.name: host for host in sim}
    schedule, now, gap = Schedule(_settings(3, 1.0)), 0.0, 1.5
    last: dict[str, float] = {}
    running: dict[str, str] = {}
    for host in sim:
        schedule.add(HostRow(host.name, host.domain, ips=(host.ip,)), now, now)
    for which, event, pause in events:
        now += pause
        for name in schedule.ready(now, 2):
            host = table[name]
            groups = (name, host.domain, host.ip)
            assert not set(groups) & set(running), "one in flight per group"
            if event == "s":
                schedule.skip(name, now, pause)
                continue
            assert isinstance(schedule.begin(name, host.ip, now), Begun)
            assert all(now >= last.get(group, 0.0) - TOLERANCE for group in groups)
            running.update(dict.fromkeys(groups, name))
        host = sim[which % len(sim)]
        if event == "p":
            schedule.park(host.name)
        elif event == "P":
            schedule.park(host.name, now + pause)
        elif event == "r":
            schedule.remove(host.name)
        elif event == "a":
            schedule.add(HostRow(host.name, host.domain, ips=(host.ip,)), now, now)
        elif event == "b":
            for name in sorted(set(running.values())):
                schedule.end(name, now, gap)
                last.update({name: now + gap, table[name].domain: now + gap, table[name].ip: now + 1.0})
            running.clear()


@settings(max_examples=30, deadline=None)
@given(connections=st.integers(1, 4), urls=st.integers(1, 30), last=st.sampled_from([0.1, 1.0, 4.0]))
def test_a_trusted_host_uses_its_connections_and_no_more(connections, urls, last):
    """At most `connections` contacts of a trusted host run at once, and they are all used while it has URLs."""
    trusted = TrustedHost(host="fast.test", delay=0.1, connections=connections, why="the owner agreed")
    config = CrawlSettings(delay=1.0, slots=8, trusted=(trusted,))
    run = crawl(
        Schedule(config),
        [SimHost("fast.test", "fast.test", "10.0.0.1", urls)],
        slots=8,
        gap=lambda _: 0.1,
        duration=lambda *_: last,
    )
    edges = sorted([(c.start, 1) for c in run.contacts] + [(c.end, -1) for c in run.contacts])
    level, most = 0, 0
    for _, step in edges:
        level += step
        most = max(most, level)
    assert most <= connections
    assert len(run.contacts) == urls
    assert most == min(connections, urls)


def test_a_clock_from_the_store_is_kept():
    """A host that was contacted before a restart is not contacted before its stored wait is over, nor is its sibling."""
    schedule = Schedule(_settings(4, 1.0))
    schedule.add(HostRow("a.d.test", "d.test", due=Due(1000.0, 9.0), domain_due=Due(1000.0, 5.0)), 50.0, 1002.0)
    schedule.add(HostRow("b.d.test", "d.test"), 50.0, 1002.0)
    assert schedule.ready(50.0, 9) == []
    assert schedule.next_due(50.0) == pytest.approx(53.0)
    assert schedule.ready(53.0, 9) == ["b.d.test"]
    schedule.begin("b.d.test", "10.0.0.1", 53.0)
    schedule.end("b.d.test", 53.1, 1.0)
    schedule.remove("b.d.test")
    assert schedule.ready(56.9, 9) == []
    assert schedule.ready(57.0, 9) == ["a.d.test"]
