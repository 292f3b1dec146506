"""Whether a process whose threads take turns at one lock should keep them all on one core, and on which. Pure.

Such threads gain nothing from a second core and pay for every turn that goes to it; but bound to a core they cannot get out
of anybody's way. So they are together only while there is work, on a core that is nearly theirs: not one that another such
process has, not the last that is nobody's, no longer than others leave it alone. A machine that is full has none. Moving is
cheap and moving to and fro is not: what speaks against a core must be seen twice in a row, and what was decided then stands a while.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

ROOM, CROWDED = 0.25, 0.4
"""Shares of a core that others use: with less it is taken, with more it is left."""
CLEARLY = 0.2
"""How much less another core must be used to be worth a move."""
LOOKS = 2
REST_S = 10.0
"""Seconds that a core is kept that was moved to (unless it is crowded), and that one is not asked for again after a crowd."""
AT_WORK, AT_REST = 0.2, 0.05
"""Cores' worth of our own: who uses more than the first gets one, who uses less than the second gives it back."""
BESIDE = 0.5
"""What the use of a core's other thread (hyper-threading) counts: a full one leaves ours little more than half."""


@dataclass(frozen=True, slots=True)
class Place:
    """`core`: the one we have (None: all that we may use). `decided_at`: when we last moved or gave up for a crowd, monotonic
    seconds. `worse`: how many looks in a row something spoke against it."""

    core: int | None = None
    decided_at: float = float("-inf")
    worse: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """One look. `used`: the share of each core that others used since the last one; a core without a reading is never chosen.
    `own`: cores' worth that we used. `taken`: cores that other processes of our kind have. `here`: where we ran at that moment.
    `beside`: the other threads of a core."""

    used: Mapping[int, float]
    own: float
    taken: Collection[int] = ()
    here: int | None = None
    beside: Mapping[int, Collection[int]] = field(default_factory=dict)

    def cost(self, core: int) -> float:
        """How much of a core is not ours to have."""
        return self.used[core] + BESIDE * max((self.used.get(other, 0.0) for other in self.beside.get(core, ())), default=0.0)


def choose(place: Place, allowed: Collection[int], seen: Seen, now: float) -> Place:
    """Where to be from now on. `allowed`: the cores that the system lets us use; `now` in monotonic seconds."""
    nobodys = [core for core in allowed if core not in seen.taken]
    known = [core for core in nobodys if core in seen.used]
    # ours is among nobody's: the last one is left for everybody else
    if len(nobodys) < 2 or not known or seen.own < (AT_WORK if place.core is None else AT_REST):
        return Place(None, place.decided_at if place.core is None else float("-inf"))
    # of equal ones where we are, then the last: interrupts go to the first
    best = min(known, key=lambda core: (seen.cost(core), core != seen.here, -core))
    if place.core not in known:
        return place if place.core is None and (now - place.decided_at < REST_S or seen.cost(best) >= ROOM) else Place(best)
    cost, gain = seen.cost(place.core), seen.cost(place.core) - seen.cost(best)
    if gain < CLEARLY and cost < CROWDED:
        return replace(place, worse=0)
    if place.worse + 1 < LOOKS:
        return replace(place, worse=place.worse + 1)
    if gain >= CLEARLY and seen.cost(best) < CROWDED and now - place.decided_at >= REST_S:
        return Place(best, now)
    return replace(place, worse=LOOKS) if cost < CROWDED else Place(None, now)
