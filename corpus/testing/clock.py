"""A clock that a test owns: sleeping costs no time, and the order of waking is the same in every run.

    clock = VirtualClock()
    result = clock.run(main(clock))

`run` gives the coroutine an event loop whose time is the clock's: once every task waits, time jumps to the earliest
of the sleepers and timers, and sleepers wake in the order of (time, who asked first). `asyncio.timeout`,
`call_later` and `asyncio.sleep` live on the same time. While work given to an executor is out, time stands still.
"""

from __future__ import annotations

import asyncio
import heapq
import selectors
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar, TypeVarTuple, Unpack

from corpus.errors import UsageError

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
_STALLED_S = 10.0


class VirtualClock:
    """A `Clock`. Starts at monotonic 0 and wall `epoch`; `jump` moves the wall clock only, as an operator's hand does."""

    def __init__(self, epoch: float = 1_800_000_000.0) -> None:
        self._now = 0.0
        self._epoch = epoch
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()
        self._held = 0

    def wall(self) -> float:
        return self._epoch + self._now

    def monotonic(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._epoch += seconds

    async def sleep(self, seconds: float) -> None:
        """Wait in virtual time. Other tasks that can run do so first, also for 0 seconds. Only inside `run`."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, _VirtualLoop) or loop.clock is not self:
            raise UsageError("this clock stands still here", "VirtualClock.sleep", "run the coroutine with VirtualClock.run")
        woken: asyncio.Future[None] = loop.create_future()
        heapq.heappush(self._sleepers, (self._now + max(seconds, 0.0), next(self._order), woken))
        await woken

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run to the end in virtual time. Raises UsageError when every task waits for what will never come."""
        with asyncio.Runner(loop_factory=lambda: _VirtualLoop(self)) as runner:
            return runner.run(main)

    @contextmanager
    def holding(self) -> Iterator[None]:
        """Time stands still inside: for a thread that the loop does not know of."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1

    @property
    def held(self) -> bool:
        return self._held > 0

    def advance(self, limit: float | None) -> bool:
        """Jump to the next sleeper or to `limit`, whichever is earlier, and wake who is due. False: nothing to wait for."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        times = [t for t in (limit, self._sleepers[0][0] if self._sleepers else None) if t is not None]
        if not times:
            return False
        self._now = max(self._now, min(times))
        while self._sleepers and self._sleepers[0][0] <= self._now:
            woken = heapq.heappop(self._sleepers)[2]
            if not woken.done():
                woken.set_result(None)
        return True


class _IdleSelector(selectors.DefaultSelector):
    """Where a loop would wait for the world, the clock jumps instead."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock = clock
        self._idle_since: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or (timeout is not None and timeout <= 0):
            self._idle_since = None
            return events
        if self._clock.held:
            return super().select(0.05)
        if self._clock.advance(None if timeout is None else self._clock.monotonic() + timeout):
            self._idle_since = None
            return []
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        if now - self._idle_since > _STALLED_S:
            raise UsageError("every task waits, and no timer is set", "VirtualClock.run", "is a sleep or a set() missing?")
        return super().select(0.05)


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_IdleSelector(clock))
        self.clock = clock

    def time(self) -> float:
        return self.clock.monotonic()

    def run_in_executor(self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts) -> asyncio.Future[T]:
        holding = self.clock.holding()
        holding.__enter__()
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(lambda _: holding.__exit__(None, None, None))
        return future
