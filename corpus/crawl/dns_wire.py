"""The DNS message format (RFC 1035 §4), as much of it as a stub resolver and a test server need. Pure bytes.

Messages from the network are hostile: names are bounded in length and pointers may only point backwards, so decoding
always ends. Whatever does not parse is one exception, `DnsFormatError`, for the caller to treat as no answer.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

A, CNAME, SOA, AAAA = 1, 5, 6, 28
NOERROR, FORMERR, SERVFAIL, NXDOMAIN = 0, 1, 2, 3
UDP_MAX = 1232
"""Bytes of a UDP answer we say we take (EDNS): fits any path without fragments."""
_HEADER = struct.Struct("!6H")
_FIXED = struct.Struct("!HHIH")
_OPT = 41
_RECORDS_MAX = 256


class DnsFormatError(ValueError):
    """Not a DNS message, or a name that cannot stand in one."""


@dataclass(frozen=True, slots=True)
class Record:
    """One resource record. `data` is an address or a name as text; empty for types not read here."""

    name: str
    type: int
    ttl: int
    data: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A decoded message: header facts, the one question, and the answer section."""

    id: int
    response: bool
    truncated: bool
    rcode: int
    name: str
    type: int
    answers: tuple[Record, ...] = ()
    negative_ttl: int | None = None
    """From the authority section's SOA (RFC 2308), when there is one."""


def encode_name(name: str) -> bytes:
    """Labels of at most 63 bytes, at most 255 in all; ASCII only (names arrive in Punycode)."""
    out = bytearray()
    for label in name.rstrip(".").split("."):
        raw = label.encode("ascii", "replace")
        if not 0 < len(raw) < 64 or not label.isascii():
            raise DnsFormatError(f"not a host name: {name[:80]!r}")
        out += bytes((len(raw),)) + raw
    if len(out) > 254:
        raise DnsFormatError(f"host name of more than 253 characters: {name[:80]!r}")
    return bytes(out) + b"\0"


def encode_query(query_id: int, name: str, kind: int) -> bytes:
    """A recursive query with an EDNS record that announces `UDP_MAX`."""
    edns = b"\0" + _FIXED.pack(_OPT, UDP_MAX, 0, 0)
    return _HEADER.pack(query_id, 0x0100, 1, 0, 0, 1) + encode_name(name) + struct.pack("!HH", kind, 1) + edns


def encode_response(query: Message, rcode: int, answers: tuple[Record, ...], *, truncated: bool = False) -> bytes:
    """The answer to a decoded query. A negative answer carries no SOA: its time to live is the asker's to choose."""
    flags = 0x8180 | rcode | (0x0200 if truncated else 0)
    kept = () if truncated else answers
    out = bytearray(_HEADER.pack(query.id, flags, 1, len(kept), 0, 0))
    out += encode_name(query.name) + struct.pack("!HH", query.type, 1)
    for record in kept:
        data = _encode_data(record)
        out += encode_name(record.name) + _FIXED.pack(record.type, 1, record.ttl, len(data)) + data
    return bytes(out)


def _encode_data(record: Record) -> bytes:
    if record.type == A:
        return IPv4Address(record.data).packed
    if record.type == AAAA:
        return IPv6Address(record.data).packed
    return encode_name(record.data)


def decode(message: bytes) -> Message:
    """Parse a query or an answer with exactly one question. Raises DnsFormatError."""
    message = bytes(message)
    try:
        query_id, flags, questions, answers, authorities, _ = _HEADER.unpack_from(message)
        if questions != 1:
            raise DnsFormatError(f"{questions} questions")
        name, at = _name(message, _HEADER.size)
        kind, _ = struct.unpack_from("!HH", message, at)
        at += 4
        found: list[Record] = []
        for _ in range(min(answers, _RECORDS_MAX)):
            record, at, _ = _record(message, at)
            found.append(record)
        negative_ttl = None
        for _ in range(min(authorities, _RECORDS_MAX)) if answers <= _RECORDS_MAX else ():
            record, at, minimum = _record(message, at)
            if record.type == SOA and minimum is not None:
                negative_ttl = min(record.ttl, minimum)
        return Message(query_id, bool(flags & 0x8000), bool(flags & 0x0200), flags & 15, name, kind, tuple(found), negative_ttl)
    except (struct.error, IndexError, UnicodeDecodeError) as exc:
        raise DnsFormatError(f"not a DNS message: {exc}") from exc


def _record(message: bytes, at: int) -> tuple[Record, int, int | None]:
    name, at = _name(message, at)
    kind, _, ttl, length = _FIXED.unpack_from(message, at)
    at += _FIXED.size
    data, end = message[at : at + length], at + length
    if end > len(message):
        raise DnsFormatError("a record runs past the end")
    ttl = 0 if ttl >= 2**31 else ttl  # RFC 2181 §8
    if kind == A and length == 4:
        return Record(name, kind, ttl, str(IPv4Address(data))), end, None
    if kind == AAAA and length == 16:
        return Record(name, kind, ttl, str(IPv6Address(data))), end, None
    if kind == CNAME:
        return Record(name, kind, ttl, _name(message, at)[0]), end, None
    minimum = int.from_bytes(data[-4:], "big") if kind == SOA and length >= 4 else None
    return Record(name, kind, ttl), end, minimum


def _name(message: bytes, at: int) -> tuple[str, int]:
    """A possibly compressed name and where the text after it begins. A pointer must point before itself."""
    labels: list[str] = []
    end, size = None, 0
    while True:
        length = message[at]
        if length >= 0xC0:
            target = (length & 0x3F) << 8 | message[at + 1]
            end = at + 2 if end is None else end
            if target >= at:
                raise DnsFormatError("a name points forward")
            at = target
            continue
        if length >= 0x40:
            raise DnsFormatError("unknown label type")
        at += 1
        if length == 0:
            return ".".join(labels).lower(), at if end is None else end
        size += length + 1
        if size > 254 or at + length > len(message):
            raise DnsFormatError("a name runs past its limit")
        labels.append(message[at : at + length].decode("ascii"))
        at += length
