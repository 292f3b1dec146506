"""Many more hosts than desks: a crawl is the same with a handful of desks, and a known host costs little memory."""

from __future__ import annotations

import tracemalloc

import pytest

from corpus.crawl.ports import Due, HostRow
from corpus.crawl.schedule import Schedule
from corpus.crawl.settings import CrawlSettings
from corpus.testing.web import Robots, SimHost, SimWeb, Trait, address_of, plain_hosts
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import check_funnel, check_manners


def _web() -> SimWeb:
    moved = [SimHost(f"moved{n}.test", address_of(100 + n), pages=3, page_bytes=200, robots=Robots.REDIRECT) for n in range(3)]
    rsl = [SimHost(f"rsl{n}.test", address_of(120 + n), pages=3, page_bytes=200, robots=Robots.RSL) for n in range(3)]
    more = [SimHost("turns.test", address_of(140), pages=3, traits=(Trait.REDIRECTS, Trait.RECOVERS), page_bytes=200)]
    return SimWeb(3, [*plain_hosts(60, 6, page_bytes=200), *moved, *rsl, *more])


def test_a_crawl_with_few_desks_is_the_same_crawl(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty hosts and ten desks: the same states, no gap short, and no more desks than that at any report."""
    whole = Crawl(_web(), settings(slots=1))
    whole.run()
    monkeypatch.setattr("corpus.crawl.hosts.DESKS_MAX", 10)
    few = Crawl(_web(), settings(slots=1))
    few.run()
    assert few.tally() == whole.tally()
    check_funnel(few)
    check_manners(few)
    again = Crawl(_web(), settings(slots=1))
    again.run(crash_after_s=60.0)
    again.run()
    assert again.tally() == whole.tally()


def test_a_known_host_costs_less_than_600_bytes() -> None:
    """What the schedule holds of a host that waits, its name included: under 0.6 kB."""
    count = 20_000
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    schedule = Schedule(CrawlSettings())
    for n in range(count):
        name = f"some-longer-host-name-{n:06d}.example.test"
        schedule.add(HostRow(name, f"{name.split('.', maxsplit=1)[0]}.example.test", queued=5, due=Due(0.0, n % 50), ips=(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}",)), 0.0, 0.0)  # fmt: skip
    schedule.ready(1.0, 64)
    each = (tracemalloc.get_traced_memory()[0] - before) / count
    tracemalloc.stop()
    assert each < 600, each
