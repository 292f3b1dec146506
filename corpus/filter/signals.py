"""The signals: every number a policy may speak about, with its type, meaning, source and where tools differ.

This is the one list; the schema of the `signals` family, `measure()` and the policy checker are made from it. Signals are
integers or one IEEE division of integers. NULL means that the rule behind it does not apply to the text (mean word length
of Chinese, stop words of a language without a list); NaN never occurs, and a ratio of nothing is NULL. Signals that need a
source of the operator's (lists, models, benchmark files) stand in `signals_sourced`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

SignalType = Literal["int64", "double", "string"]


@dataclass(frozen=True, slots=True)
class Signal:
    """One column. `differs` says how other tools measure the same name differently, empty where they agree."""

    type: SignalType
    doc: str
    source: str
    differs: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """Values of one signal for the documents of a chunk; `null` marks documents it does not apply to."""

    values: NDArray[np.generic]
    null: NDArray[np.bool_] | None = None


Columns = dict[str, Column]


def ratio(part: NDArray[np.generic], whole: NDArray[np.generic], null: NDArray[np.bool_] | None = None) -> Column:
    """One IEEE division of integers; NULL where there is nothing to divide by, and where `null` says so."""
    empty = whole == 0
    values = np.asarray(part, dtype=np.float64) / np.where(empty, 1, whole).astype(np.float64)
    return Column(values, empty if null is None else empty | null)


def count(values: NDArray[np.generic], null: NDArray[np.bool_] | None = None) -> Column:
    """A column of integers; NULL where `null` says so."""
    return Column(np.asarray(values, dtype=np.int64), null)


def _int(doc: str, source: str, differs: str = "") -> Signal:
    return Signal("int64", doc, source, differs)


def _part(doc: str, source: str, differs: str = "") -> Signal:
    return Signal("double", doc, source, differs)


_GOPHER, _C4, _FINEWEB, _DCLM, _OWN, _NEMO = (
    "Gopher (Rae et al. 2021)",
    "C4 (Raffel et al. 2020)",
    "FineWeb (2024)",
    "RefinedWeb/DCLM",
    "corpus",
    "NeMo Curator",
)
_TOKENS = "tokens are white-space pieces with their marks apart, as spaCy's in datatrove but by fewer rules; bare pieces in dolma"
_WORDS = "words are UAX #29-like here, spaCy's tokens in datatrove, white-space pieces in dolma"
_LINES = "lines end at newlines only; splitlines() elsewhere also cuts at form feeds and U+2028"
_NO_MARK = "as FineWeb runs C4: without the rule about end marks"

SIGNALS: Final[dict[str, Signal]] = {
    # size
    "chars": _int("code points of the whole text", _OWN),
    "tokens": _int("tokens, punctuation included", _OWN, _TOKENS),
    "words": _int(
        "UAX #29 words: with a character that is no punctuation, symbol or control",
        _GOPHER,
        _WORDS + "; a Han character, a Thai cluster is a word",
    ),
    "distinct_words": _int("different words, case folded", _OWN),
    "sentences": _int(
        "sentences: end marks of any script, and unfinished rests of lines", _OWN, "punkt elsewhere; no abbreviation list here"
    ),
    "lines": _int("lines with anything but white space", _OWN, "datatrove counts blank lines in some rules"),
    "paragraphs": _int("stretches between blank lines", _GOPHER),
    "longest_line": _int("code points of the longest line", _OWN),
    # Gopher quality
    "mean_word_length": _part("mean length of words; NULL for scripts without spaces", _GOPHER, "dolma takes the median"),
    "median_word_length": _part("median length of words; NULL for scripts without spaces", "dolma", "Gopher takes the mean"),
    "hash_ratio": _part("'#' per token", _GOPHER, _TOKENS),
    "ellipsis_ratio": _part("'...' and '…' per token", _GOPHER, _TOKENS),
    "bullet_line_ratio": _part("lines that begin with • or -", _GOPHER, _LINES + "; dolma: * and -"),
    "ellipsis_line_ratio": _part("lines that end with ... or …", _GOPHER, _LINES),
    "alpha_word_ratio": _part(
        "tokens with a letter", _GOPHER, _TOKENS + "; NULL for scripts without spaces: a token is a character there"
    ),
    "stop_words": _int(
        "different stop words of the document's language; NULL without a list",
        _GOPHER,
        "DCLM counts repeats; English list elsewhere for all",
    ),
    # Gopher repetition
    "dup_paragraph_ratio": _part("paragraphs seen before", _GOPHER),
    "dup_paragraph_char_ratio": _part("characters in paragraphs seen before", _GOPHER),
    "dup_line_ratio": _part("lines seen before", _GOPHER, "limit 0.30; blank lines are not lines here (datatrove#273)"),
    "dup_line_char_ratio": _part("characters in lines seen before", _GOPHER),
    **{
        f"top_{n}gram_char_ratio": _part(
            f"characters of the most frequent {n}-gram, times its count",
            _GOPHER,
            "overlaps count; RPv2 counts overlaid characters once",
        )
        for n in (2, 3, 4)
    },
    **{
        f"dup_{n}gram_char_ratio": _part(
            f"characters in {n}-grams seen before, left to right, words of a hit skipped",
            _GOPHER,
            "RPv2 counts all overlapping ones",
        )
        for n in (5, 6, 7, 8, 9, 10)
    },
    # C4
    "c4_lines": _int("lines C4's rules keep", _C4, "end marks: ASCII for Latin script as in C4, any script's own otherwise"),
    "c4_sentences": _int("sentences in the lines kept", _C4, "punkt elsewhere"),
    "c4_lorem_ipsum": _int("lines kept so far with 'lorem ipsum'", _C4),
    "c4_curly": _int("lines kept so far with '{'", _C4),
    "c4_open_lines": _int("lines kept " + _NO_MARK, _FINEWEB),
    "c4_open_sentences": _int("sentences in those lines", _FINEWEB),
    "c4_open_lorem_ipsum": _int("'lorem ipsum' lines, " + _NO_MARK, _FINEWEB),
    "c4_open_curly": _int("'{' lines, " + _NO_MARK, _FINEWEB),
    "mc4_third_line": _int("length of the third longest line; 0 with fewer", "mC4 (2021)"),
    # FineWeb
    "end_mark_line_ratio": _part(
        "lines that end with an end mark of any script; NULL for scripts that write none",
        _FINEWEB,
        "datatrove's code took ASCII marks at first",
    ),
    "bare_end_mark_line_ratio": _part(
        "lines whose last character is an end mark, no quote or bracket after it; NULL for scripts that write none",
        _FINEWEB,
        "FineWeb's own reading; end_mark_line_ratio also takes .” and .) and …",
    ),
    "short_line_ratio": _part("lines of at most 30 characters", _FINEWEB),
    "dup_line_char_share": _part(
        "characters in lines seen before, newlines not counted", _FINEWEB, "limit 0.01 in code, 0.1 in the paper and FineWeb-2"
    ),
    "newline_ratio": _part("newlines per token", _FINEWEB, _TOKENS),
    # RefinedWeb / DCLM lines
    "dclm_upper_lines": _int("lines with more than half of their characters upper-case", _DCLM),
    "dclm_numeric_lines": _int("lines of digits only", _DCLM),
    "dclm_counter_lines": _int("lines like '3 likes'", _DCLM, "own list of counted things"),
    "dclm_one_word_lines": _int("lines of one word; 0 for scripts without spaces", _DCLM),
    "dclm_boilerplate_lines": _int("short lines with 'items in cart', 'Read more...', 'Sign-in'", _DCLM),
    "dclm_removed_word_ratio": _part("words in the lines these rules remove", _DCLM, "white-space words"),
    # characters
    "letter_ratio": _part("letters and marks per character that is no white space", _OWN),
    "digit_ratio": _part("decimal digits per character", _NEMO),
    "upper_ratio": _part("upper-case letters per letter", _OWN),
    "space_ratio": _part("white space per character", _NEMO),
    "symbol_ratio": _part(
        "characters that are no letter, mark, digit or space, per character", _NEMO, "NeMo counts marks as symbols"
    ),
    "parenthesis_ratio": _part("parentheses per character", _NEMO),
    "url_char_ratio": _part("characters in URLs", _NEMO),
    "main_script_ratio": _part("letters in the most frequent script (Han and kana are one)", _OWN),
    "replacement_chars": _int("U+FFFD: a trace of wrong decoding", _OWN),
    "longest_word": _int("code points of the longest piece between white space", _NEMO),
    # personal data
    "email_count": _int("e-mail addresses", _OWN),
    "phone_count": _int("phone numbers, written internationally or with separators", _OWN, "dolma: US numbers only"),
    "ipv4_count": _int("public IPv4 addresses", _OWN, "datatrove keeps private ones too"),
    "ipv6_count": _int("public IPv6 addresses", _OWN),
    "iban_count": _int("IBANs with a valid checksum", _OWN),
    "card_count": _int("card numbers with a valid checksum", _OWN),
    # the whole
    "unmeasured_chars": _int("code points past the first million: no signal but `chars` and the `*_count`s saw them", _OWN),
    "simhash": _int(
        "SimHash of the words, its 64 bits as a signed integer; NULL under 50 words",
        _OWN,
        "text-dedup and Data-Juicer hash other features: fingerprints of two tools never compare",
    ),
}
