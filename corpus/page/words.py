"""Text -> one 64-bit hash a word, the same for every page and machine: what near copies are recognised by.

A word is a run of letters, digits and underscores (`\\w`), lower-cased. Scripts written without spaces (Chinese, Japanese
kana) give one word a character, or a changed sentence there would weigh as much as a single changed word elsewhere.
A word's hash is a polynomial over its code points modulo 2^64. Prefix sums give it for all words of a text at once, so
no word ever becomes an object: that is three times as fast as cutting them out first.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import numpy.typing as npt

MAX_WORDS = 200_000
"""Work limit: words past it are not read."""

Hashes = npt.NDArray[np.uint64]
Codes = npt.NDArray[np.uint8] | npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Kinds = npt.NDArray[np.uint8]
Places = npt.NDArray[np.intp]

_BLOCK = 65_536
"""Characters looked at together: some megabytes of memory, whatever the length. Words are not cut but at a longer one."""
_BASE = 0xC4CEB9FE1A85EC53
"""Odd, so that it has an inverse modulo 2^64: a word's hash is then the same wherever in the text it stands."""
_NO, _WORD, _ALONE = 0, 1, 2
_LOWERED_BY_CONTEXT = ("\u03a3", "\u0130")
"""Sigma, whose lower case depends on what follows, and the one letter of the first plane that becomes two."""
_IS_WORD = re.compile(r"\w")
_UNSPACED = ((0x3040, 0x30FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF))


def word_hashes(text: str) -> Hashes:
    """The hashes of the words of `text` in order, shape [n], at most `MAX_WORDS`."""
    blocks, left, start = [], MAX_WORDS, 0
    while start < len(text) and left > 0:
        end = start + _BLOCK
        if end < len(text):
            end = max(text.rfind(" ", start, end), text.rfind("\n", start, end)) + 1 or end
        found = _block_hashes(text[start:end])[:left]
        blocks.append(found)
        left, start = left - len(found), end
    return np.concatenate(blocks) if blocks else np.zeros(0, dtype=np.uint64)


def _block_hashes(text: str) -> Hashes:
    codes, kinds = _codes(text)
    first, last = _edges(kinds)
    powers, inverse = _powers()
    sums = np.zeros(len(codes) + 1, dtype=np.uint64)
    rest = sums[1:]
    np.multiply(codes, powers[: len(codes)], out=rest)  # in place: one pass over memory less than by a product of its own
    np.cumsum(rest, out=rest)
    return _spread((sums.take(last, mode="clip") - sums.take(first, mode="clip")) * inverse.take(first, mode="clip"))


def _edges(kinds: Kinds) -> tuple[Places, Places]:
    """Where words begin, and where they have ended."""
    word = np.zeros(len(kinds) + 2, dtype=np.bool_)
    np.not_equal(kinds, _NO, out=word[1:-1])
    edge = word[1:] != word[:-1]
    if not len(kinds) or kinds.max() != _ALONE:
        edges = np.flatnonzero(edge)
        return edges[::2], edges[1::2]
    padded = np.zeros(len(kinds) + 2, dtype=np.uint8)
    padded[1:-1] = kinds
    apart = edge | (padded[1:] == _ALONE) | (padded[:-1] == _ALONE)
    return np.flatnonzero(apart & (padded[1:] != _NO)), np.flatnonzero(apart & (padded[:-1] != _NO))


def _codes(text: str) -> tuple[Codes, Kinds]:
    """The code points of a text in lower case, and which of them are words or parts of words."""
    if text.isascii():
        small = text.lower().encode("ascii")
        return np.frombuffer(small, dtype=np.uint8), np.frombuffer(small.translate(_ascii()), dtype=np.uint8)
    if not any(letter in text for letter in _LOWERED_BY_CONTEXT):
        pairs = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), dtype=np.uint16)
        if len(pairs) == len(text):  # "clip" only spares numpy a look at every index: all of them fit
            pairs = _lowered().take(pairs, mode="clip")
            return pairs, _kinds().take(pairs, mode="clip")
    text = text.lower()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = _kinds()[np.minimum(codes, 0xFFFF)]
    beyond = np.flatnonzero(codes > 0xFFFF)
    kinds[beyond] = [_WORD if _IS_WORD.match(chr(code)) else _NO for code in codes[beyond].tolist()]
    return codes, kinds


@cache
def _ascii() -> bytes:
    """A translation of ASCII to kinds: a third of the cost of looking them up in an array."""
    return _kinds()[:256].tobytes()


@cache
def _lowered() -> npt.NDArray[np.uint16]:
    """The lower case of each code point of the first plane, as `str.lower` has it; about 10 ms, once a process."""
    lower = (chr(code).lower() for code in range(0x10000))
    return np.array([ord(text) if len(text) == 1 else code for code, text in enumerate(lower)], dtype=np.uint16)


@cache
def _kinds() -> Kinds:
    """What each code point of the first plane is; about 10 ms, once a process."""
    kinds = np.zeros(0x10000, dtype=np.uint8)
    plane = "".join(map(chr, range(0x10000)))
    kinds[[match.start() for match in _IS_WORD.finditer(plane)]] = _WORD
    for low, high in _UNSPACED:
        unspaced = kinds[low : high + 1]
        unspaced[unspaced == _WORD] = _ALONE
    return kinds


@cache
def _powers() -> tuple[Hashes, Hashes]:
    """Powers of the base and of its inverse, enough for a block whose every letter has a two-letter lower case."""

    def table(base: int) -> Hashes:
        factors = np.full(2 * _BLOCK, base, dtype=np.uint64)
        factors[0] = 1
        return np.cumprod(factors, dtype=np.uint64)

    return table(_BASE), table(pow(_BASE, -1, 1 << 64))


def _spread(hashes: Hashes) -> Hashes:
    """Finish: short words differ in few bits of the polynomial, and every bit of a hash shall count."""
    hashes ^= hashes >> np.uint64(32)
    hashes *= np.uint64(0xD6E8FEB86659FD93)
    hashes ^= hashes >> np.uint64(32)
    return hashes
