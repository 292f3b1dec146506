"""Title, author, date and licence of a page, from what the page itself declares. No guessing from prose, no clock.

Dates are ISO days as declared; a date in the future or of another century is the page's own business.
"""

from __future__ import annotations

import datetime as dt
import html as html_module
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin

from corpus.filter.textclean import one_line
from corpus.page.tree import Page

_TITLES: Final = ("og:title", "twitter:title", "dc.title", "dcterms.title", "citation_title", "parsely-title")
_AUTHORS: Final = (
    "author",
    "article:author",
    "dc.creator",
    "dcterms.creator",
    "citation_author",
    "parsely-author",
    "sailthru.author",
    "byl",
)
_DATES: Final = (
    "article:published_time", "datepublished", "date", "dc.date.issued", "dcterms.issued", "dc.date", "dcterms.created", "pubdate", "publishdate",
    "publication_date", "citation_publication_date", "citation_date", "sailthru.date", "parsely-pub-date", "og:published_time", "dcterms.date",
)  # fmt: skip
_LD_TYPE = "application/ld+json"
_LD_BLOCKS = 8
_LD_CHARS = 200_000
_LICENSE_WORDS = 200
_TAG_CHARS = 500
"""How far from a telling attribute its tag may begin and end."""
_LD_NODES = 400
_TIME = re.compile(r"<time\b[^>]{0,300}?\bdatetime\s*=\s*[\"']?(\d{4}-\d{2}-\d{2})", re.IGNORECASE)
_ISO = re.compile(r"\s*(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)|\s*(\d{4})(\d{2})(\d{2})(?!\d)")
_CC = re.compile(r"https?://(?:www\.)?creativecommons\.org/(?:licenses|publicdomain)/[a-z0-9.+/-]{2,60}", re.IGNORECASE)
_REL = re.compile(r"\brel\s{0,9}=\s{0,9}[\"']?(?:[a-z]{1,20}\s{1,9}){0,4}\Z", re.IGNORECASE)
_HREF = re.compile(r"\bhref\s{0,9}=\s{0,9}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
_RSL = "application/rsl+xml"  # terms for machines: read by the opt-out rules, no licence of the text
_DEED = re.compile(r"/(?:deed|legalcode)(?:\.[a-z_-]{2,8})?$|/$")
_YEARS = range(1000, 10_000)


@dataclass(frozen=True, slots=True)
class Metadata:
    title: str | None = None
    author: str | None = None
    published: str | None = None
    """ISO day, `YYYY-MM-DD`."""
    license_url: str | None = None


def metadata(page: Page, url: str) -> Metadata:
    """What the page declares in its meta elements, link relations, JSON-LD and `<time>` elements."""
    named: dict[str, str] = {}
    for name, content in page.metas:
        if content.strip():
            named.setdefault(name.removeprefix("property:"), content)
    structured = list(_structured(page.text))
    return Metadata(
        title=one_line(_first(named, _TITLES)) or one_line(page.title) or one_line(_headline(structured)),
        author=_author(named, structured),
        published=_published(page.text, named, structured),
        license_url=_license(page, structured, url),
    )


def _first(named: Mapping[str, str], keys: Iterable[str]) -> str | None:
    return next((named[key] for key in keys if key in named), None)


def _blocks(html: str) -> Iterator[str]:
    """Contents of JSON-LD scripts, found by plain search so that a page full of openings costs no more than its length."""
    at = html.find(_LD_TYPE)
    for _ in range(_LD_BLOCKS):
        if at < 0:
            return
        start = html.find(">", at, at + _TAG_CHARS) + 1
        end = html.find("</script", start, start + _LD_CHARS) if start else -1
        if end > 0 and html.rfind("<script", max(at - _TAG_CHARS, 0), at) >= 0:
            yield html[start:end]
        at = html.find(_LD_TYPE, max(end, at + len(_LD_TYPE)))


def _structured(html: str) -> Iterator[dict[str, Any]]:
    """Objects of the page's JSON-LD, a bounded number."""
    left = _LD_NODES
    for block in _blocks(html):
        try:
            stack = [json.loads(block)]
        except (ValueError, RecursionError):  # broken or hostile JSON declares nothing
            continue
        while stack and left > 0:
            left -= 1
            node = stack.pop(0)
            if isinstance(node, list):
                stack += node[:50]
            elif isinstance(node, dict):
                yield node
                stack += [node[key] for key in ("@graph", "mainEntity", "mainEntityOfPage") if key in node]


def _headline(structured: list[dict[str, Any]]) -> str | None:
    return next((node["headline"] for node in structured if isinstance(node.get("headline"), str)), None)


def _author(named: Mapping[str, str], structured: list[dict[str, Any]]) -> str | None:
    declared = next((named[key] for key in _AUTHORS if key in named and "://" not in named[key]), None)
    if declared:
        return one_line(declared, 300)
    for node in structured:
        names = _names(node.get("author"))
        if names:
            return one_line("; ".join(names[:10]), 300)
    return None


def _names(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value] if "://" not in value else []
    if isinstance(value, dict):
        return _names(value.get("name"))
    return [name for item in value[:10] for name in _names(item)] if isinstance(value, list) else []


def _published(html: str, named: Mapping[str, str], structured: list[dict[str, Any]]) -> str | None:
    candidates = [named[key] for key in _DATES if key in named]
    candidates += [node["datePublished"] for node in structured if isinstance(node.get("datePublished"), str)]
    days = [day for candidate in candidates if (day := _iso_day(candidate))]
    if days:
        return days[0]
    times = set(_TIME.findall(html[:400_000]))
    return _iso_day(times.pop()) if len(times) == 1 else None  # several dates: a list of articles, or comments


def _iso_day(text: str) -> str | None:
    match = _ISO.match(text)
    if not match:
        return None
    year, month, day = (int(part) for part in match.groups() if part)
    try:
        return dt.date(year, month, day).isoformat() if year in _YEARS else None
    except ValueError:
        return None


def _license(page: Page, structured: list[dict[str, Any]], url: str) -> str | None:
    declared = [
        link.href for link in page.link_elements if "license" in link.rel.split() and link.type != _RSL and link.href.strip()
    ]
    declared += _license_anchors(page.text)
    declared += [node["license"] for node in structured if isinstance(node.get("license"), str)]
    for href in declared:
        absolute = _joined(url, html_module.unescape(href))
        if absolute.startswith(("http://", "https://")):
            return one_line(absolute, 500)
    if "creativecommons.org/" not in page.text:
        return None
    # without a declaration, a page that links to exactly one Creative Commons licence
    links = page.links if _may_be_commons(page.base) else page.links_of(_may_be_commons)
    linked = {_DEED.sub("", match[0].lower()) + "/" for link in links if (match := _CC.match(link.found))}
    return linked.pop() if len(linked) == 1 else None


def _may_be_commons(href: str) -> bool:
    """Whether a URL as written could lead to creativecommons.org: it says so, or is not in the spelling that says what it means."""
    return "creativecommons" in href.lower() or "%" in href or not href.isascii() or not href.isprintable()


def _license_anchors(html: str) -> list[str]:
    """hrefs of the first anchors with `rel=license`."""
    found: list[str] = []
    at = -1
    for _ in range(_LICENSE_WORDS):
        at = html.find("license", at + 1)
        if at < 0:
            break
        if not _REL.search(html[max(at - 100, 0) : at]):
            continue
        start = html.rfind("<", max(at - _TAG_CHARS, 0), at)
        end = html.find(">", at, at + _TAG_CHARS)
        href = _HREF.search(html[start:end]) if 0 <= start < end and html[start : start + 2].lower() == "<a" else None
        found += [href[1] or href[2] or href[3] or ""] if href else []
    return [href for href in found if href.strip()]


def _joined(url: str, href: str) -> str:
    try:
        return urljoin(url, href.strip())
    except ValueError:
        return href.strip()
