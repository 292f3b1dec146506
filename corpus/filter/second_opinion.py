"""A second opinion on a text's language: CLD2, asked beside the vendored model and weighed against it by fixed rules.

CLD2 knows 80 languages lid.176 rarely answers with (Yoruba, Quechua, Guarani, Sanskrit in prose) and some it does not know at
all (Zulu, Xhosa, Shona); lid.176 knows the ones CLD2 lacks. Neither is asked about anything but the cleaned sample.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Final

from corpus.filter.languages import UNDETERMINED, normalise_language, table

VERSION: Final = "cld2-0.42.1"
"""Part of the model digest: the detector's data and the rules of this file."""
_CODES: Final = {"iw": "he", "jw": "jv", "bh": "bho", "zh-Hant": "zh", "sr-ME": "sr", "xx-Qaai": UNDETERMINED}
SURE: Final = 0.85
SURE_OF_SHORT: Final = 0.6
SHORT: Final = 300
"""From these scores on the model stands against another opinion, but for a neighbour it is known to swallow. Of fewer characters
than `SHORT` CLD2 says too much too firmly."""
SWALLOWS: Final = {
    "hi": frozenset({"bho", "sa", "mr", "ne"}),
    "id": frozenset({"ms"}),
    "it": frozenset({"co"}),
    "hr": frozenset({"bs", "sr"}),
    "sr": frozenset({"bs", "hr"}),
    "no": frozenset({"nn"}),
    "en": frozenset({"sn", "xh", "zu", "so"}),
    "am": frozenset({"ti"}),
    "is": frozenset({"fo"}),
}
"""Languages that the model answers for others of its own family, and which: there CLD2 is heard although the model is sure."""
MIXED_SECOND: Final = 30
"""Per cent of the text in a second language, from which it is a text in neither."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """`share` is the per cent of the text in `code`; `second` and `second_share` what stands behind it; `und` where nothing does."""

    code: str
    share: int
    reliable: bool
    second: str
    second_share: int


@functools.cache
def known() -> frozenset[str]:
    """Our codes of the languages CLD2 detects."""
    import pycld2

    spoken = {code for name, code in pycld2.LANGUAGES if name in set(pycld2.DETECTED_LANGUAGES)}
    return frozenset(_code(code) for code in spoken) - {UNDETERMINED}


@functools.cache
def _code(code: str) -> str:
    """Our code of a CLD2 code; `und` for one we have no row for."""
    code = _CODES.get(code, code)
    try:
        return normalise_language(code)
    except ValueError:
        return UNDETERMINED


def ask(sample: str) -> Opinion:
    """CLD2's opinion on a cleaned sample. Never raises for any string."""
    import pycld2

    try:
        reliable, _, details = pycld2.detect(sample.encode("utf-8", "ignore"), isPlainText=True, bestEffort=True)
    except pycld2.error:  # characters that it takes for broken UTF-8: it has no opinion
        return Opinion(UNDETERMINED, 0, False, UNDETERMINED, 0)
    (_, first, share, _), (_, second, second_share, _) = details[:2]
    return Opinion(_code(first), share, bool(reliable), _code(second), second_share)


def weigh(code: str, score: float, opinion: Opinion, length: int) -> str:
    """The model's answer (`code`, `und` where it has none that fits) or CLD2's, on a sample of `length` characters."""
    other = opinion.code
    if other in (code, UNDETERMINED) or other not in table():
        return code
    if code == UNDETERMINED:
        return other if opinion.share >= 60 else code
    if score >= (SURE if length >= SHORT else SURE_OF_SHORT) and other not in SWALLOWS.get(code, ()):
        return code
    if code not in known() and score >= 0.3:  # a language CLD2 has no data for: it can only name a neighbour
        return code
    leads = opinion.share >= 80 or (opinion.reliable and opinion.share >= 60 and opinion.second != code)
    return other if leads else code


def mixed(code: str, score: float, opinion: Opinion) -> bool:
    """Whether the text is in two languages, so in none: a third of it at least in each of English and another one that the model
    names, or in two that share no script. (Close relatives are no mixture: a rare language looks like two of them.)"""
    pair = {opinion.code, opinion.second}
    if (
        score >= SURE
        or not opinion.reliable
        or opinion.second_share < MIXED_SECOND
        or code not in pair
        or pair & {UNDETERMINED, "sco"}
        or len(pair) < 2
    ):
        return False
    one, other = (table()[name] for name in pair)
    return "en" in pair or not set(one.scripts) & set(other.scripts)
