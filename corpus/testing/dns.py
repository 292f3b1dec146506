"""A small name server on loopback: the simulated web's names, and every way a name server can fail.

UDP and TCP on one port. Silent names get no answer, long answers are cut so that the asker must come back over TCP,
and every query is kept in `queries`. It answers only for the names it was given; all others do not exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import cast

from corpus.crawl.dns_wire import AAAA, CNAME, NXDOMAIN, A, DnsFormatError, Message, Record, decode, encode_response
from corpus.testing.web_answer import Name

UDP_ANSWER = 512


class SimDns:
    """`async with SimDns(names) as dns:` answers at `dns.endpoint` ("IP:PORT"). `always_cut`: every UDP answer is cut; `forged`:
    rubbish and a false answer with another id come before each true one."""

    def __init__(
        self, names: Mapping[str, Name], *, address: str = "127.0.0.1", always_cut: bool = False, forged: bool = False
    ) -> None:
        self.names = {name.lower(): said for name, said in names.items()}
        self.queries: list[tuple[str, str, int]] = []
        """(`udp` or `tcp`, name, type) in order of arrival."""
        self.endpoint = ""
        self._address, self._always_cut, self.forged = address, always_cut, forged
        self._udp: asyncio.DatagramTransport | None = None
        self._tcp: asyncio.Server | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tcp = await asyncio.start_server(self._serve_tcp, self._address, 0)
        port = self._tcp.sockets[0].getsockname()[1]
        self._udp, _ = await loop.create_datagram_endpoint(lambda: _Udp(self), (self._address, port))
        self.endpoint = f"{self._address}:{port}"

    async def stop(self) -> None:
        if self._udp is not None:
            self._udp.close()
        if self._tcp is not None:
            self._tcp.close()

    def reply(self, query: bytes, over: str) -> bytes | None:
        """The answer to a datagram or TCP message; None for silence (and for what is no query)."""
        try:
            message = decode(query)
        except DnsFormatError:
            return None
        self.queries.append((over, message.name, message.type))
        said = self.names.get(message.name)
        if said is None:
            return encode_response(message, NXDOMAIN, ())
        if said.silent:
            return None
        if said.rcode:
            return encode_response(message, said.rcode, ())
        answer = encode_response(message, 0, self._records(message, said))
        if over == "udp" and (self._always_cut or len(answer) > UDP_ANSWER):
            return encode_response(message, 0, (), truncated=True)
        return answer

    def _records(self, message: Message, said: Name) -> tuple[Record, ...]:
        chain: list[Record] = []
        name, seen = message.name, {message.name}
        while said.alias:
            chain.append(Record(name, CNAME, said.ttl, said.alias))
            name = said.alias.lower()
            following = self.names.get(name)
            if following is None or name in seen:
                return tuple(chain)
            seen.add(name)
            said = following
        kinds = {A: [a for a in said.addresses if ":" not in a], AAAA: [a for a in said.addresses if ":" in a]}
        return (*chain, *(Record(name, message.type, said.ttl, address) for address in kinds.get(message.type, ())))

    async def _serve_tcp(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            query = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
            answer = self.reply(query, "tcp")
            if answer is not None:
                writer.write(len(answer).to_bytes(2, "big") + answer)
                await writer.drain()
        except (EOFError, OSError):
            return  # the asker went away: nobody to tell
        finally:
            writer.close()

    async def __aenter__(self) -> SimDns:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()


class _Udp(asyncio.DatagramProtocol):
    transport: asyncio.DatagramTransport

    def __init__(self, server: SimDns) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)  # uvloop's are no subclasses

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        answer = self._server.reply(data, "udp")
        if answer is None:
            return
        if self._server.forged:
            for lie in (b"rubbish", bytes((answer[0] ^ 1,)) + answer[1:-1] + bytes((answer[-1] ^ 1,))):
                self.transport.sendto(lie, addr)
        self.transport.sendto(answer, addr)
