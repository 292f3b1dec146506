"""Real documentation pages spread over many loopback hosts: each page on one host only, its links led to that host's pages.

What the benches crawl: markup, text and number of links as people wrote them, and a closed web in which every page is
reachable. Pages are taken in a fixed order, so the same folder gives the same web.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

from corpus.errors import UsageError
from corpus.testing.sites import trees
from corpus.testing.web_answer import Answer, Ask, Name
from corpus.testing.web_hosts import address_of

SMALLEST, LARGEST = 6_000, 80_000
"""Bytes of the pages taken: neither stubs nor whole books; together about 24 kB on average."""
MORE = "more"
"""Where `make bench-peers` unpacks documentation beside that of `make long`, for 200 hosts of 30 pages."""
_HREF = re.compile(rb"(<a\b[^>]*?\bhref\s*=\s*)(\"[^\"]*\"|'[^']*')", re.IGNORECASE)
_PAGING = re.compile(
    rb"(<link\b(?=[^>]*\brel\s*=\s*[\"']?(?:next|prev|alternate))[^>]*?\bhref\s*=\s*)(\"[^\"]*\"|'[^']*')", re.IGNORECASE
)
"""Links that we follow and others do not: left as they were, they would lead us alone out of the web, to pages that are missing."""
_HTML = (("Content-Type", "text/html; charset=utf-8"),)
_ROBOTS = Answer(200, (("Content-Type", "text/plain"),), b"User-agent: *\nDisallow: /private/\n")
_NOT_FOUND = Answer(404, _HTML, b"<!DOCTYPE html><title>404</title><p>not found</p>\n")


@dataclass(frozen=True)
class RealWeb:
    """`hosts` hosts of `pages` pages each, from `bench_data`."""

    bench_data: Path
    hosts: int
    pages: int

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The pages, host after host. Raises UsageError when there are too few."""
        found = []
        for folder in (*(tree.folder for tree in trees(self.bench_data)), self.bench_data / MORE):
            sized = [(file, file.stat().st_size) for file in sorted(folder.rglob("*.html"))]
            found += [file for file, size in sized if SMALLEST <= size <= LARGEST]
        if len(found) < self.hosts * self.pages:
            hint = "take fewer, or make bench-data/.more for more documentation"
            raise UsageError(f"there are {len(found)} pages for {self.hosts} hosts of {self.pages}", str(self.bench_data), hint)
        step = len(found) / (self.hosts * self.pages)
        return tuple(found[int(n * step)] for n in range(self.hosts * self.pages))

    @cached_property
    def _number(self) -> dict[str, int]:
        return {address_of(n): n for n in range(self.hosts)}

    def names(self) -> Mapping[str, Name]:
        """Hosts are named by their addresses."""
        return {address: Name((address,)) for address in self._number}

    def down(self) -> frozenset[str]:
        """Every host is up."""
        return frozenset()

    def answer(self, ask: Ask) -> Answer:
        """robots.txt, the start page that lists all pages, or page n."""
        host = self._number.get(ask.host)
        if host is None:
            return _NOT_FOUND
        if ask.path == "/robots.txt":
            return _ROBOTS
        if ask.path == "/":
            listed = "".join(f'<li><a href="{path_of(n)}">{escape(path_of(n))}</a></li>' for n in range(self.pages))
            return Answer(200, _HTML, f"<!DOCTYPE html><title>{ask.host}</title><ul>{listed}</ul>".encode())
        match = re.fullmatch(r"/p/(\d{4})\.html", ask.path)
        if match is None or int(match[1]) >= self.pages:
            return _NOT_FOUND
        return Answer(200, _HTML, self.body(host, int(match[1])))

    def body(self, host: int, page: int) -> bytes:
        """A page with its links led to its neighbours, one after the other."""
        at = page

        def lead(match: re.Match[bytes]) -> bytes:
            nonlocal at
            at += 1
            return match[1] + f'"{path_of(at % self.pages)}"'.encode()

        return _PAGING.sub(lead, _HREF.sub(lead, self.files[host * self.pages + page].read_bytes()))

    def urls(self, port: int) -> list[str]:
        """Every page of the web, start pages included."""
        paths = ["/", *map(path_of, range(self.pages))]
        return [f"http://{address}:{port}{path}" for address in self._number for path in paths]

    def seeds(self, port: int) -> list[str]:
        """The start pages."""
        return [f"http://{address}:{port}/" for address in self._number]


def path_of(page: int) -> str:
    """The path of the n-th page of a host."""
    return f"/p/{page:04d}.html"
