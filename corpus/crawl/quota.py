"""How many more pages a fetch process may begin, so that `max_pages` is met exactly and never overrun.

Only pages that are new to the crawl count: a revisit was paid for by the first visit. The supervisor deals the limit
out and deals again what idle processes did not use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class Quota:
    """`limit`: new pages this process may store in this run; None: as many as there are."""

    limit: int | None = None
    stored: int = 0
    in_flight: int = 0
    starving: bool = False
    """A page was left in line for want of quota."""

    def take(self) -> bool:
        """Begin a new page, if there is room for it; `done` must follow."""
        if self.limit is not None and self.stored + self.in_flight >= self.limit:
            self.starving = True
            return False
        self.in_flight += 1
        return True

    def done(self, *, stored: bool) -> bool:
        """A page that was begun is over. True when that made room which somebody waits for."""
        self.in_flight -= 1
        self.stored += stored
        if stored or not self.starving:
            return False
        self.starving = False
        return True

    def deal(self, limit: int) -> None:
        """A new limit from the supervisor, never under what is spent."""
        self.limit = max(limit, self.stored + self.in_flight)
        self.starving = False


class Shares:
    """The supervisor's side: a limit over all processes, dealt out so that the sum of what may be begun never passes it."""

    def __init__(self, limit: int, workers: int) -> None:
        self._left, self._gone = limit, 0
        self._limits = {worker: limit // workers + (worker < limit % workers) for worker in range(workers)}

    def limit(self, worker: int) -> int:
        """What a process that starts now may store."""
        return self._limits[worker]

    def spent(self, worker: int, pages: int) -> None:
        """A process ended after so many; its successor counts from nothing."""
        self._limits[worker] = max(self._limits[worker] - pages, 0)
        self._left -= pages
        self._gone += pages

    def resize(self, limit: int, spent: dict[int, int]) -> dict[int, int]:
        """Another limit over all from now on: new limits for everybody, never under what is spent."""
        self._left = limit - self._gone
        left = max(self._left - sum(spent.values()), 0)
        shares = len(self._limits)
        self._limits = {
            worker: spent.get(worker, 0) + left // shares + (n < left % shares) for n, worker in enumerate(sorted(self._limits))
        }
        return dict(self._limits)

    def deal_again(self, spent: dict[int, int], starving: Sequence[int]) -> dict[int, int]:
        """New limits once nobody has anything in flight: what the others leave goes to the starving. Empty: nothing is left."""
        left = self._left - sum(spent.values())
        if left <= 0:
            return {}
        self._limits = dict(spent)
        for n, worker in enumerate(starving):
            self._limits[worker] += left // len(starving) + (n < left % len(starving))
        return dict(self._limits)
