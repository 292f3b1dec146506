"""A fetch process: wires the crawl's loop to this machine's disks and sockets, and obeys its supervisor.

Runs in a process of its own (`corpus.engine.process`). It loads nothing of what only stages after fetch need.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from corpus.app.fetch_files import FetchFiles
from corpus.app.fetch_neighbours import LinkPost, ThreadedClaims, local_claims
from corpus.app.host_quality import QualityFeed
from corpus.app.index_file import INDEXED, record_index
from corpus.app.orders import Orders, lifted_hosts
from corpus.app.prepare import url_rules
from corpus.app.project import Project, open_project
from corpus.app.seat import FRESH_SEAT, Seat, ServerClock, fleet_claims, open_inbox, plant, quiet_files, seated, take_in
from corpus.app.segments import record_segment
from corpus.config.tree import Config
from corpus.crawl.authority import AuthorityBook
from corpus.crawl.clock import RealClock
from corpus.crawl.commit import Committer
from corpus.crawl.discover import Router
from corpus.crawl.dns import CachingResolver
from corpus.crawl.gate import Fingerprint, NearCopy
from corpus.crawl.identity import user_agent
from corpus.crawl.judge import VisitTools
from corpus.crawl.ports import CaptureSink, Clock, FrontierStore, Transport
from corpus.crawl.regions import Ways
from corpus.crawl.worker import Progress, Worker
from corpus.engine.one_core import OneCore
from corpus.engine.process import Link
from corpus.errors import CorpusError
from corpus.model import Kind
from corpus.observe.loop_lag import LoopLag
from corpus.optout.operator_list import OperatorList
from corpus.optout.policy import policy_document, policy_version
from corpus.store.consent_ledger import ConsentLedger
from corpus.store.control_log import ControlEntry
from corpus.store.layout import segment_name
from corpus.store.warc_write import SealedSegment, SegmentWriter
from corpus.url.host import registered_domain
from corpus.version import __version__

if TYPE_CHECKING:
    from corpus.app.lease_keeper import LeaseKeeper
    from corpus.store.frontier_postgres import PostgresFrontier

FILES_BESIDE_SLOTS = 1500
"""File handles a process needs beside its connections: idle ones kept open, partition files, segments, libraries."""
CONTROL_EVERY_S = 1.0
LOCAL_AGE_S, REMOTE_AGE_S = 600.0, 60.0
"""When a segment is sealed however small it is: in a bucket its pages wait for that."""
FRESH_EPOCH = 2
"""Up to this epoch a partition file has had no owner that could have contacted anyone: who prepared it, then we."""


@dataclass(frozen=True, slots=True)
class FetchSpec:
    """What one fetch process is told. It owns the partition files f with f % workers == worker, or those of its seat in a fleet."""

    worker: int
    workers: int
    crawl_id: str
    run_id: str
    config: Config
    base: str
    quota: int | None = None
    """New pages this process may store."""
    only: Kind | None = None
    seat: Seat | None = None

    @property
    def files(self) -> tuple[int, ...]:
        if self.seat is not None:
            return self.seat.files
        return tuple(range(self.worker, self.config.store.partition_files, self.workers))


def main(spec: FetchSpec, link: Link) -> None:
    """Entry point of the child."""
    import uvloop

    _raise_file_limit(spec.config.crawl.slots + FILES_BESIDE_SLOTS)
    gc.freeze()  # what is loaded by now stays; and a page's many small objects form no cycles: collect seldom (5 % of the CPU otherwise)
    gc.set_threshold(50_000, 20, 50)
    try:
        uvloop.run(_run(spec, link))
    except CorpusError as error:
        link.send(("error", error))
        raise SystemExit(1) from None
    link.send(("finished",))


def _raise_file_limit(wanted: int) -> None:
    """As many open files as the crawl may need, as far as the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def _run(spec: FetchSpec, link: Link) -> None:
    from corpus.config.tree import place

    project = seated(open_project(place(spec.config, Path(spec.base), {}), create=False), spec.seat)
    with ThreadPoolExecutor(1, thread_name_prefix="store") as thread:
        loop = asyncio.get_running_loop()

        def in_store(call: Callable[..., Any], *arguments: Any) -> Any:
            return loop.run_in_executor(thread, call, *arguments)

        process = await in_store(_Process, spec, link, project)
        try:
            await process.run(in_store)
        finally:
            await in_store(process.close)


class _Process:
    """Everything with a handle, opened in the store thread that uses it."""

    def __init__(self, spec: FetchSpec, link: Link, project: Project) -> None:
        self._spec, self._link, self._project = spec, link, project
        config = project.config
        self._clean = self._given_up = False
        self._lag, self._core = LoopLag(), OneCore("fetch")
        self._orders = Orders(project, OperatorList.from_lines(_lines(config)))
        self._heard = self._orders.news()
        self._unplanted = frozenset[int]() if spec.seat is None else frozenset(spec.seat.seeds)
        self._inbox = open_inbox(project)
        self._porter = FetchFiles(project, f"fetch-{spec.worker}", self._came)
        self._porter.start(spec.files)
        self._files, epochs = self._porter.own, self._porter.epochs
        self._epoch = epochs[spec.worker] if spec.seat is None else spec.seat.epoch
        self._sinks = self._open_sinks()
        self._sealed: list[tuple[str, SealedSegment]] = []
        log = project.consent_log(f"w{spec.worker:02d}-{self._epoch:06d}")
        policy = policy_version(config.optout, config.crawl.robots_token)
        log.declare(policy, policy_document(config.optout, config.crawl.robots_token))
        self._consent = ConsentLedger(log, policy)
        self._router = Router(url_rules(config), project.layout.spread)
        self._near: SimpleQueue[list[NearCopy | None]] = SimpleQueue()
        self._errands: set[asyncio.Task[None]] = set()
        self._orders_due, self._asked_at, self._heard_at, self._told_at = 0, 0.0, 0.0, 0.0
        self._held = False
        self._keeper: LeaseKeeper | None = None
        self._ways = Ways()
        self._committer = Committer(
            self._files, epochs, self._sinks, self._consent, self._inbox, self, self._router,
            near_copies=config.crawl.near_copies, on_sealed=self._record_sealed, ack_sealed=project.remote or spec.seat is not None,
        )  # fmt: skip

    def _came(self, files: dict[int, FrontierStore]) -> None:
        """Of files that we have claimed: their seeds, what an earlier run left for them, and what was blocked there and is no longer."""
        plant(self._project, {number: store for number, store in files.items() if number in self._unplanted})
        take_in(self._project, self._inbox, tuple(files))
        self._lift(self._heard, files)

    def _open_sinks(self) -> dict[str, CaptureSink]:
        spec, layout, config = self._spec, self._project.layout, self._project.config
        folders = {
            "pages": layout.warc_dir(spec.crawl_id),
            "policy": layout.policy_dir(spec.crawl_id),
            "sealed": layout.sealed_dir(spec.crawl_id),
        }
        held = self._project.remote or spec.seat is not None
        age = config.store.segment_age or (REMOTE_AGE_S if held else LOCAL_AGE_S)
        info = {
            "software": f"corpus/{__version__}",
            "format": "WARC File Format 1.1",
            "robots": "obey",
            "http-header-user-agent": user_agent(config.crawl),
            "operator": config.crawl.contact,
        }
        notes = {} if spec.seat is None else spec.seat.notes()
        return {
            kind: SegmentWriter(
                layout, folder, lambda seq: segment_name(spec.worker, self._epoch, seq), clock=time.time,
                segment_bytes=config.store.segment_bytes, segment_age_s=age, warcinfo=info, notes=notes, identity=f"{kind}.{spec.worker}.{self._epoch}",
            )
            for kind, folder in folders.items()
        }  # fmt: skip

    # the near-copy gate lives with the supervisor, because it spans all processes
    def ask(self, pages: Sequence[Fingerprint]) -> list[NearCopy | None]:
        self._link.send(("near", list(pages)))
        return self._near.get()

    async def run(self, in_store: Callable[..., Any]) -> None:
        from corpus.crawl.fetch import HttpTransport  # here: a supervisor reads this module too, and needs no HTTP client

        config, spec = self._project.config, self._spec
        clock = RealClock() if spec.seat is None else ServerClock(self._project.layout.server)
        resolver = CachingResolver(config.crawl, clock)
        transport: Transport = (sockets := HttpTransport(config.crawl, clock))
        keeper = None
        if self._project.layout.server:
            transport = keeper = self._keeper = _lease_keeper(sockets, self._files, config.store.lease, clock)
            sockets.before_send, sockets.met = keeper.until_sure, self._met
        book = AuthorityBook(config.optout, config.crawl.robots_token, self._consent.body)
        alone = spec.workers == 1 and spec.seat is None
        claims = None if alone else self._claims(clock)
        tools = VisitTools(
            config.crawl, config.optout, book, self._router, transport, resolver, clock, self._orders.blocked, recrawl=config.recrawl,
            only=spec.only, claims=claims, post=None if alone else LinkPost(self._link, spec.worker),
            paused=self._paused, slower=self._orders.slower, qualities=QualityFeed(self._project.layout),
        )  # fmt: skip
        worker = Worker(
            config.crawl, self._files, self._committer, tools, clock, in_store, tell=self._tell, quota=spec.quota,
            fresh=max(self._porter.epochs.values()) <= (FRESH_EPOCH if spec.seat is None else FRESH_SEAT),
            quiet=quiet_files(self._files), porter=None if spec.seat is None else self._porter,
        )  # fmt: skip
        self._listen(asyncio.get_running_loop(), worker)
        lag = asyncio.create_task(self._lag.run())
        core = asyncio.create_task(self._core.run())
        watch = asyncio.create_task(self._watch_control(worker, in_store))
        leases = None if keeper is None else asyncio.create_task(keeper.keep(in_store, worker.fail))
        try:
            await worker.run()
            await in_store(self._committer.seal)
            self._clean = True
        finally:
            watch.cancel()
            if leases is not None:
                leases.cancel()
            lag.cancel()
            core.cancel()
            await transport.close()
            await resolver.close()
            if claims is not None:
                claims.close()

    def _claims(self, clock: RealClock) -> ThreadedClaims:
        spec = self._spec
        if spec.seat is not None:
            return fleet_claims(self._project, spec.seat, clock)
        return local_claims(self._project.layout, f"fetch-{spec.worker}", self._project.config.crawl)

    def _paused(self) -> bool:
        """Nobody is asked while an order says so, while there is one that we have not read, or while processing lags behind."""
        return self._held or self._orders.paused() or self._orders.version < self._orders_due

    def _listen(self, loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
        """Orders reach the loop; answers of the gate reach the store thread that waits for them."""

        def obey() -> None:
            while (message := self._link.receive(0)) is not None:
                if message[0] == "near":
                    self._near.put(message[1])
                else:
                    loop.call_soon_threadsafe(self._obey, worker, message)

        self._link.on_message = obey
        obey()

    def _obey(self, worker: Worker, message: tuple[Any, ...]) -> None:
        match message:
            case ("scan",):
                worker.poke()
            case ("scan", float(at), int(orders)):
                self._asked_at, self._orders_due = at, max(self._orders_due, orders)
            case ("hold", bool(held)):
                self._held = held
                worker.poke()
            case ("drain",):
                worker.drain()
            case ("stop",):
                worker.stop()
            case ("give-up",):
                self._given_up = True
                worker.give_up()
            case ("quota", int(pages)):
                worker.deal(pages)
            case ("own", int(number), tuple(files), tuple(seeds)):
                self._unplanted = frozenset(seeds)
                worker.own(number, files)
            case ("errand", errand):
                self._later(worker, worker.errand(errand))
            case ("errand-done", errand, request, result):
                self._later(worker, worker.errand_returned(errand, request, result))
            case _:
                raise RuntimeError(f"an order that no one understands: {message!r}")

    def _later(self, worker: Worker, call: Coroutine[Any, Any, None]) -> None:
        def ended(task: asyncio.Task[None]) -> None:
            self._errands.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None:
                worker.fail(error)

        task = asyncio.get_running_loop().create_task(call)
        self._errands.add(task)
        task.add_done_callback(ended)

    async def _watch_control(self, worker: Worker, in_store: Callable[..., Any]) -> None:
        """Where looking before every take would be too dear, orders are heard of within a second; lifted blocks always so."""
        while True:
            await asyncio.sleep(CONTROL_EVERY_S if self._orders.looks else CONTROL_EVERY_S / 4)
            if not self._orders.looks:
                await in_store(self._orders.catch_up)
            self._heard += (news := self._orders.news())
            lifted = await in_store(self._lift, news, self._files)
            await worker.readmitted(lifted)

    def _lift(self, entries: Sequence[ControlEntry], files: Mapping[int, FrontierStore]) -> dict[str, int]:
        """Return what lifted blocks had excluded to the line (what is still blocked is excluded again at its take): host → file."""
        covers = lifted_hosts(entries)
        if covers is None:
            return {}
        return {
            row.host: number
            for number, store in files.items()
            for row in store.hosts(pending=False)
            if covers(row.host) and store.readmit(row.host, "blocked")
        }

    def _tell(self, progress: Progress) -> None:
        told = asdict(progress)
        told["gauges"] |= {"lag_ms": self._lag.p99_ms(), "lag_own_ms": self._lag.own_p99_ms()}
        if self._spec.seat is not None:
            # what this says may be older than the question; the next one is not: it was begun after this one was told
            self._told_at, self._heard_at = self._heard_at, self._asked_at
            told["gauges"] |= {"heard": self._told_at, "orders": self._orders.version, **self._rest()}
        self._link.send(("status", told))

    def _met(self, host: str, seconds: float) -> None:
        self._ways.met(self._router.file_of(registered_domain(host)), seconds)

    def _rest(self) -> dict[str, Any]:
        """What holds us up beside our hosts (a lease in doubt, files whose former owner's contacts may still run), and our ways."""
        now = time.monotonic()
        left = [until - now for until in quiet_files(self._files).values() if until > now]
        return {
            "ways": self._ways.known(),
            "doubt": self._keeper is not None and not self._keeper.sure(),
            "quiet": len(left),
            "quiet_s": max(left, default=0.0),
        }

    def _record_sealed(self) -> None:
        """Record what was sealed, and what an earlier call could not."""
        for kind, sink in self._sinks.items():
            assert isinstance(sink, SegmentWriter), "the sinks of a fetch process are segment writers"
            self._sealed += [(kind, sealed) for sealed in sink.take_sealed()]
        while self._sealed:
            kind, sealed = self._sealed[0]
            record = record_segment(self._project, sealed, kind=kind, crawl_id=self._spec.crawl_id)
            if kind in INDEXED:  # after the record: what has none may be removed and fetched again
                record_index(self._project, record.key, sealed)
            self._sealed.pop(0)

    def close(self) -> None:
        """Let go of the files; in order only when everything was sealed."""
        self._porter.close(clean=self._clean, free=self._given_up)


def _lease_keeper(inner: Transport, files: Mapping[int, FrontierStore], lease_s: float, clock: Clock) -> LeaseKeeper:
    from corpus.app.lease_keeper import LeaseKeeper

    return LeaseKeeper(inner, cast("Mapping[int, PostgresFrontier]", files), lease_s, clock)


def _lines(config: Config) -> list[str]:
    file = config.optout.domains_file
    return (config.base / file).read_text("utf-8").splitlines() if file else []
