"""Asking for a name: an own small UDP client (TCP where an answer is cut), or the system's resolver in threads.

Promises: random query ids and ports, an answer is believed only from the server asked, with our id and our question;
CNAME chains are followed a bounded number of steps; a thread stuck in the system's resolver is counted until it ends
and can stop neither the loop nor the interpreter. Deadlines over a whole call are the caller's.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from corpus.crawl.dns_wire import AAAA, CNAME, NOERROR, NXDOMAIN, A, DnsFormatError, Message, decode, encode_query

CHAIN_MAX = 8
SYSTEM_TTL_S = 300.0
"""The system's resolver does not tell how long its answer holds."""
SECOND_FAMILY_S = 0.3
"""How much longer than the A answer an AAAA answer may take: a broken name server must not slow the others' hosts."""
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """What a source says of a name. `exists` is False when it surely does not, None when nobody answered."""

    addresses: tuple[str, ...] = ()
    ttl_s: float | None = None
    exists: bool | None = None
    detail: str = ""


class NameServers:
    """`IP:PORT` name servers, asked in turn until one answers."""

    def __init__(self, servers: Sequence[str], try_s: float) -> None:
        self._servers = tuple(_endpoint(server) for server in servers)
        self._try_s = try_s

    async def ask(self, host: str) -> Answer:
        """Addresses of both families. The IPv6 answer is waited for only a moment once IPv4 addresses are there."""
        four, six = (asyncio.create_task(self._family(host, kind)) for kind in (A, AAAA))
        try:
            found = await four
            if found.exists is False:
                return found  # no such name, in either family
            await asyncio.wait({six}, timeout=SECOND_FAMILY_S if found.addresses else None)
            if not six.done():
                return found
            other = six.result()
        finally:
            for task in (four, six):
                task.cancel()
        if not found.addresses:
            return other if other.addresses or found.exists is None else found
        ttls = [a.ttl_s for a in (found, other) if a.addresses and a.ttl_s is not None]
        return Answer(found.addresses + other.addresses, min(ttls), True)

    async def _family(self, host: str, kind: int) -> Answer:
        name, ttl = host, float(2**31)
        for _ in range(CHAIN_MAX):
            message = await self._query(name, kind)
            if message is None:
                return Answer(detail="no name server answered")
            if message.rcode == NXDOMAIN:
                return Answer((), message.negative_ttl, False, "no such name")
            if message.rcode != NOERROR:
                return Answer(detail=f"the name server failed (rcode {message.rcode})")
            end, addresses, ttl = _follow(message, name, kind, ttl)
            if addresses or end == name:
                return Answer(addresses, ttl if addresses else message.negative_ttl, True, "" if addresses else "no address")
            name = end
        return Answer((), None, False, "a chain of aliases without end")

    async def _query(self, name: str, kind: int) -> Message | None:
        """One server after another; SERVFAIL moves on to the next. None when nobody answered."""
        last = None
        for attempt in range(max(_TRIES, len(self._servers))):
            server = self._servers[attempt % len(self._servers)]
            # A refused port, a broken message and silence are one thing here: this try brought nothing.
            with suppress(OSError, TimeoutError, DnsFormatError, EOFError):
                async with asyncio.timeout(self._try_s):
                    message = await _udp(server, name, kind)
                    last = await _tcp(server, name, kind) if message.truncated else message
                if last.rcode in {NOERROR, NXDOMAIN}:
                    return last
            if last is not None and attempt + 1 >= len(self._servers):
                return last
        return last


def _follow(message: Message, name: str, kind: int, ttl: float) -> tuple[str, tuple[str, ...], float]:
    """Walk the aliases inside one answer: the last name reached, its addresses, the smallest time to live."""
    alias = {r.name: r for r in message.answers if r.type == CNAME}
    seen: set[str] = set()
    name = name.lower()
    while name in alias and name not in seen and len(seen) < CHAIN_MAX:
        seen.add(name)
        ttl, name = min(ttl, alias[name].ttl), alias[name].data
    found = [r for r in message.answers if r.type == kind and r.name == name and r.data]
    return name, tuple(r.data for r in found), min([ttl, *(r.ttl for r in found)])


async def _udp(server: tuple[str, int], name: str, kind: int) -> Message:
    loop = asyncio.get_running_loop()
    query_id = secrets.randbelow(65_536)
    # A connected socket on a fresh random port: the kernel drops what other addresses send.
    transport, protocol = await loop.create_datagram_endpoint(lambda: _Datagrams(query_id, name, kind), remote_addr=server)
    try:
        transport.sendto(encode_query(query_id, name, kind))
        return await protocol.answer
    finally:
        transport.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, query_id: int, name: str, kind: int) -> None:
        self._expect = (query_id, name.rstrip(".").lower(), kind)
        self.answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: tuple[str | object, int]) -> None:
        message = _believed(data, self._expect)
        if message is not None and not self.answer.done():
            self.answer.set_result(message)

    def error_received(self, exc: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc)


def _believed(data: bytes, expect: tuple[int, str, int]) -> Message | None:
    try:
        message = decode(data)
    except DnsFormatError:
        return None  # a forger's or a broken server's: keep waiting for the real one until the deadline
    return message if message.response and (message.id, message.name, message.type) == expect else None


async def _tcp(server: tuple[str, int], name: str, kind: int) -> Message:
    query_id = secrets.randbelow(65_536)
    query = encode_query(query_id, name, kind)
    reader, writer = await asyncio.open_connection(*server)
    try:
        writer.write(len(query).to_bytes(2, "big") + query)
        data = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    finally:
        writer.close()
    message = _believed(data, (query_id, name.rstrip(".").lower(), kind))
    if message is None:
        raise DnsFormatError("an answer to another question")
    return message


class SystemResolver:
    """`getaddrinfo` in daemon threads, at most `concurrency` of them, those it has forgotten about included."""

    def __init__(self, concurrency: int) -> None:
        self._threads = asyncio.Semaphore(concurrency)

    async def ask(self, host: str) -> Answer:
        await self._threads.acquire()
        loop = asyncio.get_running_loop()
        result: asyncio.Future[Answer] = loop.create_future()

        def settle(answer: Answer) -> None:
            self._threads.release()
            if not result.done():
                result.set_result(answer)

        def work() -> None:
            answer = _getaddrinfo(host)
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, answer)

        threading.Thread(target=work, name="getaddrinfo", daemon=True).start()
        return await result


def _getaddrinfo(host: str) -> Answer:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except socket.gaierror as exc:
        gone = exc.errno in {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
        return Answer((), None, False if gone else None, str(exc.strerror or exc))
    except (OSError, UnicodeError, ValueError) as exc:
        return Answer(detail=str(exc))
    addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    return Answer(addresses, SYSTEM_TTL_S, True)


def _endpoint(text: str) -> tuple[str, int]:
    """`IP:PORT` (`[…]:PORT` for IPv6). Raises ValueError with the right form."""
    address, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not address:
        raise ValueError(f"not a name server: {text!r}; write IP:PORT")
    return address.strip("[]"), int(port)
