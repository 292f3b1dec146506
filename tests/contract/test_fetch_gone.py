"""When a contact is over: nothing that a server sees of it may come later, because from there on the gap counts."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvloop

from corpus.crawl.fetch import HttpTransport
from corpus.crawl.ports import Request
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Kind

SETTINGS = CrawlSettings(
    contact="ops@example.org", allow_private=("127.0.0.0/8",), total_timeout=30.0, idle_timeout=1.0, max_body=100_000
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\nContent-Type: "
EARLY = {
    "a type nobody wants": HEAD + b"application/pdf\r\n\r\n" + b"x" * 90_000,
    "no HTTP": b"hello\r\n\r\n" + b"x" * 1_000,
    "a body that is cut": HEAD + b"text/html\r\n\r\n" + b"x" * 200_000,
    "a body that stands still": HEAD + b"text/html\r\n\r\n<p>",
}


class Server:
    """Answers one request and tells when its connection is gone."""

    def __init__(self, answer: bytes) -> None:
        self._answer, self.gone = answer, threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.settimeout(60.0)
            connection.recv(65_536)
            connection.sendall(self._answer)
            while connection.recv(65_536):
                pass
        self.gone.set()

    def close(self) -> None:
        self._listener.close()
        self._thread.join(60)


@pytest.fixture
def serve() -> Iterator[Callable[[bytes], Server]]:
    servers: list[Server] = []

    def start(answer: bytes) -> Server:
        servers.append(Server(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
@pytest.mark.parametrize("answer", EARLY.values(), ids=EARLY.keys())
def test_an_exchange_that_we_break_off_is_over_when_we_say_so(serve: Callable[[bytes], Server], answer: bytes, run: Any) -> None:
    """The loop stands still the moment the result is there: the server has seen the end of the connection all the same."""
    server = serve(answer)

    async def main() -> None:
        transport = HttpTransport(SETTINGS)
        result = await transport.fetch(Request(f"http://127.0.0.1:{server.port}/", "127.0.0.1", "127.0.0.1", Kind.PAGE, ()))
        assert server.gone.wait(30), "the connection is still there"  # nothing else runs meanwhile
        assert isinstance(result, Failed) or result.truncated
        await transport.close()

    run(main())
