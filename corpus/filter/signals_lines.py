"""Rules that judge line by line: C4, FineWeb, RefinedWeb/DCLM. Masks first; the signals and the spans both come from them."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

import numpy as np

from corpus.filter.charclass import DIGIT, SCRIPTS, UPPER
from corpus.filter.lines import Flags, Lines
from corpus.filter.signals import Columns, count, ratio
from corpus.filter.tokens import I64

_POLICY = ("terms of use", "privacy policy", "cookie policy", "uses cookies", "use of cookies", "use cookies")
_ASCII_ENDS = np.array([ord(c) for c in ".?!\"'"], dtype=np.uint32)
_CITATION = re.compile(r"\[(?:\d*|edit|citation needed)\]")
_COUNTED = "likes?|shares?|comments?|retweets?|reposts?|quotes?|bookmarks?|upvotes?|downvotes?|downloads?|views?|followers?|replies|reply|points?|votes?"
_COUNTER = re.compile(rf"\W*\d[\d.,]*\s*[kKmM]?\s+(?:{_COUNTED})\W*", re.IGNORECASE)
_MARKLESS = tuple(SCRIPTS.index(s) for s in ("Thai", "Laoo", "Khmr", "Mymr", "Tibt"))
_LATIN = SCRIPTS.index("Latn")
MIN_WORDS = 3
"""C4: fewer words make no line."""
SHORT_LINE = 30
"""FineWeb: characters up to which a line is short."""


def has_no_end_marks(by_script: I64) -> Flags:
    """Documents in scripts whose prose ends sentences with a space or a mark that few writers use."""
    letters = by_script[:, 1:].sum(axis=1)
    result: Flags = 2 * by_script[:, list(_MARKLESS)].sum(axis=1) > letters
    return result


@dataclass(frozen=True)
class C4:
    """C4's line rules as masks over lines, independent of their order."""

    lines: Lines
    few_words: Flags
    no_end: Flags
    javascript: Flags
    policy: Flags
    lorem_ipsum: Flags
    curly: Flags

    @functools.cached_property
    def sound(self) -> Flags:
        """Filled lines of enough words, none of them broken."""
        return self.lines.filled & ~self.lines.long_word & ~self.few_words

    def columns(self) -> Columns:
        """What C4 keeps of each document, with and without its rule about end marks."""
        lines = self.lines
        wanted = self.sound & ~self.javascript
        columns: Columns = {}
        for prefix, base in (("c4", wanted & ~self.no_end), ("c4_open", wanted)):
            kept = base & ~self.policy
            columns[f"{prefix}_lines"] = count(lines.per_doc(kept))
            columns[f"{prefix}_sentences"] = count(lines.per_doc(np.where(kept, lines.sentences, 0)))
            columns[f"{prefix}_lorem_ipsum"] = count(lines.per_doc((base | self.javascript & self.sound) & self.lorem_ipsum))
            columns[f"{prefix}_curly"] = count(lines.per_doc(base & self.curly))
        return columns


def c4(lines: Lines, by_script: I64, no_spaces: Flags) -> C4:
    """Judge every line. In scripts without spaces tokens stand for words; in scripts without end marks no line lacks one."""
    doc = lines.doc
    words = np.where(no_spaces[doc], lines.tokens(words_only=True), lines.spaced_words)
    latin = 2 * by_script[:, _LATIN] > by_script[:, 1:].sum(axis=1)
    ascii_end = np.isin(lines.last_code, _ASCII_ENDS) & ~lines.ends_in_three_dots
    own_end = ascii_end | (lines.ends_terminal & ~lines.ends_in_ellipsis)
    ends = np.where(latin[doc], ascii_end, own_end) | has_no_end_marks(by_script)[doc]
    _trim_citations(lines, ends)
    found = _phrases(lines)
    return C4(lines, words < MIN_WORDS, ~ends, found["javascript"], found["policy"], found["lorem ipsum"], found["{"])


def _trim_citations(lines: Lines, ends: Flags) -> None:
    """C4 deletes "[1]" before it looks at the end mark: look again, in place, at lines that end in a bracket."""
    text = None
    for index in np.flatnonzero(lines.filled & (lines.last_code == ord("]")) & ~ends).tolist():
        doc = int(lines.doc[index])
        base = int(lines.chunk.bounds[doc])
        text = lines.chunk.texts[doc][int(lines.first[index]) - base : int(lines.last[index]) + 1 - base]
        rest = _CITATION.sub("", text)
        ends[index] = rest.endswith((".", "?", "!", '"', "'")) and not rest.endswith("...")


def _phrases(lines: Lines) -> dict[str, Flags]:
    """Lines that contain C4's words, case folded."""
    found = {name: np.zeros(len(lines), dtype=bool) for name in ("javascript", "policy", "lorem ipsum", "{")}
    for doc, text in enumerate(lines.chunk.texts):
        low = text.lower()
        if len(low) != len(text):  # a dotted capital I grows when lowered: positions must not move
            low = "".join(c.lower() if len(c.lower()) == 1 else c for c in text)
        base = int(lines.chunk.bounds[doc])
        for name, phrases in (
            ("javascript", ("javascript",)),
            ("policy", _POLICY),
            ("lorem ipsum", ("lorem ipsum",)),
            ("{", ("{",)),
        ):
            for phrase in phrases:
                if (at := low.find(phrase)) >= 0:
                    _mark(found[name], lines, low, phrase, at, base)
    return found


def _mark(mask: Flags, lines: Lines, low: str, phrase: str, at: int, base: int) -> None:
    while at >= 0:
        line = int(np.searchsorted(lines.end, base + at))
        mask[line] = True
        at = low.find(phrase, int(lines.end[line]) - base)


def fineweb(lines: Lines, by_script: I64) -> Columns:
    """FineWeb's own rules (duplicate lines are measured with the repetition signals)."""
    filled = lines.per_doc(lines.filled)
    n_tokens = np.diff(lines.chunk.tokens.bounds)
    length = lines.end - lines.start
    ends = lines.filled & (lines.ends_terminal | np.isin(lines.last_code, _ASCII_ENDS) | lines.ends_in_ellipsis)
    third = np.array([_third(length[a:b]) for a, b in zip(lines.bounds[:-1], lines.bounds[1:], strict=True)], dtype=np.int64)
    markless = has_no_end_marks(by_script)
    return {
        "end_mark_line_ratio": ratio(lines.per_doc(ends), filled, markless),
        "bare_end_mark_line_ratio": ratio(lines.per_doc(lines.ends_bare), filled, markless),
        "short_line_ratio": ratio(lines.per_doc(lines.filled & (length <= SHORT_LINE)), filled),
        "newline_ratio": ratio(np.diff(lines.bounds) - 1, n_tokens),
        "mc4_third_line": count(third),
    }


def _third(lengths: I64) -> int:
    return int(np.partition(lengths, len(lengths) - 3)[len(lengths) - 3]) if len(lengths) >= 3 else 0


@dataclass(frozen=True)
class Dclm:
    """RefinedWeb's line rules, as DCLM runs them, as masks over lines."""

    lines: Lines
    upper: Flags
    numeric: Flags
    counter: Flags
    one_word: Flags
    boilerplate: Flags

    @property
    def removed(self) -> Flags:
        return self.upper | self.numeric | self.counter | self.one_word | self.boilerplate

    def columns(self) -> Columns:
        """Lines removed by each rule, and the share of words that goes with them."""
        lines = self.lines
        words = lines.spaced_words
        return {
            "dclm_upper_lines": count(lines.per_doc(self.upper)),
            "dclm_numeric_lines": count(lines.per_doc(self.numeric)),
            "dclm_counter_lines": count(lines.per_doc(self.counter)),
            "dclm_one_word_lines": count(lines.per_doc(self.one_word)),
            "dclm_boilerplate_lines": count(lines.per_doc(self.boilerplate)),
            "dclm_removed_word_ratio": ratio(lines.per_doc(np.where(self.removed, words, 0)), lines.per_doc(words)),
        }


def dclm(lines: Lines, no_spaces: Flags) -> Dclm:
    """Judge every line."""
    flags = lines.chunk.flags
    length = lines.last - lines.first + 1
    upper = _inside(np.flatnonzero((flags & UPPER) != 0), lines)
    digits = _inside(np.flatnonzero((flags & DIGIT) != 0), lines)
    words = lines.spaced_words
    spaced = ~no_spaces[lines.doc]
    few = lines.filled & (words <= 10) & spaced
    counter, boilerplate = np.zeros(len(lines), dtype=bool), np.zeros(len(lines), dtype=bool)
    for index in np.flatnonzero(few & (digits > 0) & (words <= 4)).tolist():
        counter[index] = _COUNTER.fullmatch(_text(lines, index)) is not None
    ending = (
        np.isin(lines.last_code, np.array([ord(c) for c in "…."], dtype=np.uint32))
        | _opens_with_sign(lines)
        | _mentions_cart(lines)
    )
    for index in np.flatnonzero(few & ending).tolist():
        low = _text(lines, index).lower()
        boilerplate[index] = (
            "items in cart" in low or low.endswith(("read more...", "read more…")) or low.startswith(("sign-in", "sign in"))
        )
    return Dclm(
        lines,
        upper=lines.filled & (2 * upper > length),
        numeric=lines.filled & (digits == length),
        counter=counter,
        one_word=lines.filled & (words < 2) & spaced,
        boilerplate=boilerplate,
    )


def _inside(positions: I64, lines: Lines) -> I64:
    return np.searchsorted(positions, lines.end) - np.searchsorted(positions, lines.start)


def _opens_with_sign(lines: Lines) -> Flags:
    codes = lines.chunk.codes
    first = np.minimum(lines.first, len(codes) - 1)
    second = np.minimum(first + 1, len(codes) - 1)
    result: Flags = ((codes[first] | 0x20) == ord("s")) & ((codes[second] | 0x20) == ord("i"))
    return result


def _mentions_cart(lines: Lines) -> Flags:
    result = np.zeros(len(lines), dtype=bool)
    for doc, text in enumerate(lines.chunk.texts):
        if (at := text.find("tems in cart")) >= 0:
            _mark(result, lines, text, "tems in cart", at, int(lines.chunk.bounds[doc]))
    return result


def _text(lines: Lines, index: int) -> str:
    doc = int(lines.doc[index])
    base = int(lines.chunk.bounds[doc])
    return lines.chunk.texts[doc][int(lines.first[index]) - base : int(lines.last[index]) + 1 - base]
