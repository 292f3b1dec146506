"""Signals against plain Python definitions of the same measures, and laws that hold for any text."""

from __future__ import annotations

import math
import re
from collections import Counter

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.filter.measure import measure
from corpus.filter.signals import SIGNALS
from corpus.filter.tokens import chunk

_WORDS = st.sampled_from(
    ["the", "cat", "of", "Sat", "with", "12", "#", "...", "…", "a.", "lo-fi", "été", "UPPER", "x" * 12, "{", "javascript"]
)
_LINE = st.lists(_WORDS, max_size=12).map(" ".join)
_PROSE = st.lists(
    st.one_of(_LINE, st.just(""), st.sampled_from(["• item", "- item", "same line here.", "3 likes"])), max_size=14
).map("\n".join)
_ANY = st.text(alphabet=st.one_of(st.characters(), st.sampled_from("ab \n\n.!漢กा…#•-\u2028\ud800\x00")), max_size=60)


def _tokens(text: str, *, words: bool = False) -> list[str]:
    part = chunk([text])
    found = part.words if words else part.tokens
    return ["".join(map(chr, part.codes[a:b])) for a, b in zip(found.start, found.end, strict=True)]


def _reference(text: str) -> dict[str, float | None]:
    """Gopher, FineWeb and friends the slow way, over the same tokens."""
    tokens = _tokens(text)
    words = _tokens(text, words=True)
    assert all(any(c.isalnum() for c in word) for word in words)
    paragraphs = [p for p in re.split(r"\n{2,}", text) if p.strip()]
    lines = [line for line in text.split("\n") if line.strip()]
    every = text.split("\n")
    found: dict[str, float | None] = {
        "chars": len(text),
        "tokens": len(tokens),
        "words": len(words),
        "distinct_words": len({w.lower() for w in words}),
        "lines": len(lines),
        "paragraphs": len(paragraphs),
        "longest_line": max(map(len, every)),
        "mean_word_length": _over(sum(map(len, words)), len(words)),
        "median_word_length": _median([len(w) for w in words]),
        "hash_ratio": _over(text.count("#"), len(tokens)),
        "ellipsis_ratio": _over(text.count("...") + text.count("…"), len(tokens)),
        "bullet_line_ratio": _over(sum(line.lstrip().startswith(("•", "-")) for line in every), len(every)),
        "ellipsis_line_ratio": _over(sum(line.rstrip().endswith(("...", "…")) for line in every), len(every)),
        "alpha_word_ratio": _over(sum(any(c.isalpha() for c in t) for t in tokens), len(tokens)),
        "stop_words": len({"the", "be", "to", "of", "and", "that", "have", "with"} & set(tokens)),
        "short_line_ratio": _over(sum(len(line) <= 30 for line in lines), len(lines)),
        "newline_ratio": _over(text.count("\n"), len(tokens)),
        "upper_ratio": _over(sum(c.isupper() for c in text), sum(c.isalpha() for c in text)),
        "longest_word": max(map(len, text.split()), default=0),
    }
    for name, blocks in (("paragraph", paragraphs), ("line", lines)):
        seen: set[str] = set()
        number = chars = 0
        for block in blocks:
            number, chars = (number + 1, chars + len(block)) if block in seen else (number, chars)
            seen.add(block)
        found[f"dup_{name}_ratio"] = _over(number, len(blocks))
        found[f"dup_{name}_char_ratio"] = _over(chars, len(text))
    for n in (2, 3, 4):
        grams = [" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
        top = Counter(grams).most_common(1)
        found[f"top_{n}gram_char_ratio"] = _over(len(top[0][0]) * top[0][1] if top else 0, len(text))
    for n in range(5, 11):
        found[f"dup_{n}gram_char_ratio"] = _over(_greedy(tokens, n), len(text))
    return found


def _greedy(tokens: list[str], n: int) -> int:
    seen: set[tuple[str, ...]] = set()
    chars = at = 0
    while at <= len(tokens) - n:
        gram = tuple(tokens[at : at + n])
        if gram in seen:
            chars += sum(map(len, gram))
            at += n
        else:
            seen.add(gram)
            at += 1
    return chars


def _over(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _median(values: list[int]) -> float | None:
    ranked = sorted(values)
    half = len(ranked) // 2
    return None if not ranked else (ranked[half] + ranked[half - (len(ranked) % 2 == 0)]) / 2


@given(_PROSE)
@settings(max_examples=120, deadline=None)
def test_measures_equal_their_plain_definitions(text: str) -> None:
    """Every vectorised measure gives exactly what its definition gives in plain Python."""
    row = measure([text], ["en"]).to_pylist()[0]
    expected = _reference(text)
    assert {name: row[name] for name in expected} == expected


@given(st.lists(st.one_of(_PROSE, _ANY), max_size=5))
@settings(max_examples=100, deadline=None)
def test_the_batch_changes_no_signal(texts: list[str]) -> None:
    """A text measures the same alone and in any company; nothing is ever NaN."""
    codes = ["en", "th", "zh", "und", "fr"][: len(texts)]
    together = measure(texts, codes)
    assert together.column_names == list(SIGNALS)
    alone = pa.concat_tables([measure([text], [code]) for text, code in zip(texts, codes, strict=True)]) if texts else together
    assert together.equals(alone.combine_chunks())
    for row in together.to_pylist():
        assert not any(isinstance(value, float) and not math.isfinite(value) for value in row.values())


@given(_PROSE)
@settings(max_examples=60, deadline=None)
def test_shares_stay_between_nothing_and_everything(text: str) -> None:
    """Shares of characters and lines lie in 0..1 (the top n-gram counts overlaps and is an upper bound only)."""
    row = measure([text], ["en"]).to_pylist()[0]
    for name, signal in SIGNALS.items():
        free = name in {
            "mean_word_length",
            "median_word_length",
            "newline_ratio",
            "ellipsis_ratio",
            "hash_ratio",
        } or name.startswith("top_")
        if signal.type == "double" and row[name] is not None and not free:
            assert 0 <= row[name] <= 1, name


def test_every_signal_is_documented() -> None:
    """Each signal says what it is and whose definition it follows."""
    assert all(signal.doc and signal.source for signal in SIGNALS.values())
