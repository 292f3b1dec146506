"""Two hundred crashes over a crawl of ten thousand pages, in virtual time: the process is gone from one moment to the next."""

from __future__ import annotations

import random

import pytest

from corpus.testing.audit import Group, gap_violations
from corpus.testing.web import SimHost, SimWeb, Trait, address_of, plain_hosts
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import check_funnel


def crash_and_compare(hosts: int, pages: int, crashes: int, seed: int) -> None:
    """A crawl that crashes so often ends as one that never did: 0 lost, 0 double, 0 gaps violated."""
    odd = [SimHost("turns.test", address_of(900), pages=pages, traits=(Trait.REDIRECTS, Trait.RECOVERS), page_bytes=200)]
    web = SimWeb(seed, [*plain_hosts(hosts, pages, page_bytes=200), *odd])
    whole = Crawl(web, settings(near_copies="store"))
    whole.run()
    rng, crawl = random.Random(seed), Crawl(SimWeb(seed, web.hosts), settings(near_copies="store"))
    least = whole.clock.monotonic() / crashes
    for _ in range(crashes):
        crawl.run(crash_after_s=1.0 + rng.uniform(0.5, 1.5) * least)
    crawl.run()
    assert crawl.tally() == whole.tally()
    kept = {url: digest for url, _, digest in crawl.sinks["pages"].kept}
    assert kept == {url: digest for url, _, digest in whole.sinks["pages"].kept}
    for group in Group:
        assert not gap_violations(crawl.log, crawl.config.delay, group)
    check_funnel(crawl)


def test_thirty_crashes() -> None:
    """Thirty over some hundred pages."""
    crash_and_compare(8, 30, 30, 3)


@pytest.mark.slow
def test_two_hundred_crashes_over_ten_thousand_pages() -> None:
    """The whole of it."""
    crash_and_compare(50, 200, 200, 4)
