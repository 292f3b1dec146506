"""Where tokens begin: a simplified UAX #29 with rules for scripts that write no spaces, over whole arrays at once.

Words are runs of letters, digits, marks and low lines, joined across an inner apostrophe, full stop, colon or digit comma. A run of
one symbol ("...", "===") is a token. Han and Hiragana characters and Yi syllables are tokens each; Katakana and Hangul form
runs. Thai, Lao, Khmer and Myanmar are cut into orthographic clusters (a consonant with its vowels and marks, about a third
of a word): a dictionary would give words, but clusters never depend on one and move no boundary elsewhere in the text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corpus.filter.charclass import (
    ALPHA,
    BASE,
    BLANK,
    CLASS_SHIFT,
    DIGIT,
    EXTEND,
    FOLLOW,
    KILLER,
    MARK,
    MID_ANY,
    MID_DIGIT,
    MID_LETTER,
    OTHER,
    PREVOWEL,
    SINGLE,
    STACKER,
    WORD,
)

_CLASSES = 16


def _row(**starts_unless: tuple[int, ...]) -> NDArray[np.bool_]:
    row = np.ones(_CLASSES, dtype=bool)
    row[list(starts_unless["after"])] = False
    return row


_ANYTHING_BUT_BLANK = tuple(c for c in range(_CLASSES) if c != BLANK)
_STARTS = np.zeros((_CLASSES, _CLASSES), dtype=bool)
"""`_STARTS[class, class before]`: does a token begin here? BLANK never begins one."""
for _cls, _after in {
    OTHER: (),
    WORD: (WORD, EXTEND, STACKER, KILLER),
    EXTEND: _ANYTHING_BUT_BLANK,
    SINGLE: (),
    BASE: (PREVOWEL, STACKER),
    PREVOWEL: (),
    FOLLOW: _ANYTHING_BUT_BLANK,
    MID_ANY: (),
    MID_LETTER: (),
    MID_DIGIT: (),
    STACKER: _ANYTHING_BUT_BLANK,
    KILLER: _ANYTHING_BUT_BLANK,
}.items():
    _STARTS[_cls] = _row(after=_after)


def token_starts(codes: NDArray[np.uint32], flags: NDArray[np.uint16]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(token begins here, blank) for every code point. `flags` is the looked-up `charclass` column of `codes`.

    The array must end with a blank, and texts in it must be set apart by one.
    """
    cls = (flags >> CLASS_SHIFT).astype(np.uint8)
    blank = cls == BLANK
    _join_mid(cls, flags)
    starts = np.empty(len(codes), dtype=bool)
    starts[:1] = ~blank[:1]
    starts[1:] = _STARTS.ravel()[cls[1:].astype(np.intp) * _CLASSES + cls[:-1]]
    # a run of one symbol is one token
    odd = np.flatnonzero(cls == OTHER)
    odd = odd[odd > 0]
    starts[odd[codes[odd] == codes[odd - 1]]] = False
    killers = np.flatnonzero(cls == KILLER)
    if len(killers):
        closed = killers[killers > 1] - 1  # a Myanmar consonant with its vowel killed closes the syllable before it
        starts[closed[(cls[closed] == BASE) & ~blank[closed - 1]]] = False
    return starts, blank


def _join_mid(cls: NDArray[np.uint8], flags: NDArray[np.uint16]) -> None:
    """Turn inner apostrophes, full stops, colons and digit commas into WORD, in place; all others into OTHER."""
    mids = np.flatnonzero(cls >= MID_ANY)
    mids = mids[cls[mids] <= MID_DIGIT]
    if not len(mids):
        return
    kind = cls[mids]
    before, after = np.maximum(mids - 1, 0), np.minimum(mids + 1, len(cls) - 1)
    wordy = ((cls[before] == WORD) | (cls[before] == EXTEND)) & (cls[after] == WORD)
    letters = ((flags[before] & (ALPHA | MARK)) != 0) & ((flags[after] & ALPHA) != 0) & (kind != MID_DIGIT)
    digits = ((flags[before] & flags[after] & DIGIT) != 0) & (kind != MID_LETTER)
    cls[mids] = np.where(wordy & (letters | digits), WORD, OTHER)
