"""Texts as arrays, tokenised once: code points, tokens with 64-bit hashes, lines. Everything measured starts from here.

Positions are code points. A hash depends on the token's own characters only, never on the batch it came in, so any
grouping of the same texts gives the same numbers. Nothing here reads a file, a clock or a global but the Unicode table.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpus.filter.charclass import UPPER, tables
from corpus.filter.pieces import piece_starts
from corpus.filter.segment import token_starts

CHUNK_CHARS = 1 << 18
"""Code points tokenised together: large enough to hide numpy's call cost, small enough for the second-level cache."""
MEASURED = 1_000_000
"""Code points of one text that are measured and signed; longer texts are rare, and most of them are tables or attacks."""
_NEWLINE = 10
_C1, _C2 = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)  # MurmurHash3's 64-bit finalizer
_CODE = np.uint64(0x9E3779B97F4A7C15)
_BASE = np.uint64(0xD6E8FEB86659FD93)  # odd: every power is odd, so no character is ever multiplied away
_INVERSE = np.uint64(pow(int(_BASE), -1, 1 << 64))
_S33, _S32, _S29 = np.uint64(33), np.uint64(32), np.uint64(29)

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


def mix64(values: U64) -> U64:
    """MurmurHash3's finalizer: a bijection that spreads every bit; element by element, modulo 2^64."""
    out: U64 = values ^ (values >> _S33)
    out *= _C1
    out ^= out >> _S33
    out *= _C2
    out ^= out >> _S33
    return out


def _code_hash(codes: NDArray[np.uint32]) -> U64:
    out = codes.astype(np.uint64)
    out += np.uint64(1)
    out *= _CODE
    out ^= out >> _S29
    out *= _C2
    return out ^ (out >> _S32)


def powers(base: np.uint64, size: int) -> U64:
    """The first `size` powers of a number, modulo 2^64."""
    out = np.full(max(size, 1), base, dtype=np.uint64)
    out[0] = 1
    return np.multiply.accumulate(out)


@functools.cache
def _chunk_powers() -> tuple[U64, U64]:
    """Powers of the hash base and of its inverse for a full chunk: what all chunks but those of one long text need."""
    return powers(_BASE, CHUNK_CHARS + 1), powers(_INVERSE, CHUNK_CHARS + 1)


def _powers(size: int) -> tuple[U64, U64]:
    return _chunk_powers() if size <= CHUNK_CHARS + 1 else (powers(_BASE, size), powers(_INVERSE, size))


def _weighed(codes: NDArray[np.uint32]) -> U64:
    """Each character's part in a hash, weighed by its place in the array."""
    out = _code_hash(codes)
    out *= _powers(len(codes))[0][: len(codes)]
    return out


def _span_hashes(weighed: U64, bounds: I64) -> U64:
    """64-bit hash of each span `bounds[i]:bounds[i+1]` (the last one runs to the end). Bounds ascend strictly. The weight of the place
    where a span begins is divided out, so that a hash depends on the span's own characters."""
    lengths = np.diff(bounds, append=len(weighed)).astype(np.uint64)
    sums = np.add.reduceat(weighed, bounds)
    sums *= _powers(len(weighed))[1].take(bounds)
    lengths *= _C1
    sums += lengths
    return mix64(sums)


def hash_strings(strings: Sequence[str]) -> U64:
    """The hash that each string has as a token or line."""
    if not strings or not all(strings):
        return np.array([hash_strings([s])[0] if s else 0 for s in strings], dtype=np.uint64)
    codes = np.frombuffer("".join(strings).encode("utf-32-le", "surrogatepass"), np.uint32)
    return _span_hashes(_weighed(codes), np.cumsum([0, *map(len, strings[:-1])]).astype(np.int64))


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of a chunk in text order. `start`/`end` index the chunk's code points; `rank` as in `charclass.Tables`."""

    start: I64
    end: I64
    doc: I64
    rank: NDArray[np.uint8]
    hash: U64
    bounds: I64
    """First token of each document, and the total: `bounds[d]:bounds[d+1]`."""

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True)
class Chunk:
    """A few texts side by side in one array, each followed by a newline that belongs to none of them."""

    texts: tuple[str, ...]
    codes: NDArray[np.uint32]
    flags: NDArray[np.uint16]
    bounds: I64
    """Start of each text, and the end of the array: text d is `codes[bounds[d] : bounds[d+1] - 1]`."""

    def __len__(self) -> int:
        return len(self.texts)

    @functools.cached_property
    def lengths(self) -> I64:
        """Code points of each text."""
        return np.diff(self.bounds) - 1

    @functools.cached_property
    def _segments(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        return token_starts(self.codes, self.flags)

    @functools.cached_property
    def tokens(self) -> Tokens:
        """All tokens as rules count them (`pieces`), punctuation included, hashed as written."""
        starts, blank = self._segments
        begins = piece_starts(self.codes, self.flags, starts, blank)
        cuts, at, rank = self._cuts(begins, blank)
        start, end = cuts[at], cuts[at + 1]  # the array ends with a newline, so a cut always follows
        first = np.searchsorted(start, self.bounds)
        return Tokens(start, end, self._documents(first), rank[at], _span_hashes(self._weighed, cuts)[at], first)

    @functools.cached_property
    def words(self) -> Tokens:
        """UAX #29 words (`segment`) with a character that is no punctuation, hashed in lower case: what near-duplicates see."""
        cuts, at, rank = self._cuts(*self._segments)
        at = at[rank[at] > 0]
        start, end = cuts[at], cuts[at + 1]
        lower = self._weighed.copy()
        upper = np.flatnonzero((self.flags & UPPER) != 0)
        lower[upper] = _code_hash(tables().lower.take(self.codes[upper])) * _powers(len(lower))[0].take(upper)
        first = np.searchsorted(start, self.bounds)
        return Tokens(start, end, self._documents(first), rank[at], _span_hashes(lower, cuts)[at], first)

    @functools.cached_property
    def _weighed(self) -> U64:
        return _weighed(self.codes)

    @functools.cached_property
    def _ranks(self) -> NDArray[np.uint8]:
        return tables().rank.take(self.codes, mode="clip")

    def _cuts(self, begins: NDArray[np.bool_], blank: NDArray[np.bool_]) -> tuple[I64, I64, NDArray[np.uint8]]:
        """Where tokens and blanks begin, which of these are tokens, and the rank of each."""
        cuts = np.flatnonzero(begins | blank)
        return cuts, np.flatnonzero(begins[cuts]), np.maximum.reduceat(self._ranks, cuts)

    def _documents(self, first: I64) -> I64:
        return np.repeat(np.arange(len(self)), np.diff(first))

    @functools.cached_property
    def newlines(self) -> I64:
        """Positions of newlines, the ones that end a text included."""
        return np.flatnonzero(self.codes == _NEWLINE)


def chunk(texts: Sequence[str]) -> Chunk:
    """Texts as one chunk. Lone surrogates and NULs are code points like any other."""
    joined = "\n".join([*texts, ""])
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
    bounds = np.cumsum([0, *(len(text) + 1 for text in texts)])
    return Chunk(tuple(texts), codes, tables().flags.take(codes, mode="clip"), bounds)


def measured_part(text: str) -> str:
    """A text as far as it is measured: whole, or up to the last white space within the limit."""
    if len(text) <= MEASURED:
        return text
    space = max(text.rfind("\n", MEASURED // 2, MEASURED), text.rfind(" ", MEASURED // 2, MEASURED))
    return text[: space + 1 if space >= 0 else MEASURED]


def chunks(texts: Sequence[str], limit: int = CHUNK_CHARS) -> Iterator[Chunk]:
    """Texts in order, as many a chunk as fit into `limit` code points (one at least)."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > limit:
            yield chunk(batch)
            batch, size = [], 0
        batch.append(text)
        size += len(text) + 1
    if batch:
        yield chunk(batch)
