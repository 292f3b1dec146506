"""Use statements that may carry a path: the longest matching path supplies the statement, equals the more restrictive.

A refusal's path matches under either reading of reserved escapes, any other statement's only under both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from corpus.model import Evidence
from corpus.optout.match import Pattern, Target, compile_pattern

_RANK = {"no": 0, "hold": 1, "defer": 2, "yes": 3, "unknown": 4}


class Statement(NamedTuple):
    """One statement; `pattern` None speaks about the whole authority."""

    pattern: Pattern | None
    evidence: Evidence

    def matches(self, target: Target) -> bool:
        return self.pattern is None or self.pattern.under(target, both=self.evidence.verdict != "no")

    @property
    def order(self) -> tuple[int, int, int]:
        size = 0 if self.pattern is None else self.pattern.size
        return (-size, _RANK[self.evidence.verdict], self.evidence.line_no or 0)


def statement(path: str, evidence: Evidence) -> Statement | None:
    """A statement about a path (empty: everything); None where the path can match nothing."""
    if not path:
        return Statement(None, evidence)
    pattern = compile_pattern(path)
    return None if pattern is None else Statement(pattern, evidence)


class Scope:
    """Statements of one kind about one authority. `pick` returns the one that holds for a target, if any."""

    __slots__ = ("_fixed", "_ordered")

    def __init__(self, statements: Iterable[Statement | None]) -> None:
        ordered = sorted((item for item in statements if item is not None), key=lambda item: item.order)
        self._ordered = tuple(ordered)
        self._fixed = not ordered or ordered[0].pattern is None

    def pick(self, target: Target) -> Evidence | None:
        if self._fixed:
            return self._ordered[0].evidence if self._ordered else None
        return next((item.evidence for item in self._ordered if item.matches(target)), None)

    def at(self, target: Target) -> tuple[Evidence, ...]:
        item = self.pick(target)
        return () if item is None else (item,)

    @property
    def fixed(self) -> bool:
        """Whether every target gets the same answer."""
        return self._fixed


def split_path(value: str) -> tuple[str, str]:
    """Path (empty when none) and the rest of a `[/path ]statement` value; a path ends at the first blank."""
    if not value.startswith("/"):
        return "", value
    words = value.split(None, 1)
    return words[0], words[1] if len(words) > 1 else ""
