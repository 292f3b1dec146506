"""What orders cover, as one value that answers for a URL, a WARC record, a row of a table. Pure; sent to workers whole.

A takedown covers every capture of its URLs for ever. A purge covers what was captured up to its own time, because a page
that was gone may come back, and then it is another page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpus.model import url_id
from corpus.store.control_log import ControlEntry
from corpus.store.warc_capture import parse_date
from corpus.url.canonical import canonical_url
from corpus.url.host import host_of, registered_domain

REMOVING = frozenset({"takedown", "purge"})
"""Orders that `takedown apply` carries out."""


@dataclass(frozen=True, slots=True)
class Targets:
    """`version`: the number of the last order that is in it. Values of the purges are epoch seconds."""

    version: int
    domains: frozenset[str] = frozenset()
    url_ids: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    purged_domains: Mapping[str, float] = field(default_factory=dict)
    purged_urls: Mapping[str, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.domains or self.url_ids or self.ids or self.purged_domains or self.purged_urls)

    @property
    def hosts(self) -> frozenset[str]:
        """Domains and hosts of both kinds of order."""
        return self.domains | set(self.purged_domains)

    @property
    def registered(self) -> frozenset[str]:
        """The registered domains below which those lie: what a file's domain range is compared with."""
        return frozenset(registered_domain(host) for host in self.hosts)

    @property
    def named(self) -> frozenset[str]:
        """Single URLs, by `url_id`."""
        return self.url_ids | set(self.purged_urls)

    def covers(self, url: str, *, at: float | None = None) -> bool:
        """Whether a capture of a canonical URL must go. `at`: when it was captured (epoch seconds); None: whenever."""
        host = host_of(url)
        for suffix in suffixes(host) if self.hosts else ():
            if suffix in self.domains or _before(at, self.purged_domains.get(suffix)):
                return True
        if not self.named:
            return False
        key = url_id(url)
        return key in self.url_ids or _before(at, self.purged_urls.get(key))

    def covers_found(self, found: str, date: str = "") -> bool:
        """The same for an address as it stands in an archive, with the record's WARC-Date."""
        url = canonical_url(found.strip().removeprefix("<").removesuffix(">"))
        if url is None:
            return False
        return self.covers(url, at=parse_date(date) if date else None)

    def rows(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        """Which rows of a table with `id`, `url_id`, `host` and `fetched_at` must go."""
        found = _among(table["url_id"], self.url_ids) | _among(table["id"], self.ids)
        if self.hosts:
            found |= self._by_host(table)
        purged = _among(table["url_id"], self.purged_urls)
        if purged.any():
            at = np.asarray(table["fetched_at"].cast(pa.int64()))
            keys = table["url_id"].to_pylist()
            late = [n for n in np.flatnonzero(purged).tolist() if at[n] / 1e6 <= self.purged_urls[keys[n]]]
            found[late] = True
        return found

    def _by_host(self, table: pa.Table) -> npt.NDArray[np.bool_]:
        names = table["host"].combine_chunks().dictionary_encode()
        limits = [self._until(host) for host in names.dictionary.to_pylist()]
        if not any(limit > -np.inf for limit in limits):
            return np.zeros(len(table), dtype=bool)
        until = np.array([*limits, -np.inf])[np.asarray(pc.fill_null(names.indices, len(limits)), dtype=np.int64)]
        hit: npt.NDArray[np.bool_] = np.asarray(table["fetched_at"].cast(pa.int64())) / 1e6 <= until
        return hit

    def _until(self, host: str) -> float:
        """Captures of a host up to this time must go: infinity for a takedown, minus infinity for none."""
        latest = -np.inf
        for suffix in suffixes(host or ""):
            if suffix in self.domains:
                return float(np.inf)
            latest = max(latest, self.purged_domains.get(suffix, -np.inf))
        return float(latest)


def targets_of(orders: Iterable[ControlEntry], version: int) -> Targets:
    """What the orders of a control log ask to be removed."""
    domains, urls, ids = set(), set(), set()
    purged_domains: dict[str, float] = {}
    purged_urls: dict[str, float] = {}
    for order in orders:
        if order.action not in REMOVING:
            continue
        named = [*order.members, *({order.url_id} - {""}), *([order.value] if order.kind == "url" else [])]
        if order.action == "takedown":
            urls.update(named)
            ids.update([order.value] if order.kind == "id" else [])
            domains.update([order.value] if order.kind == "domain" else [])
        else:
            for key in named:
                purged_urls[key] = max(order.at, purged_urls.get(key, order.at))
            if order.kind == "domain":
                purged_domains[order.value] = max(order.at, purged_domains.get(order.value, order.at))
    return Targets(version, frozenset(domains), frozenset(urls), frozenset(ids), purged_domains, purged_urls)


def suffixes(host: str) -> Iterator[str]:
    """A host and every name above it."""
    yield host
    while (dot := host.find(".")) >= 0:
        host = host[dot + 1 :]
        yield host


def _before(at: float | None, limit: float | None) -> bool:
    return limit is not None and (at is None or at <= limit)


def _among(column: pa.ChunkedArray, values: Iterable[str]) -> npt.NDArray[np.bool_]:
    chosen: Any = list(values)
    if not chosen:
        return np.zeros(len(column), dtype=bool)
    hit: npt.NDArray[np.bool_] = np.asarray(pc.is_in(column, pa.array(chosen, pa.string())), dtype=bool)
    return hit
