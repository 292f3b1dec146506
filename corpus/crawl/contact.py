"""One contact: resolve, hold the groups, ask, let go of the groups with the gap that the answer earned.

From the first byte sent until `_end`, the host, its registered domain and its address are ours alone; with several
fetch processes the address is also claimed from the others. Nothing here knows what was asked for or why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from corpus.crawl import breaker
from corpus.crawl.cached import HIT, MISS, cache_of
from corpus.crawl.cdn import by_headers, shipped
from corpus.crawl.desk import Desk
from corpus.crawl.hosts import Hosts
from corpus.crawl.pace import PUBLIC_FLOOR_S, all_private, answer_of, asked_for_s, domain_gap_s, host_after, limits, pace_of
from corpus.crawl.ports import Clock, Due, Request, Resolver, Transport
from corpus.crawl.schedule import Busy
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.slow import slowed
from corpus.model import Failed, FetchResult, Kind, Response
from corpus.optout.status import retry_after_s


class Claims(Protocol):
    """Claims on addresses, shared with the other fetch processes (`ports.IpClaims` behind a thread)."""

    async def claim(self, ip: str) -> float | None:
        """Seconds until the address may be contacted by us; None while another process holds it."""
        ...

    async def release(self, ip: str, gap_s: float) -> None:
        """Give it back; the next contact of anyone may come `gap_s` from now."""
        ...


@dataclass(slots=True)
class Counts:
    """Contacts of this run, for the summary."""

    pages: int = 0
    requests: int = 0
    policy_requests: int = 0
    bytes_wire: int = 0
    bytes_body: int = 0
    by_status: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Unresolved:
    """No contact was made: the name has no address that we may use."""

    failed: Failed


@dataclass(frozen=True, slots=True)
class NotNow:
    """No contact was made: the address is busy. The host is back in line."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A contact was made; it is over, and the row of the desk says what it earned. `finish` must be called."""

    request: Request
    result: FetchResult


_UNREAD = {Kind.PAGE: "backing-off", Kind.SITEMAP: "backing-off", Kind.ROBOTS: "robots-unreachable"}
"""Why a host waits that does not answer; other kinds are statement files."""


class Contacts:
    """Makes contacts for one loop."""

    def __init__(
        self, settings: CrawlSettings, hosts: Hosts, transport: Transport, resolver: Resolver, clock: Clock, claims: Claims | None,
        *, paused: Callable[[Desk], Awaitable[None]], slower: Callable[[str], float] = lambda host: 1.0,
    ) -> None:  # fmt: skip
        self.counts = Counts()
        self._settings, self._hosts, self._transport, self._resolver, self._clock = settings, hosts, transport, resolver, clock
        self._claims, self._paused, self._slower = claims, paused, slower
        self._trusted = frozenset(row.host for row in settings.trusted)

    async def ask(
        self, desk: Desk, url: str, kind: Kind, tries: int, headers: tuple[tuple[str, str], ...] = ()
    ) -> Asked | Unresolved | NotNow:
        """Ask a host for a URL. `tries` picks one of several addresses."""
        host = desk.row.host
        resolved = await self._resolver.resolve(host)
        if isinstance(resolved, Failed):
            return Unresolved(resolved)
        ip = resolved.addresses[tries % len(resolved.addresses)]
        if desk.row.ips != resolved.addresses[:4]:
            desk.row = replace(desk.row, ips=resolved.addresses[:4])
        if (silent_s := self._hosts.addresses.wait_s(ip, self._clock.monotonic())) > 0.0:
            self._rest(desk, silent_s)
            return NotNow()
        if isinstance(self._hosts.schedule.begin(host, ip, self._clock.monotonic()), Busy) or not await self._claimed(desk, ip):
            self._hosts.addresses.ended(ip, host, None, self._clock.monotonic())
            return NotNow()
        request = Request(url, host, ip, kind, headers)
        try:
            result = await self._transport.fetch(request)
        except asyncio.CancelledError:
            self._aborted(desk, ip)
            self._hosts.addresses.ended(ip, host, None, self._clock.monotonic())
            raise
        self._hosts.addresses.ended(ip, host, result, self._clock.monotonic())
        wall = self._clock.wall()
        row = host_after(desk.row, answer_of(result, _asked_for(result)), self._settings, wall)
        row = breaker.host_after(row, breaker.failed(result), self._settings, wall, _UNREAD.get(kind, "policy-unreachable"))
        said = cache_of(result.headers)[0] if isinstance(result, Response) else ""
        if said:
            row = replace(row, cache_hits=row.cache_hits + (said == HIT), cache_misses=row.cache_misses + (said == MISS))
        desk.row = row
        if isinstance(result, Response) and by_headers(result.headers):
            self._hosts.schedule.mark_cdn(ip)
        self._count(request, result)
        return Asked(request, result)

    def _rest(self, desk: Desk, wait_s: float) -> None:
        """Nothing is asked at this address for a while: the host waits inside the run, or is parked."""
        self._hosts.schedule.skip(desk.row.host, self._clock.monotonic(), wait_s)
        if wait_s > self._settings.park_after:
            self._hosts.park(desk, "backing-off", wait_s)

    async def finish(self, desk: Desk, asked: Asked) -> None:
        """Let go: from the end of the answer on, the gaps count. Called once what was learnt of the pace is in the row."""
        now, wall, factor = self._clock.monotonic(), self._clock.wall(), self._slower(desk.row.host)
        domain_s = factor * domain_gap_s(desk.row.due.remaining(wall), self._settings)
        row = desk.row = slowed(desk.row, factor, self._settings)
        wait_s = row.due.remaining(wall)
        self._hosts.schedule.end(row.host, now, wait_s, domain_s=domain_s, ip=asked.request.ip, slower=factor)
        if row.state == "parked":
            self._hosts.rest(desk, now + wait_s)
            await self._paused(desk)
        await self._release(desk, asked.request.ip)

    async def _claimed(self, desk: Desk, ip: str) -> bool:
        """Claim the address from the other processes; False when the host must come again."""
        if not self._must_claim(desk, ip):
            return True
        assert self._claims is not None, "there is somebody to claim from"
        gap_s = self._settings.ip_gap_s
        wait_s = await self._claims.claim(ip)
        if wait_s is not None and wait_s <= gap_s:
            if wait_s > 0:
                await self._clock.sleep(wait_s)
            return True
        if wait_s is not None:
            await self._claims.release(ip, wait_s)
        self._hosts.schedule.end(desk.row.host, self._clock.monotonic(), gap_s, domain_s=0.0, ip=ip)
        return False

    def _must_claim(self, desk: Desk, ip: str) -> bool:
        return self._claims is not None and desk.row.host not in self._trusted and not shipped().name(ip)

    async def _release(self, desk: Desk, ip: str) -> None:
        if self._must_claim(desk, ip):
            assert self._claims is not None, "there is somebody to give it back to"
            await self._claims.release(ip, self._address_gap_s(ip) * self._slower(desk.row.host))

    def _address_gap_s(self, ip: str) -> float:
        gap_s = self._settings.ip_gap_s
        return gap_s if all_private((ip,), self._settings) else max(gap_s, PUBLIC_FLOOR_S)

    def _aborted(self, desk: Desk, ip: str) -> None:
        """We broke a contact off: its gap counts from now, and the row says so."""
        bounds = limits(desk.row.host, self._settings, desk.row.ips)
        pace = pace_of(desk.row, bounds)
        gap_s = max(pace.gap_s, asked_for_s(pace, bounds, self._settings))
        wall = self._clock.wall()
        desk.row = replace(desk.row, due=Due(wall, gap_s), domain_due=Due(wall, domain_gap_s(gap_s, self._settings)))
        self._hosts.schedule.end(desk.row.host, self._clock.monotonic(), gap_s, ip=ip)

    def _count(self, request: Request, result: FetchResult) -> None:
        counts = self.counts
        counts.requests += 1
        counts.policy_requests += request.kind is not Kind.PAGE
        status = str(result.status) if result.status is not None else "failed"
        counts.by_status[status] = counts.by_status.get(status, 0) + 1
        if isinstance(result, Response):
            counts.bytes_wire += result.bytes_wire
            counts.bytes_body += len(result.decoded)


def _asked_for(result: FetchResult) -> float | None:
    """Retry-After in seconds from the end of the answer."""
    if isinstance(result, Failed):
        return result.retry_after_s
    if result.status not in (429, 503):
        return None
    values = [value for name, value in result.headers if name.lower() == "retry-after"]
    return retry_after_s(values, result.header("date"), result.ended_at)
