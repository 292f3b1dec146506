"""The key under which web archives file an address: host reversed, path and query folded, so that neighbours sort together.

The rules are those of the Wayback software, as its tools share them: `http://www.Example.com/A/?b=2&a=1` becomes
`com,example)/a?a=1&b=2`. It is a key for look-up alone, coarser than our canonical URL, and never an identity here.
Total: any text gives a key of printable ASCII without a space. Nothing is resolved, nothing is fetched.
"""

from __future__ import annotations

import re
import socket
import struct
from urllib.parse import quote_from_bytes, unquote_to_bytes

_SAFE = "!\"$&'()*+,-./:;<=>?@[\\]^_`{|}~"
"""What stays as it is; every other byte is escaped once."""
_SPLIT = re.compile(rb"^(([a-zA-Z][a-zA-Z0-9+.-]*):)?((//([^/?#]*))?([^?#]*)(\?([^#]*))?)?(#(.*))?$", re.DOTALL)
_SCHEME = re.compile(rb"^[a-zA-Z][a-zA-Z0-9+\-.]*:")
_REPEATED_SCHEME = re.compile(rb"^(https?://)+")
_WWW = re.compile(rb"www\d*\.")
_DEFAULT_PORT = {b"http": 80, b"https": 443}
_DOTTED = re.compile(rb"\d{1,3}(\.\d{1,3}){3}")
_PATH_SESSIONS = (
    re.compile(rb"^(.*/)(\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^\?]+\.aspx.*)$", re.IGNORECASE),
    re.compile(rb"^(.*/)(\([0-9a-z]{24}\)/)([^\?]+\.aspx.*)$", re.IGNORECASE),
)
_QUERY_SESSIONS = tuple(
    re.compile(rb"^(.*)(?:" + name + rb")(?:&(.*))?$", re.IGNORECASE)
    for name in (
        rb"jsessionid=[0-9a-zA-Z]{32}",
        rb"phpsessid=[0-9a-zA-Z]{32}",
        rb"sid=[0-9a-zA-Z]{32}",
        rb"ASPSESSIONID[a-zA-Z]{8}=[a-zA-Z]{24}",
        rb"cfid=[^&]+&cftoken=[^&]+",
    )
)
URL_MAX = 64 * 1024
"""Bytes of an address that are looked at; WARC heads are no longer."""
_UNESCAPES = 32
"""Rounds of unescaping at most: `%252525…` could ask for one a byte."""


def surt(url: str) -> str:
    """The archive key of an address; `-` for none."""
    raw = re.sub(rb"[\n\r\t]", b"", url.encode("utf-8", "replace")[:URL_MAX].strip())
    if not raw:
        return "-"
    if not _SCHEME.match(raw):
        raw = b"http://" + raw
    raw = _REPEATED_SCHEME.sub(lambda match: match[1], raw)
    match = _SPLIT.match(raw)
    if match is None:  # nothing can fail it; were it so, the address itself is a usable key
        return _escape(raw).decode()
    scheme, netloc, path, query = (match[2] or b"").lower(), match[5] or b"", match[6] or b"", match[8] or b""
    host, port = _host_port(netloc)
    if not host and scheme.startswith(b"http"):
        host, _, rest = path.lstrip(b"/").partition(b"/")
        path = b"/" + rest
    host = _host(host)
    key = (
        (_reversed(host) + (b":%d" % port if port not in (None, _DEFAULT_PORT.get(scheme)) else b"") + b")")
        if host
        else scheme + b":"
    )
    key += _path(path, hosted=bool(host))
    query = _query(query)
    return (key + (b"?" + query if query else b"")).decode()


def _host_port(netloc: bytes) -> tuple[bytes, int | None]:
    place = netloc.rpartition(b"@")[2].rstrip(b":")
    if place.startswith(b"["):
        host, _, rest = place[1:].partition(b"]")
        port = rest.removeprefix(b":")
    else:
        host, _, port = place.partition(b":")
    return host.lower(), int(port) if port.isdigit() and len(port) <= 5 else None


def _host(host: bytes) -> bytes:
    host = _unescape(host)
    try:
        host.decode("ascii")
    except UnicodeDecodeError:
        try:
            host = host.decode("utf-8", "ignore").encode("idna")
        except ValueError:  # no name that DNS could hold: it is escaped instead
            host = host.lower()
    host = host.replace(b"..", b".").strip(b".").lower()
    if host.isdigit():
        return socket.inet_ntoa(struct.pack(">L", int(host[:20]) & 0xFFFFFFFF)).encode()
    if _DOTTED.fullmatch(host):
        return host
    host = _escape(host)
    match = _WWW.match(host)
    return host[match.end() :] if match else host


def _reversed(host: bytes) -> bytes:
    return b",".join(reversed(host.split(b".")))


def _path(path: bytes, *, hosted: bool) -> bytes:
    path = _unescape(path)
    path = _escape(_flat(path) if hosted else path).lower()
    for pattern in _PATH_SESSIONS:
        if match := pattern.match(path):
            path = match[1] + match[3]
    return path[:-1] if len(path) > 1 and path.endswith(b"/") else path


def _flat(path: bytes) -> bytes:
    """Dots resolved, empty steps dropped; a slash at the end stays."""
    kept: list[bytes] = []
    for step in path.split(b"/")[1:]:
        if step == b"..":
            if kept:
                kept.pop()
            else:
                kept.append(step)
        elif step != b".":
            kept.append(step)
    if not kept:
        return b"/"
    return b"/" + b"".join(step + b"/" for step in kept[:-1] if step) + kept[-1]


def _query(query: bytes) -> bytes:
    query = _escape(_unescape(query))
    for pattern in _QUERY_SESSIONS:
        if match := pattern.match(query):
            query = match[1] + (match[2] or b"")
    query = query.lower()
    if len(query) <= 1:
        return query
    return b"&".join(b"=".join(pair) for pair in sorted(tuple(part.split(b"=", 1)) for part in query.split(b"&")))


def _unescape(text: bytes) -> bytes:
    for _ in range(_UNESCAPES):
        plain = unquote_to_bytes(text)
        if plain == text:
            break
        text = plain
    return text


def _escape(text: bytes) -> bytes:
    return quote_from_bytes(text, safe=_SAFE).encode("ascii")
