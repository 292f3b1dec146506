"""Partition files that come to a fetch process and leave it while the rest of it goes on.

A file leaves in this order: its hosts get no new visits; those under way end; what they settled is made durable, in
sealed segments, for only those outlive this machine; then its lease is given up, and its next owner finds it as after an orderly end. A file
that comes is opened and claimed, and its hosts wait as the way of its coming asks for. Belongs to the loop's group commits,
between which nothing of a file can become durable behind its back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from corpus.crawl.hosts import Hosts
from corpus.crawl.ports import Clock, FrontierStore
from corpus.crawl.visit import Visitor
from corpus.url.host import registered_domain
from corpus.url.partition import partition_file


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

    def hand_over(self, files: Collection[int]) -> None:
        """Close these files in order, and let others have them."""
        ...


class Moves:
    """For one loop. `under_way`: an order of which files to own is not fulfilled yet."""

    def __init__(
        self, files: Mapping[int, FrontierStore], hosts: Hosts, visitor: Visitor, clock: Clock,
        patiently: Callable[..., Awaitable[Any]], seal: Callable[[], Awaitable[None]], porter: Porter | None, patience_s: float,
    ) -> None:  # fmt: skip
        """`patiently` runs a call in the store thread until it succeeds; `seal` makes everything durable that was settled;
        visits of files that leave are broken off after `patience_s`."""
        self._files, self._hosts, self._visitor, self._clock = files, hosts, visitor, clock
        self._patiently, self._seal, self._porter, self._patience_s = patiently, seal, porter, patience_s
        self._wanted: frozenset[int] | None = None
        self._order = self.done = 0
        """The number of the last order, and of the last one that is over."""
        self._since = 0.0

    @property
    def under_way(self) -> bool:
        return self._wanted is not None

    def order(self, number: int, files: Collection[int]) -> None:
        """From now on own these; an order that is not fulfilled yet is superseded."""
        self._order, self._wanted = number, frozenset(files)

    async def step(self, visits: Mapping[asyncio.Task[None], str], *, revisit: bool) -> None:
        """As far towards the order as can be gone now. `visits`: those under way, with their hosts."""
        if self._wanted is None or self._porter is None:
            return
        number, wanted = self._order, self._wanted
        going = (self._files.keys() - wanted) | (self._hosts.leaving & self._files.keys())
        if going and not await self._leave(frozenset(going), visits):
            return
        coming = wanted - self._files.keys()
        if coming:
            await self._take_up(coming, revisit=revisit)
        if number == self._order:
            self.done, self._wanted = number, None

    async def _leave(self, going: frozenset[int], visits: Mapping[asyncio.Task[None], str]) -> bool:
        """Whether these files have left; else something of them is still under way."""
        if not going <= self._hosts.leaving:
            await self._hosts.let_go(going)
            self._since = self._clock.monotonic()
        busy = [visit for visit, host in visits.items() if partition_file(registered_domain(host)) in going]
        if busy:
            if self._clock.monotonic() - self._since > self._patience_s:
                for visit in busy:
                    visit.cancel()
            return False
        self._visitor.let_go(going)
        await self._seal()
        if any(desk.unsettled for desk in self._hosts.desks.values() if desk.file in going):
            return False  # somebody else's answer concerned them meanwhile
        self._hosts.forget(going)
        assert self._porter is not None, "who has no porter gets no orders"
        await self._patiently(self._porter.hand_over, going)
        return True

    async def _take_up(self, coming: frozenset[int], *, revisit: bool) -> None:
        """One by one, so that leases of the others are renewed in between."""
        assert self._porter is not None, "who has no porter gets no orders"
        for number in sorted(coming):
            self._hosts.leaving |= {number}  # until it is known how long its hosts rest
            arrival: Arrival | None = await self._patiently(self._porter.take_up, number)
            if arrival is None:
                self._hosts.leaving -= {number}
            else:
                await self._hosts.load(fresh=arrival.fresh, revisit=revisit, quiet=arrival.quiet, files=(number,))
