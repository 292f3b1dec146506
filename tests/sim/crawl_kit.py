"""A whole crawl in memory: the real loop, schedule, pace, judge and commit over simulated sockets, disks and time.

crawl = Crawl(web, settings)
crawl.run()                      # to its end, in virtual time
crawl.states(), crawl.log        # what became of every URL; what the servers saw
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corpus.crawl.authority import AuthorityBook
from corpus.crawl.commit import Committer
from corpus.crawl.discover import Router, seed
from corpus.crawl.gate import NearIndex
from corpus.crawl.judge import VisitTools
from corpus.crawl.ports import Ack, AuthorityRow, HostRow, Original, OutboxRow, Request, ResponseRefusal
from corpus.crawl.settings import CrawlSettings, RecrawlSettings
from corpus.crawl.traps import UrlRules
from corpus.crawl.worker import Progress, Worker
from corpus.errors import NoRoom, StoreError
from corpus.model import CaptureRef, Kind, Response, Sighting
from corpus.optout.settings import OptoutSettings
from corpus.store.frontier_memory import MemoryFrontier
from corpus.testing.clock import VirtualClock
from corpus.testing.transport import SimResolver, SimTransport
from corpus.testing.web import Contact, SimWeb
from corpus.testing.web_log import ContactLog
from corpus.url.host import host_of, registered_domain
from corpus.url.partition import PARTITION_FILES, partition_file
from corpus.url.scope import UrlScope

SEGMENT_BYTES = 60_000
PRIVATE = ("127.0.0.0/8",)


def settings(**changes: Any) -> CrawlSettings:
    """Fast, for the simulated web's addresses, and without a limit that any of its decent hosts reaches."""
    base: dict[str, Any] = {
        "contact": "https://example.org/bot", "delay": 0.5, "delay_start": 1.0, "allow_private": PRIVATE, "near_copies": "store", "slots": 64,
    }  # fmt: skip
    return CrawlSettings(**{**base, **changes})


class MemorySink:
    """A `CaptureSink` that keeps what it was told."""

    def __init__(self, name: str) -> None:
        self.name, self.size, self.full = name, 0, False
        self.kept: list[tuple[str, int, str]] = []
        """(canonical URL, status, SHA-256 of the body)"""
        self.revisits: list[tuple[str, str]] = []
        self.linked: list[tuple[str, str]] = []
        self.sealed = self.begun = 0
        """Captures that lie in sealed segments; bytes before the open one."""
        self.seals: list[int] = []
        self.refuse: Callable[[], bool] = lambda: False
        """Whether the disk behind it is full right now."""

    def crash(self) -> None:
        """What was not sealed is gone."""
        del self.kept[self.sealed :]
        self.size = self.begun

    def _place(self, length: int) -> tuple[CaptureRef, int]:
        ref = CaptureRef(self.name, self.size, length)
        self.size += length
        return ref, self.size

    def append(
        self, url: str, request: Request, response: Response, *, depth: int, via: str, metadata: dict[str, str], payload: bytes = b""
    ) -> tuple[CaptureRef, int]:  # fmt: skip
        self.kept.append((url, response.status, hashlib.sha256(response.decoded).hexdigest()))
        return self._place(len(response.body) + 1)

    def append_linked(
        self, url: str, request: Request, response: Response, *, depth: int, via: str, metadata: dict[str, str], original: str, distance: int
    ) -> tuple[CaptureRef, int]:  # fmt: skip
        self.linked.append((url, original))
        return self._place(1)

    def append_revisit(
        self, url: str, request: Request, response: Response, *, depth: int, via: str, metadata: dict[str, str], original: Original
    ) -> tuple[CaptureRef, int]:  # fmt: skip
        self.revisits.append((url, original.url))
        return self._place(1)

    def sync(self) -> None:
        """Nothing to wait for; a disk that is full says so once."""
        if self.refuse():
            raise NoRoom("the disk refused: no space left on device", self.name, "free some space")
        if self.full:
            self.full = False
            raise StoreError("the disk refused: no space left on device", self.name, "free some space")

    @property
    def due(self) -> bool:
        return self.size - self.begun > SEGMENT_BYTES

    def rotate(self, *, force: bool = False) -> list[str]:
        if not (force or self.due) or self.size == self.begun:
            return []
        self.sealed, self.begun = len(self.kept), self.size
        self.seals.append(self.size)
        return [f"{self.name}-{len(self.seals)}"]


class MemoryConsent:
    """A `ConsentSink`."""

    def __init__(self) -> None:
        self.read: list[AuthorityRow] = []
        self.refused: list[ResponseRefusal] = []
        self.bodies: dict[str, bytes] = {}

    def append(self, authorities: Sequence[AuthorityRow], refusals: Sequence[ResponseRefusal], bodies: dict[str, bytes]) -> None:
        self.read += authorities
        self.refused += refusals
        self.bodies |= bodies

    def body(self, digest: str) -> bytes:
        return self.bodies[digest]


class MemoryInbox:
    """An `Inbox`; with one process nothing ever passes through it."""

    def __init__(self) -> None:
        self.batches: dict[str, tuple[int, list[tuple[int, Sighting]]]] = {}

    def publish(self, dst: int, src: int, epoch: int, rows: Sequence[OutboxRow]) -> None:
        self.batches[f"{dst:03d}/{src:03d}.{rows[0].seq:09d}"] = (src, [(row.seq, row.sighting) for row in rows])

    def waiting(self, dst: int) -> list[str]:
        return sorted(name for name in self.batches if name.startswith(f"{dst:03d}/"))

    def read(self, name: str) -> tuple[int, list[tuple[int, Sighting]]]:
        return self.batches[name]

    def drop(self, name: str) -> None:
        del self.batches[name]


class Crawl:
    """One folder's worth of state; `run` is one run of one fetch process over it, and may be called again."""

    def __init__(
        self, web: SimWeb, config: CrawlSettings, *, optout: OptoutSettings | None = None, recrawl: RecrawlSettings | None = None, clock: VirtualClock | None = None, ack_sealed: bool = False, spread: int = PARTITION_FILES
    ) -> None:  # fmt: skip
        self.web, self.config, self.optout, self.recrawl = web, config, optout or OptoutSettings(), recrawl
        self.clock, self.ack_sealed, self.spread = clock or VirtualClock(), ack_sealed, spread
        self.log = ContactLog()
        self.transport = SimTransport(web, self.clock, config, log=self.log)
        self.files = {n: MemoryFrontier() for n in range(spread)}
        self.sinks = {kind: MemorySink(kind) for kind in ("pages", "policy", "sealed")}
        self.consent, self.inbox, self.gate = MemoryConsent(), MemoryInbox(), NearIndex(config.near_k)
        self.ends: list[Progress] = []
        self.reports: list[Progress] = []
        self.runs = 0
        self.qualities: Callable[[], Mapping[str, float]] = dict
        """What processing found of hosts."""
        self.commit_s = 0.0
        """How long the store takes for a commit."""
        self.quiet: dict[int, float] = {}
        """Files of a lost owner: until when their hosts rest."""

    def file_of(self, host: str) -> int:
        return partition_file(registered_domain(host), self.spread)

    def router(self, seeds: Sequence[str]) -> Router:
        scope = UrlScope(any=True) if self.config.scope.any else UrlScope.from_seeds(seeds)
        return Router(UrlRules(self.config, scope), self.spread)

    def run(
        self,
        seeds: Sequence[str] | None = None,
        *,
        stop_after_s: float | None = None,
        crash_after_s: float | None = None,
        only: Kind | None = None,
        blocked: dict[str, str] | None = None,
    ) -> Worker:
        """Plant seeds (the web's, if none are named), crawl until idle (or drain, or crash, after a while)."""
        seeds = self.web.seeds() if seeds is None else seeds
        router = self.router(seeds)
        self.files = {n: store.reborn() for n, store in self.files.items()}
        epochs = {n: store.claim(f"run {self.runs}") for n, store in self.files.items()}
        for url in seeds:
            sighting = seed(url)
            assert sighting is not None, url
            self.files[self.file_of(host_of(sighting.url))].commit([Ack(own=tuple(router.judge([sighting])))])
        committer = Committer(
            self.files,
            epochs,
            self.sinks,
            self.consent,
            self.inbox,
            self.gate,
            router,
            near_copies=self.config.near_copies,
            on_sealed=lambda: None,
            ack_sealed=self.ack_sealed,
        )
        tools = VisitTools(
            self.config, self.optout, AuthorityBook(self.optout, self.config.robots_token, self.consent.body), router,
            self.transport, SimResolver(self.web, self.clock, self.config), self.clock,
            lambda url: (blocked or {}).get(url, ""), recrawl=self.recrawl, only=only, qualities=self.qualities,
        )  # fmt: skip

        async def in_store(call: Any, *arguments: Any) -> Any:
            if self.commit_s and getattr(call, "func", call) == committer.commit:
                await self.clock.sleep(self.commit_s)
            return call(*arguments)

        def tell(progress: Progress) -> None:
            self.reports.append(Progress(**{name: getattr(progress, name) for name in progress.__slots__}))
            if progress.idle and progress.sent == progress.applied and len(self.ends) < self.runs:
                self.ends.append(self.reports[-1])
                if self.config.until == "done":
                    worker.drain()

        spent = sum(
            n for store in self.files.values() for (state, _), n in _pages(store).items() if state in ("fetched", "not-modified")
        )
        quota = None if self.config.max_pages is None else max(self.config.max_pages - spent, 0)
        worker = Worker(
            self.config,
            self.files,
            committer,
            tools,
            self.clock,
            in_store,
            tell=tell,
            quota=quota,
            fresh=not self.runs,
            quiet=self.quiet,
        )
        self.worker = worker
        self.runs += 1
        if crash_after_s is not None:
            self.clock.run(self._until_crash(worker, crash_after_s))
            return worker
        self.clock.run(self._until_drained(worker, stop_after_s))
        for store in self.files.values():
            store.close(clean=True)
        return worker

    async def _until_crash(self, worker: Worker, seconds: float) -> None:
        """The process is gone from one moment to the next: nothing more is committed, no file is closed."""
        life = asyncio.create_task(worker.run())
        await self.clock.sleep(seconds)
        life.cancel()
        await asyncio.wait({life})

    async def _until_drained(self, worker: Worker, stop_after_s: float | None) -> None:
        if stop_after_s is not None:
            asyncio.get_running_loop().call_later(stop_after_s, worker.drain)
        await worker.run()

    # ---- what came of it

    def row(self, url: str) -> dict[str, object]:
        found = self.files[self.file_of(host_of(url))].lookup(url)
        assert found is not None, f"{url} was never seen"
        return found

    def state(self, url: str) -> tuple[str, str]:
        """(state, reason) of a URL; one that is queued at a parked host is parked for the host's reason."""
        row = self.row(url)
        state, reason = str(row["state"]), str(row["reason"])
        host = self.host(host_of(url))
        if state == "queued" and host is not None and host.state == "parked":
            return "parked", host.reason
        return state, reason

    def host(self, name: str) -> HostRow | None:
        return self.files[self.file_of(name)].host(name)

    def tally(self) -> Counter[tuple[str, str]]:
        total: Counter[tuple[str, str]] = Counter()
        for store in self.files.values():
            total.update(store.tally().by_state)
        return total

    def asked(self, host: str) -> list[Contact]:
        return [contact for contact in self.log if contact.host == host]

    def targets(self, host: str) -> list[str]:
        return [contact.target for contact in self.asked(host)]


def _pages(store: MemoryFrontier) -> Counter[tuple[str, str]]:
    tally = store.tally()
    counts = Counter(tally.by_state)
    counts.subtract(tally.not_pages)
    return counts
