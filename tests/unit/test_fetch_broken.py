"""Answers that break, go on after their end, or cannot be read: one outcome each, at once, however the network slices them."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
import struct
from collections.abc import Iterable
from itertools import pairwise
from random import Random

import pytest

from corpus.crawl.fetch import HttpTransport
from corpus.crawl.fetch_line import AnswerProtocol, Line
from corpus.crawl.fetch_session import BrokenError
from corpus.crawl.ports import Request
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure, FetchResult, Response

SETTINGS = CrawlSettings(
    contact="ops@example.org",
    allow_private=("127.0.0.0/8",),
    connect_timeout=60.0,
    first_byte_timeout=60.0,
    idle_timeout=60.0,
    total_timeout=120.0,
)
"""Patient: what breaks must end because it broke."""
OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n"
PAGE = b"<html><body>hello</body></html>"
WHOLE = OK + b"Content-Length: %d\r\n\r\n" % len(PAGE) + PAGE
RST = b""
"""In a list of what a server sends: it ends the connection with a reset."""


def fetched(
    *sent: bytes, times: int = 1, proxied: bool = False, settings: CrawlSettings = SETTINGS
) -> tuple[list[FetchResult], int]:
    """The results of so many fetches from a server that answers each so, packet by packet, and never hangs up by itself; the connections it saw."""
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                for part in sent:
                    if part == RST:
                        linger = struct.pack("ii", 1, 0)
                        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                        writer.transport.abort()
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(0.05)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> list[FetchResult]:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        place = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        transport = HttpTransport(settings.model_copy(update={"proxy": place}) if proxied else settings)
        try:
            async with asyncio.timeout(30):
                return [await transport.fetch(Request(f"{place}/", "127.0.0.1", "127.0.0.1")) for _ in range(times)]
        finally:
            await transport.close()
            server.close()

    return asyncio.run(main()), connections


@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize(
    "sent",
    [
        (CHUNKED + b"\r\n5\r\nhello\r\nQQ\r\n",),
        (CHUNKED + b"\r\n5\r\nhello\r\n", b"QQ\r\n"),
        (CHUNKED + b"\r\n", b"5\r\nhello\r\nQQ\r\n"),
        (CHUNKED + b"\r\n5\r\nhello\r\n0\r\n", b"X Y: z\r\n\r\n"),
        (OK + b"\r\n", b"hello", RST),
        (OK + b"\r\nhello", RST),
        (OK + b"Content-Length: 9\r\n\r\nhello", RST),
    ],
)
def test_what_came_before_a_break_is_kept_at_once(sent: tuple[bytes, ...], *, proxied: bool) -> None:
    """Nonsense for a chunk size, a trailer or a reset in mid body: the page up to there, marked, without any waiting."""
    (page,), _ = fetched(*sent, proxied=proxied)
    assert isinstance(page, Response), page
    assert (page.decoded, page.truncated) == (b"hello", "disconnect")


@pytest.mark.parametrize("proxied", [False, True])
def test_a_break_while_a_body_is_probed_is_no_crash(*, proxied: bool) -> None:
    """The parser fails while a thread decodes: every byte before the break is kept, whatever was read by then."""
    wire = gzip.compress(Random(1).randbytes(700_000))[:600_000]
    sent = CHUNKED + b"Content-Encoding: gzip\r\n\r\n%x\r\n" % len(wire) + wire + b"\r\n"
    (page,), _ = fetched(sent, b"QQ\r\n", proxied=proxied)
    assert isinstance(page, Response), page
    assert (page.body, page.truncated) == (wire, "disconnect")


def test_a_break_before_any_body_is_a_failure() -> None:
    """Nothing to keep: the framing's fault, and the status is known."""
    for sent in ((CHUNKED + b"\r\nQQ\r\n",), (CHUNKED + b"\r\n", b"QQ\r\n")):
        (failed,), _ = fetched(*sent)
        assert isinstance(failed, Failed), failed
        assert (failed.failure, failed.status) == (Failure.PROTOCOL, 200)


@pytest.mark.parametrize("proxied", [False, True])
@pytest.mark.parametrize(
    ("status", "sent"),
    [
        (200, WHOLE + b"EXTRA"),
        (200, WHOLE.replace(b"\r\n", b"\n") + b"EXTRA"),
        (200, b"HTTP/1.1 103 Early Hints\r\n\r\n" + WHOLE + b"EXTRA"),
        (204, b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
        (304, b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ],
)
def test_an_answer_is_whole_whatever_follows_it(status: int, sent: bytes, *, proxied: bool) -> None:
    """Bytes past the end of an answer are dropped, and so is the connection that they came over."""
    pages, connections = fetched(sent, times=2, proxied=proxied)
    assert connections == 2
    for page in pages:
        assert isinstance(page, Response), page
        assert (page.status, page.decoded, page.truncated) == (status, PAGE if status == 200 else b"", "")


def test_a_transfer_coding_that_nobody_asked_for_is_not_taken_for_a_page() -> None:
    """`gzip, chunked` fails to decode; a plain `chunked` does not."""
    wire = gzip.compress(PAGE)
    body = b"%x\r\n" % len(wire) + wire + b"\r\n0\r\n\r\n"
    for settings in (SETTINGS, SETTINGS.model_copy(update={"max_body": 10})):
        (failed,), _ = fetched(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + body, settings=settings)
        assert isinstance(failed, Failed)
        assert failed.failure is Failure.DECODE
    (page,), _ = fetched(CHUNKED + b"Content-Encoding: gzip\r\n\r\n" + body)
    assert isinstance(page, Response)
    assert page.decoded == PAGE


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".org"])
def test_a_name_that_tls_cannot_ask_for_is_never_connected_to(host: str, caplog: pytest.LogCaptureFixture) -> None:
    """A failure like any other, and nothing on stderr."""

    async def main() -> FetchResult:
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        transport = HttpTransport(SETTINGS)
        try:
            return await transport.fetch(Request(f"https://{host}:{port}/", host, "127.0.0.1"))
        finally:
            await transport.close()
            server.close()

    with caplog.at_level(logging.WARNING):
        failed = asyncio.run(main())
    assert isinstance(failed, Failed)
    assert failed.failure is Failure.PROTOCOL
    assert not caplog.records


class Memory(asyncio.Transport):
    """A connection to nobody."""

    closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """What is asked is of no interest."""

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def heard(parts: Iterable[bytes]) -> tuple[int | str, bytes, bool, bool]:
    """What becomes of these packets: status or failure, the bytes of the body, whether it broke, whether the line lives on."""

    async def main() -> tuple[int | str, bytes, bool, bool]:
        protocol, transport = AnswerProtocol(asyncio.get_running_loop()), Memory()
        protocol.connection_made(transport)
        line = Line(protocol)
        asking = asyncio.create_task(line.ask(b"GET"))
        await asyncio.sleep(0)
        for part in parts:
            if not transport.closed:
                protocol.data_received(part)
        try:
            message, body = await asking
        except BrokenError as broken:
            return str(broken.failure), b"", True, line.alive
        broke = body.exception() is not None
        return message.code, body._read_nowait(-1) if body.total_bytes else b"", broke, line.alive

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("sent", "outcome"),
    [
        (WHOLE, (200, PAGE, False, True)),
        (WHOLE + b"EXTRA", (200, PAGE, False, False)),
        (b"\r\n\r\n" + WHOLE.replace(b"\r\n", b"\n") + b"EXTRA", (200, PAGE, False, False)),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nA: b\r\n\r\n" + WHOLE + b"\0", (200, PAGE, False, False)),
        (CHUNKED + b"\r\n5\r\nhello\r\nQQ\r\n", (200, b"hello", True, False)),
        (CHUNKED + b"\r\n5\r\nhello\r\n0\r\n\r\nEXTRA", (200, b"hello", False, False)),
        (b"HTTP/1.1 304 N\r\nContent-Length: 5\r\n\r\nhello", (304, b"", False, False)),
        (b"HTTP/1.1 103 E\r\n\r\nEXTRA" + WHOLE, ("protocol", b"", True, False)),
        (OK + b"no header\r\n\r\n" + PAGE, ("protocol", b"", True, False)),
    ],
)
def test_slices_do_not_matter(sent: bytes, outcome: tuple[int | str, bytes, bool, bool]) -> None:
    """In one packet, byte by byte, cut in two anywhere or in more: the same bytes mean the same answer."""
    assert heard([sent]) == outcome
    assert heard(sent[at : at + 1] for at in range(len(sent))) == outcome
    assert {heard([sent[:at], sent[at:]]) for at in range(1, len(sent))} == {outcome}
    chance = Random(2)
    for _ in range(200):
        cuts = [0, *sorted(chance.sample(range(1, len(sent)), chance.randint(2, 5))), len(sent)]
        parts = [sent[a:b] for a, b in pairwise(cuts)]
        assert heard(parts) == outcome, parts
