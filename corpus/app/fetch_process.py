"""A fetch process: wires the crawl's loop to this machine's disks and sockets, and obeys its supervisor.

Runs in a process of its own (`corpus.engine.process`). It loads nothing of what only stages after fetch need.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from corpus.app.fetch_neighbours import LinkPost, ThreadedClaims
from corpus.app.frontier_files import frontier_path, open_file
from corpus.app.prepare import url_rules
from corpus.app.project import Project, open_project
from corpus.app.segments import record_segment
from corpus.config.tree import Config
from corpus.crawl.authority import AuthorityBook
from corpus.crawl.clock import RealClock
from corpus.crawl.commit import Committer
from corpus.crawl.discover import Router
from corpus.crawl.dns import CachingResolver
from corpus.crawl.fetch import HttpTransport
from corpus.crawl.gate import Fingerprint, NearCopy
from corpus.crawl.identity import user_agent
from corpus.crawl.judge import VisitTools
from corpus.crawl.ports import CaptureSink, FrontierStore
from corpus.crawl.seen import RecentSeen
from corpus.crawl.worker import Progress, Worker
from corpus.engine.process import Link
from corpus.errors import CorpusError
from corpus.model import Kind
from corpus.optout.operator_list import OperatorList
from corpus.optout.policy import policy_document, policy_version
from corpus.store.consent_ledger import ConsentLedger
from corpus.store.control_log import Tombstones
from corpus.store.inbox import ObjectInbox
from corpus.store.layout import segment_name
from corpus.store.locks import PartitionLock
from corpus.store.warc_write import SegmentWriter
from corpus.url.partition import PARTITION_FILES
from corpus.version import __version__

LOCK_WAIT_S = 10.0
FILES_BESIDE_SLOTS = 1500
"""File handles a process needs beside its connections: idle ones kept open, partition files, segments, libraries."""
CONTROL_EVERY_S = 1.0
FRESH_EPOCH = 2
"""Up to this epoch a partition file has had no owner that could have contacted anyone: who prepared it, then we."""


@dataclass(frozen=True, slots=True)
class FetchSpec:
    """What one fetch process is told. It owns the partition files f with f % workers == worker."""

    worker: int
    workers: int
    crawl_id: str
    run_id: str
    config: Config
    base: str
    quota: int | None = None
    """New pages this process may store."""
    only: Kind | None = None

    @property
    def files(self) -> tuple[int, ...]:
        return tuple(range(self.worker, PARTITION_FILES, self.workers))


def main(spec: FetchSpec, link: Link) -> None:
    """Entry point of the child."""
    import uvloop

    _raise_file_limit(spec.config.crawl.slots + FILES_BESIDE_SLOTS)
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

    project = open_project(place(spec.config, Path(spec.base), {}))
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
        self._clean = False
        self._stack = ExitStack()
        self._files: dict[int, FrontierStore] = {}
        self._epochs: dict[int, int] = {}
        recent = RecentSeen()
        for number in spec.files:
            lock = PartitionLock(frontier_path(project.layout, number).with_suffix(".lock"))
            lock.acquire(LOCK_WAIT_S)
            self._stack.callback(lock.release)
            store = open_file(project.layout, number, recent)
            self._files[number] = store
            self._epochs[number] = store.claim(f"fetch-{spec.worker}")
        self._epoch = self._epochs[spec.worker]
        self._sinks = self._open_sinks()
        log = project.consent_log(f"w{spec.worker:02d}-{self._epoch:06d}")
        policy = policy_version(config.optout, config.crawl.robots_token)
        log.declare(policy, policy_document(config.optout, config.crawl.robots_token))
        self._consent = ConsentLedger(log, policy)
        self._router = Router(url_rules(config))
        self._tombstones = Tombstones()
        self._tombstones.apply(project.control.read())
        self._operator = OperatorList.from_lines(_lines(config))
        self._near: SimpleQueue[list[NearCopy | None]] = SimpleQueue()
        self._errands: set[asyncio.Task[None]] = set()
        self._committer = Committer(
            self._files, self._epochs, self._sinks, self._consent, ObjectInbox(project.objects), self, self._router,
            near_copies=config.crawl.near_copies, on_sealed=self._record_sealed,
        )  # fmt: skip

    def _open_sinks(self) -> dict[str, CaptureSink]:
        spec, layout, config = self._spec, self._project.layout, self._project.config
        folders = {
            "pages": layout.warc_dir(spec.crawl_id),
            "policy": layout.policy_dir(spec.crawl_id),
            "sealed": layout.sealed_dir(spec.crawl_id),
        }
        age = config.store.segment_age or 600.0
        info = {
            "software": f"corpus/{__version__}",
            "format": "WARC File Format 1.1",
            "robots": "obey",
            "http-header-user-agent": user_agent(config.crawl),
            "operator": config.crawl.contact,
        }
        return {
            kind: SegmentWriter(
                layout, folder, lambda seq: segment_name(spec.worker, self._epoch, seq), clock=time.time,
                segment_bytes=config.store.segment_bytes, segment_age_s=age, warcinfo=info, identity=f"{kind}.{spec.worker}.{self._epoch}",
            )
            for kind, folder in folders.items()
        }  # fmt: skip

    # the near-copy gate lives with the supervisor, because it spans all processes
    def ask(self, pages: Sequence[Fingerprint]) -> list[NearCopy | None]:
        self._link.send(("near", list(pages)))
        return self._near.get()

    def blocked(self, url: str) -> str:
        order = self._tombstones.blocks(url=url)
        if order is not None:
            return "taken-down" if order.action == "takedown" else "blocked"
        return "operator-list" if self._operator.refuses(url) is not None else ""

    async def run(self, in_store: Callable[..., Any]) -> None:
        config, spec = self._project.config, self._spec
        clock = RealClock()
        resolver = CachingResolver(config.crawl, clock)
        transport = HttpTransport(config.crawl, clock)
        book = AuthorityBook(config.optout, config.crawl.robots_token, self._consent.body)
        alone = spec.workers == 1
        claims = None if alone else ThreadedClaims(self._project.layout, f"fetch-{spec.worker}", config.crawl)
        tools = VisitTools(
            config.crawl, config.optout, book, self._router, transport, resolver, clock, self.blocked, recrawl=config.recrawl,
            only=spec.only, claims=claims, post=None if alone else LinkPost(self._link, spec.worker),
        )  # fmt: skip
        worker = Worker(
            config.crawl, self._files, self._committer, tools, clock, in_store, tell=self._tell, quota=spec.quota,
            fresh=max(self._epochs.values()) <= FRESH_EPOCH,
        )  # fmt: skip
        self._listen(asyncio.get_running_loop(), worker)
        watch = asyncio.create_task(self._watch_control(in_store))
        try:
            await worker.run()
            await in_store(self._committer.seal)
            self._clean = True
        finally:
            watch.cancel()
            await transport.close()
            await resolver.close()
            if claims is not None:
                claims.close()

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
            case ("drain",):
                worker.drain()
            case ("stop",):
                worker.stop()
            case ("quota", int(pages)):
                worker.deal(pages)
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

    async def _watch_control(self, in_store: Callable[..., Any]) -> None:
        """Every worker hears of takedowns and blocks within a second, before its next take."""
        while True:
            await asyncio.sleep(CONTROL_EVERY_S)
            await in_store(self._hear_control)

    def _hear_control(self) -> None:
        self._tombstones.apply(self._project.control.read(after=self._tombstones.version))

    def _tell(self, progress: Progress) -> None:
        self._link.send(("status", asdict(progress)))

    def _record_sealed(self) -> None:
        for kind, sink in self._sinks.items():
            assert isinstance(sink, SegmentWriter), "the sinks of a fetch process are segment writers"
            for sealed in sink.take_sealed():
                record_segment(self._project, sealed, kind=kind, crawl_id=self._spec.crawl_id)

    def close(self) -> None:
        """Let go of the files; in order only when everything was sealed."""
        for store in self._files.values():
            store.close(clean=self._clean)
        self._stack.close()


def _lines(config: Config) -> list[str]:
    file = config.optout.domains_file
    return (config.base / file).read_text("utf-8").splitlines() if file else []
