"""How fetch processes stay out of each other's way: claims on addresses, errands by post.

Used only where there are several. Claims (one small SQLite file; a table in a fleet) have a thread of their own, so that a
contact never waits for a group commit.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, TypeVarTuple, Unpack

from corpus.crawl.claims import Granted, IpClaims
from corpus.crawl.desk import Errand
from corpus.crawl.ports import Due, Request
from corpus.crawl.settings import CrawlSettings
from corpus.engine.process import Link
from corpus.model import FetchResult
from corpus.store.ip_claims import SqliteIpClaims
from corpus.store.layout import Layout

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def claims_path(layout: Layout) -> Path:
    """Where the claims on addresses lie, beside the partition files."""
    return layout.frontier / "addresses.sqlite"


class ThreadedClaims:
    """`contact.Claims` of one process. A claim outlives any contact; it ends with its process at the next start."""

    def __init__(self, claims: IpClaims, owner: str, settings: CrawlSettings, wall: Callable[[], float]) -> None:
        """`wall`: epoch seconds by the clock that all claimants share."""
        self._claims, self._owner, self._wall = claims, owner, wall
        self._ttl_s = 2 * (settings.total_timeout + settings.ip_gap_s) + 60.0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="claims")

    async def claim(self, ip: str) -> float | None:
        wall = self._wall()
        answer = await self._run(self._claims.claim, ip, self._owner, self._ttl_s, wall)
        return answer.due.remaining(wall) if isinstance(answer, Granted) else None

    async def release(self, ip: str, gap_s: float) -> None:
        await self._run(self._claims.release, ip, self._owner, Due(self._wall(), gap_s))

    async def _run(self, call: Callable[[Unpack[Ts]], T], *arguments: *Ts) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    def close(self) -> None:
        self._thread.shutdown()
        self._claims.close()


def local_claims(layout: Layout, owner: str, settings: CrawlSettings) -> ThreadedClaims:
    """Claims that the fetch processes of one machine share."""
    return ThreadedClaims(SqliteIpClaims(claims_path(layout), time.time()), owner, settings, time.time)


class LinkPost:
    """`errands.Post` through the supervisor, who knows which process owns which file."""

    def __init__(self, link: Link, worker: int) -> None:
        self._link, self._worker = link, worker

    def ask(self, file: int, errand: Errand) -> None:
        self._link.send(("errand", file, errand if errand.asker >= 0 else errand.asked_by(self._worker)))

    def answer(self, errand: Errand, request: Request | None, result: FetchResult | None) -> None:
        self._link.send(("errand-done", errand, request, result))
