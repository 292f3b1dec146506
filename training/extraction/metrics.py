"""The three measures of extraction, as their sets define them. Pure functions of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_WORD = re.compile(r"\w+")


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _f1(common: int, found: int, gold: int) -> float:
    return 2 * common / (found + gold) if found + gold else 1.0


def bag_f1(text: str, gold: str) -> float:
    """WCXB: F1 over the multisets of lower-cased words."""
    a, b = Counter(words(text)), Counter(words(gold))
    return _f1(sum((a & b).values()), a.total(), b.total())


def shingle_f1(text: str, gold: str, size: int = 4) -> float:
    """AEB: F1 over the multisets of word 4-grams (of the whole text where it is shorter)."""
    a, b = _shingles(text, size), _shingles(gold, size)
    return _f1(sum((a & b).values()), a.total(), b.total())


def _shingles(text: str, size: int) -> Counter[tuple[str, ...]]:
    tokens = words(text)
    return Counter(tuple(tokens[at : at + size]) for at in range(max(len(tokens) - size + 1, min(len(tokens), 1))))


def snippet_counts(text: str, wanted: Sequence[str], unwanted: Sequence[str]) -> tuple[int, int, int]:
    """TRAF: (true positives, false negatives, false positives) of one page; white space is folded on both sides."""
    folded = " ".join(text.split())
    hits = sum(" ".join(snippet.split()) in folded for snippet in wanted)
    return hits, len(wanted) - hits, sum(" ".join(snippet.split()) in folded for snippet in unwanted)


def micro_f1(counts: Iterable[tuple[int, int, int]]) -> float:
    """TRAF: F1 of the summed counts."""
    hits, missed, wrong = (sum(column) for column in zip(*counts, strict=True))
    return 2 * hits / (2 * hits + missed + wrong) if hits else 0.0
