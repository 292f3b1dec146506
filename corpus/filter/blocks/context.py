"""The second look: each block's first score beside those of its neighbours, its group and the page.

What a single block cannot know: whether the page has a body without it, whether its table, thread or row of cards is
wanted as a whole, whether the section below a heading is. Scores are integers (thousandths of a probability).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from corpus.filter.blocks.counts import Ints
from corpus.filter.blocks.features import HEADING, Arrays, Columns, Floats

SURE: Final = 700
"""A block is sure at this many thousandths."""
_FAR: Final = 10_000


def context(page: Arrays, score: Ints) -> tuple[list[str], Floats]:
    """(column names, [column, block]). `score`: 0 … 1000 by block."""
    words = page.counts.words
    mass = score * words
    sure = words * (score >= SURE)
    sums = np.zeros((4, page.size + 1), np.int64)
    np.cumsum(np.stack((words, mass, sure, score)), axis=1, out=sums[:, 1:])
    out = Columns()
    out.add("score", score)
    _levels(page, sums, out)
    _windows(page, sums, score, out)
    _runs(page, sums, out)
    _sure(page, sure, out)
    _sections(page, sums, out)
    total, expected, certain = (int(value) for value in sums[:3, -1])
    for name, value in (
        ("expected", expected / max(total, 1)),
        ("certain", certain / max(total, 1)),
        ("certain/expected", 1000 * certain / max(expected, 1)),
        ("certain words", float(certain)),
        ("top", float(score.max())),
    ):
        out.add(name, np.full(page.size, value))
    return out.names, out.table()


def _levels(page: Arrays, sums: Ints, out: Columns) -> None:
    """Mean score of the block's ancestors, and how much of what is sure lies in them."""
    inside = sums[:, page.end] - sums[:, page.first]
    certain = int(sums[2, -1])
    for level in (1, 2, 3, 4, 5):
        node = page.up[level]
        out.ratio(f"mean{level}", inside[1, node], inside[0, node])
        out.ratio(f"sure{level}", inside[2, node], certain)
        if level < 4:
            out.ratio(f"own sure{level}", inside[2, node], inside[0, node])
    out.add("tag", page.tag[page.up[0]])
    out.add("tag1", page.tag[page.up[1]])
    out.add("words", page.counts.words)
    out.ratio("link", page.link, page.counts.chars)
    out.add("near", page.near_sum)


def _windows(page: Arrays, sums: Ints, score: Ints, out: Columns) -> None:
    at = np.arange(page.size)
    for reach in (1, 3, 8, 20):
        low, high = np.maximum(at - reach, 0), np.minimum(at + reach + 1, page.size)
        out.ratio(f"mean +-{reach}", sums[1, high] - sums[1, low], sums[0, high] - sums[0, low])
    for reach in (3, 10):
        low, high = np.maximum(at - reach, 0), np.minimum(at + reach + 1, page.size)
        out.ratio(f"before -{reach}", sums[1, :-1] - sums[1, low], sums[0, :-1] - sums[0, low])
        out.ratio(f"after +{reach}", sums[1, high] - sums[1, 1:], sums[0, high] - sums[0, 1:])
    out.add("prev", score[np.maximum(at - 1, 0)])
    out.add("next", score[np.minimum(at + 1, page.size - 1)])
    out.ratio("mass before", sums[1, :-1], sums[1, -1:])
    out.ratio("words before", sums[0, :-1], sums[0, -1:])


def _runs(page: Arrays, sums: Ints, out: Columns) -> None:
    """Mean score of the whole run of siblings the block lies in, of its own member, and of everything of its look."""
    inside = sums[:, page.end] - sums[:, page.first]
    g = page.groups
    for name, member in (("run", g.inner), ("card", g.card)):
        node = member[page.up[0]]
        row = g.siblings[node]
        words, mass = (np.bincount(g.siblings, part, g.rows).astype(np.int64)[row] for part in inside[:2])
        out.ratio(f"{name} mean", mass * (node > 0), words)
        out.ratio(f"{name} own", inside[1, node] * (node > 0), inside[0, node])
        out.ratio(f"{name} words", words * (node > 0), int(sums[0, -1]))
        out.add(f"{name} n", g.sibling_count[node] * (node > 0))
        out.add(f"{name} place", (np.arange(page.size) - g.row_first[row]) * (node > 0))
    look = g.look[page.up[0]]
    words, mass = (np.bincount(look, np.diff(part), g.looks).astype(np.int64)[look] for part in sums[:2])
    out.ratio("look mean", mass, words)
    look = g.look[page.up[1]]
    words, mass = (np.bincount(look, np.diff(part), g.looks).astype(np.int64)[look] for part in sums[:2])
    out.ratio("look1 mean", mass, words)


def _sure(page: Arrays, sure: Ints, out: Columns) -> None:
    """Distance, in blocks, to what is sure."""
    at = np.arange(page.size)
    last = np.maximum.accumulate(np.where(sure > 0, at, -_FAR))
    following = np.minimum.accumulate(np.where(sure > 0, at, 2 * _FAR)[::-1])[::-1]
    out.add("since sure", np.minimum(at - last, _FAR))
    out.add("to sure", np.minimum(following - at, _FAR))


def _sections(page: Arrays, sums: Ints, out: Columns) -> None:
    """Mean score from the block's heading to the next one, and the heading's own."""
    level = HEADING[page.tag[page.up[0]]] > 0
    section = np.cumsum(level)
    starts = np.append(np.flatnonzero(np.diff(section, prepend=-1)), page.size)
    words, mass = (np.diff(part[starts])[section - section[0]] for part in sums[:2])
    out.ratio("section mean", mass, words)
    out.add("section words", words)
    following = np.append(starts[1:], page.size)[section - section[0]]
    out.ratio("rest mean", sums[1, following] - sums[1, 1:], sums[0, following] - sums[0, 1:])
    score = np.diff(sums[3])
    out.add("heading", score[starts[section - section[0]]])
