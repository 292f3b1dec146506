"""The resolver against a real name server on loopback: caching, vetting, every way of not answering."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from corpus.crawl.dns import CachingResolver, DnsLimits
from corpus.crawl.dns_wire import AAAA, A
from corpus.crawl.ports import Resolved
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure
from corpus.testing.clock import VirtualClock
from corpus.testing.dns import SimDns
from corpus.testing.web_answer import Name

T = TypeVar("T")
PUBLIC = ("93.184.216.34", "2600:1406::1")
NAMES = {
    "a.test": Name(PUBLIC, ttl=1),
    "long.test": Name(PUBLIC, ttl=86_400),
    "six.test": Name(("2600:1406::1",)),
    "loop.test": Name(("127.1.0.5",)),
    "private.test": Name(("10.0.0.1", "::ffff:10.0.0.1")),
    "mixed.test": Name(("10.0.0.1", "8.8.8.8")),
    "gone.test": Name(rcode=3),
    "fails.test": Name(rcode=2),
    "silent.test": Name(silent=True),
    "empty.test": Name(()),
    "alias.test": Name(alias="b.alias.test"),
    "b.alias.test": Name(alias="a.test"),
    "ring.test": Name(alias="gnir.test"),
    "gnir.test": Name(alias="ring.test"),
    "many.test": Name(tuple(f"8.8.{n}.1" for n in range(60))),
}
QUICK = DnsLimits(total_s=0.8, try_s=0.2)


class HandClock(VirtualClock):
    """A clock that moves only by hand, for the cache; the sockets live in real time."""

    def move(self, seconds: float) -> None:
        self._now += seconds


def asking(job: Callable[[CachingResolver, SimDns, HandClock], Awaitable[T]], *, limits: DnsLimits = QUICK, **server: bool) -> T:
    async def main() -> T:
        async with SimDns(NAMES, always_cut=server.get("always_cut", False), forged=server.get("forged", False)) as dns:
            settings = CrawlSettings(resolver=(dns.endpoint,), allow_private=("127.0.0.0/8",))
            clock = HandClock()
            resolver = CachingResolver(settings, clock, limits)
            try:
                return await job(resolver, dns, clock)
            finally:
                await resolver.close()

    return asyncio.run(main())


def resolve(host: str, **more: bool) -> Resolved | Failed:
    return asking(lambda resolver, dns, clock: resolver.resolve(host), **more)


@pytest.mark.parametrize(
    ("host", "addresses"),
    [
        ("a.test", PUBLIC),
        ("A.Test", PUBLIC),
        ("six.test", ("2600:1406::1",)),
        ("loop.test", ("127.1.0.5",)),
        ("mixed.test", ("8.8.8.8",)),
        ("alias.test", PUBLIC),
        ("8.8.8.8", ("8.8.8.8",)),
        ("127.1", ("127.0.0.1",)),
        ("[2600:1406::1]", ("2600:1406::1",)),
    ],
)
def test_names_become_vetted_addresses_in_one_order(host: str, addresses: tuple[str, ...]) -> None:
    """IPv4 before IPv6, by number; refused ones left out; aliases followed; literals vetted, not asked about."""
    assert resolve(host) == Resolved(addresses)


@pytest.mark.parametrize(
    ("host", "failure"),
    [
        ("private.test", Failure.ADDRESS),
        ("10.0.0.1", Failure.ADDRESS),
        ("0x7f000001.1", Failure.ADDRESS),
        ("169.254.169.254", Failure.ADDRESS),
        ("[::ffff:10.0.0.1]", Failure.ADDRESS),
        ("999.1.1.1", Failure.ADDRESS),
        ("gone.test", Failure.DNS),
        ("unknown.test", Failure.DNS),
        ("fails.test", Failure.DNS),
        ("empty.test", Failure.DNS),
        ("ring.test", Failure.DNS),
        ("silent.test", Failure.DNS),
        ("a..test", Failure.DNS),
        ("x" * 64 + ".test", Failure.DNS),
    ],
)
def test_what_cannot_be_connected_to_is_a_failure(host: str, failure: Failure) -> None:
    """A refused address is `ADDRESS`, no address is `DNS`; nothing raises and nothing hangs."""
    began = time.monotonic()
    result = resolve(host)
    assert isinstance(result, Failed)
    assert result.failure is failure
    assert time.monotonic() - began < QUICK.total_s + 0.7


def test_a_cut_answer_is_asked_for_again_over_tcp() -> None:
    """Sixty addresses do not fit a datagram; a server that always cuts is still understood."""
    result = resolve("many.test")
    assert isinstance(result, Resolved)
    assert len(result.addresses) == 60
    assert resolve("a.test", always_cut=True) == Resolved(PUBLIC)


def test_a_name_is_asked_once_however_many_wait() -> None:
    """Fifty at once, then fifty more: one A and one AAAA query in all; also for names that do not exist."""

    async def job(resolver: CachingResolver, dns: SimDns, clock: HandClock) -> list[tuple[str, str, int]]:
        for _ in range(2):
            results = await asyncio.gather(*(resolver.resolve(h) for h in ["a.test", "gone.test"] * 50))
            assert isinstance(results[0], Resolved)
        return sorted(dns.queries)

    assert asking(job) in (
        [("udp", "a.test", A), ("udp", "a.test", AAAA), ("udp", "gone.test", A), ("udp", "gone.test", AAAA)],
        [("udp", "a.test", A), ("udp", "a.test", AAAA), ("udp", "gone.test", A)],
    )


@pytest.mark.parametrize(
    ("host", "holds", "over"), [("a.test", 59, 61), ("long.test", 3599, 3601), ("gone.test", 299, 301), ("fails.test", 29, 31)]
)
def test_times_to_live_have_a_floor_and_a_ceiling(host: str, holds: float, over: float) -> None:
    """1 s is kept 60 s, a day an hour, a missing name 300 s, a failing server 30 s."""

    async def job(resolver: CachingResolver, dns: SimDns, clock: HandClock) -> tuple[int, int, int]:
        counts = []
        for wait_s in (0.0, holds, over - holds):
            clock.move(wait_s)
            await resolver.resolve(host)
            counts.append(len(dns.queries))
        return (counts[0], counts[1], counts[2])

    first, second, third = asking(job)
    assert first == second < third


def test_one_waiter_leaving_does_not_take_the_answer_away() -> None:
    """A cancelled asker leaves the query to the others."""

    async def job(resolver: CachingResolver, dns: SimDns, clock: HandClock) -> Resolved | Failed:
        first = asyncio.create_task(resolver.resolve("a.test"))
        second = asyncio.create_task(resolver.resolve("a.test"))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asking(job) == Resolved(PUBLIC)


def test_forged_and_broken_datagrams_are_not_believed() -> None:
    """Rubbish and answers with another id are passed over until the true one comes."""
    assert asking(lambda resolver, dns, clock: resolver.resolve("a.test"), forged=True) == Resolved(PUBLIC)


def test_the_systems_resolver_never_blocks_past_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """`getaddrinfo` stuck for long: every asker is freed in time, and no more threads hang than are allowed."""
    release, stuck = threading.Event(), []

    def hang(*_: object, **__: object) -> list[object]:
        stuck.append(1)
        release.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)

    async def main() -> tuple[float, list[Resolved | Failed]]:
        resolver = CachingResolver(CrawlSettings(), HandClock(), DnsLimits(total_s=0.3, concurrency=4))
        began = time.monotonic()
        results = await asyncio.gather(*(resolver.resolve(f"h{n}.test") for n in range(20)))
        await resolver.close()
        return time.monotonic() - began, list(results)

    took, results = asyncio.run(main())
    release.set()
    assert took < 20.0, "a look-up that hangs for good holds nobody up, however busy the machine"
    assert all(isinstance(r, Failed) and r.failure is Failure.DNS for r in results)
    assert len(stuck) <= 4


def test_the_systems_resolver_answers_and_is_vetted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the system says passes the same vetting."""

    def answer(host: str, *_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        address = {"good.test": "8.8.8.8", "bad.test": "192.168.0.1"}.get(host)
        if address is None:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)

    async def main() -> list[Resolved | Failed]:
        resolver = CachingResolver(CrawlSettings(), HandClock())
        return [await resolver.resolve(h) for h in ("good.test", "bad.test", "none.test")]

    good, bad, none = asyncio.run(main())
    assert good == Resolved(("8.8.8.8",))
    assert isinstance(bad, Failed)
    assert bad.failure is Failure.ADDRESS
    assert isinstance(none, Failed)
    assert none.failure is Failure.DNS
