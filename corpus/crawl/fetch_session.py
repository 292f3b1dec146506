"""aiohttp, tamed: a session that does only what it is told, its TLS context, and its errors in our words.

Promises: no cookies, no resolving, no decoding, no limit of its own on time or number, and no retry (the library
would ask again by itself when a connection breaks; a second contact inside the gap is exactly what must not happen).
"""

from __future__ import annotations

import re
import ssl
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from itertools import count

import aiohttp
from aiohttp.client_reqrep import ClientRequest, ConnectionKey
from aiohttp.connector import Connection

from corpus.crawl.fetch_limits import HEADER_COUNT, HEADER_LINE
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failure

KEEP_ALIVE_S = 4.0
"""Below the shortest common server timeout (5 s), so that a request rarely meets a connection being closed: that
would be a failure, since a second request behind the caller's back could break the gap."""
KEEP_ALIVE_MAX = 1_000
"""Idle connections held; past it, requests say `Connection: close`."""

_DISTRUSTED_MAX = 10_000
_KEEP_ALIVE = re.compile(r"timeout\s*=\s*([0-9]{1,6})", re.IGNORECASE)

Place = tuple[str, str, int]
Handler = Callable[[ClientRequest], Awaitable[aiohttp.ClientResponse]]


class BrokenError(Exception):
    """A foreign exception, translated. Not one of aiohttp's: those it would answer by silently asking again."""

    def __init__(self, failure: Failure, detail: str) -> None:
        super().__init__(failure, detail)
        self.failure, self.detail = failure, detail


class Asked(ClientRequest):
    """A request that may use exactly one pooled connection (or a new one), and is told when its connection stands."""

    on_connected: Callable[[], None] | None = None
    ticket = 0

    @property
    def connection_key(self) -> ConnectionKey:
        # The pool matches on this tuple; a field that direct connections leave empty carries the ticket.
        return super().connection_key._replace(proxy_headers_hash=self.ticket)


class _Connector(aiohttp.TCPConnector):
    async def connect(
        self, req: ClientRequest, traces: list[aiohttp.tracing.Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        connection = await super().connect(req, traces, timeout)
        if isinstance(req, Asked) and req.on_connected is not None:
            req.on_connected()
        return connection


class Idle:
    """Which connections lie idle and may be used again: the library's pool knows neither a bound nor servers' wishes.

    A connection has a ticket; a request is given the ticket of an idle connection, or a new one. Keys are
    (host, address, port). Hosts whose kept connection broke are not trusted to keep one again.
    """

    def __init__(self) -> None:
        self._until: OrderedDict[int, tuple[float, Place]] = OrderedDict()
        """By ticket, oldest first."""
        self._tickets: dict[Place, list[int]] = {}
        self._distrusted: OrderedDict[Place, None] = OrderedDict()
        self._new = count(1)

    def take(self, place: Place, now: float) -> tuple[int, bool, bool]:
        """(ticket, whether its connection is a kept one, whether it may be kept afterwards)."""
        while self._until and next(iter(self._until.values()))[0] <= now:
            self._forget(next(iter(self._until)))
        keep = place not in self._distrusted and len(self._until) < KEEP_ALIVE_MAX
        for ticket in reversed(self._tickets.get(place, [])):
            usable = self._until[ticket][0] > now  # entries that a server limits run out before older ones
            self._forget(ticket)
            if usable:
                return ticket, True, keep
        return next(self._new), False, keep

    def give(self, place: Place, ticket: int, now: float, keep_alive: str | None) -> None:
        """Note that a connection is idle from now on. `keep_alive` is the server's header, e.g. `timeout=5, max=100`."""
        said = _KEEP_ALIVE.search(keep_alive or "")
        # A second of margin: what is sent while the server hangs up is lost.
        idle_s = min(KEEP_ALIVE_S, int(said[1]) - 1.0) if said else KEEP_ALIVE_S
        self._until[ticket] = (now + idle_s, place)
        self._tickets.setdefault(place, []).append(ticket)

    def _forget(self, ticket: int) -> None:
        place = self._until.pop(ticket)[1]
        self._tickets[place].remove(ticket)
        if not self._tickets[place]:
            del self._tickets[place]

    def distrust(self, place: Place) -> None:
        """A kept connection broke before an answer: the server hangs up sooner than it says."""
        self._distrusted[place] = None
        if len(self._distrusted) > _DISTRUSTED_MAX:
            self._distrusted.popitem(last=False)


def open_session(tls: ssl.SSLContext) -> aiohttp.ClientSession:
    """A session for the running loop. Deadlines are the caller's: the library's own are all off."""
    return aiohttp.ClientSession(
        connector=_Connector(limit=0, ssl=tls, keepalive_timeout=KEEP_ALIVE_S, use_dns_cache=False),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        auto_decompress=False,
        skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding"),
        request_class=Asked,
        max_line_size=HEADER_LINE,
        max_field_size=HEADER_LINE,
        max_headers=HEADER_COUNT,
    )


def tls_context(settings: CrawlSettings) -> ssl.SSLContext:
    """Strict: the system's authorities (and `crawl.ca_file`), names checked. Lax: anything that can be shaken hands with."""
    context = ssl.create_default_context()
    if settings.ca_file is not None:
        context.load_verify_locations(cafile=settings.ca_file)
    if settings.tls == "lax":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_ciphers("DEFAULT:@SECLEVEL=0")  # servers with short keys are why one chooses this
    context.set_alpn_protocols(["http/1.1"])
    return context


def translated(exc: Exception) -> BrokenError:
    """Whose fault, in our words. The order matters: several of the library's classes have two parents."""
    detail = " ".join(str(exc).split())[:200] or type(exc).__name__
    match exc:
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
            return BrokenError(Failure.TLS, detail)
        case aiohttp.ClientConnectorError() | aiohttp.ServerTimeoutError() | aiohttp.ClientHttpProxyError():
            return BrokenError(Failure.CONNECT, detail)
        case aiohttp.ClientConnectionError() | aiohttp.ClientPayloadError() | OSError():
            return BrokenError(Failure.RESET, detail)
        case _:
            return BrokenError(Failure.PROTOCOL, detail)
