"""Host names to vetted addresses: cached, each name asked once at a time, never longer than its time.

Promises: an address that `addresses.vet` refuses is never returned, also when the host is itself an address; every
call ends within `DnsLimits.total_s`; negative answers are remembered too. Addresses come back in one fixed order
(IPv4 before IPv6, then by number), so that a host keeps its place in the IP groups of the pace.

Never: it does not connect to what it resolves, and it raises for nothing that a name server does.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import ip_address

from corpus.crawl.addresses import literal, networks, vet
from corpus.crawl.dns_client import Answer, NameServers, SystemResolver
from corpus.crawl.dns_wire import DnsFormatError, encode_name
from corpus.crawl.ports import Clock, Resolved
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure


@dataclass(frozen=True, slots=True)
class DnsLimits:
    """Seconds and counts. The floor also keeps a name from changing its address under our feet (rebinding)."""

    total_s: float = 10.0
    try_s: float = 2.5
    ttl_floor_s: float = 60.0
    ttl_ceiling_s: float = 3_600.0
    negative_s: float = 300.0
    """A name that does not exist, unless its zone says less."""
    failure_s: float = 30.0
    """A name server that fails or is silent."""
    concurrency: int = 64
    cached: int = 20_000


@dataclass(frozen=True, slots=True)
class _Entry:
    expires: float
    addresses: tuple[str, ...]
    failure: Failure | None
    detail: str


class CachingResolver:
    """`Resolver` over `crawl.resolver`, else over the system's. Create, use and close it inside one running loop."""

    def __init__(self, settings: CrawlSettings, clock: Clock, limits: DnsLimits | None = None) -> None:
        self._limits, self._clock = limits or DnsLimits(), clock
        self._allow = networks(settings.allow_private)
        self._source: NameServers | SystemResolver = (
            NameServers(settings.resolver, self._limits.try_s) if settings.resolver else SystemResolver(self._limits.concurrency)
        )
        self._slots = asyncio.Semaphore(self._limits.concurrency)
        self._cache: OrderedDict[str, _Entry] = OrderedDict()
        self._asking: dict[str, asyncio.Task[_Entry]] = {}

    async def resolve(self, host: str) -> Resolved | Failed:
        """Vetted addresses, or `Failed` with `DNS` (no such name, no answer) or `ADDRESS` (every address is refused)."""
        started = self._clock.wall()
        entry = await self._entry(host.lower())
        if entry.failure is None:
            return Resolved(entry.addresses)
        return Failed(entry.failure, entry.detail, started, self._clock.wall())

    async def close(self) -> None:
        """Stop what is being asked; its waiters get `CancelledError`."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _entry(self, host: str) -> _Entry:
        now = self._clock.monotonic()
        cached = self._cache.get(host)
        if cached is not None and now < cached.expires:
            self._cache.move_to_end(host)
            return cached
        task = self._asking.get(host)
        if task is None:
            task = asyncio.create_task(self._ask(host))
            self._asking[host] = task
            task.add_done_callback(lambda _: self._asking.pop(host, None))
        # One caller's cancellation must not take the answer away from the others.
        return await asyncio.shield(task)

    async def _ask(self, host: str) -> _Entry:
        limits = self._limits
        address = literal(host)
        if address is not None:
            answer = Answer((address,), limits.ttl_ceiling_s)
        else:
            answer = await self._answer(host)
        entry = self._judge(answer)
        self._cache[host] = entry
        while len(self._cache) > limits.cached:
            self._cache.popitem(last=False)
        return entry

    async def _answer(self, host: str) -> Answer:
        try:
            encode_name(host)
            async with asyncio.timeout(self._limits.total_s), self._slots:
                return await self._source.ask(host)
        except DnsFormatError as exc:
            return Answer(exists=False, detail=str(exc))
        except TimeoutError:
            return Answer(detail=f"no answer within {self._limits.total_s:g} s")

    def _judge(self, answer: Answer) -> _Entry:
        limits, now = self._limits, self._clock.monotonic()
        if not answer.addresses:
            said = limits.negative_s if answer.ttl_s is None else answer.ttl_s
            keep = limits.failure_s if answer.exists is None else min(max(said, limits.failure_s), limits.negative_s)
            return _Entry(now + keep, (), Failure.DNS, answer.detail or "no address")
        vetted = sorted({a for a in answer.addresses if vet(a, self._allow)}, key=_order)
        keep = min(max(answer.ttl_s or 0.0, limits.ttl_floor_s), limits.ttl_ceiling_s)
        if not vetted:
            return _Entry(now + keep, (), Failure.ADDRESS, f"resolves to {', '.join(sorted(answer.addresses)[:4])}")
        return _Entry(now + keep, tuple(vetted), None, "")


def _order(address: str) -> tuple[int, int]:
    ip = ip_address(address)
    return ip.version, int(ip)
