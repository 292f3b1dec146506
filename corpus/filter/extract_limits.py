"""How much work a page may cost, in units that do not depend on the machine: characters, tags, depth.

Looked at before any extractor sees the page: HTML parsers take quadratic time on deeply nested elements, and main-text
extractors take seconds on tables of a million rows. The same page is always judged the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

MAX_CHARS: Final = 12 * 2**20
MAX_TAGS: Final = 300_000
"""Tags past which no tree is built (about 2 s)."""
MAX_DEPTH: Final = 512
"""Open elements past which no tree is built, as in browsers."""
MAX_DEPTH_TAGS: Final = 60_000_000
"""Product of both past which no tree is built: lexbor looks at every open element for each tag (60 million: about 1 s)."""
MAX_TAGS_QUALITY: Final = 40_000
"""Tags past which trafilatura would need more than a second or two: the fast extractor takes the page."""
MAX_DEPTH_QUALITY: Final = 200
"""libxml2 stops at 256 open elements and silently drops the rest."""
MAX_ATTRIBUTES: Final = 1_000
"""Attributes of one tag past which no tree is built: every parser compares each with all before it."""
_ATTRIBUTES_FROM: Final = 32_768
"""Shorter pages cannot hold enough attributes to cost a second."""
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,15})")
_ATTRIBUTE = r"[\s/]*+[^\s/>][^\s/>=]*+(?:\s*+=\s*+(?:\"[^\"]*+\"?+|'[^']*+'?+|[^\s>\"'][^\s>]*+)?+)?+"
_CROWDED = re.compile(rf"<[a-zA-Z][^\s/>]*+(?:{_ATTRIBUTE}){{{MAX_ATTRIBUTES}}}")
_CLOSED_BY_OTHERS = frozenset(
    """area base br col embed hr img input link meta param source track wbr p li dt dd tr td th thead tbody tfoot option optgroup
    colgroup rt rp html head body path""".split()  # noqa: SIM905  (a list of forty strings reads worse)
)


@dataclass(frozen=True, slots=True)
class Size:
    """What the limits are compared with. `depth` is an upper estimate of open elements; 0 where another limit already decided.

    `crowded`: some tag has more than `MAX_ATTRIBUTES` attributes.
    """

    chars: int
    tags: int
    depth: int
    crowded: bool = False

    @property
    def too_large(self) -> bool:
        deep = self.depth > MAX_DEPTH or self.tags * self.depth > MAX_DEPTH_TAGS
        return self.chars > MAX_CHARS or self.tags > MAX_TAGS or deep or self.crowded

    @property
    def too_large_for_quality(self) -> bool:
        return self.too_large or self.tags > MAX_TAGS_QUALITY or self.depth > MAX_DEPTH_QUALITY


def size_of(text: str) -> Size:
    """Measure a page's source in two linear passes."""
    tags = text.count("<")
    if tags > MAX_TAGS or len(text) > MAX_CHARS:
        return Size(len(text), tags, 0)
    crowded = len(text) > _ATTRIBUTES_FROM and _CROWDED.search(_without_scripts(text)) is not None
    return Size(len(text), tags, _depth(text), crowded)


def _without_scripts(text: str) -> str:
    """The source without script elements, whose comparisons look like tags."""
    low = text.lower()
    if len(low) != len(text):  # a few letters grow when lowered; then places would not fit
        return text
    kept, at = [], 0
    while (start := low.find("<script", at)) >= 0:
        kept.append(text[at:start])
        at = low.find("</script", start)
        if at < 0:
            return "".join(kept)
    return "".join([*kept, text[at:]])


def _depth(text: str) -> int:
    depth = deepest = 0
    for close, name in _TAG.findall(text):
        if name in _CLOSED_BY_OTHERS or name.lower() in _CLOSED_BY_OTHERS:
            continue
        if close:
            depth -= depth > 0
        else:
            depth += 1
            deepest = max(deepest, depth)
    return deepest
