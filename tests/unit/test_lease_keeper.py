"""Past half a lease without a renewal nothing is sent: neither begun, nor put into a connection that stands already."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from corpus.crawl.fetch import HttpTransport
from corpus.crawl.ports import Request
from corpus.crawl.settings import CrawlSettings
from corpus.errors import FenceLost
from corpus.model import Failed, Failure, FetchResult, Response

pytest.importorskip("psycopg")

from corpus.app.lease_keeper import LeaseKeeper

LEASE_S = 40.0


class Hand:
    """A clock that is moved by hand: whoever sleeps is woken when it has come so far."""

    def __init__(self) -> None:
        self.now = 1000.0

    def wall(self) -> float:
        return self.now

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        until = self.now + seconds
        while True:
            await asyncio.sleep(0)
            if self.now >= until:
                return


class Store:
    """A partition file whose renewals can be withheld."""

    def __init__(self, clock: Hand) -> None:
        self.clock, self.renewed_at, self.answers, self.renewals = clock, clock.now, True, 0
        self.lost = False

    def renew(self) -> None:
        if self.lost:
            raise FenceLost("superseded")
        if self.answers:
            self.renewed_at, self.renewals = self.clock.now, self.renewals + 1


class Web:
    """A transport that only notes when it was asked."""

    def __init__(self, clock: Hand) -> None:
        self.clock, self.asked = clock, list[float]()

    async def fetch(self, request: Request) -> FetchResult:
        self.asked.append(self.clock.now)
        return Failed(Failure.TIMEOUT, "", 0.0, 0.0)

    async def close(self) -> None:
        self.asked.clear()


REQUEST = Request("http://x.test/", "x.test", "127.0.0.1")


async def _turn(clock: Hand, seconds: float) -> None:
    for _ in range(round(seconds * 10)):
        clock.now += 0.1
        for _ in range(5):
            await asyncio.sleep(0)


def test_requests_wait_from_half_a_lease_on_until_every_file_is_renewed() -> None:
    """The oldest renewal of all files counts; a request goes on by itself when that is young again."""

    async def main() -> None:
        clock = Hand()
        stores, web = {0: Store(clock), 1: Store(clock)}, Web(clock)
        keeper = LeaseKeeper(web, stores, LEASE_S, clock)  # type: ignore[arg-type]
        await _turn(clock, 10.0)
        stores[1].renew()
        await _turn(clock, LEASE_S / 2 - 10.2)
        await keeper.fetch(REQUEST)
        assert len(web.asked) == 1
        await _turn(clock, 0.4)
        assert not keeper.sure()
        waiting = asyncio.create_task(keeper.fetch(REQUEST))
        await _turn(clock, LEASE_S)
        assert len(web.asked) == 1
        stores[0].renew()
        await _turn(clock, 1.0)
        assert len(web.asked) == 1, "one file is still in doubt"
        stores[1].renew()
        await _turn(clock, 1.0)
        await waiting
        assert len(web.asked) == 2

    asyncio.run(main())


def test_leases_are_renewed_every_quarter_and_a_lost_one_ends_the_process() -> None:
    """Four renewals a lease; a newer owner is told once, as the error that ends the loop."""

    async def main() -> None:
        clock, failed = Hand(), list[BaseException]()
        store = Store(clock)
        keeper = LeaseKeeper(Web(clock), {0: store}, LEASE_S, clock)  # type: ignore[dict-item]

        async def in_store(call: Any) -> None:
            call()

        kept = asyncio.create_task(keeper.keep(in_store, failed.append))
        await _turn(clock, 2 * LEASE_S)
        assert 7 <= store.renewals <= 9
        store.lost = True
        await _turn(clock, LEASE_S)
        await kept
        assert [type(error) for error in failed] == [FenceLost]

    asyncio.run(main())


def test_nothing_is_put_into_a_connection_that_stands_while_in_doubt() -> None:
    """A process that was suspended while it connected asks again before the first byte."""

    async def main() -> None:
        heard, sure = list[bytes](), asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nok")
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        settings = CrawlSettings.model_validate({"contact": "https://example.org/bot", "allow_private": ["127.0.0.0/8"]})
        transport = HttpTransport(settings)
        asked = SimpleNamespace(n=0)

        async def until_sure() -> None:
            asked.n += 1
            await sure.wait()

        transport.before_send = until_sure
        result = asyncio.create_task(transport.fetch(Request(f"http://127.0.0.1:{port}/", "127.0.0.1", "127.0.0.1")))
        for _ in range(100):
            await asyncio.sleep(0.005)
            if asked.n:
                break
        await asyncio.sleep(0.05)
        assert (asked.n, heard) == (1, [])
        sure.set()
        answer = await result
        assert isinstance(answer, Response)
        assert len(heard) == 1
        await transport.close()
        server.close()

    asyncio.run(main())
