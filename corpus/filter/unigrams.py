"""Unigram score: how probable the words of a text are, by a table of word counts.

The table is `word,count` (or tab or blank between), one a line, in any order; a header without a number is skipped. Words
are lower-cased as the tokeniser's. Sums are over integers (millionths of a natural logarithm), so a batch changes nothing.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from corpus.errors import UsageError
from corpus.filter.signals import Column
from corpus.filter.tokens import U64, Chunk, hash_strings

KEY: Final = "filter.unigrams"
UNKNOWN: Final = 1e-9
"""Probability of a word that the table does not hold (datatrove's)."""
_STEP = 1_000_000
_ROW = re.compile(r"(.+?)[,\t ]+(\d+)\s*")


@dataclass(frozen=True, slots=True)
class Unigrams:
    """Word hashes, sorted, and the logarithm of each probability in millionths."""

    keys: U64
    millionths: NDArray[np.int64]

    def scores(self, chunk: Chunk) -> Column:
        """Mean logarithm per word of each document; NULL without words."""
        words = chunk.words
        at = np.minimum(np.searchsorted(self.keys, words.hash), len(self.keys) - 1)
        known = self.keys[at] == words.hash
        values = np.where(known, self.millionths[at], round(math.log(UNKNOWN) * _STEP))
        total = np.concatenate(([0], np.cumsum(values)))
        sums = total[words.bounds[1:]] - total[words.bounds[:-1]]
        sizes = np.diff(words.bounds)
        return Column(sums / (np.maximum(sizes, 1) * float(_STEP)), sizes == 0)


def load_unigrams(path: str) -> Unigrams:
    """Read a table. Raises UsageError for a missing file, a line that is no row, or a table without counts."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", f"{KEY}: {path}") from error
    counts: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        row = _ROW.fullmatch(line)
        if row is None:
            if line.strip() and number > 1:
                raise UsageError("not `word,count`", f"{path}:{number}", "a word, a comma or tab, a whole number")
            continue
        word = row[1].lower()
        counts[word] = counts.get(word, 0) + int(row[2])
    total = sum(counts.values())
    if not total:
        raise UsageError("the table has no counts", f"{KEY}: {path}", "one `word,count` a line")
    kept = [(word, count) for word, count in counts.items() if count]
    keys = hash_strings([word for word, _ in kept])
    millionths = np.array([round(math.log(count / total) * _STEP) for _, count in kept], dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    return Unigrams(keys[order], millionths[order])
