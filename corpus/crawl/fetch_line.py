"""Connections straight to a vetted address: opened, asked once, kept while idle, closed. And one deadline that may move.

Promises: a connection leads to the address it was opened for and carries one exchange at a time; what it is sent is
the caller's bytes and nothing else; nothing is asked twice. aiohttp's parser reads the answers, inside the limits
on lines and numbers of headers; its client, whose every layer costs as much as the parser, is left out. What came in
before an answer broke is read however the network sliced it: a head, a body up to its break, an answer whole.

Never: no names are resolved and no proxy is spoken to (`fetch_session` does that, over the whole client).
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import OrderedDict
from functools import partial
from types import TracebackType
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.http import HttpProcessingError, RawResponseMessage
from aiohttp.streams import StreamReader

from corpus.crawl import fetch_session
from corpus.crawl.fetch_limits import HEADER_COUNT, HEADER_LINE
from corpus.crawl.fetch_session import BrokenError, translated
from corpus.crawl.wire import Target
from corpus.model import Failure

_BLANK = re.compile(rb"\n\r?\n")
_NEWLINES = re.compile(rb"[\r\n]*+")


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


class AnswerProtocol(ResponseHandler):
    """aiohttp's protocol, which tells the reader of a body how it ended, and does not lose an answer to what follows it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._params: dict[str, Any] = {}
        self._heading = False
        """A request is sent and the head of its answer is not here yet."""
        self._seen: list[bytes] = []
        """What came in meanwhile. The parser bounds a head, so this is bounded too."""
        self._past = 0
        """As much of it were interim answers."""
        self.lost: asyncio.Future[None] = loop.create_future()
        """Done when the connection is gone."""

    def set_response_params(self, **params: Any) -> None:
        """Before each request: a new parser."""
        self._params, self._heading, self._past = params, True, 0
        self._seen.clear()
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """To the parser."""
        if self._heading:
            if self._past:
                rest, self._past = self._seen[0][self._past :].lstrip(b"\r\n"), 0
                self._seen = [rest] if rest else []
            if self._seen or not data.isspace():  # empty lines may come before an answer, in any number
                self._seen.append(data)
        super().data_received(data)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """A head is here."""
        if _final(data[0].code):
            self._heading = False
            self._seen.clear()
        elif self._seen:
            seen = b"".join(self._seen)
            self._seen, self._past = [seen], _head_end(seen, self._past)
        super().feed_data(data, size)

    def set_exception(self, exc: BaseException, exc_cause: BaseException | None = None) -> None:
        """The exchange broke; whoever reads its body is told as well."""
        if self._heading and self._seen and isinstance(exc, HttpProcessingError):
            self._once_more()
        if self._exception is None:
            self._break_body(exc)
            super().set_exception(exc, exc if exc_cause is None else exc_cause)

    def _once_more(self) -> None:
        """Parse heads apart from what follows them: a parser that fails throws away whatever it had found in the same bytes."""
        seen, self._seen, at = b"".join(self._seen), [], 0
        super().set_response_params(**self._params)
        while self._heading and self._exception is None:
            end = _head_end(seen, at)
            if at == end:
                return
            super().data_received(seen[at:end])
            at = end
        if at < len(seen) and self._exception is None:
            super().data_received(seen[at:])

    def connection_lost(self, exc: BaseException | None) -> None:
        """A body that lasts until the connection ends is whole only when the connection ended well."""
        if exc is not None:
            self._break_body(aiohttp.ClientPayloadError(str(exc) or type(exc).__name__))
        super().connection_lost(exc)
        if not self.lost.done():
            self.lost.set_result(None)

    def _break_body(self, exc: BaseException) -> None:
        body = self._payload
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(exc)


def _head_end(data: bytes, at: int) -> int:
    """Where the head ends that begins here, perhaps after empty lines; the end of the data when it goes on."""
    begun = _NEWLINES.match(data, at)
    blank = _BLANK.search(data, begun.end() if begun else at)
    return blank.end() if blank else len(data)


def _final(status: int) -> bool:
    """Interim answers say nothing to us."""
    return status >= 200 or status < 100 or status == 101


def read_alike(session: aiohttp.ClientSession) -> None:
    """Let the library's client, where it must be used, read answers by the same protocol."""
    assert session.connector is not None, "an open session has a connector"
    session.connector._factory = cast("partial[ResponseHandler]", partial(AnswerProtocol, asyncio.get_running_loop()))


def left_over(body: StreamReader) -> bytes:
    """What had come in before the body broke, and was not read: the library tells of the break first."""
    return body._read_nowait(-1)


class Line:
    """One connection. While it is `idle` nobody's exchange can end it."""

    def __init__(self, handler: AnswerProtocol) -> None:
        self._handler = handler
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
                if _final(message.code):
                    return message, payload
        except HttpProcessingError as exc:
            raise BrokenError(Failure.PROTOCOL, " ".join(str(exc).split())[:200]) from exc
        except (aiohttp.ClientError, OSError, ValueError) as exc:
            raise translated(exc) from exc

    async def close(self) -> None:
        """End an exchange: the connection goes, unless it was kept, and is gone afterwards. Whoever is asked is asked until then: from
        there on gaps count."""
        if not self.idle:
            self.hang_up()
            await self._handler.lost

    def hang_up(self) -> None:
        """At once: nothing is left to send, and nobody waits for the ceremony that TLS would like."""
        self._handler.abort()


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
        line.hang_up()
        return None

    async def open(self, target: Target, ip: str) -> Line:
        """A new connection. Raises BrokenError."""
        loop = asyncio.get_running_loop()
        secure = target.scheme == "https"
        name = target.host.strip("[]").rstrip(".") if secure else None
        if name is not None and not all(0 < len(label) < 64 for label in name.split(".")):
            raise BrokenError(Failure.PROTOCOL, "not a name that TLS can ask for")  # the library would only say so on stderr
        try:
            _, handler = await loop.create_connection(
                lambda: AnswerProtocol(loop), ip, target.port, ssl=self._tls if secure else None, server_hostname=name
            )
        except (ssl.SSLError, ssl.CertificateError) as exc:
            raise BrokenError(Failure.TLS, " ".join(str(exc).split())[:200]) from exc
        except (OSError, ValueError) as exc:
            raise BrokenError(Failure.CONNECT, " ".join(str(exc).split())[:200] or type(exc).__name__) from exc
        return Line(handler)

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
