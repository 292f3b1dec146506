"""One sleeper that is woken by a ring or by the time, whichever comes first: a wait without tasks.

The loop of a fetch process turns after every answer; two tasks per turn would cost more than the turn.
"""

from __future__ import annotations

import asyncio


class Bell:
    """Rung before anyone sleeps, it wakes the next sleeper at once. One sleeper at a time."""

    def __init__(self) -> None:
        self._rung = False
        self._sleeper: asyncio.Future[None] | None = None

    def ring(self) -> None:
        self._rung = True
        self._wake()

    async def wait(self, seconds: float) -> None:
        """Return when rung (and forget the ring), or `seconds` later on the running loop's clock."""
        if not self._rung and seconds > 0:
            loop = asyncio.get_running_loop()
            self._sleeper = loop.create_future()
            timer = loop.call_later(seconds, self._wake)
            try:
                await self._sleeper
            finally:
                timer.cancel()
                self._sleeper = None
        self._rung = False

    def _wake(self) -> None:
        if self._sleeper is not None and not self._sleeper.done():
            self._sleeper.set_result(None)
