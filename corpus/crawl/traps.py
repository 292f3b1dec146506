"""Which URLs are not worth a request, told from the URL and how it was found alone. Pure.

Scope, depth and redirect hops; then the marks of spider traps: too long, too many parameters, a path that repeats
itself; then files that are never pages. The first rule that says no, in this order, is the reason, so a reason never
depends on what else was wrong. Sitemaps are exempt from what is about pages (depth, extension).
"""

from __future__ import annotations

from collections import Counter

from corpus.crawl.settings import CrawlSettings
from corpus.model import Kind, Sighting
from corpus.url.scope import UrlScope

MEDIA = frozenset(
    ending
    for line in (
        # images
        "avif bmp cur eps gif heic heif ico jfif jpe jpeg jpg jxl png psd svg svgz tif tiff webp",
        # sound and moving pictures
        "3gp aac aif aiff avi flac flv m2ts m3u8 m4a m4v mid midi mka mkv mov mp2 mp3 mp4 mpeg mpg oga ogg ogv opus ra ram rm swf ts wav weba webm wma wmv",
        # archives, packages and disk images
        "7z apk bz2 cab crx dar deb dmg exe gz img iso jar lz lz4 lzma msi msix pkg rar rpm snap tar tbz tgz txz war whl xpi xz z zip zst",
        # page requisites and fonts
        "css eot otf ttf wasm woff woff2",
        # documents and data that are not HTML
        "bib csv djvu doc docm docx epub ics mobi odp ods odt parquet pdf pot potx pps ppsx ppt pptx ps rtf sqlite torrent vcf xls xlsb xlsm xlsx",
        # bare binaries
        "bin dll dylib pyc",
    )
    for ending in line.split()
)
"""Path endings that are never a page. Endings that servers use for pages (php, asp, html, xml, json, txt, cgi …) are not here,
nor those that names of things end in (an article on Node.js ends in `.js`): the Content-Type decides those."""


def extension(url: str) -> str:
    """The lower-case ending of the last path segment, without the dot; empty when it has none."""
    start = url.find("/", url.find("://") + 3)
    if start < 0:
        return ""
    path = url[start:].split("?", 1)[0].split("#", 1)[0]
    segment = path[path.rfind("/") + 1 :]
    stem, dot, ending = segment.rpartition(".")
    return ending.lower() if dot and stem else ""


def parameters(url: str) -> int:
    """Number of query parameters, `&` and `;` both separating."""
    query = url.partition("?")[2].partition("#")[0]
    return sum(1 for part in query.replace(";", "&").split("&") if part)


def most_repeated(url: str) -> int:
    """How often the commonest path segment occurs."""
    start = url.find("/", url.find("://") + 3)
    path = url[start:].split("?", 1)[0].split("#", 1)[0] if start >= 0 else ""
    segments = [segment for segment in path.split("/") if segment]
    return max(Counter(segments).values(), default=0) if len(set(segments)) < len(segments) else min(len(segments), 1)


class UrlRules:
    """The pure URL filters of one crawl."""

    def __init__(self, settings: CrawlSettings, scope: UrlScope) -> None:
        self._settings, self._scope = settings, scope

    @property
    def trusted(self) -> tuple[str, ...]:
        """Hosts whose owners agreed to the crawl."""
        return tuple(row.host for row in self._settings.trusted)

    def judge(self, sighting: Sighting) -> str:
        """A reason code of `corpus.reasons`, or empty when the URL may be queued. Reads the URL and the way it was found only."""
        url, limits, page = sighting.url, self._settings, sighting.kind is Kind.PAGE
        if len(url) > limits.max_url_length:  # first: everything below is linear in the length
            return "url-too-long"
        if outside := self._scope.judge(url):
            return outside
        if page and sighting.depth > limits.max_depth:
            return "too-deep"
        if sighting.hops > limits.max_redirects:
            return "too-many-redirects"
        if "?" in url and parameters(url) > limits.max_query_params:
            return "too-many-params"
        if most_repeated(url) > limits.max_repeated_segments:
            return "repeated-segments"
        if page and extension(url) in MEDIA:
            return "unwanted-extension"
        return ""
