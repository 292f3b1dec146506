"""Whose edge is an address? A shipped table of CDN ranges, and the response headers by which a CDN names itself.

Only this decides whether an IP has a clock or a connection cap; a mere count of virtual hosts never does. Pure after
the table has been read once; knows no sockets.
"""

from __future__ import annotations

import ipaddress
from bisect import bisect_right
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.resources import files

_HEADERS: dict[str, str] = {
    "cf-ray": "cloudflare",
    "x-amz-cf-id": "cloudfront",
    "x-fastly-request-id": "fastly",
    "x-akamai-request-id": "akamai",
    "x-azure-ref": "azure-front-door",
}
"""Response headers that only the named network's edge sets."""

V6_FLAG = 1 << 32


@lru_cache(maxsize=16_384)
def ip_key(ip: str) -> int:
    """The politeness group of an address as a 64-bit number: an IPv4 address, or an IPv6 /64 (one site's least allocation).

    Never 0. Raises ValueError for text that is not an address.
    """
    address = ipaddress.ip_address(ip)
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if isinstance(address, ipaddress.IPv4Address):
        return int(address) or V6_FLAG
    prefix = int(address) >> 64
    return prefix if prefix >= V6_FLAG else prefix | V6_FLAG


class CdnTable:
    """Disjoint ranges of IPv4 and IPv6 addresses, each with the name of its network; look-up by bisection."""

    def __init__(self, rows: Iterable[tuple[str, str]]) -> None:
        spans = []
        for cidr, name in rows:
            net = ipaddress.ip_network(cidr)
            spans.append((net.version, int(net.network_address), int(net.broadcast_address), name))
        spans.sort()
        self._starts = [(version, first) for version, first, _, _ in spans]
        self._spans = spans

    def name(self, ip: str) -> str:
        """The network an address belongs to, or empty."""
        address = ipaddress.ip_address(ip)
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        at = bisect_right(self._starts, (address.version, int(address))) - 1
        if at < 0:
            return ""
        version, _, last, name = self._spans[at]
        return name if version == address.version and int(address) <= last else ""


@cache
def shipped() -> CdnTable:
    """The table in this package (`cdn_ranges.txt`)."""
    rows = []
    for line in files("corpus.crawl").joinpath("cdn_ranges.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            cidr, name = line.split()
            rows.append((cidr, name))
    return CdnTable(rows)


def by_headers(headers: Iterable[tuple[str, str]]) -> str:
    """The CDN that says it answered, or empty. `headers` as the server sent them."""
    for key, value in headers:
        low = key.lower()
        if low in _HEADERS:
            return _HEADERS[low]
        if low == "server" and value.strip().lower() in ("cloudflare", "cloudfront", "akamaighost"):
            return value.strip().lower()
    return ""
