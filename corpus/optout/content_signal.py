"""Content-Signal: `ai-train` and `use`, from lines of robots.txt and from a response header.

`search` and `ai-input` are carried in the raw line and decide nothing here. Per key the longest path wins, and of
equals the more restrictive. A refusal in an evident misspelling counts (`optout.near_miss`); a grant never does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from corpus.model import Evidence
from corpus.optout.evidence import Origin, stated
from corpus.optout.match import Target
from corpus.optout.robots import CONTENT_SIGNAL, Signal
from corpus.optout.scoped import Scope, split_path, statement
from corpus.optout.spelling import REFUSING_WORDS, names_training

_PAIR = re.compile(r"([A-Za-z][A-Za-z_-]{0,40})[ \t]*=[ \t]*\"?([A-Za-z0-9_?-]{1,40})")
_PAIRS_MAX = 64
_USE_LEVELS = ("immediate", "reference", "full")


class ContentSignals:
    """The Content-Signal lines that bind one agent."""

    __slots__ = ("_scopes",)

    def __init__(self, signals: Iterable[Signal], origin: Origin, *, near_miss: bool) -> None:
        by_key: dict[str, list[tuple[str, Evidence]]] = {"train": [], "use": [], "other": []}
        for signal in signals:
            if signal.kind != CONTENT_SIGNAL:
                continue
            path, rest = split_path(signal.value)
            found = list(read_values(rest, near_miss=near_miss)) or [("other", "unstated")]
            for key, value in found:
                evidence = stated("content-signal", value, origin, raw=signal.raw, line_no=signal.line_no or None)
                by_key[key].append((path, evidence))
        self._scopes = tuple(Scope(statement(path, item) for path, item in lines) for lines in by_key.values() if lines)

    def __bool__(self) -> bool:
        return bool(self._scopes)

    def at(self, target: Target) -> tuple[Evidence, ...]:
        return tuple(item for scope in self._scopes if (item := scope.pick(target)) is not None)

    @property
    def fixed(self) -> bool:
        return all(scope.fixed for scope in self._scopes)


def read_values(text: str, *, near_miss: bool) -> Iterator[tuple[str, str]]:
    """(`train` or `use`, value of the decision table) for every statement in a value that we understand."""
    for number, pair in enumerate(_PAIR.finditer(text)):
        if number >= _PAIRS_MAX:
            return
        key, value = pair[1].lower(), pair[2].lower()
        if key == "use" and value in _USE_LEVELS:
            yield "use", f"use={value}"
        elif key == "ai-train" and value == "yes":
            yield "train", "ai-train=yes"
        elif (key == "ai-train" and value == "no") or (near_miss and names_training(key) and value in REFUSING_WORDS):
            yield "train", "ai-train=no"


def header_signals(values: Iterable[str], origin: Origin, *, near_miss: bool) -> tuple[Evidence, ...]:
    """The same from `Content-Signal` response headers, which speak about this response (a path is ignored)."""
    signals = [Signal(CONTENT_SIGNAL, split_path(value.strip())[1], 0, f"Content-Signal: {value.strip()}") for value in values]
    return ContentSignals(signals, origin, near_miss=near_miss).at(Target("/", "/"))
