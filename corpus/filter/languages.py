"""The languages we speak of: one code each (ISO 639-1 where one exists, else 639-3), their other codes, names and scripts.

The table covers every label of the vendored model. Macro-languages stand for their members (`cmn` is `zh`, `arb` is `ar`,
`nb` is `no`); lid.176's `bh` is `bho`, and its `als` is Alemannic, not ISO's Tosk Albanian.
"""

from __future__ import annotations

import difflib
import functools
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

UNDETERMINED: Final = "und"


@dataclass(frozen=True, slots=True)
class LanguageRow:
    code: str
    others: tuple[str, ...]
    names: tuple[str, ...]
    scripts: tuple[str, ...]
    """ISO 15924, the usual one first."""


@functools.cache
def table() -> dict[str, LanguageRow]:
    """Rows by code, in code order; read once per process, never written to."""
    rows = {}
    for line in files("corpus.filter").joinpath("data/languages.tsv").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        code, others, names, scripts = line.split("\t")
        rows[code] = LanguageRow(code, tuple(others.split()), tuple(names.split(",")), tuple(scripts.split()))
    return rows


@functools.cache
def _spellings() -> dict[str, str]:
    known: dict[str, str] = {UNDETERMINED: UNDETERMINED}
    for row in table().values():
        for spelling in (row.code, *row.others, *row.names):
            previous = known.setdefault(spelling.lower(), row.code)
            assert previous == row.code, f"{spelling} means two languages"
    return known


def normalise_language(name_or_code: str) -> str:
    """`"en"`, `"eng"`, `"English"`, `"zh-Hant"`, `"pt_BR"` → our code. Raises ValueError with the nearest known name.

    A region or script subtag is dropped: a detected language carries its script beside it.
    """
    wanted = " ".join(name_or_code.strip().lower().split())
    known = _spellings()
    if wanted in known:
        return known[wanted]
    primary = wanted.replace("_", "-").split("-")[0]
    if "-" in wanted.replace("_", "-") and len(primary) in (2, 3) and primary in known:
        return known[primary]
    near = difflib.get_close_matches(wanted, known, n=1, cutoff=0.6)
    hint = f": did you mean {near[0]!r} ({known[near[0]]})?" if near else ": use an ISO 639-1 or 639-3 code or an English name"
    raise ValueError(f"unknown language {name_or_code!r}{hint}")


def code_of_label(label: str) -> str:
    """Our code for a label of a fastText model: `__label__en`, `__label__eng_Latn`, `__label__bh`. Unknown ones stay as they are."""
    bare = label.removeprefix("__label__").split("_")[0].lower()
    return _spellings().get(bare, bare)
