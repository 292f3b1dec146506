"""What a block's text is made of: characters by class, words, in integers, for all blocks of a page at once.

Words are counted so that no script is at a loss: by white space, and where a script is written without it, by characters
(Chinese and kana 2 a word, Thai and its neighbours 4 consonants a word).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from corpus.filter.charclass import BASE, CLASS_SHIFT, DIGIT, PUNCT, SINGLE, SPACE, TERMINAL, UPPER, tables

Ints = npt.NDArray[np.int64]
_COMMAS: Final = ",;،؛、，；·"
_OTHER, _UPPER, _DIGIT, _SPACE, _COMMA, _END, _SINGLE, _BASE, _PUNCT, _COLON = range(10)
_CLASSES: Final = 10


class Counts(NamedTuple):
    """One integer a block."""

    chars: Ints
    words: Ints
    upper: Ints
    digits: Ints
    commas: Ints
    ends: Ints
    """Marks that end a sentence, anywhere in the block."""
    colons: Ints
    punct: Ints
    closed: Ints
    """1 where the block ends with one, or within three characters of its end."""


@functools.cache
def _classes() -> npt.NDArray[np.uint8]:
    flags = tables().flags
    kind = flags >> CLASS_SHIFT
    table = np.zeros(len(flags), np.uint8)
    for mask, code in (
        (flags & PUNCT, _PUNCT),
        (flags & UPPER, _UPPER),
        (flags & DIGIT, _DIGIT),
        (kind == SINGLE, _SINGLE),
        (kind == BASE, _BASE),
        (flags & TERMINAL, _END),
        (flags & SPACE, _SPACE),
    ):
        table[mask != 0] = code
    table[[ord(char) for char in _COMMAS]] = _COMMA
    table[[ord(":"), ord("：")]] = _COLON
    return table


def counts(texts: Sequence[str]) -> Counts:
    """Count every block; `texts` holds no empty one."""
    joined = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
    chars = np.fromiter(map(len, texts), np.int64, len(texts))
    codes = _classes()[joined]
    keys = np.repeat(np.arange(len(texts)) * _CLASSES, chars) + codes
    by = np.bincount(keys, minlength=len(texts) * _CLASSES).reshape(len(texts), _CLASSES)
    last = np.cumsum(chars) - 1
    closed = codes[last] == _END
    for back in (1, 2):
        closed |= (codes[np.maximum(last - back, 0)] == _END) & (chars > back)
    words = by[:, _SPACE] + 1 + by[:, _SINGLE] // 2 + by[:, _BASE] // 4
    upper, digits, commas, ends, colons, punct = (by[:, at] for at in (_UPPER, _DIGIT, _COMMA, _END, _COLON, _PUNCT))
    return Counts(chars, words, upper, digits, commas, ends, colons, punct, closed.astype(np.int64))
