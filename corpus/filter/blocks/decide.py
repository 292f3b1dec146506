"""Scores → which blocks are the text: one threshold per page, groups whole.

The threshold is the one with the highest expected F1 over the page's words if the scores are probabilities: a page of
doubtful blocks keeps more of them than a fixed one would. Integers throughout, ties to the earlier block.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from corpus.filter.blocks.counts import Ints
from corpus.filter.blocks.model import ONE
from corpus.filter.blocks.segment import TAG_CODE, Segments

LOWEST: Final = ONE // 5
HIGHEST: Final = ONE // 2
TABLE_BLOCKS: Final = 8
TABLE_WORDS: Final = 6
"""A table of at least `TABLE_BLOCKS` blocks with at most this many words each on average holds data: it is kept or dropped whole."""

LEADS: Final = {TAG_CODE[f"h{level}"]: 70 for level in range(1, 7)} | {TAG_CODE["dt"]: 50}
"""Elements that lead to what stands below them, and the share (in hundredths) of the threshold they need if that is kept."""


def threshold(scores: Ints, words: Ints) -> int:
    """The lowest score that is kept, between `LOWEST` and `HIGHEST`."""
    order = np.argsort(-scores, kind="stable")
    kept = np.cumsum(words[order])
    right = np.cumsum(words[order] * scores[order])
    # exact: both are integers below 2**53, and IEEE division is the same everywhere
    expected = right / np.maximum(kept * ONE + right[-1], 1)
    return int(min(max(int(scores[order[int(np.argmax(expected))]]), LOWEST), HIGHEST))


def whole_tables(found: Segments, scores: Ints, words: Ints) -> Ints:
    """Scores with the cells of each data table at the table's mean."""
    code = TAG_CODE["table"]
    tables = [node for node, tag in enumerate(found.tag) if tag == code]
    if not tables:
        return scores
    scores = scores.copy()
    outer = -1
    for node in tables:
        first, end = found.first[node], found.end[node]
        if end - first < TABLE_BLOCKS or first < outer:
            continue
        inside = words[first:end]
        if int(inside.sum()) <= TABLE_WORDS * (end - first):
            scores[first:end] = int((scores[first:end] * inside).sum()) // max(int(inside.sum()), 1)
            outer = end
    return scores


def chosen(found: Segments, scores: Ints, words: Ints) -> npt.NDArray[np.bool_]:
    """Which blocks are the page's text."""
    scores = whole_tables(found, scores, words)
    lowest = threshold(scores, words)
    kept: npt.NDArray[np.bool_] = scores >= lowest
    _leads(found, scores, kept, lowest)
    return kept


def _leads(found: Segments, scores: Ints, kept: npt.NDArray[np.bool_], lowest: int) -> None:
    """A heading belongs to the kept block below it, a term to its definition, unless it scores far below."""
    for at in range(len(kept) - 2, -1, -1):
        share = LEADS.get(found.tag[found.owner[at]], 0)
        if share and not kept[at] and kept[at + 1] and 100 * int(scores[at]) >= share * lowest:
            kept[at] = True
