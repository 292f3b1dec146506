"""A page's tree → blocks: runs of text between block-level elements, and the table of elements around them.

One walk in document order, nothing is judged here. Scripts, navigation, footers and the like are never entered
(`keep_all` enters the latter). The tree is not changed. Work is bounded by `MAX_NODES` and `MAX_BLOCKS`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from corpus.filter.extract_limits import size_of
from corpus.page.tree import Page

MAX_NODES: Final = 400_000
MAX_BLOCKS: Final = 60_000
NOSCRIPT_CHARS: Final = 300
"""A shorter `noscript` holds an image or a request to enable scripts; forum software puts whole threads in longer ones."""

_BLOCK_TAGS = """address article aside blockquote body caption center dd details dialog dir div dl dt fieldset figcaption figure
footer form h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu nav noscript ol p pre section summary table tbody td
tfoot th thead tr ul"""
TAGS: Final = ("", *_BLOCK_TAGS.split())
"""Block-level elements by code; 0 stands for none."""
TAG_CODE: Final = {name: code for code, name in enumerate(TAGS) if name}
_NEVER = frozenset(
    """area audio base canvas col colgroup datalist embed head iframe link map math meta meter noembed noframes object optgroup
    option param progress rp script select source style svg template textarea title track video wbr""".split()  # noqa: SIM905
)
BOILERPLATE: Final = frozenset({"nav", "footer", "aside", "dialog"})
_BITS: Final = {"a": 1, "b": 2, "strong": 2}
_APART = frozenset({"a", "button", "label", "time", "cite"})
"""Inline elements that are set apart from their like by style alone: a menu of links, a row of buttons."""
_BREAK, _GAP = "\1", "\0"
"""A `br`; a place where two inline elements meet. They never leave this module; in a page's own text they read the same."""
MARKS: Final = ("article", "main", "table", "li", "dl", "blockquote", "pre", "form", "header", "figure", "details", "ul", "p")
_MARK = {name: 1 << at for at, name in enumerate(MARKS)} | {"ol": 1 << MARKS.index("ul"), "dd": 1 << MARKS.index("dl")}
PRE: Final = 1 << MARKS.index("pre")


@dataclass(slots=True)
class Segments:
    """Elements (index 0 is the root) and blocks of one page, both in document order; parallel lists."""

    parent: list[int] = field(default_factory=lambda: [0])
    tag: list[int] = field(default_factory=lambda: [0])
    marks: list[int] = field(default_factory=lambda: [0])
    """Bits of `MARKS`: which of them an element is or lies in."""
    names: list[str] = field(default_factory=lambda: [""])
    """`class` and `id` as written, one string."""
    first: list[int] = field(default_factory=lambda: [0])
    """Blocks before the element: its own are `first:end`."""
    end: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """Folded white space, except in `pre`; lines apart by a line break."""
    owner: list[int] = field(default_factory=list)
    """Innermost block-level element of each block."""
    link_chars: list[int] = field(default_factory=list)
    bold_chars: list[int] = field(default_factory=list)

    def ends(self) -> None:
        """Fill `end` once all blocks are known."""
        end = [0] * len(self.parent)
        for at, owner in enumerate(self.owner):
            end[owner] = at + 1
        parent = self.parent
        for node in range(len(parent) - 1, 0, -1):
            above = parent[node]
            end[above] = max(end[above], end[node])
        self.end = [max(a, b) for a, b in zip(end, self.first, strict=True)]


def tree_of(page: Page) -> LexborHTMLParser | None:
    """The page's tree; its full one, if the limits of extraction allow, where the crawler was content with a flat one."""
    if not page.flattened or size_of(page.text).too_large:
        return page.tree
    try:
        return LexborHTMLParser(page.text)
    except (SelectolaxError, ValueError, RuntimeError, MemoryError):
        return page.tree


def segment(tree: LexborHTMLParser | None, *, keep_all: bool = False) -> Segments:
    """Blocks of a lexbor tree (`LexborHTMLParser`); `keep_all` enters navigation, footers, asides and dialogs too."""
    found = Segments()
    root = None if tree is None else tree.body
    if root is not None:
        _Walk(found, _NEVER if keep_all else _NEVER | BOILERPLATE).run(root)
    found.ends()
    return found


class _Walk:
    """State of one walk. A place is (element index << 2 | in bold << 1 | in link); places of skipped elements are absent."""

    __slots__ = ("bold", "found", "link", "pieces", "skip")

    def __init__(self, found: Segments, skip: frozenset[str]) -> None:
        self.found = found
        self.skip = skip
        self.pieces: list[str] = []
        self.link = self.bold = 0

    def run(self, root: Any) -> None:
        """The hot loop of extraction: one step per node, so everything it needs is local."""
        found, pieces, skip, codes = self.found, self.pieces, self.skip, TAG_CODE
        places: dict[int, int] = {root.parent.mem_id: 0}
        known, owner, left = places.get, -1, MAX_NODES
        inline = apart = 0  # the last inline element started; was the last text in a link or in an `_APART`?
        for node in _nodes(root):
            over = node.parent.mem_id
            place = known(over)
            if place is None:
                continue
            tag = node.tag
            if tag == "-text":
                text = node.text_content
                if place >> 2 != owner:
                    if pieces:
                        self.flush(owner)
                    if text.isspace():
                        continue
                    owner = place >> 2
                pieces.append(text)
                if place & 3:
                    self.link += len(text) * (place & 1)
                    self.bold += len(text) * (place >> 1 & 1)
                apart = place & 1 or over == inline
                continue
            left -= 1
            if tag is None or tag in skip or left <= 0:
                continue
            code = codes.get(tag)
            if code is None:
                if tag == "br":
                    pieces.append(_BREAK)
                    continue
                here = node.mem_id
                places[here] = place | _BITS.get(tag, 0)
                if tag in _APART:
                    inline = here
                    if apart and pieces:
                        pieces.append(_GAP)
                continue
            if pieces:
                self.flush(owner)
            owner, apart = -1, 0
            if tag == "noscript" and len(node.text()) < NOSCRIPT_CHARS:
                continue
            places[node.mem_id] = len(found.parent) << 2 | place & 3
            self.element(node, tag, code, place >> 2)
        if pieces:
            self.flush(owner)

    def element(self, node: Any, tag: str, code: int, above: int) -> None:
        """Enter a block-level element into the table."""
        found = self.found
        found.parent.append(above)
        found.tag.append(code)
        found.marks.append(found.marks[above] | _MARK.get(tag, 0))
        attributes = node.attributes
        found.names.append(f"{attributes.get('class') or ''} {attributes.get('id') or ''}" if attributes else "")
        found.first.append(len(found.texts))

    def flush(self, owner: int) -> None:
        """Close the open run: it becomes one block, or several where two line breaks part it."""
        found, text = self.found, "".join(self.pieces)
        self.pieces.clear()
        if owner >= 0 and len(found.texts) < MAX_BLOCKS:
            pre = found.marks[owner] & PRE
            parts = [_pre(text)] if pre else _lines(text)
            total = sum(map(len, parts)) or 1
            for part in parts:
                if part:
                    found.texts.append(part)
                    found.owner.append(owner)
                    found.link_chars.append(min(self.link * len(part) // total, len(part)))
                    found.bold_chars.append(min(self.bold * len(part) // total, len(part)))
        self.link = self.bold = 0


def _nodes(root: Any) -> Iterator[Any]:
    nodes: Iterator[Any] = root.traverse(include_text=True)
    return nodes


def _pre(text: str) -> str:
    return text.replace(_GAP, "").replace(_BREAK, "\n").strip("\n").rstrip()


def _lines(text: str) -> list[str]:
    """The paragraphs of a run: white space folded, a single `br` kept as a line break; where two meet, a paragraph ends."""
    if _GAP in text:
        text = text.replace(_GAP, " ")
    if _BREAK not in text:
        return [" ".join(text.split())]
    parts: list[list[str]] = [[]]
    for line in text.split(_BREAK):
        folded = " ".join(line.split())
        if folded:
            parts[-1].append(folded)
        elif parts[-1]:
            parts.append([])
    return ["\n".join(lines) for lines in parts]
