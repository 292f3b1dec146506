"""How late an event loop is for its own timers: the one number that says whether something blocks it."""

from __future__ import annotations

import asyncio
from collections import deque

TICK_S = 0.05
KEPT = 1200
"""Ticks looked at: the last minute."""


class LoopLag:
    """`run` measures until it is cancelled; `p99_ms` is over the last minute."""

    def __init__(self) -> None:
        self._late: deque[float] = deque(maxlen=KEPT)

    async def run(self) -> None:
        """One timer after another; each notes by how much it was late."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + TICK_S
            await asyncio.sleep(TICK_S)
            self._late.append(max(loop.time() - due, 0.0))

    def p99_ms(self) -> float:
        """Milliseconds; 0.0 before the first tick."""
        if not self._late:
            return 0.0
        late = sorted(self._late)
        return round(late[min(int(len(late) * 0.99), len(late) - 1)] * 1000, 1)
