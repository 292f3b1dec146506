"""Gold text → labels of blocks: which share of each block's words the gold holds, and how much that counts.

Words are aligned in order, so a breadcrumb that repeats the title is not taken for it; a long block found whole out of
order still counts. Where gold is snippets only, the blocks without one get weak labels from another extractor's text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np
import numpy.typing as npt

from training.extraction.gold import GoldPage
from training.extraction.metrics import words

WEAK = 0.35
"""Weight of all weakly labelled blocks of a page together; gold pages weigh words over gold words."""
SNIPPET = 0.3
MOST_SURPLUS = 4.0
"""Words that are not gold weigh at most this many times the gold's on one page."""


@dataclass(frozen=True, slots=True)
class Labels:
    share: npt.NDArray[np.float64]
    """0 … 1 by block."""
    weight: npt.NDArray[np.float64]
    words: npt.NDArray[np.int64]


def labels(page: GoldPage, blocks: Sequence[str], weak_text: str) -> Labels:
    """Labels of one page's blocks; `weak_text` is used for snippet-only gold."""
    tokens = [words(block) for block in blocks]
    sizes = np.array([len(part) for part in tokens], np.int64)
    share = _shares(tokens, words(weak_text if page.text is None else page.text))
    if page.text is None:
        weight = WEAK * sizes / max(int(sizes.sum()), 1)
        _snippets(page, blocks, share, weight)
        return Labels(share, weight, sizes)
    gold = max(len(words(page.text)), 20)
    weight = sizes / gold
    surplus = float((weight * (1 - share)).sum())
    if surplus > MOST_SURPLUS:
        weight = weight * (share + (1 - share) * MOST_SURPLUS / surplus)
    return Labels(share, weight, sizes)


def _shares(tokens: list[list[str]], gold: list[str]) -> npt.NDArray[np.float64]:
    flat = [token for part in tokens for token in part]
    owner = np.repeat(np.arange(len(tokens)), [len(part) for part in tokens])
    hits = np.zeros(len(tokens))
    for match in SequenceMatcher(None, flat, gold, autojunk=False).get_matching_blocks():
        hits += np.bincount(owner[match.a : match.a + match.size], minlength=len(tokens))
    share = hits / np.maximum([len(part) for part in tokens], 1)
    grams = {tuple(gold[at : at + 4]) for at in range(len(gold) - 3)}
    for at, part in enumerate(tokens):
        if len(part) >= 10 and share[at] < 0.9:
            own = [tuple(part[i : i + 4]) for i in range(len(part) - 3)]
            share[at] = max(share[at], sum(gram in grams for gram in own) / len(own))
    return share


def _snippets(page: GoldPage, blocks: Sequence[str], share: npt.NDArray[np.float64], weight: npt.NDArray[np.float64]) -> None:
    folded = [" ".join(block.split()) for block in blocks]
    for snippets, value in ((page.with_, 1.0), (page.without, 0.0)):
        for snippet in snippets:
            wanted = " ".join(snippet.split())
            for at, block in enumerate(folded):
                if wanted in block:
                    share[at], weight[at] = value, weight[at] + SNIPPET
