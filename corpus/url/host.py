"""Who answers for a URL: host, authority, registered domain, and the robots.txt that binds.

The host is what shares a politeness clock, the authority what shares a robots.txt, the registered domain what shares
an owner (public suffix list, its private section included: `a.github.io` and `b.github.io` are strangers).
Nothing here raises; what is no http(s) URL has the empty host.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from pathlib import Path

from publicsuffixlist import PSLFILE, PublicSuffixList

from corpus.url.canonical import fetch_url
from corpus.url.partition import PARTITION_FILES, PARTITIONS, partition_file, partition_of

__all__ = [
    "PARTITIONS",
    "PARTITION_FILES",
    "authority_of",
    "host_of",
    "is_public_suffix",
    "partition_file",
    "partition_of",
    "path_and_query",
    "registered_domain",
    "robots_url",
    "suffix_list_version",
]

_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_NORMAL = re.compile(
    rf"(https?)://((?:[a-z0-9_-]+\.)*[a-z][a-z0-9-]*|{_BYTE}\.{_BYTE}\.{_BYTE}\.{_BYTE})(?::([1-9][0-9]*))?(?=[/?#]|\Z)"
)
"""An origin already in its WHATWG form, the common case; other digits-only last labels (odd IPv4) take the long way."""
_SERIALISED = re.compile(r"(https?)://(\[[^\]]*\]|[^/:]+)(?::([0-9]+))?")
_DEFAULT_PORT = {"http": "80", "https": "443"}
_IPV4 = re.compile(r"[0-9]+(?:\.[0-9]+){3}")


def _origin(url: str) -> tuple[str, str, str] | None:
    match = _NORMAL.match(url)
    if match is None:
        absolute = fetch_url(url)
        match = None if absolute is None else _SERIALISED.match(absolute)
        if match is None:
            return None
    scheme, host, port = match.groups()
    # `example.org.` is the same machine with the same owner: a root dot must not open a second clock.
    return scheme, host.rstrip(".") or host, port or _DEFAULT_PORT[scheme]


def host_of(url: str) -> str:
    """The host of a URL: lower-case A-labels, no port, no root dot, IPv6 in brackets. Empty when it has none."""
    origin = _origin(url)
    return "" if origin is None else origin[1]


def authority_of(url: str) -> str:
    """`scheme://host:port` with the port always given: the key of robots.txt (RFC 9309 §2.3). Empty when no URL."""
    origin = _origin(url)
    return "" if origin is None else "{}://{}:{}".format(*origin)


def robots_url(authority: str) -> str:
    """Where the robots.txt of an authority lies; the scheme's default port is left out, as in every request."""
    scheme, _, rest = authority.partition("://")
    return f"{scheme}://{rest.removesuffix(':' + _DEFAULT_PORT.get(scheme, ''))}/robots.txt"


def path_and_query(url: str) -> str:
    """Path and query of a canonical or fetch form, as a robots.txt rule sees them: from the first `/` on, no fragment."""
    start = url.find("/", url.find("://") + 3)
    return "/" if start < 0 else url[start:].partition("#")[0]


@lru_cache(maxsize=1)
def suffix_list_version() -> str:
    """Which public suffix list registered domains come from: the version its own head line states."""
    with Path(PSLFILE).open(encoding="utf-8") as file:
        stated = next((line for line in islice(file, 40) if line.startswith("// VERSION:")), "")
    return stated.partition(":")[2].strip() or "unstated"


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    """The list that ships with `publicsuffixlist`, read at first use (about 0.1 s)."""
    return PublicSuffixList()


@lru_cache(maxsize=65_536)
def registered_domain(host: str) -> str:
    """The registered domain (eTLD+1) of a host in A-labels, private suffixes included.

    IP addresses, public suffixes themselves, single labels such as `localhost` and names that are none come back as
    they are (lower-case, no root dot): each answers for itself.
    """
    host = host.lower()
    host = host.rstrip(".") or host
    if host.startswith("[") or _IPV4.fullmatch(host):
        return host
    domain: str | None = _suffixes().privatesuffix(host)
    return domain or host


def is_public_suffix(host: str) -> bool:
    """Is this name one under which strangers register (`com`, `co.uk`, `github.io`), or a single label?"""
    return bool(_suffixes().is_public(host.lower().rstrip(".")))
