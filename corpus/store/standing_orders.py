"""What the operator's orders amount to now: paused or not, how much slower, which budgets, the last order to drain.

A fold over the control log, like `Tombstones` beside it: the latest order of a kind wins, and each lasts until it is
superseded. A drain is an event: it ends the run that was under way when it was given, and no later one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from corpus.store.control_log import ControlEntry

FACTOR_MAX = 1000.0
BUDGETS = ("pages", "bytes", "time")
EVERYONE = "all"


@dataclass(slots=True)
class StandingOrders:
    """`budgets`: kind → limit that stands in place of the configuration's; `drain`: number of the last order to drain."""

    version: int = 0
    pause: ControlEntry | None = None
    drain: int = 0
    budgets: dict[str, float] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)
    """Domain, host or `all` → factor over the gap; 1 is never kept."""

    def apply(self, entries: Iterable[ControlEntry]) -> None:
        """Take in orders in sequence."""
        for entry in entries:
            self.version = max(self.version, entry.n)
            match entry.action:
                case "pause":
                    self.pause = entry
                case "resume":
                    self.pause = None
                case "drain":
                    self.drain = entry.n
                case "slow":
                    self._slow(entry)
                case "budget":
                    self._budget(entry)
                case _:
                    continue  # targets: `Tombstones` keeps those

    def factor(self, host: str) -> float:
        """By how much the gap of a host is stretched: the largest of what was ordered for it, its domains and all. At least 1."""
        if not self.slow:
            return 1.0
        return max(self.slow.get(name, 1.0) for name in (EVERYONE, *suffixes(host)))

    def _slow(self, entry: ControlEntry) -> None:
        factor = _number(entry.detail.get("factor"))
        if factor is None or factor <= 1.0:
            self.slow.pop(entry.value, None)
        else:
            self.slow[entry.value] = min(factor, FACTOR_MAX)

    def _budget(self, entry: ControlEntry) -> None:
        limit = _number(entry.detail.get("limit"))
        if limit is None:
            self.budgets.pop(entry.value, None)
        elif entry.value in BUDGETS:
            self.budgets[entry.value] = limit


def _number(value: object) -> float | None:
    """A usable number of an order; None for none (an order says so to go back to the configuration)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        return None
    return float(value)


def suffixes(host: str) -> Iterator[str]:
    """A host and every domain above it: `a.b.c`, `b.c`, `c`."""
    yield host
    while (dot := host.find(".")) >= 0:
        host = host[dot + 1 :]
        yield host
