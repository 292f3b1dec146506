"""A page → its main text by our own block classifier. One page at a time; the page is not changed; never raises.

The same page gives the same text on every machine: only integers are compared. Where the blocks hold little, the page is
looked at again with navigation, footers and asides in it (an unclosed `nav` swallows the rest of a page).
"""

from __future__ import annotations

import gc
from dataclasses import dataclass
from typing import Final

import numpy as np

from corpus.filter.blocks.context import context
from corpus.filter.blocks.counts import Ints
from corpus.filter.blocks.decide import chosen
from corpus.filter.blocks.features import Arrays, features
from corpus.filter.blocks.model import ONE, model
from corpus.filter.blocks.segment import Segments, segment, tree_of
from corpus.filter.blocks.text import readable
from corpus.page.tree import Page

LITTLE_CHARS: Final = 250
"""With less text than this in all blocks together, boilerplate elements are entered too, …"""
MUCH_MORE: Final = 5
"""… and count if they hold this many times as much."""


@dataclass(frozen=True, slots=True)
class BlockText:
    text: str
    confidence: float
    """Mean score of the words in the text, 0 … 1; 0.0 where there is no text."""


def extractor_name() -> str:
    """Name, version and digest of the model, as recorded in every document."""
    return model().label


def extract_blocks(page: Page) -> BlockText:
    """Main text of one page; empty where it has no tree or no text."""
    collecting = gc.isenabled()
    gc.disable()  # thousands of short-lived objects and no cycles: a collection would only walk the process's heap
    try:
        return _extract(page)
    finally:
        if collecting:
            gc.enable()


def _extract(page: Page) -> BlockText:
    tree = tree_of(page)
    found = segment(tree)
    if (size := _size(found)) < LITTLE_CHARS:
        whole = segment(tree, keep_all=True)
        found = whole if _size(whole) > MUCH_MORE * size else found
    if not found.texts:
        return BlockText("", 0.0)
    scores, words = block_scores(found, page.title)
    kept = np.flatnonzero(chosen(found, scores, words)).tolist()
    total = int(words[kept].sum())
    mass = int((words[kept] * scores[kept]).sum())
    return BlockText(readable(found, kept), mass / (max(total, 1) * ONE))


def _size(found: Segments) -> int:
    return sum(map(len, found.texts))


def block_scores(found: Segments, title: str) -> tuple[Ints, Ints]:
    """(score 0 … 1000, words) by block."""
    trained = model()
    arrays = Arrays(found, *trained.names.of(found.names))
    first = trained.first.scores(features(arrays, title)[1])
    second = trained.second.scores(context(arrays, first)[1])
    return (first + 2 * second) // 3, arrays.counts.words
