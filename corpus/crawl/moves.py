"""Partition files that come to a fetch process and leave it while the rest of it goes on.

A file leaves in this order: its hosts get no new visits; those under way end; what they settled is made durable, in
sealed segments, for only those outlive this machine; then its lease is given up, and its next owner finds it as after an orderly end. A file
that comes is opened and claimed, and its hosts wait as the way of its coming asks for. Belongs to the loop's group commits,
between which nothing of a file can become durable behind its back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from corpus.crawl.hosts import Hosts
from corpus.crawl.ports import FrontierStore
from corpus.crawl.visit import Visitor


@dataclass(frozen=True, slots=True)
class Arrival:
    """How a file was taken up. `fresh`: nobody has ever contacted any of its hosts; `quiet`: as in `Hosts.load`."""

    fresh: bool = False
    quiet: Mapping[int, float] = field(default_factory=dict)


class Porter(Protocol):
    """Opens and closes partition files, in the store thread. `FrontierStore`s come and go in the mapping that the loop was given."""

    def take_up(self, number: int) -> Arrival | None:
        """Own a file; None where somebody else does. Waits for nobody: leases of other files may end meanwhile."""
        ...

    def hand_over(self, number: int) -> None:
        """Close a file in order, and let others have it. After a `TryLater` the same call may be made again."""
        ...


class Moves:
    """For one loop. `under_way`: an order of which files to own is not fulfilled yet."""

    def __init__(
        self, files: Mapping[int, FrontierStore], hosts: Hosts, visitor: Visitor,
        patiently: Callable[..., Awaitable[Any]], seal: Callable[[], Awaitable[None]], porter: Porter | None,
    ) -> None:  # fmt: skip
        """`patiently` runs a call in the store thread until it succeeds; `seal` makes everything durable that was settled; without
        a `porter` no orders come."""
        self._files, self._hosts, self._visitor = files, hosts, visitor
        self._patiently, self._seal, self._porter = patiently, seal, porter
        self._wanted: frozenset[int] | None = None
        self._order = self.done = 0
        """The number of the last order, and of the last one that is over."""

    @property
    def under_way(self) -> bool:
        return self._wanted is not None

    def order(self, number: int, files: Collection[int]) -> None:
        """From now on own these; an order that is not fulfilled yet is superseded."""
        self._order, self._wanted = number, frozenset(files)

    async def step(self, visited: Collection[str], *, revisit: bool) -> bool:
        """As far towards the order as can be gone now; True when that ended it. `visited`: hosts of the visits under way, as they
        come and go."""
        if self._wanted is None:
            return False
        assert self._porter is not None, "who has no porter gets no orders"
        number, wanted = self._order, self._wanted
        going = (self._files.keys() - wanted) | (self._hosts.leaving & self._files.keys())
        if going and not await self._leave(frozenset(going), visited, self._porter):
            return False
        await self._take_up(wanted - self._files.keys(), self._porter, revisit=revisit)
        if number != self._order:
            return False
        self.done, self._wanted = number, None
        return True

    async def _leave(self, going: frozenset[int], visited: Collection[str], porter: Porter) -> bool:
        """Whether these files have left; else something of them is still under way. A visit is never broken off for it."""
        if not going <= self._hosts.leaving:
            await self._hosts.let_go(going)
        if any(self._hosts.file_of(host) in going for host in visited):
            return False
        self._visitor.let_go(going)
        await self._seal()
        if any(desk.unsettled for desk in self._hosts.desks.values() if desk.file in going):
            return False  # somebody else's answer concerned them meanwhile
        await self._hosts.forget(going)
        for number in sorted(going):
            await self._patiently(porter.hand_over, number)
        return True

    async def _take_up(self, coming: frozenset[int], porter: Porter, *, revisit: bool) -> None:
        """One by one, so that leases of the others are renewed in between."""
        for number in sorted(coming):
            self._hosts.leaving |= {number}  # until it is known how long its hosts rest
            arrival: Arrival | None = await self._patiently(porter.take_up, number)
            if arrival is None:
                self._hosts.leaving -= {number}
            else:
                await self._hosts.load(fresh=arrival.fresh, revisit=revisit, quiet=arrival.quiet, files=(number,))
