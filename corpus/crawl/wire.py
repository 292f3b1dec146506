"""A request as it stands on the wire, and the header facts of an answer that the transport itself needs. Pure.

A URL is asked for as it was found: nothing is normalised here. Only what cannot stand in a request line (controls,
spaces, characters outside ASCII) is percent-encoded, so that no URL can end the line it stands in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote_from_bytes

Headers = tuple[tuple[str, str], ...]

_URL = re.compile(r"(https?)://([^/?#]*)([^#]*)", re.IGNORECASE | re.DOTALL)
_AUTHORITY = re.compile(r"(?:[^@]*@)?(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._~-]+)(?::([0-9]{0,5}))?\Z")
_UNSAFE = re.compile(r"[^\x21-\x7e]+")
_DEFAULT_PORT = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a URL points: `host` as written (brackets included), `path` with the query, ready for a request line."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        return self.host if self.port == _DEFAULT_PORT[self.scheme] else f"{self.host}:{self.port}"

    def at(self, address: str) -> str:
        """The same resource under an address instead of its name."""
        place = f"[{address}]" if ":" in address else address
        return f"{self.scheme}://{place}:{self.port}{self.path}"


def target_of(url: str) -> Target | None:
    """The target of an absolute http(s) URL; None when it is none. User information and fragments are never sent."""
    found = _URL.match(url)
    place = _AUTHORITY.match(found[2]) if found else None
    if not found or not place:
        return None
    scheme = found[1].lower()
    port = int(place[2]) if place[2] else _DEFAULT_PORT[scheme]
    if not 0 < port < 65_536:
        return None
    path = _UNSAFE.sub(lambda m: quote_from_bytes(m[0].encode("utf-8", "surrogatepass")), found[3])
    if path.endswith("?") and path.count("?") == 1:
        path = path[:-1]  # the HTTP library does not send an empty query; say what is sent
    return Target(scheme, place[1].lower(), port, path if path.startswith("/") else f"/{path}")


def raw_request(target: Target, headers: Headers) -> bytes:
    """The request's bytes: the request line, Host, `headers` in order, an empty line."""
    lines = [f"GET {target.path} HTTP/1.1", f"Host: {target.host_header}", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join((*lines, "", "")).encode("latin-1", "replace")


def first(headers: Headers, name: str) -> str | None:
    """The first value of a header, matched without regard to case; `name` in lower case."""
    for key, value in headers:
        if key.lower() == name:
            return value
    return None
