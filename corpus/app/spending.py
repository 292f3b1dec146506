"""The budgets of a crawl as they stand: the configuration's, or what the operator ordered in their place.

One clock (`seconds`, paused time left out) and sums over fetch processes come in as arguments; what ends the crawl, and
which bound will be met first, come out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from corpus.crawl.settings import CrawlSettings
from corpus.store.standing_orders import StandingOrders

UNLIMITED = 1 << 40
"""Pages: more than any crawl stores, and still a number that can be dealt out."""


@dataclass(frozen=True, slots=True)
class Budget:
    """`pages`: all runs of the folder together; `bytes` (on the wire) and `seconds`: this run. None: no limit."""

    pages: int | None = None
    bytes: float | None = None
    seconds: float | None = None

    def met(self, *, wire_bytes: float, seconds: float) -> str:
        """The bound that ends the crawl now, by its key; pages are dealt out in shares and end it elsewhere."""
        if self.seconds is not None and seconds >= self.seconds:
            return "crawl.max_time"
        if self.bytes is not None and wire_bytes >= self.bytes:
            return "crawl.max_bytes"
        return ""


class PausableClock:
    """Seconds since it was made, without those spent paused."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic, self._since, self._before = monotonic, monotonic(), 0.0
        self._paused = False

    def seconds(self) -> float:
        return self._before if self._paused else self._before + self._monotonic() - self._since

    def pause(self, paused: bool) -> None:
        """Stop or go on; saying the same again changes nothing."""
        if paused != self._paused:
            self._before, self._since, self._paused = self.seconds(), self._monotonic(), paused


def budget_of(settings: CrawlSettings, standing: StandingOrders) -> Budget:
    """An order stands in place of the configuration's limit, whichever of them is larger."""
    ordered = standing.budgets
    pages = int(ordered["pages"]) if "pages" in ordered else settings.max_pages
    return Budget(pages, ordered.get("bytes", settings.max_bytes), ordered.get("time", settings.max_time))
