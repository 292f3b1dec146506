"""Which language a text is in: the vendored lid.176 model (or one by path) behind a cleaned sample and a script check.

The model sees up to `SAMPLE` characters from three places of the text, without digits, addresses and line breaks. Its
answer counts only if the language is written in the script that the text is written in; a script that one language owns
decides by itself. Beside the vendored model CLD2 is asked (`second_opinion`), and small languages are told from their large
neighbours by words of their own (`lookalikes`); a model by path answers alone. Short, mixed and non-linguistic text is `und`:
a wrong label costs more than none. Scores are rounded, so that the last bits of a sum never reach a file.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import numpy as np

from corpus.errors import UsageError
from corpus.filter.charclass import SCRIPTS, tables
from corpus.filter.languages import UNDETERMINED, code_of_label, normalise_language, table
from corpus.filter.lookalikes import own_letters, told_apart
from corpus.filter.second_opinion import VERSION, ask, mixed, weigh

__all__ = ["Language", "detect_language", "detect_languages", "model_digest", "normalise_language"]

SAMPLE: Final = 1000
"""Characters the model sees: past a thousand the answer no longer changes, and time is linear."""
MIN_LETTERS: Final = 20
"""Fewer letters than this decide nothing in an alphabet many languages share."""
MIN_LETTERS_OWN_SCRIPT: Final = 8
"""Enough where the script itself is the evidence; a syllable or ideograph weighs as much as a word's worth of letters."""
MIN_SCORE: Final = 0.15
MIN_DISTINCT: Final = 6
"""Different characters a sample needs: "aaaa…" is no language."""
_CANDIDATES = 8
_DIGITS_PLACES = 4
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+|\S{1,64}@\S+")
_DIGITS = re.compile(r"[\d_#*=|<>{}\[\]/\\][\d_#*=|<>{}\[\]/\\]*")  # not `+`: `re` looks for a first character much faster
_WINDOW_SLACK = 3
"""Text looked at per sampled character: room for what cleaning removes."""


@dataclass(frozen=True, slots=True)
class Language:
    """`code`: ISO 639-1 where one exists, else 639-3, or `und`. `score`: the model's, 0..1. `script`: ISO 15924, `Zyyy` without letters."""

    code: str
    score: float
    script: str


_OWNED: Final = {
    "Thai": "th", "Laoo": "lo", "Khmr": "km", "Mymr": "my", "Hang": "ko", "Armn": "hy", "Grek": "el", "Sinh": "si", "Gujr": "gu", "Guru": "pa", "Taml": "ta",
    "Telu": "te", "Knda": "kn", "Mlym": "ml", "Orya": "or", "Tibt": "bo", "Thaa": "dv", "Hira": "ja", "Kana": "ja", "Mong": "mn", "Ethi": "am", "Cher": "chr",
}  # fmt: skip
"""Scripts whose text is nearly always in one language: the answer where the model has none that fits."""
_ARABIC: Final = {"ku": "ckb", "az": "azb"}
"""Macro-languages whose member is told by the Arabic script."""
_TOLD_APART: Final = 0.5
"""The score of an answer that letters or words gave."""
_EAST_ASIAN = frozenset({"Hani", "Hira", "Kana", "Bopo"})
_DENSE = frozenset({*_OWNED, *_EAST_ASIAN}) - {"Grek", "Armn"}
assert all(code in table() for code in _OWNED.values()), "an owned script names an unknown language"


@functools.cache
def _model(path: str | None) -> Any:
    """The model, loaded once per process; it is read-only."""
    import fasttext

    where = Path(path) if path else Path(str(files("corpus.filter").joinpath("models/lid.176.ftz")))
    if not where.is_file():
        raise UsageError("no such language model", str(where), "set extract.language_model to a fastText .bin or .ftz file")
    fasttext.FastText.eprint = lambda *_: None  # it warns on stderr about its own return type
    return fasttext.load_model(str(where))


@functools.cache
def model_digest(path: str | None = None) -> str:
    """SHA-256 (hex) of what answers, part of every stage key: the model file, and beside the vendored one all that is asked too."""
    if path:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    own = files("corpus.filter")
    parts = [own.joinpath("models/lid.176.ftz").read_bytes(), own.joinpath("data/lookalikes.toml").read_bytes(), VERSION.encode()]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _sample(text: str) -> str:
    """One line of at most `SAMPLE` characters, from the beginning, middle and end of a long text."""
    if len(text) > SAMPLE * _WINDOW_SLACK:
        third, window = SAMPLE // 3, SAMPLE
        parts = (text[at : at + window] for at in (0, (len(text) - window) // 2, len(text) - window))
        return " ".join(_clean(part)[:third] for part in parts).strip()
    return _clean(text)[:SAMPLE]


def _clean(text: str) -> str:
    if "://" in text or "@" in text or "www." in text:
        text = _ADDRESS.sub(" ", text)
    whole = _DIGITS.sub(" ", text).encode("utf-8", "ignore").decode()
    return " ".join(whole.lower().split())


def _main_script(sample: str) -> tuple[str, int, bool]:
    """(script, its letters, whether it leads clearly). Han, kana and Bopomofo count together; any kana tenth makes it Japanese."""
    codes = np.frombuffer(sample.encode("utf-32-le"), np.uint32)
    counts = np.bincount(tables().script.take(codes), minlength=len(SCRIPTS))
    by = {name: int(counts[i]) for i, name in enumerate(SCRIPTS) if i and counts[i]}
    if not by:
        return "Zyyy", 0, False
    east = sum(n for name, n in by.items() if name in _EAST_ASIAN)
    total = sum(by.values())
    if len(set(sample)) < MIN_DISTINCT:
        return max(by, key=lambda name: (by[name], name)), 0, False
    if east and 2 * east > total - by.get("Hang", 0):
        kana = by.get("Hira", 0) + by.get("Kana", 0)
        if by.get("Hang", 0) > east:
            return "Hang", by["Hang"], True
        return ("Hira" if 20 * kana > east else "Hani"), east, 2 * east > total
    script, letters = max(by.items(), key=lambda item: (item[1], item[0]))
    return script, letters, 2 * letters > total


def _fits(code: str, script: str) -> bool:
    row = table().get(code)
    if row is None:
        return True  # a language of a user's model: nothing is known against it
    return script in row.scripts and not (script == "Hani" and code == "ja")


def _decide(labels: Iterable[str], scores: Iterable[float], script: str, letters: int, clear: bool) -> Language:
    """The model's answer, as far as the script allows it."""
    shown = {"Hira": "Jpan", "Hani": "Hani"}.get(script, script)
    needed = MIN_LETTERS_OWN_SCRIPT if script in _DENSE else MIN_LETTERS
    if letters < needed or not clear:
        return Language(UNDETERMINED, 0.0, shown)
    for label, score in zip(labels, scores, strict=True):
        code = code_of_label(label)
        value = round(min(float(score), 1.0), _DIGITS_PLACES)
        if _fits(code, script) and value >= (0.02 if script in _OWNED else MIN_SCORE):
            return Language(code, value, shown)
    owned = _OWNED.get(script) or ("zh" if script == "Hani" else "")
    return Language(owned, 0.5, shown) if owned else Language(UNDETERMINED, 0.0, shown)


def _advised(answer: Language, sample: str, script: str, letters: int, clear: bool) -> Language:
    """The answer after everybody was heard. A language that neither names, or that is not written in this script, never wins."""
    if not clear or letters < (MIN_LETTERS_OWN_SCRIPT if script in _DENSE else MIN_LETTERS):
        return answer
    own = own_letters(sample, script)
    if own is not None:
        return Language(own, max(answer.score, _TOLD_APART), answer.script)
    code = _ARABIC.get(answer.code, answer.code) if script == "Arab" else answer.code
    opinion = ask(sample)
    if mixed(code, answer.score, opinion):
        return Language(UNDETERMINED, 0.0, answer.script)
    if opinion.code != UNDETERMINED and not _fits(opinion.code, script):
        opinion = replace(opinion, code=UNDETERMINED)
    heard = weigh(code, answer.score, opinion, len(sample))
    told = told_apart(sample, heard)
    if told == answer.code:
        return answer
    score = max(
        _TOLD_APART, answer.score if told == code else round(opinion.share / 100, _DIGITS_PLACES) if told == opinion.code else 0.0
    )
    return Language(told, score, answer.script)


def detect_languages(texts: Sequence[str], model: str | None = None) -> list[Language]:
    """The language of each text, in order; one call of the model for all of them."""
    samples = [_sample(text) for text in texts]
    scripts = [_main_script(sample) for sample in samples]
    vendored = model is None
    asked = [index for index, (_, letters, _) in enumerate(scripts) if letters >= MIN_LETTERS_OWN_SCRIPT]
    result = [_decide((), (), *script) if script[1] < MIN_LETTERS_OWN_SCRIPT else None for script in scripts]
    if asked:
        labels, scores = _model(model).predict([samples[index] for index in asked], k=_CANDIDATES)
        for index, names, values in zip(asked, labels, scores, strict=True):
            answer = _decide(names, values, *scripts[index])
            result[index] = _advised(answer, samples[index], *scripts[index]) if vendored else answer
    return [language for language in result if language is not None]


def detect_language(text: str) -> Language:
    """The language of one text. Never raises for any string."""
    return detect_languages([text])[0]
