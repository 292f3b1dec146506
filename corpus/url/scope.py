"""Which URLs the crawl may ask for: a pure judgement over canonical URLs, compiled once from the settings.

A domain is found by walking the host's labels in a set, a prefix by a table of its host, a pattern by a matcher that
never backtracks: the cost of a URL does not grow with the number of domains, hosts or prefixes, and no pattern can
stall. Wrong entries are a `UsageError` when the scope is built; judging never raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from corpus.errors import UsageError
from corpus.url.canonical import canonical_url, one_spelling
from corpus.url.host import authority_of, host_of, is_public_suffix, path_and_query, registered_domain

OUT_OF_SCOPE = "out-of-scope"
SCOPE_EXCLUDE = "scope-exclude"
"""Codes of `corpus.reasons`."""

_PORT = re.compile(":[0-9]+$")


@dataclass(frozen=True)
class UrlScope:
    """What is in scope: a domain of `domains`, a host of `hosts`, a prefix of `prefixes`, or `any`; less `exclude`.

    `domains` (`example.org`, `*.cz`, `cz`) match themselves and all subdomains. `hosts` match exactly, on every port,
    or on one when given as `host:port`. `prefixes` are URL prefixes; without a scheme they stand for http and https.
    `exclude` takes such prefixes, path prefixes (`/private/`), and patterns with `*` for any run of characters, which
    must match the whole URL (less the scheme when the pattern has none; path and query alone when it starts with `/`).
    """

    domains: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    any: bool = False
    _domains: frozenset[str] = field(init=False, repr=False, compare=False)
    _hosts: frozenset[str] = field(init=False, repr=False, compare=False)
    _prefixes: dict[str, tuple[str, ...]] = field(init=False, repr=False, compare=False)
    _exclude: _Exclusions = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        compiled = {
            "_domains": frozenset(_host(entry.removeprefix("*").removeprefix("."), "domains") for entry in self.domains),
            "_hosts": frozenset(_host(entry, "hosts") for entry in self.hosts),
            "_prefixes": _by_host(prefix for entry in self.prefixes for prefix in _prefix(entry, "prefixes")),
            "_exclude": _Exclusions.of(self.exclude),
        }
        for name, value in compiled.items():
            object.__setattr__(self, name, value)

    @classmethod
    def from_seeds(
        cls,
        seeds: Iterable[str],
        *,
        domains: tuple[str, ...] = (),
        hosts: tuple[str, ...] = (),
        prefixes: tuple[str, ...] = (),
        exclude: tuple[str, ...] = (),
        any_url: bool = False,
    ) -> UrlScope:
        """The configured scope; where none of `domains`, `hosts`, `prefixes` is given, the seeds' registered domains.

        A seed on an IP address, a single label or a public suffix itself opens that host only, never its neighbours.
        """
        if domains or hosts or prefixes:
            return cls(domains, hosts, prefixes, exclude, any_url)
        seen = sorted({host for host in map(host_of, seeds) if host})
        whole = {registered_domain(host) for host in seen if not _answers_alone(host)}
        alone = {host for host in seen if _answers_alone(host)}
        return cls(tuple(sorted(whole)), tuple(sorted(alone)), (), exclude, any_url)

    def judge(self, canonical: str) -> str:
        """'' when the URL may be crawled, else `out-of-scope` or `scope-exclude` (in that order of test)."""
        host = host_of(canonical)
        if not host or not (self.any or self._reaches(host, canonical)):
            return OUT_OF_SCOPE
        return SCOPE_EXCLUDE if self._exclude.hit(host, canonical) else ""

    def _reaches(self, host: str, url: str) -> bool:
        if host in self._hosts or host in self._domains:
            return True
        if not _is_address(host):
            dot = host.find(".")
            while dot >= 0:
                if host[dot + 1 :] in self._domains:
                    return True
                dot = host.find(".", dot + 1)
        if url.startswith(self._prefixes.get(host, ())):
            return True
        return authority_of(url).partition("://")[2] in self._hosts


@dataclass(frozen=True, slots=True)
class _Exclusions:
    prefixes: dict[str, tuple[str, ...]]
    paths: tuple[str, ...]
    url_patterns: tuple[tuple[str, ...], ...]
    """Each pattern as its literal pieces between the stars."""
    bare_patterns: tuple[tuple[str, ...], ...]
    path_patterns: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, entries: tuple[str, ...]) -> _Exclusions:
        patterns = [one_spelling(entry) for entry in entries if "*" in entry]
        plain = [entry for entry in entries if "*" not in entry]
        paths = [entry for entry in patterns if entry.startswith("/")]
        urls = [entry for entry in patterns if entry.startswith("*") or "://" in entry]
        bare = [entry for entry in patterns if entry not in paths and entry not in urls]
        return cls(
            prefixes=_by_host(p for entry in plain if not entry.startswith("/") for p in _prefix(entry, "exclude")),
            paths=tuple(one_spelling(entry) for entry in plain if entry.startswith("/")),
            url_patterns=_pieces(urls),
            bare_patterns=_pieces(bare),
            path_patterns=_pieces(paths),
        )

    def hit(self, host: str, url: str) -> bool:
        if url.startswith(self.prefixes.get(host, ())):
            return True
        path = path_and_query(url)
        if path.startswith(self.paths) or any(matches(pieces, path) for pieces in self.path_patterns):
            return True
        bare = url.partition("://")[2]
        return any(matches(pieces, url) for pieces in self.url_patterns) or any(
            matches(pieces, bare) for pieces in self.bare_patterns
        )


def matches(pieces: tuple[str, ...], text: str) -> bool:
    """Does `text` as a whole match the pattern whose `*` stand between `pieces`?

    Each piece is taken at its first possible place, which never rules out a later match: one pass, no backtracking.
    """
    first, *middle, last = pieces
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


def _pieces(patterns: list[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(pattern.split("*")) for pattern in patterns)


def _by_host(prefixes: Iterable[str]) -> dict[str, tuple[str, ...]]:
    table: dict[str, list[str]] = {}
    for prefix in prefixes:
        table.setdefault(host_of(prefix), []).append(prefix)
    return {host: tuple(sorted(set(found))) for host, found in table.items()}


def _prefix(entry: str, key: str) -> list[str]:
    """A configured prefix in canonical form, once per scheme it stands for."""
    spelled = [entry] if "://" in entry else [f"http://{entry}", f"https://{entry}"]
    prefixes = [prefix for prefix in map(canonical_url, spelled) if prefix is not None]
    if not prefixes or not entry:
        raise UsageError(f"{entry!r} is no URL prefix", f"crawl.scope.{key}", "give it like https://example.org/docs/")
    return prefixes


def _host(entry: str, key: str) -> str:
    """A configured host name in A-labels, `:port` kept where one is given."""
    url = canonical_url(f"http://{entry}/")
    if url is None or not entry or url.count("/") != 3:
        raise UsageError(f"{entry!r} is no host name", f"crawl.scope.{key}", "give it like example.org")
    port = _PORT.search(entry)
    return host_of(url) + (port[0] if port else "")


def _is_address(host: str) -> bool:
    return host.startswith("[") or host.replace(".", "").isdigit()


def _answers_alone(host: str) -> bool:
    return _is_address(host) or is_public_suffix(host)
