"""Keeps this process's leases on partition files in PostgreSQL, and keeps requests back while one of them may have ended.

A lease is renewed every quarter of its time. Once half of it has passed without a renewal, nothing is sent: by the time
another machine may take the file over, the last request has long been answered. A renewal that finds a newer owner ends
the process.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from corpus.crawl.ports import Clock, Request, Transport
from corpus.errors import CorpusError
from corpus.model import FetchResult
from corpus.store.frontier_postgres import PostgresFrontier

_LOOK_S = 0.1


class LeaseKeeper:
    """A transport around another: requests wait while a lease is in doubt."""

    def __init__(self, inner: Transport, files: Mapping[int, PostgresFrontier], lease_s: float, clock: Clock) -> None:
        """`files`: ours at every moment; they may come and go."""
        self._inner, self._files, self._lease_s, self._clock = inner, files, lease_s, clock

    def sure(self) -> bool:
        """Whether every lease was renewed within half its time."""
        oldest = min((store.renewed_at for store in self._files.values()), default=math.inf)
        return self._clock.monotonic() < oldest + self._lease_s / 2

    async def until_sure(self) -> None:
        """Wait while a lease is in doubt. Asked before a connection is made, and again when it stands."""
        while not self.sure():
            await self._clock.sleep(_LOOK_S)

    async def fetch(self, request: Request) -> FetchResult:
        await self.until_sure()
        return await self._inner.fetch(request)

    async def close(self) -> None:
        await self._inner.close()

    def _renew(self) -> None:
        for store in self._files.values():
            store.renew()

    async def keep(self, in_store: Callable[..., Coroutine[Any, Any, None]], fail: Callable[[BaseException], None]) -> None:
        """Renew until cancelled; what goes wrong is told once, and ends it."""
        try:
            while True:
                await in_store(self._renew)
                await self._clock.sleep(self._lease_s / 4)
        except asyncio.CancelledError:
            raise
        except CorpusError as error:
            fail(error)
