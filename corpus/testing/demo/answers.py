"""What each path of the demo web answers: one table of ready answers per host, built once the origins are known.

Pure. `DemoSite` is the `Site` that the shipped test server plays; the server counts how often a path was asked, so
that a busy page can answer 503 first, and nothing here remembers anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from corpus.testing.demo.pages import Page, Site, sites
from corpus.testing.demo.render import html
from corpus.testing.web_answer import Answer, Ask, Name


@dataclass(frozen=True, slots=True)
class Ready:
    """An answer, and how many times the path answers 503 before giving it."""

    answer: Answer
    busy: int = 0


BUSY = Answer(503, (("Content-Type", "text/plain"), ("Retry-After", "1")), b"the bakers are at the oven, come back in a second\n")
NOT_FOUND = Answer(
    404, (("Content-Type", "text/html; charset=utf-8"),), b"<!DOCTYPE html><title>404</title><p>There is no such page.</p>\n"
)


@dataclass(frozen=True, slots=True)
class DemoSite:
    """The demo web (or one host of it) for the test server. `tables`: address → path → answer; picklable."""

    tables: Mapping[str, Mapping[str, Ready]]

    def names(self) -> Mapping[str, Name]:
        """Hosts are named by their addresses: nothing is asked of a name server."""
        return {address: Name((address,)) for address in self.tables}

    def down(self) -> frozenset[str]:
        """Every host is up."""
        return frozenset()

    def answer(self, ask: Ask) -> Answer:
        """404 for what is not in the table, 304 when the client already has these bytes."""
        ready = self.tables.get(ask.host, {}).get(ask.target)
        if ready is None:
            return NOT_FOUND
        if ask.nth <= ready.busy:
            return BUSY
        tags = [(name, value) for name, value in ready.answer.headers if name == "ETag"]
        if tags and ask.headers.get("if-none-match") == tags[0][1]:
            return Answer(304, tuple(tags))
        return ready.answer


def answers(origins: Mapping[str, str]) -> dict[str, dict[str, Ready]]:
    """Host key → path → answer, for every path that is not a 404. `origins`: host key → `http://host:port`."""
    return {site.key: _table(site, origins) for site in sites()}


def _table(site: Site, origins: Mapping[str, str]) -> dict[str, Ready]:
    table: dict[str, Ready] = {}
    for page in site.pages:
        table[page.path] = Ready(_page_answer(page, site, origins), page.busy)
    table["/"] = table["/index.html"]
    own = origins[site.key]
    if site.robots:
        table["/robots.txt"] = _file("text/plain; charset=utf-8", site.robots.lstrip().replace("{self}", own))
    if site.tdmrep:
        table["/.well-known/tdmrep.json"] = _file("application/json", site.tdmrep.replace("{self}", own))
    if site.sitemap:
        table["/sitemap.xml"] = _file("application/xml", _sitemap(site, own))
    for old, new in site.moved.items():
        table[old] = Ready(Answer(301, (("Location", new), ("Content-Type", "text/plain")), b"moved\n"))
    for path, (kind, body) in site.other.items():
        table[path] = _file(kind, body)
    return table


def _page_answer(page: Page, site: Site, origins: Mapping[str, str]) -> Answer:
    shown = site.page(page.copy_of) if page.copy_of else page
    kind = shown.content_type or f"text/html; charset={shown.encoding}"
    return _tagged(200, (("Content-Type", kind), *shown.headers), html(shown, site, origins))


def _file(kind: str, body: str) -> Ready:
    return Ready(_tagged(200, (("Content-Type", kind),), body.encode("utf-8")))


def _tagged(status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> Answer:
    tag = hashlib.sha256(body).hexdigest()[:16]
    return Answer(status, (*headers, ("ETag", f'"{tag}"')), body)


def _sitemap(site: Site, own: str) -> str:
    rows = "".join(f"<url><loc>{own}{page.path}</loc><lastmod>{site.published}</lastmod></url>\n" for page in site.pages)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</urlset>\n'
    )
