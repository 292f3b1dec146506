"""Bytes of a page → its main text and what it declares about itself. Never raises for any bytes, and the same bytes give
the same text in any process, in any order, at any time.

Profiles: `default` is trafilatura with resiliparse behind it, `fast` resiliparse alone, `precision` and `recall` are
trafilatura's own. Pages past the work limits of the first go to the second, past those of both to `too-large`.
"""

from __future__ import annotations

import functools
import logging
import re
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Final, Literal

from corpus.errors import UsageError
from corpus.filter.blocks.extract import extract_blocks, extractor_name
from corpus.filter.extract_fallback import fast_name, fast_text
from corpus.filter.extract_limits import Size, size_of
from corpus.filter.extract_meta import Metadata, metadata
from corpus.filter.textclean import clean_text, one_line
from corpus.model import Outcome
from corpus.page.tree import Page, parse

PROFILES: Final = ("default", "fast", "precision", "recall", "blocks")
TOO_LITTLE: Final = 200
"""Characters below which a second extractor is asked; its answer counts if it is at least twice as long."""
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNDECLARED = frozenset({"", "application/octet-stream", "text/xml", "application/xml", "unknown/unknown"})
_MAGIC = (
    b"%PDF-",
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"PK\x03\x04",
    b"\x1f\x8b",
    b"RIFF",
    b"\x00asm",
    b"Rar!",
    b"7z\xbc\xaf",
    b"BZh",
    b"OggS",
    b"ID3",
    b"\x7fELF",
)
_HTML_HINT = re.compile(
    rb"<(?:!doctype\s+html|html|head|body|title|meta|div|p|h[1-6]|table|a|article|section|span|script)[\s>/]", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one page gave. `text` is empty unless `outcome` is ok; `lang` is the page's own claim (a language tag)."""

    text: str
    title: str | None = None
    author: str | None = None
    published: str | None = None
    license_url: str | None = None
    lang: str | None = None
    charset: str = ""
    charset_source: str = ""
    extractor: str = ""
    """Name and version of what found the text."""
    links: tuple[str, ...] = ()
    outcome: Outcome = Outcome.OK


def extract(body: bytes, *, url: str = "", content_type: str | None = None, profile: str = "default") -> Extraction:
    """Main text and metadata of one page. `content_type` is the header's value; without it the bytes decide.

    `links` are absolute, as found. Raises UsageError for an unknown profile, nothing for any body.
    """
    extraction, page = extract_page(body, url=url, content_type=content_type, profile=profile)
    return extraction if page is None else replace(extraction, links=tuple(link.found for link in page.links))


def extract_page(
    body: bytes, *, url: str = "", content_type: str | None = None, profile: str = "default"
) -> tuple[Extraction, Page | None]:
    """`extract` without the links, and the parsed page it worked on (None for what is no text at all).

    The page is whole even where its text is not extracted: opt-out statements in it can always be read.
    """
    if profile not in PROFILES:
        raise UsageError(f"no extraction profile {profile!r}", "extract.profile", f"one of {', '.join(PROFILES)}")
    kind = _kind(body, content_type)
    if kind == "other":
        return Extraction("", outcome=Outcome.UNSUPPORTED), None
    page = parse(body, content_type if kind == "html" or content_type else "text/plain", url)
    if kind == "text":
        text, name, outcome = clean_text(page.text), "plain/1", Outcome.OK
    else:
        text, name, outcome = _main_text(page, profile)
    if not text and outcome is Outcome.OK:
        outcome = Outcome.NO_TEXT
    found = metadata(page, url) if kind == "html" else Metadata()
    extraction = Extraction(
        text=text,
        title=found.title,
        author=found.author,
        published=found.published,
        license_url=found.license_url,
        lang=one_line(next(iter(page.language_attributes), None), 35),
        charset=page.charset,
        charset_source=page.charset_source,
        extractor=name,
        outcome=outcome,
    )
    return extraction, page


def _kind(body: bytes, content_type: str | None) -> Literal["html", "text", "other"]:
    """What the bytes are: the header's word, unless it says nothing or the bytes plainly contradict it."""
    declared = (content_type or "").split(";")[0].strip().lower()
    head = body[:1024].lstrip()
    if head.startswith(_MAGIC):
        return "other"
    if declared in _HTML:
        return "html"
    if declared == "text/plain":
        return "text"
    if declared in _UNDECLARED:
        if _HTML_HINT.search(body[:4096].replace(b"\0", b"")):  # UTF-16 spells tags with NULs between
            return "html"
        return "other" if declared or (b"\0" in body[:1024] and not body.startswith((b"\xff\xfe", b"\xfe\xff"))) else "text"
    return "other"


def _main_text(page: Page, profile: str) -> tuple[str, str, Outcome]:
    """(text, extractor, outcome): the profile's extractor, and the fast one where it may not run or finds too little."""
    html = page.text
    # a page that could be parsed as it is has few tags and no crowded one: only the others need a closer look
    size = size_of(html) if page.flattened else Size(len(html), 0, 0)
    if size.too_large:
        return "", "", Outcome.TOO_LARGE
    if profile == "blocks":  # it looks at a page of few words a second time by itself
        return clean_text(extract_blocks(page).text), extractor_name(), Outcome.OK
    text, name = "", fast_name()
    if profile != "fast" and not size.too_large_for_quality:
        text, name = clean_text(_quality_text(html, profile)), _quality_name()
    if profile == "fast" or size.too_large_for_quality or (len(text) < TOO_LITTLE and profile != "precision"):
        second = clean_text(fast_text(html))
        if second and len(second) >= 2 * len(text):
            text, name = second, fast_name()
    return text, name, Outcome.OK


@functools.cache
def _quality_name() -> str:
    return f"trafilatura/{version('trafilatura')}"


def _quality_text(html: str, profile: str) -> str:
    """trafilatura's text, or "" where it finds none or gives up. It decides by this page alone: `deduplicate` stays off."""
    from lxml.etree import LxmlError
    from trafilatura import bare_extraction

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)  # it reports every page without text as a warning
    try:
        found = bare_extraction(
            html,
            include_comments=False,
            deduplicate=False,
            favor_precision=profile == "precision",
            favor_recall=profile == "recall",
            with_metadata=False,
        )
    except (LxmlError, ValueError, TypeError, AttributeError, IndexError, KeyError, AssertionError, RecursionError):
        return ""  # its own faults on odd trees: the second extractor takes the page
    return (getattr(found, "text", None) or "") if found is not None else ""
