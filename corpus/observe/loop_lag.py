"""How late an event loop is for its own timers, and how much of that is its own doing: the numbers that say whether something blocks it.

On a busy machine a loop is late because its thread waits for a core. The kernel counts that wait (`/proc/<pid>/task/<tid>/schedstat`,
Linux); what is left is our own: a call that takes long, or another thread of ours that holds the interpreter.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from contextlib import suppress

EVERY_S = 0.05
TIMER_S = 0.01
"""Short, because a wait for a core before the timer is due is subtracted as well: so at most 10 ms too many."""
KEPT = 1200
"""Timers looked at: the last minute."""


class CoreWait:
    """How long the thread that made it has waited for a core so far, in seconds; 0.0 for ever where the kernel does not say."""

    def __init__(self) -> None:
        self._file: int | None = None
        with suppress(OSError):  # not Linux, or a kernel without these counters: then all lateness counts as our own
            self._file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def seconds(self) -> float:
        return 0.0 if self._file is None else int(os.pread(self._file, 100, 0).split()[1]) / 1e9

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class LoopLag:
    """`run` measures until it is cancelled; both numbers are over the last minute, in milliseconds, and 0.0 before the first timer."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=KEPT)
        self._own: deque[float] = deque(maxlen=KEPT)

    async def run(self) -> None:
        """One timer after another; each notes by how much it was late, and how much of that was no wait for a core."""
        loop = asyncio.get_running_loop()
        waited = CoreWait()
        try:
            while True:
                before, due = waited.seconds(), loop.time() + TIMER_S
                await asyncio.sleep(TIMER_S)
                late = max(loop.time() - due, 0.0)
                self._late.append(late)
                self._own.append(max(late - (waited.seconds() - before), 0.0))
                await asyncio.sleep(EVERY_S - TIMER_S)
        finally:
            waited.close()

    def p99_ms(self) -> float:
        """Lateness that 99 of 100 timers stayed under."""
        return _p99_ms(self._late)

    def own_p99_ms(self) -> float:
        """The same without waits for a core."""
        return _p99_ms(self._own)


def _p99_ms(late: deque[float]) -> float:
    if not late:
        return 0.0
    ordered = sorted(late)
    return round(ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)] * 1000, 1)
