"""Values that a type allows and nobody can mean: a budget of one byte, a revisit every second, a top-level domain as scope without an end.

Pure decisions over a configuration and its seeds; each is (key, what is wrong, what to write).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from corpus.config.tree import Config
from corpus.url.canonical import canonical_url
from corpus.url.host import host_of, is_public_suffix

DELAY_FLOOR_S = 1.0
"""Below this a pace is accepted only towards addresses we own (`allow_private`) or hosts that agreed (`trusted`)."""
REVISIT_FLOOR_S = 60.0
"""The same for how often a page is asked for again."""
Fault = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Least:
    """The least that a key may say, as a number and in words, and what it is for."""

    key: str
    value: Callable[[Config], float]
    least: float
    words: str
    why: str


LEAST = (
    Least("dedup.memory", lambda c: c.dedup.memory, 16e6, "16MB", "clustering would spill to disk for every document"),
    Least("engine.memory", lambda c: c.engine.memory, 256e6, "256MB", "no query and no worker can run in it"),
    Least("store.segment_bytes", lambda c: c.store.segment_bytes, 16e3, "16kB", "every page would be an archive of its own"),
    Least("engine.backlog", lambda c: c.engine.backlog, 16e3, "16kB", "fetch would wait for every page to be processed"),
    Least("crawl.max_body", lambda c: c.crawl.max_body, 1e3, "1kB", "no page would be stored whole"),
    Least("crawl.total_timeout", lambda c: c.crawl.total_timeout, 0.1, "100ms", "no host would ever answer in time"),
)


def too_small(config: Config) -> list[Fault]:
    """Quantities that leave no room for what they are the limit of."""
    return [
        (one.key, f"{one.why}: less than {one.words}", f"use at least {one.words}")
        for one in LEAST
        if one.value(config) < one.least
    ]


def pace(config: Config, seeds: Sequence[str]) -> list[Fault]:
    """Asking more often than strangers can be expected to like."""
    crawl, found = config.crawl, []
    hosts = {urlsplit(url).hostname for url in seeds}
    if crawl.allow_private or hosts <= {trusted.host for trusted in crawl.trusted}:
        return []
    rest = "or list the hosts that agreed under crawl.trusted, or your own network under crawl.allow_private"
    if crawl.delay < DELAY_FLOOR_S:
        said = f"{crawl.delay:g}s is below the floor of {DELAY_FLOOR_S:g}s for hosts that did not agree to it"
        found.append(("crawl.delay", said, f"use at least 1s, {rest}"))
    for key, seconds in (("recrawl.every", config.recrawl.every), ("recrawl.min_interval", config.recrawl.min_interval)):
        if seconds < REVISIT_FLOOR_S:
            said = f"a page every {seconds:g}s is more often than hosts that did not agree to it should be asked"
            found.append((key, said, f"use at least 1min, {rest}"))
    return found


def scope(config: Config) -> list[Fault]:
    """A scope that has no end: the whole web, or all of a suffix under which strangers register."""
    crawl = config.crawl
    if crawl.max_pages is not None or crawl.max_bytes is not None or crawl.max_time is not None:
        return []
    hint = "set crawl.max_pages, max_bytes or max_time"
    if crawl.scope.any:
        return [("crawl.scope.any", "the whole web without a budget", hint)]
    names = {entry: canonical_url(f"http://{entry.removeprefix('*').removeprefix('.')}/") for entry in crawl.scope.domains}
    open_ended = [entry for entry, url in names.items() if url is not None and is_public_suffix(host_of(url))]
    return [
        ("crawl.scope.domains", f"everybody under {entry!r} without a budget", f"name a domain, or {hint}")
        for entry in open_ended
    ]


def private_seeds(config: Config, seeds: Iterable[str]) -> list[Fault]:
    """Seeds at addresses of this machine or of a private network, which a crawl refuses unless it is told that they are ours."""
    allowed = [network for cidr in config.crawl.allow_private if (network := _network(cidr)) is not None]
    found: dict[str, Fault] = {}
    for url in seeds:
        host = urlsplit(url).hostname or ""
        address = _address("127.0.0.1" if host == "localhost" or host.endswith(".localhost") else host)
        if address is None or address.is_global or any(address in network for network in allowed):
            continue
        said = f"{host} is no public address, so nothing of it would be asked"
        found.setdefault(
            host, ("crawl.seeds", said, f'if it is yours, set crawl.allow_private = ["{address}/{address.max_prefixlen}"]')
        )
    return list(found.values())


def _network(cidr: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(cidr)
    except ValueError:
        return None


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None
