"""What a page says, in a few numbers that tell whether a site has said it before: a sample of its long runs of words.

So many words in a row are seldom written twice by chance, while a listing, a calendar or an error page is made of runs
that the same site uses again and again. Numbers are passed over: another date is nothing new to say. Sampled by value,
so that two pages that share a run sample it together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from corpus.page.simhash import each_once
from corpus.page.words import Hashes, word_hashes

RUN, LISTED_RUN = 16, 8
"""Words in a row that are compared; the shorter run is for listings, whose items come again in another order."""
UNSPACED = 0.4
"""With more words than this per character every character is a word (Chinese, Japanese): runs are then four times as long."""
LEAST = 24
"""A page that yields fewer sampled runs than this gives all of its own (up to `MOST`)."""
MOST = 64
WORDS_MAX = 4_096
"""Words of a page that are looked at."""
_TOP_BITS = np.uint64(46)
_EIGHTH = np.uint64(1 << 61)
_ODDS = tuple(np.uint64(pow(0x9E3779B97F4A7C15, power, 1 << 64)) for power in range(1, 9))
"""One per doubling of the length: the order of the halves counts."""
_ODD_2 = np.uint64(0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True, slots=True)
class Said:
    """`runs`: at most 64 hashes of runs of words, each once, sorted, of a text of so many `words` (numbers not counted)."""

    runs: Hashes
    words: int


def sample_runs(words: Hashes, characters: int, *, listed: bool = False) -> Said:
    """A sample of the runs of a text of so many characters; a text of fewer words is one run. `listed`: use the shorter run."""
    unspaced = len(words) > UNSPACED * characters
    words = words[:WORDS_MAX]
    words = words[~_are_numbers(words)]
    if not len(words):
        return Said(np.zeros(0, dtype=np.uint64), 0)
    runs, length, step = words, 1, 0
    wanted = (LISTED_RUN if listed else RUN) * (4 if unspaced else 1)
    while length < wanted and len(runs) > length:  # a run of twice the length is two runs
        runs = runs[:-length] * _ODDS[step] + runs[length:]
        length, step = 2 * length, step + 1
    runs = runs ^ (runs >> np.uint64(31))
    runs *= _ODD_2
    runs ^= runs >> np.uint64(29)
    few = runs[runs < _EIGHTH]
    chosen = np.sort(few if len(few) >= LEAST else runs)
    return Said(each_once(chosen)[:MOST], len(words))


def _are_numbers(words: Hashes) -> npt.NDArray[np.bool_]:
    numbers, maybe = _numbers()
    found = maybe.take((words >> _TOP_BITS).view(np.int64), mode="clip")  # "clip": all of them fit, so no look at every index
    at = np.flatnonzero(found)
    found[at] = numbers[np.minimum(np.searchsorted(numbers, words[at]), len(numbers) - 1)] == words[at]
    return found


@lru_cache(maxsize=1)
def _numbers() -> tuple[Hashes, npt.NDArray[np.bool_]]:
    """The hashes of 0 to 9999 and 00 to 09, sorted; and for the top 18 bits of a hash whether it may be one of them."""
    numbers = np.sort(word_hashes(" ".join([*map(str, range(10_000)), *(f"{n:02d}" for n in range(10))])))
    maybe = np.zeros(1 << 18, dtype=np.bool_)
    maybe[numbers >> _TOP_BITS] = True
    return numbers, maybe
