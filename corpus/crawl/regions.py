"""Which regions are measurably far from the hosts of a partition, by how long their connections took to stand. Pure.

Workers of a far region are the last to be given that partition; what a region was never measured for is not far. The medians are
over whichever hosts of a partition were asked, so only a clear difference counts, and it must shrink clearly to count no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from statistics import median

LEAST = 20
"""Connections that a median must rest on."""
FAR, FAR_S = 1.5, 0.02
"""A region is far that takes so many times as long as the quickest one, and so many seconds longer."""
NEAR_AGAIN = 1.25
_KEPT = 200


@dataclass(frozen=True, slots=True)
class Way:
    """`n` connections to hosts of a partition took `connect_s` (median, TLS included) until they stood."""

    n: int
    connect_s: float


class Ways:
    """The latest connections of one process, by partition file."""

    def __init__(self) -> None:
        self._took: dict[int, deque[float]] = {}

    def met(self, file: int, seconds: float) -> None:
        """A new connection to a host of this file stood after so long."""
        self._took.setdefault(file, deque(maxlen=_KEPT)).append(seconds)

    def known(self) -> dict[int, Way]:
        """What can be said of each file."""
        return {file: Way(len(took), median(took)) for file, took in self._took.items() if len(took) >= LEAST}


def far_regions(ways: Mapping[int, Mapping[str, Way]], before: Mapping[int, Collection[str]]) -> dict[int, tuple[str, ...]]:
    """By partition the regions that are far from it, sorted; partitions without one are left out. `before`: what was decided last."""
    found = {}
    for partition, by_region in ways.items():
        known = {region: way.connect_s for region, way in by_region.items() if way.n >= LEAST}
        if len(known) < 2:
            continue
        best, was = min(known.values()), before.get(partition, ())
        far = sorted(
            region for region, took in known.items()
            if took - best >= FAR_S and took >= best * (NEAR_AGAIN if region in was else FAR)
        )  # fmt: skip
        if far:
            found[partition] = tuple(far)
    return found
