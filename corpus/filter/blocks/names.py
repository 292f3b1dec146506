"""Words of `class` and `id`, and their learned scores. A pure look-up; the table is part of the model file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from corpus.filter.blocks.counts import Ints

SCALE: Final = 32
"""Scores are log odds in units of 1/SCALE."""
NEAR_LEVELS: Final = 3
"""An element and its two next ancestors are near; the rest of the path is far."""
MAX_CHARS: Final = 400
"""Utility-class pages spend thousands of characters on one element; the names that mean something stand first."""
MAX_KNOWN: Final = 20_000
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def words_of(names: str) -> set[str]:
    """Lower-case words of a `class` and `id` string, parted at digits, punctuation and camelCase."""
    return {word.lower() for word in _WORD.findall(names[:MAX_CHARS])} - {""}


class NameScores:
    """Scores of whole strings, remembered: sites repeat them on every page. What it answers does not depend on what it knows."""

    def __init__(self, scores: Mapping[str, tuple[int, int]]) -> None:
        self.scores = scores
        self._known: dict[str, tuple[int, int]] = {}

    def of(self, names: Iterable[str]) -> tuple[Ints, Ints]:
        """(near, far) score of each string."""
        known = self._known
        if len(known) > MAX_KNOWN:
            known.clear()
        pairs = [known.get(name) or self._learn(name) for name in names]
        table = np.array(pairs, np.int64).reshape(-1, 2)
        return np.ascontiguousarray(table[:, 0]), np.ascontiguousarray(table[:, 1])

    def _learn(self, names: str) -> tuple[int, int]:
        hits = [self.scores[word] for word in words_of(names) if word in self.scores]
        result = (sum(near for near, _ in hits), sum(far for _, far in hits))
        self._known[names] = result
        return result
