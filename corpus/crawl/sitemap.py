"""Sitemaps: XML, sitemap indexes, plain text, RSS and Atom, gzipped or not. Pure: bytes in, URLs out.

Promises: a damaged file gives what was readable before the damage; entities are never expanded and nothing external
is ever read (a DOCTYPE ends the parse); at most 50,000 URLs, 50 MB decoded and a few levels of nesting are looked at.
The URLs are as found: the caller canonicalises, scopes and vets them like any link.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from xml.parsers import expat

from corpus.page.encoding import decode_body

MAX_URLS = 50_000
MAX_BYTES = 50 * 2**20
MAX_DEPTH = 32
MAX_URL = 4_000
"""Characters; the crawl's own limit on URLs is lower and counted there, so it must be allowed to see too long ones."""
_PIECE = 64 * 1024
_MAX_RATIO = 1_000
"""XML of equal lines compresses far better than pages do; the byte limit is what protects."""
_LINE = re.compile(rb"[^\r\n]+")
_HTTP = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SitemapUrl:
    """One entry. `priority` is the site's own claim, 0..1; `lastmod` is its text, unparsed, empty when absent."""

    url: str
    priority: float = 0.5
    lastmod: str = ""


@dataclass(frozen=True, slots=True)
class Sitemap:
    """What a file said. `children` are further sitemaps; `fault` is why reading stopped early, empty when it did not."""

    urls: tuple[SitemapUrl, ...] = ()
    children: tuple[str, ...] = ()
    fault: str = ""


@dataclass(slots=True)
class _Entry:
    url: str = ""
    priority: float = 0.5
    lastmod: str = ""
    links: list[str] = field(default_factory=list)


def read_sitemap(body: bytes) -> Sitemap:
    """Read a content-decoded body of any of the known forms. Never raises for bad input."""
    fault = ""
    for _ in range(2):  # a .gz file served with a second gzip coding that its header does not admit
        if not body.startswith(b"\x1f\x8b"):
            break
        decoded = decode_body(("gzip",), body, MAX_BYTES, _MAX_RATIO)
        body, fault = decoded.body, decoded.fault or ("more than 50 MB" if decoded.truncated else "")
    if len(body) > MAX_BYTES:
        body, fault = body[:MAX_BYTES], "more than 50 MB"
    start = _undressed(body[:1024])
    read = _Xml().read(body) if start.startswith(b"<") else _plain(body)
    return Sitemap(read.urls, read.children, read.fault or fault)


def _undressed(start: bytes) -> bytes:
    """The first bytes without byte order marks, zero bytes (UTF-16) and white space."""
    return start.replace(b"\0", b"").lstrip(b"\xef\xbb\xbf\xff\xfe \t\r\n")


def _plain(body: bytes) -> Sitemap:
    """One URL a line; other lines are passed over unread. Lines end in any of CR, LF, CRLF."""
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        body = body.decode("utf-16", "replace").encode("utf-8", "replace")
    urls: dict[str, None] = {}
    for found in _LINE.finditer(body.removeprefix(b"\xef\xbb\xbf")):
        line = found[0].strip()
        if len(line) <= MAX_URL and _HTTP.match(url := line.decode("utf-8", "replace")) and not re.search(r"\s", url):
            urls[url] = None
            if len(urls) >= MAX_URLS:
                return Sitemap(tuple(SitemapUrl(u) for u in urls), (), f"more than {MAX_URLS} URLs")
    return Sitemap(tuple(SitemapUrl(u) for u in urls))


class _StopError(Exception):
    """Enough: the message says why."""


class _Xml:
    """Event reader for the four XML forms; element names are compared without prefix and case, as sites misuse both."""

    def __init__(self) -> None:
        self._urls: dict[str, SitemapUrl] = {}
        self._children: dict[str, None] = {}
        self._path: list[str] = []
        self._entry: _Entry | None = None
        self._child = False
        self._text: list[str] = []
        self._size = 0

    def read(self, body: bytes) -> Sitemap:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        fault = ""
        try:
            lead = len(body) - len(body.lstrip(b" \t\r\n"))  # blank lines before the declaration are common
            for at in range(lead, len(body), _PIECE):
                parser.Parse(body[at : at + _PIECE], at + _PIECE >= len(body))
        except _StopError as stop:
            fault = str(stop)
        except (expat.ExpatError, ValueError, LookupError) as exc:  # LookupError: an encoding nobody knows
            fault = f"not well-formed: {exc}"
        return Sitemap(tuple(self._urls.values()), tuple(self._children), fault)

    def _doctype(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        raise _StopError("a DOCTYPE is not read")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _local(name)
        self._path.append(tag)
        if len(self._path) > MAX_DEPTH:
            raise _StopError(f"nested deeper than {MAX_DEPTH}")
        self._text.clear()
        self._size = 0
        if tag in {"url", "item", "entry", "sitemap"} and self._entry is None:
            self._entry, self._child = _Entry(), tag == "sitemap"
        elif self._entry is not None and tag == "link" and attributes.get("rel", "alternate") == "alternate":
            # Atom; also sitemaps' xhtml:link, whose alternates are pages of the same site in other languages.
            self._entry.links.append(attributes.get("href", "").strip())

    def _characters(self, data: str) -> None:
        self._size += len(data)
        if self._size <= MAX_URL:
            self._text.append(data)

    def _end(self, name: str) -> None:
        tag, text = self._path.pop(), "".join(self._text).strip()
        entry = self._entry
        self._text.clear()
        if entry is None:
            return
        parent = self._path[-1] if self._path else ""
        if tag in {"loc", "link"} and text and parent in {"url", "item", "entry", "sitemap"}:
            entry.url = entry.url or text
        elif tag == "priority":
            entry.priority = _priority(text)
        elif tag in {"lastmod", "pubdate", "updated"} and not entry.lastmod:
            entry.lastmod = text[:64]
        elif tag in {"url", "item", "entry", "sitemap"}:
            if (tag, parent) in {("sitemap", "sitemapindex"), ("url", "urlset")}:
                entry.url = entry.url or text  # some generators forget <loc>
            self._keep(entry)
            self._entry = None

    def _keep(self, entry: _Entry) -> None:
        found = [entry.url, *entry.links] if not self._child else [entry.url]
        for url in found:
            if not _HTTP.match(url) or len(url) > MAX_URL:
                continue
            if self._child:
                self._children.setdefault(url)
            else:
                self._urls.setdefault(url, SitemapUrl(url, entry.priority, entry.lastmod))
            if len(self._urls) + len(self._children) >= MAX_URLS:
                raise _StopError(f"more than {MAX_URLS} URLs")


def _local(name: str) -> str:
    return name.rpartition(":")[2].lower()


def _priority(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        return 0.5
    return min(max(value, 0.0), 1.0) if math.isfinite(value) else 0.5
