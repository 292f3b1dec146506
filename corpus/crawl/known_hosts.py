"""The hosts a schedule knows, as columns: about 200 bytes each, so that a million of them fit beside a fetch loop.

A host is a small number while it is known; the number is used again after the host was forgotten. Pure bookkeeping: it
decides nothing, and a host's place changes only through `move`.
"""

from __future__ import annotations

from array import array
from enum import IntEnum


class Place(IntEnum):
    """Where a host rests. IDLE: known, nothing to ask for, its clock kept; the others are explained in `schedule`."""

    IDLE = 0
    SLEEPING = 1
    FRONT = 2
    ACTIVE = 3
    WAITING = 4
    BUSY = 5
    PARKED = 6


_OUT_OF_LINE = frozenset({Place.IDLE, Place.PARKED})
NEW, DUE = 1, 2
"""What waits at a host: pages nobody asked for yet, and pages due for another visit."""


class KnownHosts:
    """Columns over host numbers. `due`: monotonic seconds; `address`: `cdn.ip_key`, 0 while unknown; `front`: 0..255;
    `kinds`: `NEW` and `DUE`, whichever wait. `lines` counts hosts that rest neither idle nor parked, by kind.

    `stamp` counts a host's moves: an entry of a heap or a line that carries an older stamp is stale.
    """

    def __init__(self) -> None:
        self.number: dict[str, int] = {}
        self.names: list[str] = []
        self.due, self.address, self.stamp = array("d"), array("Q"), array("I")
        self.front, self.stint, self._domain_length, self.kinds = array("B"), array("B"), array("B"), array("B")
        self.lines = {NEW: 0, DUE: 0}
        self.place = bytearray()
        self.count = [0] * len(Place)
        self._free: list[int] = []

    def new(self, host: str, domain: str) -> int:
        """Number a host that is not known yet. Raises ValueError when `domain` is not a suffix of it."""
        if not host.endswith(domain) or len(domain) > 255:
            raise ValueError(f"{domain!r} is not the registered domain of {host!r}")
        if self._free:
            i = self._free.pop()
            self.names[i] = host
            self.due[i], self.address[i], self.front[i], self.stint[i], self.place[i] = 0.0, 0, 0, 0, Place.IDLE
        else:
            i = len(self.names)
            self.names.append(host)
            for column in (self.address, self.stamp, self.front, self.stint, self._domain_length, self.kinds):
                column.append(0)
            self.due.append(0.0)
            self.place.append(Place.IDLE)
            self._domain_length[i] = 0
        self._domain_length[i] = len(domain)
        self.kinds[i] = NEW
        self.number[host] = i
        self.count[Place.IDLE] += 1
        return i

    def domain(self, i: int) -> str:
        name = self.names[i]
        return name[len(name) - self._domain_length[i] :]

    def move(self, i: int, place: Place) -> int:
        """Put a host somewhere; returns its new stamp, and every older entry of it is stale from now on."""
        before = self.place[i]
        self.count[before] -= 1
        self.count[place] += 1
        if (before in _OUT_OF_LINE) != (place in _OUT_OF_LINE):
            self._stands(i, 1 if before in _OUT_OF_LINE else -1)
        self.place[i] = place
        self.stamp[i] = stamp = (self.stamp[i] + 1) & 0xFFFFFFFF
        return stamp

    def wait(self, i: int, kinds: int) -> None:
        """What waits at a host: `NEW`, `DUE` or both."""
        if kinds == self.kinds[i]:
            return
        in_line = self.place[i] not in _OUT_OF_LINE
        if in_line:
            self._stands(i, -1)
        self.kinds[i] = kinds
        if in_line:
            self._stands(i, 1)

    def _stands(self, i: int, step: int) -> None:
        for kind in self.lines:
            if self.kinds[i] & kind:
                self.lines[kind] += step

    def forget_idle(self, now: float, keep: set[int]) -> list[int]:
        """Forget idle hosts whose clock has run out, except `keep`; returns their numbers."""
        gone = [i for i in self.number.values() if self.place[i] == Place.IDLE and self.due[i] <= now and i not in keep]
        for i in gone:
            del self.number[self.names[i]]
            self.names[i] = ""
            self.stamp[i] = (self.stamp[i] + 1) & 0xFFFFFFFF
        self.count[Place.IDLE] -= len(gone)
        self._free.extend(gone)
        return gone
