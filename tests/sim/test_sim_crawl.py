"""Whole crawls in memory: the real loop over a simulated web, in virtual time, through drains, crashes and a full disk."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import pytest

from corpus.crawl import worker
from corpus.crawl.commit import Committer
from corpus.crawl.settlement import Committed, Settlement
from corpus.errors import StoreError
from corpus.testing.web import Robots, SimHost, SimWeb, Trait, address_of, plain_hosts, zoo
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import Web, check_funnel, check_manners, reply

SLOTS = 8


@lru_cache(maxsize=1)
def zoo_crawl() -> Crawl:
    """The zoo, crawled until every host that can be asked has been: hosts that were parked are taken up by later runs."""
    crawl = Crawl(SimWeb(5, zoo()), settings(max_depth=6, max_pages_per_host=60))
    for _ in range(36):
        crawl.run()
        crawl.clock.jump(90_000.0)  # longer than any back-off
    return crawl


def test_every_page_of_the_zoo_ends_as_it_must() -> None:
    """Each kind of robots.txt, redirect, status, charset, coding, opt-out, failure and name error: its state and reason."""
    crawl, wrong = zoo_crawl(), []
    for url, seen in crawl.web.expected().items():
        if "/r/long-" in url and url[-1] in "67":
            continue  # past the limit of redirects: excluded, or never seen
        if url.endswith("/bomb/br"):
            continue  # meets the size cap or the ratio cap, whichever piece of it came first
        state, reason = crawl.state(url)
        if reason == "host-retired" and (seen.state.value == "parked" or "dns" in seen.reasons):
            continue  # weeks without any answer
        if state != seen.state.value or (state != "fetched" and seen.reasons and reason not in seen.reasons):
            wrong.append((url, state, reason, seen))
    assert not wrong


def test_the_zoo_is_asked_politely_and_adds_up() -> None:
    """Laws C and D over every kind of host at once, with parked hosts named."""
    crawl = zoo_crawl()
    check_funnel(crawl)
    check_manners(crawl)
    parked = crawl.ends[0].parked
    assert parked["crawl-delay"] == 1
    assert parked["robots-unreachable"] >= 4
    assert parked["retry-after"] == 1


def test_a_run_ends_once_and_never_spins() -> None:
    """Each run ends exactly once, and the loop goes round a few times per contact and per half second, no more."""
    crawl = Crawl(SimWeb(5, [*zoo()[10:40:2], *zoo()[-8:]]), settings(max_depth=6, max_pages_per_host=30))
    worker = crawl.run()
    assert len(crawl.ends) == 1
    assert crawl.ends[0].idle
    assert worker.turns < 4 * len(crawl.log) + 4 * crawl.clock.monotonic() + 200
    assert not [report for report in crawl.reports if report.idle][2:]


def test_the_same_seed_is_the_same_crawl_byte_for_byte() -> None:
    """Two crawls of one web: the same contacts at the same times, the same captures in the same order, the same rows."""

    def crawl() -> tuple[object, ...]:
        hosts = (
            *plain_hosts(6, 8),
            *(replace(h, name=f"z{n}.test", address=address_of(50 + n)) for n, h in enumerate(zoo()[:12])),
        )
        run = Crawl(SimWeb(11, hosts), settings())
        run.run()
        return list(run.log), [sink.kept for sink in run.sinks.values()], sorted(run.tally().items())

    assert crawl() == crawl()


@pytest.mark.parametrize("seed", range(20))
def test_random_webs_are_crawled_whole_and_politely(seed: int) -> None:
    """20 random webs under random settings: laws C and D hold, all plain pages arrive, none is asked for twice."""
    rng = random.Random(seed)
    shared = [address_of(900 + n) for n in range(3)]
    hosts = []
    for n in range(rng.randrange(3, 9)):
        name = rng.choice([f"h{n}.test", f"h{n}.shared{rng.randrange(2)}.test"])
        hosts.append(
            SimHost(
                name, rng.choice([address_of(n), rng.choice(shared)]), pages=rng.randrange(1, 12), links=rng.randrange(1, 6), page_bytes=400,
                robots=rng.choice([Robots.OPEN, Robots.PART, Robots.MISSING, Robots.DELAY, Robots.RECOVERS, Robots.REDIRECT]),
                traits=tuple(rng.sample([Trait.SITEMAP, Trait.REDIRECTS, Trait.STATUSES, Trait.RECOVERS, Trait.COPIES], rng.randrange(3))),
                latency_s=rng.choice([0.0, 0.05, 0.4]),
            )
        )  # fmt: skip
    crawl = Crawl(
        SimWeb(seed, hosts),
        settings(
            delay=rng.choice([0.2, 1.0]), slots=rng.choice([1, 3, 64]), max_depth=50, near_copies=rng.choice(["store", "link"])
        ),
    )
    crawl.run()
    while crawl.ends[-1].parked and crawl.runs < 6:  # a challenge parks its host; later runs go on
        crawl.clock.jump(90_000.0)
        crawl.run()
    check_funnel(crawl)
    check_manners(crawl)
    for host in hosts:
        for n in range(1, host.pages + 1):
            assert crawl.state(crawl.web.url(host, f"/p/{n:04d}"))[0] == "fetched"
    answered = Counter(contact.url for contact in crawl.log if contact.status == 200 and "/robots" not in contact.target)
    assert max(answered.values()) == 1
    stored = Counter(url for url, _, _ in crawl.sinks["pages"].kept)
    assert max(stored.values()) == 1


def test_the_last_url_fails_twice_and_then_arrives() -> None:
    """No busy spin while it waits, no early end: the run ends once, with the page."""
    host = SimHost("last.test", address_of(1), pages=1, traits=(Trait.RECOVERS,))
    crawl = Crawl(SimWeb(3, [host]), settings())
    worker = crawl.run()
    assert crawl.tally() == Counter({("fetched", ""): 4})
    assert len(crawl.ends) == 1
    assert worker.turns < 4 * len(crawl.log) + 4 * crawl.clock.monotonic() + 50


def test_a_drain_loses_nothing_and_keeps_every_gap() -> None:
    """Drained every few seconds and run again: the same pages as in one go, none stored twice, gaps kept across the stops."""
    hosts = [*plain_hosts(4, 15, page_bytes=200), SimHost("same.test", address_of(0), pages=4, page_bytes=200)]
    whole = Crawl(SimWeb(3, hosts), settings())
    whole.run()
    parts = Crawl(SimWeb(3, hosts), settings())
    for _ in range(30):
        parts.run(stop_after_s=2.5)
    parts.run()
    assert sorted(parts.sinks["pages"].kept) == sorted(whole.sinks["pages"].kept)
    assert parts.tally() == whole.tally()
    check_manners(parts)


@pytest.mark.parametrize("seed", range(20))
def test_crashes_at_any_moment_lose_nothing_and_break_no_gap(seed: int) -> None:
    """Crashed again and again at seeded moments: the same rows as undisturbed, every gap kept across the crashes."""
    rng = random.Random(seed)
    hosts = [
        *plain_hosts(4, 12, page_bytes=200),
        SimHost("same.test", address_of(0), pages=4, page_bytes=200, traits=(Trait.RECOVERS,)),
    ]
    hosts += [SimHost(f"s{n}.one.test", address_of(20 + n), pages=3, page_bytes=200, robots=Robots.REDIRECT) for n in range(2)]
    whole = Crawl(SimWeb(3, hosts), settings())
    whole.run()
    torn = Crawl(SimWeb(3, hosts), settings())
    for _ in range(12):
        torn.run(crash_after_s=rng.uniform(0.0, 6.0))
    torn.run()
    assert torn.tally() == whole.tally()
    check_funnel(torn)
    check_manners(torn)
    assert {url for url, _, _ in torn.sinks["pages"].kept} == {url for url, _, _ in whole.sinks["pages"].kept}


def test_a_full_disk_ends_the_run_with_its_error_and_loses_nothing() -> None:
    """The error reaches the caller as it is; what was not durable is asked again by the next run."""
    whole = Crawl(SimWeb(3, plain_hosts(4, 12, page_bytes=200)), settings())
    whole.run()
    crawl = Crawl(SimWeb(3, plain_hosts(4, 12, page_bytes=200)), settings())
    crawl.run(stop_after_s=6.0)
    crawl.sinks["pages"].full = True
    with pytest.raises(StoreError, match="no space"):
        crawl.run()
    crawl.run()
    assert crawl.tally() == whole.tally()
    check_funnel(crawl)
    check_manners(crawl)


def test_desks_and_books_are_given_back() -> None:
    """When a crawl is over, the loop remembers no host, no authority file, no try and no settlement."""
    crawl = Crawl(
        SimWeb(3, [*plain_hosts(30, 3, page_bytes=200), SimHost("r.test", address_of(90), robots=Robots.RECOVERS)]), settings()
    )
    worker = crawl.run()
    assert not worker._hosts.desks
    assert not worker._tools.book._known
    assert not worker._tools.book._fresh
    assert not worker._visitor.errands._tries
    assert not worker._pending


def test_what_waits_for_a_commit_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Past so many bytes a group commit is hurried, and however long the store takes nobody is asked until it has taken them. What is
    under way then still arrives, one page a slot. The pages are the same."""
    waiting, largest = [0], [0]
    commit = Committer.commit

    def watched(self: Committer, batch: list[Settlement], *, seal: bool = False) -> Committed:
        waiting.append(sum(settlement.size for settlement in batch))
        largest.append(max((settlement.size for settlement in batch), default=0))
        return commit(self, batch, seal=seal)

    def crawl(commit_s: float = 0.0) -> tuple[int, Counter[tuple[str, str]]]:
        waiting.clear()
        found = Crawl(SimWeb(3, plain_hosts(60, 4)), settings(slots=SLOTS))
        found.commit_s = commit_s
        found.run()
        return max(waiting), found.tally()

    monkeypatch.setattr(Committer, "commit", watched)
    patient, pages = crawl()
    slow, same = crawl(3.0)
    assert same == pages
    monkeypatch.setattr(worker, "WAITING_BYTES", patient // 8)
    hurried, same = crawl()
    assert same == pages
    assert hurried < patient / 2
    bounded, same = crawl(3.0)
    assert same == pages
    assert bounded <= patient // 8 + SLOTS * max(largest) < slow


def test_a_page_that_waits_for_a_licence_document_has_started_its_hosts_clock() -> None:
    """A crawl that is drained while a page waits for its licence: the page stays in line, and the next run waits the whole gap."""
    licence = ("Link", '</l.xml>; rel="license"; type="application/rsl+xml"')
    rsl = b'<rsl xmlns="https://rslstandard.org/rsl"><content url="*"><license/></content></rsl>'
    site = {"/robots.txt": reply(404), "/": reply(200, licence), "/l.xml": reply(200, body=rsl)}
    crawl = Crawl(Web({"law.test": site}), settings(delay=20.0, delay_start=20.0, ip_delay=0.0))
    crawl.run(stop_after_s=90.0)
    assert [contact.target for contact in crawl.log][-1] == "/", "the first run ends between the page and its licence"
    crawl.run()
    check_manners(crawl)
    assert crawl.tally()["fetched", ""] == 1
