"""What every code point is to the tokeniser and the signals: one committed table, looked up for whole batches.

The table is data, not the interpreter's Unicode version, so that the same text gives the same numbers under every
Python. `generate()` rebuilds it (a test compares under the Unicode version it was made with); nothing else does.
"""

from __future__ import annotations

import functools
import sys
import unicodedata
import zlib
from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

UNICODE_VERSION: Final = "14.0.0"
"""The version `data/unicode.bin` was generated under (Python 3.11)."""

ALPHA, DIGIT, MARK, SPACE, PUNCT, UPPER, TERMINAL, CLOSER = (1 << bit for bit in range(8))
"""Flags of a code point. PUNCT: categories P, S and C. TERMINAL: ends a sentence. CLOSER: quotes and brackets that may follow one."""

CLASS_SHIFT: Final = 8
OTHER, BLANK, WORD, EXTEND, SINGLE, BASE, PREVOWEL, FOLLOW, MID_ANY, MID_LETTER, MID_DIGIT, STACKER, KILLER = range(13)
"""Segmentation classes, stored above the flags. SINGLE: one token a character (Han, Hiragana, Yi). BASE, PREVOWEL, FOLLOW:
consonants, vowels written before and after them in Thai, Lao, Khmer and Myanmar. STACKER joins the next BASE, KILLER the one before it."""

_TERMINALS: Final = ".!?…。！？．｡।॥۔؟؞։՜՞။၊။។៕៚።፧፨᙮᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱꯫﹒﹖﹗།༎܀܁܂߹࠷࠹࠽࠾෴⳹⳾"
_CLOSERS: Final = "\"'”’»›)]}」』】》〉）］｝〕〗〙〛❞❜‹«“‘*_"
_SINGLE_RANGES: Final = (
    (0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x3035), (0x3038, 0x303B), (0x3041, 0x3096), (0x309D, 0x309F),
    (0x3105, 0x312F), (0x31A0, 0x31BF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xA48C), (0xF900, 0xFAFF), (0x20000, 0x323AF),
)  # fmt: skip
_BASE_RANGES: Final = (
    (0x0E01, 0x0E2E),
    (0x0E81, 0x0EAE),
    (0x0EDC, 0x0EDF),
    (0x1780, 0x17B3),
    (0x1000, 0x102A),
    (0x103F, 0x103F),
    (0x1050, 0x1055),
)
_PREVOWELS: Final = "เแโใไເແໂໃໄ"
_FOLLOWERS: Final = "ะาำๅๆະາຳຽໆៗ"
_BLANKS: Final = "\u200b\u0f0b\u1361\ufeff"
"""Word separators that are no white space to Python: zero-width space (Khmer, Thai), Tibetan tsheg, Ethiopic word space."""
_EXTENDERS: Final = "\u200c\u200d\u00ad\u30fc\uff70"
_SPECIAL: Final = {
    **dict.fromkeys(_PREVOWELS, PREVOWEL), **dict.fromkeys(_FOLLOWERS, FOLLOW), **dict.fromkeys(_BLANKS, BLANK), **dict.fromkeys(_EXTENDERS, EXTEND),
    **dict.fromkeys("'’.․﹒＇．", MID_ANY), **dict.fromkeys(":·‧᛫״׳", MID_LETTER), **dict.fromkeys(",;٫٬，", MID_DIGIT),
    "\u17d2": STACKER, "\u1039": STACKER, "\u103a": KILLER,
}  # fmt: skip

SCRIPTS: Final = (
    "Zzzz", "Latn", "Grek", "Cyrl", "Armn", "Hebr", "Arab", "Syrc", "Thaa", "Nkoo", "Deva", "Beng", "Guru", "Gujr", "Orya", "Taml", "Telu", "Knda", "Mlym",
    "Sinh", "Thai", "Laoo", "Tibt", "Mymr", "Geor", "Hang", "Ethi", "Cher", "Cans", "Khmr", "Mong", "Hira", "Kana", "Bopo", "Hani", "Yiii", "Olck", "Tfng",
)  # fmt: skip
"""ISO 15924 codes; the index is what the script table holds. Zzzz: no letter, or a script no supported language uses."""
_SCRIPT_NAMES: Final = {
    "LATIN": "Latn", "FULLWIDTH LATIN": "Latn", "GREEK": "Grek", "CYRILLIC": "Cyrl", "ARMENIAN": "Armn", "HEBREW": "Hebr", "ARABIC": "Arab", "SYRIAC": "Syrc",
    "THAANA": "Thaa", "NKO": "Nkoo", "DEVANAGARI": "Deva", "BENGALI": "Beng", "GURMUKHI": "Guru", "GUJARATI": "Gujr", "ORIYA": "Orya", "TAMIL": "Taml",
    "TELUGU": "Telu", "KANNADA": "Knda", "MALAYALAM": "Mlym", "SINHALA": "Sinh", "THAI": "Thai", "LAO": "Laoo", "TIBETAN": "Tibt", "MYANMAR": "Mymr",
    "GEORGIAN": "Geor", "HANGUL": "Hang", "HALFWIDTH HANGUL": "Hang", "ETHIOPIC": "Ethi", "CHEROKEE": "Cher", "CANADIAN": "Cans", "KHMER": "Khmr",
    "MONGOLIAN": "Mong", "HIRAGANA": "Hira", "KATAKANA": "Kana", "HALFWIDTH KATAKANA": "Kana", "BOPOMOFO": "Bopo", "CJK": "Hani", "YI": "Yiii",
    "OL": "Olck", "TIFINAGH": "Tfng",
}  # fmt: skip


class Tables(NamedTuple):
    """Arrays indexed by code point: flags and class (uint16), rank (uint8), script (uint8), simple lower case (uint32).

    Rank is what makes a token a word: 0 punctuation, symbol or control, 1 anything else, 2 a letter.
    """

    flags: NDArray[np.uint16]
    rank: NDArray[np.uint8]
    script: NDArray[np.uint8]
    lower: NDArray[np.uint32]


def _flags(char: str) -> int:
    category = unicodedata.category(char)
    flags = ALPHA * char.isalpha() | DIGIT * (category == "Nd") | MARK * (category[0] == "M") | UPPER * char.isupper()
    flags |= SPACE * char.isspace() | PUNCT * (category[0] in "PSC" and category != "Cn")
    return flags | TERMINAL * (char in _TERMINALS) | CLOSER * (char in _CLOSERS)


def _class(char: str, flags: int) -> int:
    if char in _SPECIAL:
        return _SPECIAL[char]
    code = ord(char)
    if flags & SPACE:
        return BLANK
    if flags & MARK or unicodedata.category(char) == "Cf":
        return EXTEND
    if any(low <= code <= high for low, high in _SINGLE_RANGES):
        return SINGLE
    if any(low <= code <= high for low, high in _BASE_RANGES):
        return BASE
    joins = unicodedata.category(char) == "Pc"  # UAX #29 ExtendNumLet: `snake_case` is one word
    return WORD if char.isalnum() or joins else OTHER


def _script(char: str) -> int:
    if not (char.isalpha() or unicodedata.category(char)[0] == "M"):
        return 0
    words = unicodedata.name(char, "?").split()
    name = _SCRIPT_NAMES.get(words[0]) or _SCRIPT_NAMES.get(" ".join(words[:2]), "Zzzz")
    return SCRIPTS.index(name)


def generate() -> bytes:
    """The content of `data/unicode.bin`, from the running interpreter's Unicode tables: run-length coded, then deflated."""
    flags, scripts, pairs = [], [], []
    for code in range(sys.maxunicode + 1):
        char = chr(code)
        bits = _flags(char)
        flags.append(bits | _class(char, bits) << CLASS_SHIFT)
        scripts.append(_script(char))
        if len(low := char.lower()) == 1 and low != char:
            pairs += [code, ord(low)]
    columns = [*_runs(flags), *_runs(scripts), np.array(pairs, np.uint32)]
    head = np.array([len(column) for column in columns], np.uint32)
    return zlib.compress(b"".join(part.astype("<u4").tobytes() for part in (head, *columns)), 9)


def _runs(values: list[int]) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    array = np.array(values, np.uint32)
    starts = np.flatnonzero(np.diff(array, prepend=array[0] + 1))
    return np.diff(starts, append=len(array)).astype(np.uint32), array[starts]


@functools.cache
def tables() -> Tables:
    """The tables, read once per process and never written to."""
    raw = np.frombuffer(zlib.decompress(files("corpus.filter").joinpath("data/unicode.bin").read_bytes()), "<u4")
    ends = np.cumsum(raw[:5]) + 5
    flag_n, flag_v, script_n, script_v, pairs = (raw[end - size : end] for size, end in zip(raw[:5], ends, strict=True))
    lower = np.arange(sys.maxunicode + 1, dtype=np.uint32)
    lower[pairs[0::2]] = pairs[1::2]
    flags = np.repeat(flag_v.astype(np.uint16), flag_n)
    rank = np.where(flags & ALPHA, 2, np.where(flags & PUNCT, 0, 1)).astype(np.uint8)
    result = Tables(flags, rank, np.repeat(script_v.astype(np.uint8), script_n), lower)
    for table in result:
        table.flags.writeable = False
    return result
