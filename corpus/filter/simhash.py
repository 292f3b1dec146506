"""SimHash of a chunk's words: the near-copy gate's arithmetic over the tokeniser's hashes, as a signal.

Runs of three words vote on 64 bits; a bit is set where more than half vote for it. A cheap measure of "changed a lot?"
between two versions: `bit_count(xor(a.simhash, b.simhash))` in SQL. It is not comparable with the gate's fingerprints,
which hash the visible words of the whole page.
"""

from __future__ import annotations

import numpy as np

from corpus.filter.signals import Column
from corpus.filter.tokens import U64, Chunk
from corpus.page.simhash import MIN_WORDS, run_features, vote


def simhashes(chunk: Chunk) -> Column:
    """One fingerprint a document, its bits as a signed integer; NULL under `MIN_WORDS` words."""
    words = chunk.words
    sizes = np.diff(words.bounds)
    result = np.zeros(len(chunk), dtype=np.uint64)
    features: U64 = run_features(words.hash) if len(words) >= 3 else np.zeros(0, dtype=np.uint64)
    for doc in np.flatnonzero(sizes >= MIN_WORDS).tolist():
        result[doc] = vote(features[words.bounds[doc] : words.bounds[doc + 1] - 2])
    return Column(result.view(np.int64), sizes < MIN_WORDS)
