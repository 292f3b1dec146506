"""Lines of a chunk and the facts every line rule asks for, found once: bounds, words, last marks, sentences.

A line is what lies between newlines (extraction leaves no other line separator). Positions are code points of the chunk.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corpus.filter.charclass import ALPHA, CLOSER, SPACE, TERMINAL, UPPER, tables
from corpus.filter.tokens import I64, Chunk

_DOT, _ELLIPSIS = ord("."), ord("…")
LONG_WORD = 1000
"""Characters past which C4 calls a word broken."""

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Lines:
    """Lines in text order. `first`/`last` are the first and last character that is no white space (`first > last`: none)."""

    chunk: Chunk
    start: I64
    end: I64
    doc: I64
    first: I64
    last: I64
    bounds: I64
    """First line of each document, and the total."""

    def __len__(self) -> int:
        return len(self.start)

    @functools.cached_property
    def filled(self) -> Flags:
        """Lines with anything but white space."""
        return self.first <= self.last

    @functools.cached_property
    def spaced_words(self) -> I64:
        """Words between white space, per line."""
        return _within(self._word_starts, self.start, self.end)

    @functools.cached_property
    def _word_starts(self) -> I64:
        filled = (self.chunk.flags & SPACE) == 0
        begins = filled.copy()
        begins[1:] &= ~filled[:-1]
        return np.flatnonzero(begins)

    @functools.cached_property
    def long_word(self) -> Flags:
        """Lines with a word of more than `LONG_WORD` characters between white space."""
        starts = self._word_starts
        result = np.zeros(len(self), dtype=bool)
        far = starts[np.flatnonzero(np.diff(starts, append=len(self.chunk.codes)) > LONG_WORD)]
        for begin in far.tolist():  # rare: only gaps that could hold one
            spaces = np.flatnonzero(self.chunk.flags[begin : begin + LONG_WORD + 1] & SPACE)
            if not len(spaces):
                result[np.searchsorted(self.end, begin)] = True
        return result

    def tokens(self, *, words_only: bool) -> I64:
        """Tokens (or words) per line."""
        return _within((self.chunk.words if words_only else self.chunk.tokens).start, self.start, self.end)

    def _back(self, steps: int) -> I64:
        """Positions `steps` before the last character of each line; 0 where there is none (guard with `first`)."""
        return np.maximum(self.last - steps, 0)

    @functools.cached_property
    def last_code(self) -> NDArray[np.uint32]:
        """Last character that is no white space; 0 in empty lines."""
        return np.where(self.filled, self.chunk.codes[self._back(0)], 0).astype(np.uint32)

    @functools.cached_property
    def ends_in_three_dots(self) -> Flags:
        dots = [self.chunk.codes[self._back(steps)] == _DOT for steps in range(3)]
        result: Flags = self.filled & dots[0] & dots[1] & dots[2] & (self.last - self.first >= 2)
        return result

    @functools.cached_property
    def ends_in_ellipsis(self) -> Flags:
        result: Flags = self.ends_in_three_dots | (self.last_code == _ELLIPSIS)
        return result

    @functools.cached_property
    def ends_terminal(self) -> Flags:
        """The last character ends a sentence in any script; up to two closing quotes or brackets may follow the mark."""
        result, closed = np.zeros(len(self), dtype=bool), self.filled
        for steps in range(3):
            flags = self.chunk.flags[self._back(steps)]
            inside = closed & (self.last - steps >= self.first)
            result |= inside & ((flags & TERMINAL) != 0)
            closed = inside & ((flags & CLOSER) != 0)
        return result

    @functools.cached_property
    def ends_bare(self) -> Flags:
        """The very last character is an end mark of any script (not the ellipsis character)."""
        result: Flags = self.filled & ((self.chunk.flags[self._back(0)] & TERMINAL) != 0) & (self.last_code != _ELLIPSIS)
        return result

    @functools.cached_property
    def sentence_ends(self) -> I64:
        """Positions of the marks that end a sentence (the last one of a run)."""
        codes, flags = self.chunk.codes, self.chunk.flags
        at = np.flatnonzero((flags & TERMINAL) != 0)
        at = at[(flags[at + 1] & TERMINAL) == 0]
        wide = codes[at] > 0x7F  # 。 and its like need no space after them
        after = at + 1
        for _ in range(2):
            after = np.where((flags[after] & CLOSER) != 0, np.minimum(after + 1, len(codes) - 1), after)
        spaced = (flags[after] & SPACE) != 0
        follower = codes[np.minimum(after + 1, len(codes) - 1)]
        lower_next = self._is_lower(follower) & (codes[after] != 10)
        before, earlier = flags[np.maximum(at - 1, 0)], flags[np.maximum(at - 2, 0)]
        initial = (codes[at] == _DOT) & ((before & UPPER) != 0) & (((earlier & ALPHA) == 0) | (at < 2))
        ends: I64 = at[(wide & (codes[at] != _ELLIPSIS)) | (spaced & ~lower_next & ~(initial & (codes[after] != 10)))]
        return ends

    @staticmethod
    def _is_lower(codes: NDArray[np.uint32]) -> Flags:
        flags = tables().flags.take(codes)
        result: Flags = ((flags & ALPHA) != 0) & ((flags & UPPER) == 0) & (codes < 0x590)  # scripts with case only
        return result

    @functools.cached_property
    def sentences(self) -> I64:
        """Sentences per line: ends within it, and one more for a rest without an end mark."""
        ends = self.sentence_ends
        upto = np.searchsorted(ends, self.end)
        count = upto - np.searchsorted(ends, self.start)
        last_end = np.where(count > 0, ends[np.maximum(upto - 1, 0)] if len(ends) else 0, -1)
        rest = self.filled & (self._last_letter > last_end)
        return np.asarray(count + rest, dtype=np.int64)

    @functools.cached_property
    def _last_letter(self) -> I64:
        letters = np.flatnonzero((self.chunk.flags & ALPHA) != 0)
        if not len(letters):
            return np.full(len(self), -1)
        at = np.searchsorted(letters, self.end) - 1
        found = letters[np.maximum(at, 0)]
        return np.where((at >= 0) & (found >= self.start), found, -1)

    def per_doc(self, values: NDArray[np.generic]) -> I64:
        """Sum of a per-line column for each document."""
        total = np.concatenate(([0], np.cumsum(values, dtype=np.int64)))
        return total[self.bounds[1:]] - total[self.bounds[:-1]]


def _within(positions: I64, start: I64, end: I64) -> I64:
    return np.searchsorted(positions, end) - np.searchsorted(positions, start)


def lines(chunk: Chunk) -> Lines:
    """The lines of a chunk; every document has at least one."""
    end = chunk.newlines
    start = np.concatenate(([0], end[:-1] + 1))
    first_line = np.searchsorted(start, chunk.bounds)
    doc = np.repeat(np.arange(len(chunk)), np.diff(first_line))
    filled = np.flatnonzero((chunk.flags & SPACE) == 0)
    padded = np.concatenate(([-1], filled, [len(chunk.codes)]))
    first = padded[np.searchsorted(filled, start) + 1]
    last = padded[np.searchsorted(filled, end)]
    first = np.where(first < end, first, end)
    last = np.where(last >= start, last, start - 1)
    last = np.where(first < end, last, first - 1)
    return Lines(chunk, start, end, doc, first, last, first_line)
