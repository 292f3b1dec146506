"""Chosen blocks → readable text: paragraphs and headings apart by a blank line, list items and table rows on lines of
their own, code as it stood. A long block that a page carries twice, for small screens and for large ones, is printed
once; one that it repeats more often is the author's doing and left to the quality signals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from corpus.filter.blocks.segment import TAG_CODE, Segments

REPEATED_WORDS: Final = 8
MAX_INDENT: Final = 4
_ITEM = TAG_CODE["li"]
_LISTS = frozenset({TAG_CODE["ul"], TAG_CODE["ol"], TAG_CODE["menu"], TAG_CODE["dir"]})
_CELLS = frozenset({TAG_CODE["td"], TAG_CODE["th"]})
_ROW = TAG_CODE["tr"]
_PRE = TAG_CODE["pre"]
_CLOSE = frozenset({_ITEM, TAG_CODE["dt"], TAG_CODE["dd"]})


def readable(found: Segments, kept: Sequence[int]) -> str:
    """The text of the blocks with these indexes, which ascend."""
    out: list[str] = []
    times = Counter(text for at in kept if (text := found.texts[at]).count(" ") >= REPEATED_WORDS)
    seen: set[str] = set()
    item = row = cell = -1
    for at in kept:
        block, owner = found.texts[at], found.owner[at]
        if times[block] == 2:
            if block in seen:
                continue
            seen.add(block)
        tag = found.tag[owner]
        mine, depth = _item_of(found, owner)
        my_cell = _above(found, owner, _CELLS)
        my_row = _above(found, my_cell, frozenset({_ROW})) if my_cell >= 0 else -1
        if my_row >= 0 and my_row == row:
            out.append(" | " if my_cell != cell else "\n")
        elif mine >= 0 and mine == item:
            out.append("\n" + "  " * depth)
        elif (mine >= 0 and item >= 0) or (my_row >= 0 and row >= 0) or (tag in _CLOSE and out):
            out.append("\n")
        elif out:
            out.append("\n\n")
        if mine >= 0 and mine != item and my_row < 0:
            out.append("  " * (depth - 1) + "- ")
        out.append(block)
        item, row, cell = mine, my_row, my_cell
    return "".join(out)


def _item_of(found: Segments, node: int) -> tuple[int, int]:
    """(innermost list item around an element or -1, number of lists around that)."""
    item, depth = -1, 0
    while node > 0:
        tag = found.tag[node]
        if tag == _ITEM and item < 0:
            item = node
        elif tag in _LISTS and item >= 0:
            depth += 1
        node = found.parent[node]
    return item, max(min(depth, MAX_INDENT), 1)


def _above(found: Segments, node: int, tags: frozenset[int]) -> int:
    """The innermost element with one of these tags around an element, or -1."""
    while node > 0:
        if found.tag[node] in tags:
            return node
        node = found.parent[node]
    return -1
