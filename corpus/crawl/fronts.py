"""The front lines: hosts that are due and compete, by priority, for their turn to become active. Pure.

Turns are shared by stride scheduling (64 fronts halve a host's turns), in two lines: hosts where new pages wait, and
hosts where pages are due for another visit; a host with both stands in both. The line whose kind is behind its share
goes first. A turn is good for a stint of contacts, so turns are shared out and contacts only correct them.
"""

from __future__ import annotations

from heapq import heappop, heappush

from corpus.crawl.known_hosts import DUE, NEW, KnownHosts, Place
from corpus.crawl.mix import Mix

STINT = 16
"""Contacts of an active host before it competes again, if others wait: long enough to pay for reading its head."""
TURNS_BEHIND = 4.0
"""Turns that one kind of visit can be behind its share."""
_STRIDE = [2.0 ** (front / 64) for front in range(256)]
"""How far a turn moves a host of each front behind the others (turns are as 1 / stride)."""
_ARRIVAL = 1e-9
"""Among equals the first to arrive goes first."""


class Fronts:
    """Over the hosts of one schedule. `share`: of the contacts that go to revisits, while new pages wait too."""

    def __init__(self, hosts: KnownHosts, share: float) -> None:
        self._hosts = hosts
        self._contacts, self._turns = Mix(share), Mix(share, TURNS_BEHIND)
        self._lines: dict[int, list[tuple[float, int, int]]] = {NEW: [], DUE: []}
        """(turn, host, stamp); of a host that stands in both, the entry that is popped second is stale."""
        self._arrivals = 0
        self._turn = 0.0
        """How far the turns have come."""

    def stand(self, i: int) -> None:
        """Put a host in line."""
        self._arrivals += 1
        turn = self._turn + _STRIDE[self._hosts.front[i]] + self._arrivals * _ARRIVAL
        stamp = self._hosts.move(i, Place.FRONT)
        for kind, line in self._lines.items():
            if self._hosts.kinds[i] & kind:
                heappush(line, (turn, i, stamp))

    def first(self) -> int | None:
        """Take the host whose turn is next out of line; None when nobody stands there."""
        due_first = self._turns.revisits_next(self._contacts.behind / STINT)
        for kind in (DUE, NEW) if due_first else (NEW, DUE):
            if self._fresh(kind):
                turn, i, _ = heappop(self._lines[kind])
                self._turn = max(self._turn, turn)
                if self._hosts.kinds[i] == kind and self._both:
                    self._turns.took(again=kind == DUE)
                self._hosts.stint[i] = 0
                return i
        return None

    def waiting(self) -> bool:
        """Whether anybody stands in line."""
        return self._fresh(NEW) or self._fresh(DUE)

    @property
    def revisits_next(self) -> bool:
        """Whether a host where both kinds wait should be asked for a revisit."""
        return self._contacts.revisits_next()

    def took(self, *, again: bool) -> None:
        """A contact is made for a new page or for a revisit; it counts for the share while the other kind waits as well."""
        if self._both:
            self._contacts.took(again=again)

    @property
    def _both(self) -> bool:
        return self._hosts.lines[NEW] > 0 and self._hosts.lines[DUE] > 0

    def _fresh(self, kind: int) -> bool:
        """Whether the line of a kind has somebody, once entries that are out of date are gone."""
        line = self._lines[kind]
        while line and line[0][2] != self._hosts.stamp[line[0][1]]:
            heappop(line)
        return bool(line)
