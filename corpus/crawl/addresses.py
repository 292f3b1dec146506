"""Which addresses may be connected to. Pure: text in, verdict out; a table, not a library's opinion.

Refused are all addresses that are not the public internet (RFC 6890 and its registries), cloud metadata services,
and every IPv6 form that carries such an IPv4 address inside. The operator lifts a refusal for exactly the ranges in
`crawl.allow_private`, nothing beside them. What this module refuses is never connected to on any hop.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network

_REFUSED_4 = tuple(
    IPv4Network(cidr)
    for cidr in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier NAT; one cloud's metadata service lives here
        "127.0.0.0/8",
        "168.63.129.16/32",  # a cloud's host service on a public address
        "169.254.0.0/16",  # link-local, 169.254.169.254 = metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_GLOBAL_6 = IPv6Network("2000::/3")
_REFUSED_6 = tuple(
    IPv6Network(cidr)
    for cidr in (
        "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarks; no web site lives here
        "2001:db8::/32",
        "3fff::/20",
    )
)
_NAT64 = IPv6Network("64:ff9b::/96")
_SIXTOFOUR = IPv6Network("2002::/16")
_NUMBER = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z", re.IGNORECASE)


def networks(cidrs: Iterable[str]) -> tuple[Network, ...]:
    """The ranges of `crawl.allow_private`. Raises ValueError for a range that is none (host bits set included)."""
    return tuple(ip_network(cidr) for cidr in cidrs)


def vet(address: str, allow_private: Sequence[Network] = ()) -> bool:
    """May this address be connected to? Text that is not an address (or has a scope) is refused."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, IPv6Address) and ip.scope_id is not None:
        return False
    if any(ip.version == net.version and ip in net for net in allow_private):
        return True
    return _public_4(ip) if isinstance(ip, IPv4Address) else _public_6(ip)


def _public_4(ip: IPv4Address) -> bool:
    return not any(ip in net for net in _REFUSED_4)


def _public_6(ip: IPv6Address) -> bool:
    if ip in _NAT64:
        return _public_4(IPv4Address(int(ip) & 0xFFFFFFFF))
    if ip in _SIXTOFOUR:
        return _public_4(IPv4Address(int(ip) >> 80 & 0xFFFFFFFF))
    # v4-mapped and v4-compatible addresses, loopback, unique local, link-local and multicast all lie outside 2000::/3.
    return ip in _GLOBAL_6 and not any(ip in net for net in _REFUSED_6)


def literal(host: str) -> str | None:
    """The address a host *is* (not: has), in canonical text; None for a name.

    Old spellings of IPv4 (`127.1`, `0x7f000001`, `2130706433`) count as the address they mean, so that no spelling
    slips past `vet`. A host that ends in a number but means no address comes back as it is, and `vet` refuses it.
    """
    text = host.strip("[]").rstrip(".")
    if ":" in text:
        try:
            return str(ip_address(text))
        except ValueError:
            return text
    if not _NUMBER.match(text.rpartition(".")[2]):
        return None
    try:
        return socket.inet_ntoa(socket.inet_aton(text))
    except (OSError, ValueError):
        return text
