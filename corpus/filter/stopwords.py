"""The signal `stop_words`: how many different function words of its own language a text has."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from corpus.filter.signals import Columns, count
from corpus.filter.tokens import U64, Chunk, hash_strings


@functools.cache
def _lists() -> tuple[dict[str, U64], dict[str, tuple[str, ...]]]:
    """(sorted hashes by language, substrings by language); read once per process, never written to."""
    table = tomllib.loads(files("corpus.filter").joinpath("data/stopwords.toml").read_text("utf-8"))
    whole = {code: np.unique(hash_strings(words.split())) for code, words in table["tokens"].items()}
    return whole, {code: tuple(words.split()) for code, words in table["inside"].items()}


def languages() -> tuple[str, ...]:
    """Codes that have a list."""
    whole, inside = _lists()
    return tuple(sorted({*whole, *inside}))


def stop_words(chunk: Chunk, codes: Sequence[str]) -> Columns:
    """One column: different stop words present; NULL for languages without a list."""
    whole, inside = _lists()
    tokens = chunk.tokens
    result = np.zeros(len(chunk), dtype=np.int64)
    null = np.ones(len(chunk), dtype=bool)
    by_language: dict[str, list[int]] = {}
    for doc, code in enumerate(codes):
        by_language.setdefault(code, []).append(doc)
    for code, docs in by_language.items():
        if code in inside:
            null[docs] = False
            result[docs] = [sum(entry in chunk.texts[doc] for entry in inside[code]) for doc in docs]
        elif code in whole:
            null[docs] = False
            wanted = whole[code]
            mine = np.zeros(len(chunk), dtype=bool)
            mine[docs] = True
            at = np.flatnonzero(mine[tokens.doc])
            place = np.minimum(np.searchsorted(wanted, tokens.hash[at]), len(wanted) - 1)
            hit = wanted[place] == tokens.hash[at]
            pairs = np.unique(tokens.doc[at][hit] * len(wanted) + place[hit])
            result += np.bincount(pairs // len(wanted), minlength=len(chunk))
    return {"stop_words": count(result, null)}
