"""A small HTTP/1.1 server that plays a `Site` on loopback, faithfully when asked to and badly when asked to.

Own code on asyncio streams of bytes, because a real server library would not let itself reset, drip or lie. One port
on every address of the site; hosts are told apart by the Host header, or by the address when that is the name. Only
127.0.0.0/8 is ever listened on. Requests without a body, one at a time per connection, keep-alive.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import struct
import time
from email.utils import formatdate
from ipaddress import ip_address, ip_network
from types import TracebackType
from typing import cast

from corpus.errors import UsageError
from corpus.testing.web_answer import Answer, Ask, Counts, Fault, Site, head_bytes, head_lines, pieces
from corpus.testing.web_log import Contact, ContactLog

_LOOPBACK = ip_network("127.0.0.0/8")
_HEAD_MAX = 64 * 1024


class SimServer:
    """`async with SimServer(site) as server:` listens; `server.port` is the port, `server.log` every contact so far."""

    def __init__(self, site: Site, *, port: int = 0, log: ContactLog | None = None, tls: ssl.SSLContext | None = None) -> None:
        self.site, self.port, self.tls = site, port, tls
        self.log = ContactLog() if log is None else log
        self.counts = Counts()
        self.connections: set[_Connection] = set()
        self._servers: list[asyncio.Server] = []

    def addresses(self) -> list[str]:
        """Loopback addresses to listen on, each once, in order."""
        down = self.site.down()
        found = {a for name in self.site.names().values() for a in name.addresses if ":" not in a}
        return sorted(a for a in found - down if ip_address(a) in _LOOPBACK)

    async def start(self) -> None:
        """Listen on every address. Raises UsageError when the port is taken on one of them."""
        addresses = self.addresses()
        for _ in range(20):
            try:
                await self._listen(addresses, self.port)
                return
            except OSError as exc:
                await self._unlisten()
                if self.port or exc.errno != errno.EADDRINUSE:
                    raise UsageError(f"cannot listen: {exc}", f"port {self.port}") from exc
        raise UsageError("no port is free on every address", ", ".join(addresses[:3]))

    async def _listen(self, addresses: list[str], port: int) -> None:
        loop = asyncio.get_running_loop()
        for address in addresses:
            listener = await loop.create_server(
                lambda: _Connection(self), address, port, backlog=4096, reuse_address=True, ssl=self.tls
            )
            self._servers.append(listener)
            port = port or listener.sockets[0].getsockname()[1]
        if not addresses:  # every host is down: its port is still a number in URLs
            with socket.socket() as unused:
                unused.bind(("127.0.0.1", port))
                port = unused.getsockname()[1]
        self.port = port

    async def _unlisten(self) -> None:
        for listener in self._servers:
            listener.close()
        self._servers.clear()

    async def stop(self) -> None:
        """Stop listening and break off every connection; what was in the air is logged as `stopped`."""
        await self._unlisten()
        for connection in list(self.connections):
            connection.stop()
        await asyncio.sleep(0)

    async def __aenter__(self) -> SimServer:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()


class _Connection(asyncio.Protocol):
    """One client. A plain answer is written at once; slow and broken ones get a task."""

    transport: asyncio.Transport

    def __init__(self, server: SimServer) -> None:
        self._server = server
        self._buffer = b""
        self._task: asyncio.Task[None] | None = None
        self._drained = asyncio.Event()
        self._drained.set()
        self._pending: tuple[Ask, Answer, float, float, str] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's are no subclasses
        self._server.connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._drained.set()
        self._end("client-left")
        if self._task is not None:
            self._task.cancel()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def stop(self) -> None:
        self._end("stopped")
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > _HEAD_MAX:
            self.transport.abort()
            return
        self._next()

    def _next(self) -> None:
        """Take up the next whole request, unless one is being answered."""
        if self._pending is not None or b"\r\n\r\n" not in self._buffer or self.transport.is_closing():
            return
        raw, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        arrived, wall = time.monotonic(), time.time()
        lines = raw.decode("latin-1").split("\r\n")
        words = lines[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        host = self._host(headers.get("host", ""))
        if len(words) != 3 or words[0] not in {"GET", "HEAD"}:
            ask = self._server.counts.ask(host, lines[0][:200], headers, at=arrived, wall=wall)
            answer = Answer(400, body=b"bad request", tag="bad-request")
        else:
            ask = self._server.counts.ask(host, words[1], headers, at=arrived, wall=wall, client=self._peer())
            answer = self._server.site.answer(ask)
        self._pending = (ask, answer, arrived, wall, f"{raw.decode('latin-1')}\r\n\r\n")
        if answer.fault is Fault.NONE and not (answer.wait_s or answer.drip_bytes) and len(answer.body) <= 65_536:
            whole = _whole(answer, wall)
            self._end("sent")  # first: whoever has the answer finds it in the log
            self.transport.write(whole)
            self._finish(answer, headers)
        else:
            self._task = asyncio.get_running_loop().create_task(self._play(answer, headers, wall))

    def _host(self, header: str) -> str:
        name = header.rpartition(":")[0] if header.rpartition(":")[2].isdigit() and ":" in header else header
        return (name or str(self.transport.get_extra_info("sockname")[0])).lower()

    def _peer(self) -> str:
        peer = self.transport.get_extra_info("peername")
        return f"{peer[0]}:{peer[1]}" if peer else ""

    async def _play(self, answer: Answer, headers: dict[str, str], wall: float) -> None:
        await asyncio.sleep(answer.wait_s)
        match answer.fault:
            case Fault.SILENT:
                return  # the connection stays; the client's deadline ends it, and connection_lost logs it
            case Fault.RESET:
                self._reset()
            case Fault.CLOSE:
                self._leave("closed")
            case Fault.GARBAGE:
                self.transport.write(b"\x16\x03\x01\x02 this is not HTTP\r\n\r\n" * 3)
                self._leave("closed")
            case Fault.ENDLESS_HEAD:
                await self._endless_head(answer)
            case Fault.NONE | Fault.CUT | Fault.ENDLESS_BODY:
                await self._body(answer, wall)
                if answer.fault is Fault.CUT:
                    self._leave("closed")
                else:
                    self._finish(answer, headers)

    async def _endless_head(self, answer: Answer) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\n")
        number = 0
        while not self.transport.is_closing():
            number += 1
            self.transport.write(b"X-Filler-%d: %s\r\n" % (number, b"x" * 64))
            await self._drained.wait()
            await asyncio.sleep(answer.drip_s)

    async def _body(self, answer: Answer, wall: float) -> None:
        self.transport.write(head_bytes(*head_lines(answer, formatdate(wall, usegmt=True))))
        for pause, piece in pieces(answer):
            if pause:
                await asyncio.sleep(pause)
            if self.transport.is_closing():
                return
            self.transport.write(b"%x\r\n%s\r\n" % (len(piece), piece) if answer.framing == "chunked" else piece)
            await self._drained.wait()
            if answer.fault is Fault.ENDLESS_BODY:
                await asyncio.sleep(0)  # an endless writer must not starve the other connections
        if answer.framing == "chunked" and answer.fault is Fault.NONE:
            self.transport.write(b"0\r\n\r\n")

    def _finish(self, answer: Answer, headers: dict[str, str]) -> None:
        self._end("sent")
        self._task = None
        if answer.framing == "close" or headers.get("connection", "").lower() == "close":
            self.transport.close()
        else:
            self._next()

    def _leave(self, end: str) -> None:
        self._end(end)
        self.transport.close()

    def _reset(self) -> None:
        self._end("reset")
        # Lingering zero seconds makes the kernel send RST instead of FIN.
        self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _end(self, end: str) -> None:
        if self._pending is None:
            return
        (ask, answer, arrived, wall, request), self._pending = self._pending, None
        ip, log = str(self.transport.get_extra_info("sockname")[0]), self._server.log
        status = 0 if answer.fault in {Fault.RESET, Fault.CLOSE, Fault.SILENT, Fault.GARBAGE} else answer.status
        now, now_wall = time.monotonic(), time.time()
        log.add(
            Contact(
                n=len(log) + 1, host=ask.host, ip=ip, port=self._server.port, target=ask.target, status=status,
                agent=ask.headers.get("user-agent", ""), arrived=arrived, ended=now, arrived_wall=wall, ended_wall=now_wall,
                end=end, tag=answer.tag, request=request,
            )
        )  # fmt: skip


def _whole(answer: Answer, wall: float) -> bytes:
    head = head_bytes(*head_lines(answer, formatdate(wall, usegmt=True)))
    if answer.status in {204, 304} or not answer.body:
        return head + (b"0\r\n\r\n" if answer.framing == "chunked" and answer.status not in {204, 304} else b"")
    if answer.framing == "chunked":
        half = len(answer.body) // 2 or 1
        parts = (answer.body[:half], answer.body[half:])
        return head + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in parts if p) + b"0\r\n\r\n"
    return head + answer.body
