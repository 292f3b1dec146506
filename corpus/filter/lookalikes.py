"""Small languages told from the large neighbour that models take them for, by function words and letters of their own.

A closed table (`data/lookalikes.toml`). Words decide only inside one group, only with several different ones, and only
against the neighbour's own words: a quotation or a name changes nothing.
"""

from __future__ import annotations

import functools
import re
import tomllib
from importlib.resources import files
from typing import Final

from corpus.filter.languages import table

_WORD = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]*)?")
MIN_DIFFERENT: Final = 2
"""Different words of a language that must be there before they say anything."""
MIN_SHARE: Final = 0.06
"""Their part of all words."""
MIN_LETTERS: Final = 0.002
"""The part of all characters that letters of one's own must have."""


@functools.cache
def _groups() -> dict[str, dict[str, frozenset[str]]]:
    """Language to the words of every language of its group; read once per process, never written to."""
    found = {}
    for languages in _table()["words"].values():
        group = {code: frozenset(words.split()) for code, words in languages.items()}
        for code, words in group.items():
            assert code in table(), f"an unknown language {code}"
            assert not any(words & others for other, others in group.items() if other != code), (
                f"{code} shares a word with its group"
            )
            found[code] = group
    return found


@functools.cache
def _letters() -> dict[str, frozenset[str]]:
    return {code: frozenset(letters) for code, letters in _table()["letters"].items()}


@functools.cache
def _table() -> dict[str, dict[str, dict[str, str]]]:
    loaded: dict[str, dict[str, dict[str, str]]] = tomllib.loads(
        files("corpus.filter").joinpath("data/lookalikes.toml").read_text("utf-8")
    )
    return loaded


def own_letters(sample: str, script: str) -> str | None:
    """The language whose own letters the sample has, of those that are written in `script`."""
    for code, letters in _letters().items():
        if script in table()[code].scripts and sum(map(sample.count, letters)) > MIN_LETTERS * len(sample):
            return code
    return None


def told_apart(sample: str, code: str) -> str:
    """`code`, or the language of its group that the sample's words speak for."""
    group = _groups().get(code)
    if group is None:
        return code
    words = _WORD.findall(sample.replace("'", "’"))
    if not words:
        return code
    counted = {name: [word for word in words if word in own] for name, own in group.items()}
    best = max(counted, key=lambda name: (len(counted[name]), name == code, name))
    said = counted[best]
    enough = len(set(said)) >= MIN_DIFFERENT and len(said) >= MIN_SHARE * len(words)
    return best if enough and len(said) > 2 * len(counted[code]) else code
