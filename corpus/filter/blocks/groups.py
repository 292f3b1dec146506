"""Elements that look alike: rows, cards, posts, list items. What a person would call one group is decided as one.

Two elements have one look when tag, parent's tag and `class`/`id` words are equal. A run is three or more siblings of one look.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from corpus.filter.blocks.counts import Ints
from corpus.filter.blocks.segment import Segments

RUN: Final = 3
CARD_BLOCKS: Final = 2


class Groups(NamedTuple):
    """By element: `look` and `siblings` are ids, `inner`/`card` the innermost ancestor-or-self in a run (0: none);
    a card has two blocks or more. `row_first` is by sibling id: where the run begins, in blocks."""

    look: Ints
    looks: int
    look_count: Ints
    siblings: Ints
    rows: int
    sibling_count: Ints
    row_first: Ints
    inner: Ints
    card: Ints


def groups(found: Segments, words: Ints) -> Groups:
    """Runs of one page; `words`: of each element's subtree. Elements without words count for nothing."""
    looks: dict[tuple[int, int, str], int] = {}
    rows: dict[tuple[int, int], int] = {}
    look, siblings = [], []
    parent, tag = found.parent, found.tag
    for node, (above, code, names) in enumerate(zip(parent, tag, found.names, strict=True)):
        mine = looks.setdefault((tag[above], code, names), len(looks))
        look.append(mine)
        siblings.append(rows.setdefault((above if node else -1, mine), len(rows)))
    spoken = (words > 0).astype(np.int64)
    look_of, row_of = np.array(look), np.array(siblings)
    look_count = np.bincount(look_of, spoken, len(looks)).astype(np.int64)[look_of]
    row_count = np.bincount(row_of, spoken, len(rows)).astype(np.int64)[row_of]
    first = np.zeros(len(rows), np.int64)
    first[row_of[::-1]] = np.array(found.first)[::-1]
    inner, card = [0] * len(parent), [0] * len(parent)
    member = (row_count >= RUN).tolist()
    for node in range(1, len(parent)):
        above = parent[node]
        inner[node] = node if member[node] else inner[above]
        big = member[node] and found.end[node] - found.first[node] >= CARD_BLOCKS
        card[node] = node if big else card[above]
    return Groups(look_of, len(looks), look_count, row_of, len(rows), row_count, first, np.array(inner), np.array(card))
