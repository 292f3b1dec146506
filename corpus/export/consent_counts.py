"""What sites said no to, by signal, as the card, the Croissant file, the manifest and the report to the law all tell it.

Counted twice, because it happens twice: URLs that were not fetched (or whose answer was dropped at once), and stored pages
that a later word left out of this release. A URL can stand in both; neither number is ever estimated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corpus.model import FunnelStep
from corpus.reasons import REASONS

USES = ("yes", "unknown", "no")
_ASK = frozenset({"consent", "robots"})


@dataclass(frozen=True, slots=True)
class TurnedDown:
    """One signal (a code of `corpus.reasons`). `when_asked` is None where a snapshot did not record it."""

    signal: str
    when_asked: int | None
    when_exported: int


def turned_down(asked: Mapping[str, int] | None, funnel: Sequence[FunnelStep]) -> list[TurnedDown]:
    """By signal, most first, then by name."""
    exported = {code: n for code, n in _allowed(funnel).items() if REASONS[code].step in _ASK}
    codes = {*exported, *(code for code in asked or {} if REASONS[code].verdict == "refused")}
    rows = [TurnedDown(code, None if asked is None else asked.get(code, 0), exported.get(code, 0)) for code in codes]
    return sorted(rows, key=lambda row: (-(row.when_asked or 0) - row.when_exported, row.signal))


def not_consent(funnel: Sequence[FunnelStep]) -> dict[str, int]:
    """What else the same step left out: takedowns, pages that are gone."""
    return {code: n for code, n in _allowed(funnel).items() if REASONS[code].step not in _ASK}


def _allowed(funnel: Sequence[FunnelStep]) -> Mapping[str, int]:
    return next((step.dropped for step in funnel if step.stage == "allowed"), {})
