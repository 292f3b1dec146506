"""Text -> lower-case words, the same for every page and machine: what near copies are recognised by.

A word is a run of letters and digits. Scripts written without spaces (Chinese, Japanese kana) give one word a
character, or a changed sentence there would weigh as much as a single changed word elsewhere.
"""

from __future__ import annotations

import re
from itertools import islice

MAX_WORDS = 200_000
"""Work limit: words past it are not read."""

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(r"\w+")
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_WORD_OR_CHARACTER = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


def words(text: str) -> list[str]:
    """The words of `text` in order, lower-cased, at most `MAX_WORDS`."""
    pattern = _WORD_OR_CHARACTER if _HAS_UNSPACED.search(text) else _WORD
    if len(text) <= MAX_WORDS:
        return pattern.findall(text.lower())
    return [match[0].lower() for match in islice(pattern.finditer(text), MAX_WORDS)]
