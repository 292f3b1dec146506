"""Links become sightings, and sightings find the partition file that owns them. Pure.

A link is judged by its owner, so that one place counts a host's exclusions; a sender only drops what can never be a
URL. Order does not matter: the store keeps the smallest (depth, hops) of all sightings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from corpus.crawl.ports import Judged, QueuedUrl
from corpus.crawl.sitemap import SitemapUrl
from corpus.crawl.traps import UrlRules
from corpus.crawl.yields import Yields
from corpus.model import Kind, Sighting
from corpus.page.tree import Page
from corpus.url.canonical import canonical_url, fetch_url
from corpus.url.host import host_of, registered_domain
from corpus.url.partition import partition_file, partition_of

Known = Callable[[str, int], bool]
"""Whether a plain link to this URL, at this depth, says nothing that is not durable already (`Committer.knows`)."""


def page_links(page: Page, of: QueuedUrl, known: Known = lambda url, depth: False) -> list[Sighting]:
    """Followable links of a page, one level deeper, each once; less what is known: most links of a site stand on most of its pages."""
    depth = of.depth + 1
    return [
        Sighting(link.url, link.found, depth, via=of.url)
        for link in page.links
        if not link.nofollow and not known(link.url, depth)
    ]


def canonical_link(page: Page, of: QueuedUrl) -> Sighting | None:
    """The address that a page names as its own (`rel=canonical`) where that is another one of its host: no deeper than it is."""
    if page.canonical is None or page.canonical == of.url:
        return None
    return Sighting(url=page.canonical, found=page.canonical, depth=of.depth, via=of.url)


def redirect(location: str, of: QueuedUrl) -> Sighting | None:
    """The target of a redirect: as deep as its source, one hop further. None when there is none, or no http(s) URL."""
    if not location.strip():  # it would resolve to the page itself
        return None
    found = fetch_url(location, of.found)
    url = canonical_url(location, of.found)
    if url is None or found is None:
        return None
    return Sighting(url=url, found=found, depth=of.depth, kind=of.kind, hops=of.hops + 1, via=of.url, priority=of.priority)


def sitemap_links(pages: Iterable[SitemapUrl], children: Iterable[str], of: QueuedUrl) -> list[Sighting]:
    """URLs of a sitemap at depth 1 (it stands beside the home page), and the sitemaps it names."""
    sightings = []
    for entry in pages:
        url, found = canonical_url(entry.url, of.found), fetch_url(entry.url, of.found)
        if url is not None and found is not None:
            sightings.append(Sighting(url, found, depth=1, via=of.url, priority=entry.priority))
    sightings += sitemaps(children, of.url, hops=of.hops + 1)
    return sightings


def sitemaps(urls: Iterable[str], via: str, *, hops: int = 0) -> list[Sighting]:
    """Sitemap URLs (of robots.txt, or of an index) as sightings. Nested indexes count as hops and so are bounded."""
    found = [(canonical_url(url), fetch_url(url)) for url in urls]
    return [Sighting(u, f, depth=0, kind=Kind.SITEMAP, hops=hops, via=via) for u, f in found if u is not None and f is not None]


def seed(url: str) -> Sighting | None:
    """A seed as a sighting; None when it is not an http(s) URL."""
    key, found = canonical_url(url), fetch_url(url)
    return None if key is None or found is None else Sighting(key, found, depth=0)


@lru_cache(maxsize=65_536)
def owner_of(origin: str) -> tuple[str, str, int]:
    """(host, registered domain, logical partition) of `scheme://host:port`, the part of a canonical URL before its path."""
    host = host_of(origin)
    domain = registered_domain(host)
    return host, domain, partition_of(domain)


def _owner(sighting: Sighting) -> tuple[str, str, int]:
    return owner_of(sighting.url[: sighting.url.index("/", 8)])


def _linking_domain(sighting: Sighting) -> str:
    """The registered domain of the page that named a URL; empty for a seed, or when it is the URL's own host."""
    via, slash = sighting.via, sighting.url.index("/", 8) + 1
    if not via or via[:slash] == sighting.url[:slash]:
        return ""
    return owner_of(via[: via.index("/", 8)])[1]


class Router:
    """Sends sightings to their owners and judges those that are ours."""

    def __init__(self, rules: UrlRules, spread: int, yields: Yields | None = None) -> None:
        """`spread`: over how many partition files the frontier is spread; `yields`: what patterns and domains have brought so far;
        absent, this process has seen nothing yet."""
        self._rules, self._spread = rules, spread
        self.yields = yields or Yields(rules.trusted)

    def judge(self, sightings: Iterable[Sighting]) -> list[Judged]:
        judged = []
        for sighting in sightings:
            host, domain, _ = _owner(sighting)
            excluded = self._rules.judge(sighting)
            if not excluded and sighting.kind is Kind.PAGE:
                excluded = self.yields.excludes(sighting.url, host, domain)
            by = _linking_domain(sighting)
            if by and by != domain:
                self.yields.linked(domain, by)
            judged.append(Judged(sighting, host, domain, excluded))
        return judged

    def file_of(self, domain: str) -> int:
        """The partition file that owns a registered domain."""
        return partition_file(domain, self._spread)

    def by_file(self, sightings: Iterable[Sighting]) -> dict[int, list[Sighting]]:
        """Sightings by the partition file that owns them. Of several that say the same of a URL only the nearest is left:
        most links of a site stand on most of its pages."""
        nearest: dict[tuple[str, Kind, int, float], Sighting] = {}
        for sighting in sightings:
            key = (sighting.url, sighting.kind, sighting.hops, sighting.priority)
            known = nearest.get(key)
            if known is None or sighting.depth < known.depth:
                nearest[key] = sighting
        files: dict[int, list[Sighting]] = {}
        for sighting in nearest.values():
            files.setdefault(_owner(sighting)[2] % self._spread, []).append(sighting)
        return files
