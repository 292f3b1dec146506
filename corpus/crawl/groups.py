"""Politeness groups: a registered domain or an address, with its clock, its cap and the hosts that wait for it.

A group exists only while it has something to remember (a contact in flight, a clock that still runs, hosts waiting);
an idle one carries no information and is swept away. Pure: time is an argument.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

Waiter = tuple[int, int]
"""(host number, stamp): stale once the host's stamp has moved on."""


@dataclass(slots=True, eq=False)
class Group:
    """`cap` contacts at once; with `gap_s` not None the next contact starts that long after the end of the last."""

    cap: int = 1
    gap_s: float | None = 0.0
    in_flight: int = 0
    free_at: float = 0.0
    timer: bool = False
    """Whether a timer is running that will serve the waiters."""
    waiters: deque[Waiter] = field(default_factory=deque)

    def open(self, now: float) -> bool:
        """Whether a contact may begin now."""
        return self.in_flight < self.cap and self.free_at <= now

    def release(self, now: float, gap_s: float | None) -> None:
        """End a contact; `gap_s` None leaves the clock alone (no contact was made, or the group has no clock)."""
        self.in_flight -= 1
        if gap_s is not None:
            self.free_at = max(self.free_at, now + gap_s)

    def idle(self, now: float) -> bool:
        return not self.in_flight and not self.waiters and not self.timer and self.free_at <= now


@dataclass(slots=True, eq=False)
class Flight:
    """One held or running contact of a host, with the groups it holds; `key` is its address group's key, 0 for none."""

    domain: Group | None
    address: Group | None
    key: int
    begun: bool = False
