"""What a page says, in a few numbers that tell whether a site has said it before: a sample of its eight-word runs.

Eight words in a row are seldom written twice by chance, while a listing, a calendar or an error page is made of runs
that the same site uses again and again. Sampled by value, so that two pages that share a run sample it together.
"""

from __future__ import annotations

import numpy as np

from corpus.page.words import Hashes

RUN = 8
LEAST = 24
"""A page that yields fewer sampled runs than this gives all of its own (up to `MOST`)."""
MOST = 64
_EIGHTH = np.uint64(1 << 61)
_ODD_1, _ODD_2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


def sample_runs(words: Hashes) -> Hashes:
    """At most 64 hashes of the text's eight-word runs, each once, sorted; a shorter text is one run. Empty for no words."""
    if not len(words):
        return np.zeros(0, dtype=np.uint64)
    length = min(RUN, len(words))
    count = len(words) - length + 1
    runs = np.zeros(count, dtype=np.uint64)
    for at in range(length):
        runs = runs * _ODD_1 + words[at : at + count]
    runs ^= runs >> np.uint64(31)
    runs *= _ODD_2
    runs ^= runs >> np.uint64(29)
    few = runs[runs < _EIGHTH]
    chosen = np.unique(few if len(few) >= LEAST else runs)
    return chosen[:MOST]
