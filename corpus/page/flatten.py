"""The work limit of parsing: which markup an HTML parser would choke on, and the same page without its structure.

HTML5 tree building is quadratic in nesting depth, in the attributes of one tag, and (in memory too) in unclosed
formatting elements. Such a page is flattened before it is parsed: links, metas, title and text stay, nesting goes.
Nothing a `Page` offers is lost, and the time is linear whatever the page does. Ordinary pages are never touched.
"""

from __future__ import annotations

import re

MAX_TAGS = 12_000
"""Tags past which nesting could cost more than half a second; one page in a hundred has more."""
MAX_REBUILT = 200_000
"""Elements that unclosed formatting elements could make the parser rebuild: (distinct formatting tags) x (tags)."""
MAX_ATTRIBUTES = 1_000
MAX_TAG_CHARS = 8_192
MAX_KEPT = 100_000
"""Tags that a flattened page keeps; the rest of its markup reads as space."""
MAX_TAGS_READ = 300_000
"""Tags after which a page is cut: nobody wrote the rest for readers."""
_LONG = 65_536
"""Shorter pages cannot hold enough attributes to matter."""

_ATTRIBUTE = r"[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"?+|'[^']*+'?+|[^\s>\"'][^\s>]*+)?+)?+"
_MAYBE_FORMATTING = re.compile(r"<[bcefinstu](?:(?<=[bisu])|ig|ode|m|ont|obr|mall|trike|trong|t)\s", re.IGNORECASE)
"""Every place where `_FORMATTING` matches, and a few more: only to count, at a third of the cost."""
_FORMATTING = re.compile(
    r"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)\s++(?:[^>\"']++|\"[^\"]*+\"?+|'[^']*+'?+)*+", re.IGNORECASE
)
_RAW = "|".join(
    rf"<{name}(?=[\s/>])(?:[^<]++|<(?!/{name}))*+"
    for name in ("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes", "template")
)
_COMMENT = r"<!--(?:-?>|(?:[^-]++|-(?!-!?>))*+(?:--!?>)?+)"
_MARKUP = re.compile(
    rf"{_COMMENT}|{_RAW}|<(?P<kept>/?(?:a|area|base|link|meta|html|title))(?=[\s/>])(?:{_ATTRIBUTE})*+[\s/]*+>?+"
    rf"|<[/!?]?[a-z](?:{_ATTRIBUTE})*+[\s/]*+>?+|<[!?/][^>]*+>?+",
    re.IGNORECASE,
)
_FEW_ATTRIBUTES = re.compile(
    rf"(?:[^<]++|{_COMMENT}|{_RAW}|<[a-z][^\s/>]*+(?:{_ATTRIBUTE}){{0,{MAX_ATTRIBUTES}}}+(?!{_ATTRIBUTE})|<(?![a-z]))*+",
    re.IGNORECASE,
)


def is_heavy(html: str) -> bool:
    """Could this page cost the parser more than about half a second, or hundreds of megabytes?"""
    tags = html.count("<")
    if tags > MAX_TAGS:
        return True
    if tags > 1_000 and _rebuilt_at_most(html) * tags > MAX_REBUILT and len(set(_FORMATTING.findall(html))) * tags > MAX_REBUILT:
        return True
    if len(html) <= _LONG:
        return False
    match = _FEW_ATTRIBUTES.match(html)
    return match is None or match.end() < len(html)


def _rebuilt_at_most(html: str) -> int:
    """No fewer than the distinct formatting tags with attributes."""
    return len(_MAYBE_FORMATTING.findall(html))


def flatten(html: str) -> str:
    """The page with only the tags a `Page` reads; scripts, styles and comments are gone, all other tags are a space."""
    pieces = html.split("<", MAX_TAGS_READ)
    if len(pieces) > MAX_TAGS_READ:
        html = html[: len(html) - len(pieces[-1]) - 1]
    kept, once = 0, {"html", "base", "title", "/title"}

    def replace(match: re.Match[str]) -> str:
        nonlocal kept
        name = (match["kept"] or "").lower()
        if not name or len(match[0]) > MAX_TAG_CHARS or kept >= MAX_KEPT:
            return " "
        if name in {"html", "base", "title", "/title"}:
            if name not in once:
                return " "
            once.discard(name)
        kept += 1
        return match[0] if match[0].endswith(">") else match[0] + ">"

    return _MARKUP.sub(replace, html)
