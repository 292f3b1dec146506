"""What a simulated site says to a request, as a value: the answer with its timing and its misbehaviour.

The socket server and the in-memory transport both play these values, so a hostile behaviour is written once. A `Site`
decides; it opens nothing and sleeps never.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Protocol

Headers = tuple[tuple[str, str], ...]


class Fault(StrEnum):
    """How a server breaks HTTP. `head` and `body` of the answer are then sent as far as the fault allows."""

    NONE = "none"
    RESET = "reset"
    """The connection is reset once the request was read."""
    CLOSE = "close"
    """Closed in order, without a byte."""
    SILENT = "silent"
    """Never answers, never closes."""
    GARBAGE = "garbage"
    """Bytes that are not HTTP."""
    ENDLESS_HEAD = "endless-head"
    """Headers without end, one every `drip_s` (at once when that is 0)."""
    CUT = "cut"
    """Half the body, then closed: less than Content-Length promised, or no last chunk."""
    ENDLESS_BODY = "endless-body"
    """The body again and again for ever."""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. `framing`: `length`, `chunked`, or `close` (the body ends with the connection)."""

    status: int = 200
    headers: Headers = (("Content-Type", "text/html; charset=utf-8"),)
    body: bytes = b""
    framing: str = "length"
    wait_s: float = 0.0
    """Before the first byte."""
    drip_bytes: int = 0
    """Body bytes per piece (0: all at once) …"""
    drip_s: float = 0.0
    """… and the pause before each piece."""
    fault: Fault = Fault.NONE
    reason: str = ""
    tag: str = ""
    """What the site thought of the request, for the log: `early` for a contact inside a Retry-After."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request as the server got it. `nth` counts from 1 per URL, `host_nth` per host; `at` is monotonic seconds."""

    host: str
    target: str
    headers: Mapping[str, str]
    """By lower-case name; of repeated headers the last."""
    nth: int
    host_nth: int
    at: float
    wall: float
    client: str = ""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class Name:
    """What DNS says of a host. `rcode` other than 0, or `silent`, outdoes the addresses."""

    addresses: tuple[str, ...] = ()
    rcode: int = 0
    silent: bool = False
    ttl: int = 300
    alias: str = ""
    """CNAME: the addresses are then those of the alias, and come in the same answer."""


class Site(Protocol):
    """A simulated web: its names, and its answers. Must be picklable to be served from its own process."""

    def names(self) -> Mapping[str, Name]:
        """Every host name and what DNS says of it. Addresses in 127.0.0.0/8 are listened on."""
        ...

    def down(self) -> frozenset[str]:
        """Addresses nobody listens on: connections there are refused."""
        ...

    def answer(self, ask: Ask) -> Answer: ...


@dataclass(slots=True)
class Counts:
    """How often each URL and each host was asked. The server's memory; a new server starts at nought."""

    urls: dict[tuple[str, str], int] = field(default_factory=dict)
    hosts: dict[str, int] = field(default_factory=dict)

    def ask(self, host: str, target: str, headers: Mapping[str, str], *, at: float, wall: float, client: str = "") -> Ask:
        """Count a request and make it an `Ask`."""
        nth = self.urls[host, target] = self.urls.get((host, target), 0) + 1
        host_nth = self.hosts[host] = self.hosts.get(host, 0) + 1
        return Ask(host, target, headers, nth, host_nth, at, wall, client)


def head_lines(answer: Answer, date: str) -> tuple[str, Headers]:
    """Status line and all headers as they go over the wire, framing included."""
    reason = answer.reason or _phrase(answer.status)
    framing: Headers = ()
    if answer.status >= 200 and answer.status not in {204, 304}:
        framing = {
            "length": (("Content-Length", str(len(answer.body))),),
            "chunked": (("Transfer-Encoding", "chunked"),),
            "close": (("Connection", "close"),),
        }[answer.framing]
    return f"HTTP/1.1 {answer.status} {reason}".rstrip(), (("Date", date), *answer.headers, *framing)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def head_bytes(line: str, headers: Headers) -> bytes:
    """Status line and headers as they go over the wire."""
    return "\r\n".join((line, *(f"{name}: {value}" for name, value in headers), "", "")).encode("latin-1", "replace")


def pieces(answer: Answer) -> Iterator[tuple[float, bytes]]:
    """The body as (pause before it, bytes): framing not included, cut or endless as the fault says."""
    body = answer.body[: len(answer.body) // 2] if answer.fault is Fault.CUT else answer.body
    if answer.status in {204, 304} or answer.status < 200:
        return
    size = answer.drip_bytes or len(body)
    while body:
        for at in range(0, len(body), size):
            yield answer.drip_s, body[at : at + size]
        if answer.fault is not Fault.ENDLESS_BODY:
            return
