"""The network edge: one GET, to exactly the address that was vetted, inside every limit.

Promises: the connection goes to `Request.ip` and nowhere else (Host, SNI and certificate check use the name); what is
sent is `wire.raw_request`, byte for byte; no redirect, cookie, retry or second connection is ever made behind the
caller's back; raw headers and the still-encoded body come back; nothing raises for what the web does. uvloop is the
caller's choice of loop.

Never: it does not resolve names, judge statuses, keep a pace or read robots.txt. With `crawl.proxy` the proxy makes
the connection: to the vetted address for https (CONNECT), but to the name for plain http, as proxies demand (RFC 9112
§3.2.2), so there the proxy must refuse private addresses itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.http import HttpProcessingError
from yarl import URL

from corpus.crawl.addresses import literal
from corpus.crawl.clock import RealClock
from corpus.crawl.fetch_body import Body, Head, settle
from corpus.crawl.fetch_limits import HEADER_TOTAL, Deadline, body_deadline, head_deadline, limits_for, wanted
from corpus.crawl.fetch_line import Guard, Line, Lines, left_over, read_alike
from corpus.crawl.fetch_session import Asked, BrokenError, Handler, Idle, Place, open_session, tls_context, translated
from corpus.crawl.identity import request_headers
from corpus.crawl.ports import Clock, Request
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.wire import Headers, Target, first, raw_request, target_of
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
        self._lines = Lines(self._tls)
        self._session: aiohttp.ClientSession | None = None
        """Made when a proxy is to be spoken to."""
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="decode")
        self._idle = Idle()
        self.before_send: Callable[[], Awaitable[None]] | None = None
        """Awaited when the connection stands, before a byte is sent: whoever asks may have lost the right to meanwhile."""
        self.met: Callable[[str, float], None] | None = None
        """Hears how long a new connection to a host took to stand (seconds)."""

    async def fetch(self, request: Request) -> FetchResult:
        """One GET: `Response` for every answer that is HTTP, `Failed` for everything else. Never raises for the web."""
        target = target_of(request.url)
        if target is None:
            return self._no(request, Failure.PROTOCOL, "not a URL that can be asked for")
        if literal(target.host) not in {None, request.ip}:
            return self._no(request, Failure.ADDRESS, f"{target.host} is not the vetted address {request.ip}")
        guard = Guard()
        flight = _Flight(request, self._settings, self._clock, guard)
        try:
            with guard:
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
        """Close every idle connection; those of fetches still in flight end with them."""
        self._lines.close()
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
        sent = raw_request(target, headers)
        try:
            if self._settings.proxy is None:
                answer = await self._ask(flight, target, sent, kept=kept)
            else:
                answer = await self._ask_proxy(flight, target, headers)
        except BrokenError:
            if kept:
                self._idle.distrust(place)
            raise
        try:
            flight.on_head(_head(answer, flight, sent, self._tls_mode(target)))
            if fault := self._unwanted(flight):
                return fault
            await self._read(flight, answer.content)
            if keep and answer.content.at_eof():
                self._keep(flight, place, answer, time())
        finally:
            await answer.close()
        return None

    async def _ask(self, flight: _Flight, target: Target, sent: bytes, *, kept: bool) -> _Answer:
        """Over a connection of our own: the one that lies idle for this place, or a new one."""
        line = self._lines.kept(flight.ticket) if kept else None
        if line is None:
            asked = asyncio.get_running_loop().time()
            line = await self._lines.open(target, flight.request.ip)
            if self.met is not None:
                self.met(flight.request.host, asyncio.get_running_loop().time() - asked)
        flight.on_connected()
        try:
            if self.before_send is not None:
                await self.before_send()
            message, content = await line.ask(sent)
        except BaseException:
            await line.close()
            raise
        version = f"{message.version.major}.{message.version.minor}"
        return _Answer(message.code, version, message.reason, message.raw_headers, content, line.close, line)

    async def _ask_proxy(self, flight: _Flight, target: Target, headers: Headers) -> _Answer:
        """Over the library's client, which knows how to speak to a proxy."""
        name = target.host.strip("[]")
        if self._session is None:
            self._session = open_session(self._tls)
            read_alike(self._session)
        try:
            response = await self._session.request(
                "GET",
                URL(target.at(name if target.scheme == "http" else flight.request.ip), encoded=True),
                headers=(("Host", target.host_header), *headers),
                allow_redirects=False,
                proxy=self._settings.proxy,
                server_hostname=name,
                middlewares=(flight.middleware,),
            )
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            raise translated(exc) from exc
        version = f"{response.version.major}.{response.version.minor}" if response.version else "1.1"
        # At the end of a body its connection has gone back to the library's pool by itself; anywhere else it must not.
        return _Answer(
            response.status, version, response.reason, response.raw_headers, response.content, _closing(response), None
        )

    def _keep(self, flight: _Flight, place: Place, answer: _Answer, now: float) -> None:
        """The exchange is over and the connection idle: note it, unless the server said that it will hang up."""
        if answer.line is not None:
            if not answer.line.alive:
                return
            self._lines.keep(flight.ticket, answer.line)
        assert flight.head is not None, "an answer that was read has a head"
        self._idle.give(place, flight.ticket, now, first(flight.head.headers, "keep-alive"))

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
        broke: BrokenError | None = None
        while broke is None and not body.full:
            try:
                chunk = await stream.readany()
            except (aiohttp.ClientError, HttpProcessingError, OSError, ValueError, RuntimeError) as exc:
                broke, chunk = translated(exc), left_over(stream)  # RuntimeError: the connection is closed already
            if not chunk:
                break
            body.add(chunk)
            flight.until(body_deadline(body.limits, flight.started, head_at, time(), body.received))
            while (part := body.probe()) is not None:
                body.probed(await self._in_thread(body, part))
        if broke is not None:
            raise broke

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


class _Answer(NamedTuple):
    """The head of an answer and its body as it comes in. `line`: the connection, where it is ours. `close` ends the exchange."""

    status: int
    version: str
    reason: str | None
    raw_headers: tuple[tuple[bytes, bytes], ...]
    content: aiohttp.StreamReader
    close: Callable[[], Awaitable[None]]
    line: Line | None


def _closing(response: aiohttp.ClientResponse) -> Callable[[], Awaitable[None]]:
    async def close() -> None:
        response.close()

    return close


class _Flight:
    """One request in the air: its times, its deadline, and what was learnt so far."""

    def __init__(self, request: Request, settings: CrawlSettings, clock: Clock, guard: Guard) -> None:
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
        self.guard.until(deadline.at)

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


def _head(answer: _Answer, flight: _Flight, sent: bytes, tls: str) -> Head:
    """The head as received: order, case and repeats of the headers kept, bytes as latin-1."""
    if answer.status < 100:
        raise BrokenError(Failure.PROTOCOL, f"status {answer.status:03d} is none")
    return Head(
        status=answer.status,
        line=f"HTTP/{answer.version} {answer.status} {answer.reason or ''}".rstrip(),
        headers=tuple([(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.raw_headers]),
        raw_request=sent,
        started_at=flight.started_at,
        latency_s=asyncio.get_running_loop().time() - flight.connected,
        tls=tls,
    )
