"""The network edge: one GET over aiohttp, to exactly the address that was vetted, inside every limit.

Promises: the connection goes to `Request.ip` and nowhere else (the URL handed to the library holds the address; Host,
SNI and certificate check use the name); no redirect, cookie, retry or second connection is ever made behind the
caller's back; raw headers and the still-encoded body come back; nothing raises for what the web does. uvloop is the
caller's choice of loop.

Never: it does not resolve names, judge statuses, keep a pace or read robots.txt. With `crawl.proxy` the proxy makes
the connection: to the vetted address for https (CONNECT), but to the name for plain http, as proxies demand (RFC 9112
§3.2.2), so there the proxy must refuse private addresses itself.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from yarl import URL

from corpus.crawl.addresses import literal
from corpus.crawl.clock import RealClock
from corpus.crawl.fetch_body import Body, Head, settle
from corpus.crawl.fetch_limits import HEADER_TOTAL, Deadline, body_deadline, head_deadline, limits_for, wanted
from corpus.crawl.fetch_session import Asked, BrokenError, Handler, Idle, open_session, tls_context, translated
from corpus.crawl.identity import request_headers
from corpus.crawl.ports import Clock, Request
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.wire import Target, first, raw_request, target_of
from corpus.model import Failed, Failure, FetchResult
from corpus.page.encoding import Decoded

INLINE_DECODED = 512 * 1024
"""Decoded on the loop (about 2 ms); a body that turns out larger is decoded again, whole, in a thread."""


class HttpTransport:
    """`Transport` over real sockets. Create, use and close it inside one running loop.

    Any number of fetches may be in flight; the process needs a file descriptor for each, and one more for every idle
    connection (`KEEP_ALIVE_MAX`).
    """

    def __init__(self, settings: CrawlSettings, clock: Clock | None = None) -> None:
        self._settings, self._clock = settings, clock or RealClock()
        self._tls = tls_context(settings)
        self._session: aiohttp.ClientSession | None = None
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="decode")
        self._idle = Idle()

    async def fetch(self, request: Request) -> FetchResult:
        """One GET: `Response` for every answer that is HTTP, `Failed` for everything else. Never raises for the web."""
        target = target_of(request.url)
        if target is None:
            return self._no(request, Failure.PROTOCOL, "not a URL that can be asked for")
        if literal(target.host) not in {None, request.ip}:
            return self._no(request, Failure.ADDRESS, f"{target.host} is not the vetted address {request.ip}")
        guard = asyncio.timeout(None)
        flight = _Flight(request, self._settings, self._clock, guard)
        try:
            async with guard:
                broke = await self._exchange(flight, target)
        except TimeoutError:
            broke = flight.failed(flight.deadline.failure, flight.deadline.detail)
        except BrokenError as broken:
            broke = flight.failed(broken.failure, broken.detail)
        if flight.head is None or flight.body is None:
            assert broke is not None, "an exchange without a head has failed"
            return broke
        ended_at = self._clock.wall()
        decoded = await self._decoded(flight.body, flight.body.wire())
        return settle(request, flight.head, flight.body, decoded, ended_at, broke=broke)

    async def close(self) -> None:
        """Close every connection; fetches still in flight fail."""
        if self._session is not None:
            await self._session.close()
            self._session = None
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _exchange(self, flight: _Flight, target: Target) -> Failed | None:
        """Send, read the head, read the body as far as it is wanted; a `Failed` when the head says not to."""
        place, time = (target.host, flight.request.ip, target.port), asyncio.get_running_loop().time
        flight.start()
        flight.ticket, kept, keep = self._idle.take(place, time())
        headers = request_headers(self._settings, flight.request)
        if not keep:
            headers = (*headers, ("Connection", "close"))
        try:
            response = await self._send(flight, target, headers)
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            raise translated(exc) from exc
        except BrokenError:
            if kept:
                self._idle.distrust(place)
            raise
        try:
            flight.on_head(_head(response, flight, raw_request(target, headers), self._tls_mode(target)))
            if fault := self._unwanted(flight):
                return fault
            await self._read(flight, response.content)
            if keep and response.content.at_eof():
                self._idle.give(place, flight.ticket, time(), response.headers.get("Keep-Alive"))
        finally:
            # At the end of a body the connection has gone back to the pool by itself; anywhere else it must not.
            response.close()
        return None

    async def _send(self, flight: _Flight, target: Target, headers: tuple[tuple[str, str], ...]) -> aiohttp.ClientResponse:
        name = target.host.strip("[]")
        by_name = self._settings.proxy is not None and target.scheme == "http"
        if self._session is None:
            self._session = open_session(self._tls)
        return await self._session.request(
            "GET",
            URL(target.at(name if by_name else flight.request.ip), encoded=True),
            headers=(("Host", target.host_header), *headers),
            allow_redirects=False,
            proxy=self._settings.proxy,
            server_hostname=name,
            middlewares=(flight.middleware,),
        )

    def _unwanted(self, flight: _Flight) -> Failed | None:
        head = flight.head
        assert head is not None
        if head.size() > HEADER_TOTAL:
            return flight.refuse(Failure.PROTOCOL, f"headers of more than {HEADER_TOTAL} bytes")
        kind = first(head.headers, "content-type")
        if not wanted(flight.request.kind, head.status, kind, self._settings.content_types):
            return flight.refuse(Failure.CONTENT_TYPE, f"Content-Type: {kind}")
        return None

    async def _read(self, flight: _Flight, stream: aiohttp.StreamReader) -> None:
        body, time = flight.body, asyncio.get_running_loop().time
        assert body is not None
        head_at = time()
        flight.until(body_deadline(body.limits, flight.started, head_at, head_at, 0))
        try:
            while not body.full and (chunk := await stream.readany()):
                body.add(chunk)
                flight.until(body_deadline(body.limits, flight.started, head_at, time(), body.received))
                while (part := body.probe()) is not None:
                    body.probed(await self._in_thread(body, part))
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            raise translated(exc) from exc

    async def _decoded(self, body: Body, wire: bytes) -> Decoded:
        first_try = body.decode(wire, INLINE_DECODED)
        return await self._in_thread(body, wire) if first_try.truncated else first_try

    async def _in_thread(self, body: Body, wire: bytes) -> Decoded:
        return await asyncio.get_running_loop().run_in_executor(self._threads, body.decode, wire)

    def _tls_mode(self, target: Target) -> str:
        return self._settings.tls if target.scheme == "https" else ""

    def _no(self, request: Request, failure: Failure, detail: str) -> Failed:
        now = self._clock.wall()
        return Failed(failure, detail, now, now, request.ip)


class _Flight:
    """One request in the air: its times, its deadline, and what was learnt so far."""

    def __init__(self, request: Request, settings: CrawlSettings, clock: Clock, guard: asyncio.Timeout) -> None:
        self.request, self.settings, self.clock, self.guard = request, settings, clock, guard
        self.limits = limits_for(settings, request.kind)
        self.started_at, self.started = clock.wall(), asyncio.get_running_loop().time()
        self.connected = self.started
        self.deadline = head_deadline(self.limits, self.started, None)
        self.head: Head | None = None
        self.body: Body | None = None
        self.ticket = 0

    def start(self) -> None:
        self.until(self.deadline)

    def until(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.guard.reschedule(deadline.at)

    def on_connected(self) -> None:
        self.connected = asyncio.get_running_loop().time()
        self.until(head_deadline(self.limits, self.started, self.connected))

    def on_head(self, head: Head) -> None:
        self.head = head
        self.body = Body(limits_for(self.settings, self.request.kind, head.status), head.headers)

    def failed(self, failure: Failure, detail: str) -> Failed:
        status = self.head.status if self.head else None
        return Failed(failure, detail, self.started_at, self.clock.wall(), self.request.ip, status)

    def refuse(self, failure: Failure, detail: str) -> Failed:
        """The head is enough to know that nothing of this answer is kept."""
        self.body = None
        return self.failed(failure, detail)

    async def middleware(self, req: ClientRequest, handler: Handler) -> aiohttp.ClientResponse:
        """Between the library and its connector: learn when the connection stands, and let it never ask twice."""
        if isinstance(req, Asked):
            req.on_connected, req.ticket = self.on_connected, self.ticket
        try:
            try:
                return await handler(req)
            except aiohttp.ClientConnectionResetError:
                # The server had closed the idle connection before a byte was written: no contact has happened yet.
                return await handler(req)
        except (aiohttp.ClientError, OSError) as exc:
            raise translated(exc) from exc


def _head(response: aiohttp.ClientResponse, flight: _Flight, sent: bytes, tls: str) -> Head:
    """The head as received: order, case and repeats of the headers kept, bytes as latin-1."""
    version = response.version
    number = f"{version.major}.{version.minor}" if version else "1.1"
    return Head(
        status=response.status,
        line=f"HTTP/{number} {response.status} {response.reason or ''}".rstrip(),
        headers=tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.raw_headers),
        raw_request=sent,
        started_at=flight.started_at,
        latency_s=asyncio.get_running_loop().time() - flight.connected,
        tls=tls,
    )
