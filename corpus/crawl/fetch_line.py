"""Connections straight to a vetted address: opened, asked once, kept while idle, closed. And one deadline that may move.

Promises: a connection leads to the address it was opened for and carries one exchange at a time; what it is sent is
the caller's bytes and nothing else; nothing is asked twice. aiohttp's parser reads the answers, inside the limits
on lines and numbers of headers; its client, whose every layer costs as much as the parser, is left out.

Never: no names are resolved and no proxy is spoken to (`fetch_session` does that, over the whole client).
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from types import TracebackType

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from aiohttp.streams import StreamReader

from corpus.crawl import fetch_session
from corpus.crawl.fetch_limits import HEADER_COUNT, HEADER_LINE
from corpus.crawl.fetch_session import BrokenError, translated
from corpus.crawl.wire import Target
from corpus.model import Failure


class Guard:
    """Ends the block it guards with TimeoutError once its deadline has passed. Moving the deadline later costs nothing."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._at = self._armed = float("inf")
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._over = False

    def until(self, at: float) -> None:
        """The deadline, in the loop's time."""
        self._at = at
        if at < self._armed:
            self._arm(at)

    def _arm(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._armed, self._timer = at, self._loop.call_at(at, self._ring)

    def _ring(self) -> None:
        if self._loop.time() < self._at:
            self._arm(self._at)
        elif self._task is not None:
            self._over = True
            self._task.cancel()

    def __enter__(self) -> Guard:
        self._task = asyncio.current_task()
        assert self._task is not None, "a guard needs a task to end"
        self._cancelling = self._task.cancelling()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        task, self._task = self._task, None
        if self._timer is not None:
            self._timer.cancel()
        if self._over and task is not None and task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error


class Line:
    """One connection. While it is `idle` nobody's exchange can end it."""

    def __init__(self, handler: ResponseHandler, *, secure: bool) -> None:
        self._handler, self._secure = handler, secure
        self.idle = False

    @property
    def alive(self) -> bool:
        """Whether one more request may be sent: the other side has not hung up, as far as we know, nor said that it will."""
        return self._handler.is_connected() and not self._handler.should_close

    async def ask(self, sent: bytes) -> tuple[RawResponseMessage, StreamReader]:
        """Send a request; the head of its answer, and its body as it comes in. Raises BrokenError."""
        handler = self._handler
        handler.set_response_params(
            read_until_eof=True, auto_decompress=False, max_line_size=HEADER_LINE, max_field_size=HEADER_LINE, max_headers=HEADER_COUNT
        )  # fmt: skip
        transport = handler.transport
        if transport is None:
            raise BrokenError(Failure.RESET, "the server hung up")
        transport.write(sent)
        try:
            while True:
                message, payload = await handler.read()
                if not 100 <= message.code <= 199 or message.code == 101:  # interim answers say nothing to us
                    return message, payload
        except HttpProcessingError as exc:
            raise BrokenError(Failure.PROTOCOL, " ".join(str(exc).split())[:200]) from exc
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            raise translated(exc) from exc

    def close(self) -> None:
        """End an exchange: the connection goes, unless it was kept."""
        if not self.idle:
            self.hang_up()

    def hang_up(self) -> None:
        """At once; without the ceremony that TLS would like, as most clients do."""
        if self._secure:
            self._handler.abort()
        else:
            self._handler.close()


class Lines:
    """Opens connections and holds those that lie idle, by the tickets of `fetch_session.Idle`."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._kept: OrderedDict[int, tuple[Line, float]] = OrderedDict()
        self._sweeper: asyncio.TimerHandle | None = None

    def kept(self, ticket: int) -> Line | None:
        """The idle connection of this ticket, the caller's from now on; None when the server has hung up since."""
        line, _ = self._kept.pop(ticket, (None, 0.0))
        if line is None:
            return None
        line.idle = False
        if line.alive:
            return line
        line.close()
        return None

    async def open(self, target: Target, ip: str) -> Line:
        """A new connection. Raises BrokenError."""
        loop = asyncio.get_running_loop()
        secure = target.scheme == "https"
        name = target.host.strip("[]").rstrip(".") if secure else None
        try:
            _, handler = await loop.create_connection(
                lambda: ResponseHandler(loop), ip, target.port, ssl=self._tls if secure else None, server_hostname=name
            )
        except (ssl.SSLError, ssl.CertificateError) as exc:
            raise BrokenError(Failure.TLS, " ".join(str(exc).split())[:200]) from exc
        except (OSError, ValueError) as exc:
            raise BrokenError(Failure.CONNECT, " ".join(str(exc).split())[:200] or type(exc).__name__) from exc
        return Line(handler, secure=secure)

    def keep(self, ticket: int, line: Line) -> None:
        """Hold a connection whose exchange is over, for as long as idle ones may be held."""
        loop, line.idle = asyncio.get_running_loop(), True
        self._kept[ticket] = line, loop.time() + fetch_session.KEEP_ALIVE_S
        if self._sweeper is None:
            self._sweeper = loop.call_later(fetch_session.KEEP_ALIVE_S, self._sweep)

    def _sweep(self) -> None:
        """Close what has lain idle too long."""
        loop, self._sweeper = asyncio.get_running_loop(), None
        while self._kept:
            ticket, (line, until) = next(iter(self._kept.items()))
            if until > loop.time():
                self._sweeper = loop.call_at(until, self._sweep)
                return
            del self._kept[ticket]
            line.hang_up()

    def close(self) -> None:
        """Close every idle connection."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        while self._kept:
            self._kept.popitem()[1][0].hang_up()
