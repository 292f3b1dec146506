"""The machine's own clocks behind the `Clock` port.

The only place of the crawl that reads them; every decision elsewhere gets its time as an argument.
"""

from __future__ import annotations

import asyncio
import time


class RealClock:
    """Epoch seconds for what is stored, the monotonic clock for every gap."""

    def wall(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0.0))
