"""Where tokens begin for rules that count tokens: white-space pieces with the punctuation at their edges set apart.

Gopher's limits were chosen over tokens of this kind (spaCy's and NLTK's): marks before and after a word are tokens of their
own, what stands inside one (`os.path`, `f(x`, `COVID-19`, a URL) stays in it, but for hyphens, slashes and the like between
letters, English clitics ("do|n't", "it|'s") and units after digits ("10|km"). Pieces with a character of a script that
writes no spaces keep the boundaries of `segment`. Near-duplicates never see these tokens: they compare words.
"""

from __future__ import annotations

import functools
import re
import sys
from typing import Final

import numpy as np
from numpy.typing import NDArray

from corpus.filter.charclass import ALPHA, BASE, CLASS_SHIFT, DIGIT, FOLLOW, PREVOWEL, SINGLE, UPPER

Bools = NDArray[np.bool_]
Codes = NDArray[np.uint32]
Flags = NDArray[np.uint16]
Places = NDArray[np.int64]

_OPEN, _CLOSE, _QUOTE, _AFTER_DIGIT, _HYPHEN, _JOINT, _OPERATOR, _DOT, _ICON, _COMMA = (1 << bit for bit in range(10))
_BRACKETS: Final = "()[]{}<>（）「」『』〔〕【】《》〈〉⟦⟧"
_QUOTES: Final = "'\"`´‘’‚‛“”„‟«»‹›"
_MARKS: Final = ",:;!?¿¡#*&_…·؟،؛۔।。？！，、；：～"
_ICONS: Final = ((0xA6, 0xA6), (0xA9, 0xA9), (0xAE, 0xAE), (0xB0, 0xB0), (0x2100, 0x214F), (0x2190, 0x2BFF), (0x1F000, 0x1FAFF))
_CURRENCIES: Final = "$£€¥฿₽₴₣₤₦₩₪₫₭₮₱₸₹₺₼₿"
_ROLES: Final = (
    (_BRACKETS + _QUOTES + _MARKS + "–—", _OPEN | _CLOSE),
    (_QUOTES, _QUOTE),
    ("§%=+" + _CURRENCIES, _OPEN),
    ("%+" + _CURRENCIES, _AFTER_DIGIT),
    ("-–—~", _HYPHEN),
    (":<>=/", _JOINT),
    ("+-*^", _OPERATOR),
    (".", _DOT),
    (",", _COMMA),
)
_UNITS: Final = frozenset(
    (
        "km", "m", "dm", "cm", "mm", "ha", "µm", "nm", "yd", "in", "ft", "kg", "g", "mg", "µg", "t", "lb", "oz", "kmh", "mph", "hPa", "Pa", "mbar",
        "mb", "MB", "kb", "KB", "gb", "GB", "tb", "TB", "T", "G", "M", "K", "am", "pm", "AM", "PM", "a.m", "p.m",
    )
)  # fmt: skip
_LONGEST_UNIT = 4
_FACES: Final = np.array([ord(a) << 32 | ord(b) for a, b in ("):", ":)", ":(", "(:", ";)", ":]", "[:")], dtype=np.uint64)
_SHORT: Final = (("cannot", 3), ("id", 1))
_CLITICS: Final = frozenset({"s", "S", "ll", "ve", "re", "d", "m"})
_ADDRESS = re.compile(r"(?:[\w+.-]{2,}://)?(?:[^\s@]+@)?(?:[^\W_][\w-]*\.)+[^\W\d_A-Z]{2,63}(?::\d{2,5})?(?:[/?#]\S*)?")
"""What is one token however many marks are in it: a URL, a host name, a dotted name, an address."""
_UNSPACED = np.isin(np.arange(16), (SINGLE, BASE, PREVOWEL, FOLLOW))


@functools.cache
def _roles() -> NDArray[np.uint16]:
    """What each code point does, read once per process and never written to; 0 for letters and digits."""
    table = np.zeros(sys.maxunicode + 1, dtype=np.uint16)
    for chars, role in _ROLES:
        table[[ord(char) for char in chars]] |= role
    for low, high in _ICONS:
        table[low : high + 1] |= _OPEN | _CLOSE | _ICON
    table.flags.writeable = False
    return table


def piece_starts(codes: Codes, flags: Flags, starts: Bools, blank: Bools) -> Bools:
    """Where tokens begin. `starts` and `blank` are `segment.token_starts`' answer; the array ends with a blank."""
    begins = np.empty(len(codes), dtype=bool)
    begins[:1] = ~blank[:1]
    np.logical_and(~blank[1:], blank[:-1], out=begins[1:])
    pieces = np.flatnonzero(begins)
    if not len(pieces):
        return begins
    role = _roles().take(codes, mode="clip")  # all fit: "clip" only spares a look at every index
    at = np.flatnonzero(role)
    if len(at):
        _Marks(codes, flags, blank, role, at, pieces).cut(begins)
    _units(flags, codes, blank, begins)
    _short_forms(codes, blank, begins)
    unspaced = np.logical_or.reduceat(_UNSPACED.take(flags >> CLASS_SHIFT, mode="clip"), pieces)
    if unspaced.any():
        whole = np.repeat(unspaced, np.diff(pieces, append=len(codes)))
        begins[pieces[0] :][whole] = starts[pieces[0] :][whole]
    begins &= ~blank
    return begins


class _Marks:
    """The marks of a chunk (`at`: their places) with their neighbours, and what each does where it stands."""

    def __init__(self, codes: Codes, flags: Flags, blank: Bools, role: NDArray[np.uint16], at: Places, pieces: Places) -> None:
        self.codes, self.blank, self.at, self.pieces = codes, blank, at, pieces
        self.role = role[at]
        before, after = np.maximum(at - 1, 0), np.minimum(at + 1, len(codes) - 1)
        self.before, self.after = before, after
        self.flag_before, self.flag_after = flags[before], flags[after]
        self.role_before, self.role_after = role[before], role[after]
        two = np.maximum(at - 2, 0)
        self.upper_before_that = ((flags[two] & UPPER) != 0) & (at >= 2)
        self.lone_before = (codes[two] == ord(".")) | blank[two] | (at < 2)
        self.first, self.last = blank[before] | (at == 0), blank[after]

    def cut(self, begins: Bools) -> None:
        """Write the boundaries that the marks make."""
        is_dot = (self.role & _DOT) != 0
        run = is_dot & (((self.role_before & _DOT) != 0) & ~self.first | ((self.role_after & _DOT) != 0))
        leading = self._edge(self._opens() | run, self.first, ahead=True)
        trailing = self._edge(self._closes() | run, self.last, ahead=False)
        inner = self._inside(is_dot) & ~leading & ~trailing
        inner &= ~self._in_address(inner, leading, trailing)
        alone = leading | trailing | run | inner | ((self.role & _ICON) != 0)
        begins[self.at[alone]] = True
        begins[self.after[alone]] = True
        follows = alone & ((run & ((self.role_before & _DOT) != 0)) | (inner & self._repeats())) & ~self.first
        begins[self.at[follows]] = False
        begins[self.after[alone & self._faces()]] = False
        self._clitics(begins, trailing)

    def _opens(self) -> Bools:
        digit_next = (self.flag_after & DIGIT) != 0
        result: Bools = ((self.role & _OPEN) != 0) & ~((self.codes[self.at] == ord("+")) & digit_next)
        return result

    def _closes(self) -> Bools:
        digit = (self.flag_before & DIGIT) != 0
        lower = ((self.flag_before & ALPHA) != 0) & ((self.flag_before & UPPER) == 0)
        closed = (self.role_before & (_CLOSE | _HYPHEN | _AFTER_DIGIT)) != 0
        capitals = ((self.flag_before & UPPER) != 0) & self.upper_before_that
        stop = ((self.role & _DOT) != 0) & (digit | (lower & ~self.lone_before) | closed | capitals)
        result: Bools = ((self.role & _CLOSE) != 0) | (((self.role & _AFTER_DIGIT) != 0) & digit) | stop
        return result

    def _edge(self, mask: Bools, border: Bools, *, ahead: bool) -> Bools:
        """Marks of `mask` in an unbroken run of them that begins (`ahead`) or ends at a border of their piece."""
        chosen = np.flatnonzero(mask)
        result = np.zeros(len(mask), dtype=bool)
        if not len(chosen):
            return result
        apart = np.flatnonzero(np.diff(self.at[chosen], prepend=-2) != 1)
        ends = np.append(apart[1:], len(chosen)) - 1
        touches = border[chosen[apart]] if ahead else border[chosen[ends]]
        result[chosen] = np.repeat(touches, ends - apart + 1)
        return result

    def _inside(self, is_dot: Bools) -> Bools:
        """Marks that part what they stand between."""
        before, after = self.flag_before, self.flag_after
        letter_before, letter_after = (before & ALPHA) != 0, (after & ALPHA) != 0
        digit_before = (before & DIGIT) != 0
        known = letter_before | digit_before
        lower_before = letter_before & ((before & UPPER) == 0)
        quote_before, quote_after = (self.role_before & _QUOTE) != 0, (self.role_after & _QUOTE) != 0
        hyphen = (self.role & _HYPHEN) != 0
        minus_after = self.codes[self.after] == ord("-")
        result: Bools = (
            (is_dot & (lower_before | quote_before) & (((after & UPPER) != 0) | quote_after))
            | (((self.role & _COMMA) != 0) & letter_before & letter_after)
            | (hyphen & self._hyphens(known, letter_after))
            | (((self.role & _JOINT) != 0) & known & letter_after)
            | (((self.role & _OPERATOR) != 0) & digit_before & (((after & DIGIT) != 0) | minus_after))
        )
        return result

    def _hyphens(self, known: Bools, letter_after: Bools) -> Bools:
        """Hyphens whose run (one to three) stands between a letter or digit and a letter."""
        same_after = (self.codes[self.after] == self.codes[self.at]) & ~self.last
        starts_run = known & ~self._repeats()
        result = starts_run & letter_after
        for first in np.flatnonzero(starts_run & same_after & ((self.role & _HYPHEN) != 0)).tolist():
            last = first
            while last + 1 < len(self.at) and last < first + 3 and same_after[last]:
                last += 1
            if last - first < 3 and letter_after[last]:
                result[first : last + 1] = True
        return result

    def _repeats(self) -> Bools:
        """Marks that stand right behind the same mark."""
        result: Bools = (self.codes[self.before] == self.codes[self.at]) & (self.at > 0)
        return result

    def _faces(self) -> Bools:
        """The first of two marks that English tokenisers take for a face: "):" ends most lines that define a function."""
        pairs = (self.codes[self.at].astype(np.uint64) << np.uint64(32)) | self.codes[self.after]
        return np.isin(pairs, _FACES)

    def _in_address(self, inner: Bools, leading: Bools, trailing: Bools) -> Bools:
        """Marks inside a URL or a dotted name."""
        result = np.zeros(len(inner), dtype=bool)
        dots = self.at[((self.role & _DOT) != 0) & ~leading & ~trailing]
        wanted = np.flatnonzero(inner)
        if not len(dots) or not len(wanted):
            return result
        piece = np.searchsorted(self.pieces, self.at[wanted], side="right") - 1
        starts = self.pieces[piece]
        ends = np.append(self.pieces[1:], len(self.codes))[piece]
        dotted = np.searchsorted(dots, ends) > np.searchsorted(dots, starts)
        known: dict[int, bool] = {}
        for index, start, end in zip(wanted[dotted].tolist(), starts[dotted].tolist(), ends[dotted].tolist(), strict=True):
            if start not in known:
                known[start] = self._is_address(start, end, leading, trailing)
            result[index] = known[start]
        return result

    def _is_address(self, start: int, end: int, leading: Bools, trailing: Bools) -> bool:
        low, high = np.searchsorted(self.at, (start, end))
        edges = self.at[low:high][leading[low:high]]
        start = int(edges[-1]) + 1 if len(edges) else start
        tail = self.at[low:high][trailing[low:high]]
        if len(tail):
            end = int(tail[0])
        else:
            while end > start and self.blank[end - 1]:
                end -= 1
        return _ADDRESS.fullmatch(_text(self.codes, start, end)) is not None

    def _clitics(self, begins: Bools, trailing: Bools) -> None:
        """ "it|'s", "do|n't", "they|'ll": at the end of a piece, or before the marks that close it."""
        quotes = (self.codes[self.at] == ord("'")) | (self.codes[self.at] == ord("’"))
        ahead = ((self.flag_before & ALPHA) != 0) & ((self.flag_after & ALPHA) != 0)
        closing = set(self.at[trailing].tolist()) if quotes.any() else set()
        for place in self.at[quotes & ahead].tolist():
            stop = next((end for end in (place + 2, place + 3) if self.blank[end] or end in closing), None)
            if stop is None:
                continue
            word = _text(self.codes, place + 1, stop)
            if word in _CLITICS:
                begins[place] = True
            elif word == "t" and self.codes[place - 1] == ord("n") and place > 1 and not self.blank[place - 2]:
                begins[place - 1] = True


def _text(codes: Codes, start: int, end: int) -> str:
    return "".join(map(chr, codes[start:end].tolist()))


def _units(flags: Flags, codes: Codes, blank: Bools, begins: Bools) -> None:
    """ "10|km": a unit right behind digits, at the end of a token."""
    borders = blank | begins
    meets = np.flatnonzero(((flags[1:] & ALPHA) != 0) & ((flags[:-1] & DIGIT) != 0)) + 1
    for length in range(1, _LONGEST_UNIT + 1):
        fits = meets[(meets + length < len(codes))]
        fits = fits[borders[fits + length]]
        for start in fits.tolist():
            if _text(codes, start, start + length) in _UNITS:
                begins[start] = True


def _short_forms(codes: Codes, blank: Bools, begins: Bools) -> None:
    """ "can|not": words that English tokenisers part though nothing stands between."""
    cuts = np.flatnonzero(begins | blank)
    lengths = np.diff(cuts, append=len(codes))
    for word, place in _SHORT:
        same = cuts[(lengths == len(word)) & begins[cuts]]
        for offset, char in enumerate(word):
            same = same[(codes[same + offset] | 0x20 * (offset == 0)) == ord(char)]
        begins[same + place] = True
