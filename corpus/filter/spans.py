"""Spans: places in a text that a policy may cut, measured once. Start and end are code points of the stored text.

Kinds are a closed table. Line kinds name the rule a line failed; a policy may also name a group (`c4-line`). What is cut,
and in which order, is the policy's and the export's business: here nothing is removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from corpus.filter.charclass import DIGIT, UPPER
from corpus.filter.lines import Flags, Lines
from corpus.filter.signals_lines import C4, Dclm
from corpus.filter.signals_reduced import REDUCED_KINDS
from corpus.filter.spans_pii import FEWEST_DIGITS, LONGEST_NUMBER, PII_KINDS, Hints, Span, pii
from corpus.filter.tokens import I64, Chunk

LINE_KINDS: Final = {
    "c4-long-word": "a line with a word of more than 1,000 characters",
    "c4-end-mark": "a line without an end mark",
    "c4-few-words": "a line of fewer than three words",
    "c4-javascript": "a line that speaks of JavaScript",
    "c4-policy": "a line about cookies, privacy or terms of use",
    "dclm-upper": "a line mostly in capitals",
    "dclm-numeric": "a line of digits",
    "dclm-counter": "a line that counts likes, shares, comments",
    "dclm-one-word": "a line of one word",
    "dclm-boilerplate": "a short line of a shop or login bar",
    "repeated-line": "a line of the text seen before in it, of at least five words",
}
KINDS: Final[dict[str, str]] = {
    **LINE_KINDS,
    **REDUCED_KINDS,
    "email": "an e-mail address",
    "phone": "a phone number",
    "ipv4": "a public IPv4 address",
    "ipv6": "a public IPv6 address",
    "iban": "an IBAN with a valid checksum",
    "card": "a card number with a valid checksum",
}
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "c4-line": ("c4-long-word", "c4-end-mark", "c4-few-words", "c4-javascript", "c4-policy"),
    "c4-open-line": ("c4-long-word", "c4-few-words", "c4-javascript", "c4-policy"),
    "dclm-line": ("dclm-upper", "dclm-numeric", "dclm-counter", "dclm-one-word", "dclm-boilerplate"),
    "pii": PII_KINDS,
}
assert all(kind in KINDS for group in GROUPS.values() for kind in group), "a group names an unknown kind"
MIN_REPEATED_WORDS = 5


@dataclass(frozen=True, slots=True)
class LineRules:
    """What the line rules found in a chunk."""

    lines: Lines
    c4: C4
    dclm: Dclm

    def masks(self) -> dict[str, Flags]:
        """Lines of each line kind."""
        filled = self.lines.filled
        return {
            "c4-long-word": self.lines.long_word,
            "c4-end-mark": filled & self.c4.no_end,
            "c4-few-words": filled & self.c4.few_words,
            "c4-javascript": self.c4.javascript,
            "c4-policy": self.c4.policy,
            "dclm-upper": self.dclm.upper,
            "dclm-numeric": self.dclm.numeric,
            "dclm-counter": self.dclm.counter,
            "dclm-one-word": self.dclm.one_word,
            "dclm-boilerplate": self.dclm.boilerplate,
            "repeated-line": _repeated(self.lines),
        }


def _repeated(lines: Lines) -> Flags:
    """Lines equal to an earlier one of the same text."""
    result = np.zeros(len(lines), dtype=bool)
    words = lines.tokens(words_only=True)
    for doc, text in enumerate(lines.chunk.texts):
        rows = text.split("\n")
        if len(set(rows)) == len(rows):
            continue
        first = int(lines.bounds[doc])
        seen: set[str] = set()
        for index, row in enumerate(rows, first):
            if row in seen and words[index] >= MIN_REPEATED_WORDS:
                result[index] = True
            seen.add(row)
    return result


def line_spans(rules: LineRules) -> list[list[Span]]:
    """Spans of every document of the chunk. Lines of one kind that follow each other are one span; its last newline stays
    outside. (A page of a million short lines is then a few spans, not millions.)"""
    lines = rules.lines
    bounds = lines.chunk.bounds
    result: list[list[Span]] = [[] for _ in range(len(lines.chunk))]
    for kind, mask in rules.masks().items():
        at = np.flatnonzero(mask)
        apart = (np.diff(at, prepend=-2) != 1) | (np.diff(lines.doc[at], prepend=-1) != 0)
        first, last = at[apart], at[np.roll(apart, -1)]
        doc = lines.doc[first]
        base = bounds[doc]
        for d, start, end in zip(
            doc.tolist(), (lines.start[first] - base).tolist(), (lines.end[last] - base).tolist(), strict=True
        ):
            result[d].append(Span(kind, start, end))
    return result


def personal_spans(chunk: Chunk) -> list[list[Span]]:
    """Personal data of every document of the chunk. Three looks at all code points say which patterns can match where."""
    digit = (chunk.flags & DIGIT) != 0
    upper = (chunk.flags & UPPER) != 0
    at = np.flatnonzero(digit)
    dense = at[FEWEST_DIGITS - 1 :] - at[: max(len(at) - FEWEST_DIGITS + 1, 0)] < LONGEST_NUMBER
    numbers = _documents(chunk, at[: len(dense)][dense]) > 0
    ibans = _documents(chunk, np.flatnonzero(upper[:-3] & upper[1:-2] & digit[2:-1] & digit[3:])) > 0
    dots = np.flatnonzero(digit[:-2] & (chunk.codes[1:-1] == ord(".")) & digit[2:])
    ipv4 = _documents(chunk, dots) >= 3
    hints = zip(numbers.tolist(), ibans.tolist(), ipv4.tolist(), strict=True)
    return [pii(text, Hints(*hint)) for text, hint in zip(chunk.texts, hints, strict=True)]


def _documents(chunk: Chunk, positions: I64) -> I64:
    """How many of the positions lie in each document."""
    return np.diff(np.searchsorted(positions, chunk.bounds))


def ordered(spans: list[Span]) -> list[Span]:
    """The stored order: by start, end, kind."""
    return sorted(spans, key=lambda span: (span.start, span.end, span.kind))
