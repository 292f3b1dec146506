"""The supervisor of a crawl: prepares the folder, starts fetch processes, ends when there is nothing left to ask.

It holds the stage lock and the near-copy index, owns no URL and makes no request. A fetch process that dies is
replaced after its open segments were cut to what was acknowledged; the supervisor's own death ends its children.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from typing import Any

from corpus.app.crawl_watch import Watch
from corpus.app.doctor_machine import refuse_few_handles
from corpus.app.fetch_process import FetchSpec
from corpus.app.fleet_status import refuse_beside_workers
from corpus.app.orders import Orders, described
from corpus.app.overlap import Overlap
from corpus.app.prepare import Prepared, prepare, recover_worker
from corpus.app.project import Project
from corpus.app.spending import UNLIMITED, PausableClock, budget_of
from corpus.crawl.gate import NearIndex
from corpus.crawl.quota import Shares
from corpus.crawl.worker import Progress
from corpus.engine.process import Child, start
from corpus.errors import CorpusError, WorkerDied
from corpus.model import Kind
from corpus.observe.runlog import Reporter
from corpus.store.control_log import ControlEntry
from corpus.store.locks import stage_lock

POLL_S = 0.05
RESPAWNS = 3
"""Deaths of one fetch process before the run stops: past that it is not bad luck."""
DRAIN_S, KILL_S = 6.0, 9.0
"""Seconds after the order to end: contacts still running are broken off, then processes still running are killed."""
COUNTED = ("pages", "requests", "policy_requests", "bytes_wire", "bytes_body")


@dataclass(slots=True)
class CrawlEnd:
    """How the fetch stage ended: `done`, `budget` or `interrupted`, and the parked hosts by reason."""

    ended: str
    pages: int = 0
    requests: int = 0
    policy_requests: int = 0
    bytes_wire: int = 0
    bytes_body: int = 0
    parked: dict[str, int] = field(default_factory=dict)


def crawl(
    project: Project, crawl_id: str, run_id: str, report: Reporter, stopping: Callable[[], int],
    *, only: Kind | None = None, beside: Overlap | None = None,
) -> CrawlEnd:  # fmt: skip
    """Run the fetch stage to its end. `stopping()` is how often an interrupt was asked for: 1 drains, 2 stops now.

    `only=Kind.ROBOTS` asks for authority files and nothing else (a consent refresh). `beside`: what processes meanwhile, and may
    hold fetch."""
    config = project.config
    refuse_few_handles(config)
    refuse_beside_workers(project)  # before the lock, which a worker of this machine shares: a fleet is named as one
    with stage_lock(project.layout.locks, "crawl"):
        project.clean()
        if project.remote and not project.layout.server:
            report("note", what=f"store.frontier is on this machine: no other one may crawl into {config.store.root}")
        refuse_beside_workers(project)
        prepared = prepare(project)
        report("crawl", crawl_id=crawl_id, processes=config.crawl.processes, recovered=prepared.recovered, seeds=prepared.seeds)
        fleet = _Fleet(project, crawl_id, run_id, prepared, report, only, beside)
        try:
            return fleet.run(stopping)
        finally:
            fleet.close()


class _Fleet:
    def __init__(
        self, project: Project, crawl_id: str, run_id: str, prepared: Prepared, report: Reporter, only: Kind | None,
        beside: Overlap | None,
    ) -> None:  # fmt: skip
        self._beside = beside
        self._project, self._config, self._report = project, project.config, report
        crawl = self._config.crawl
        self._orders = Orders(project)
        self._orders.news()
        self._budget = budget_of(crawl, self._orders.standing)
        self._earlier = prepared.pages
        self._shares = Shares(self._pages_left(), crawl.processes)
        self._specs = [
            FetchSpec(worker, crawl.processes, crawl_id, run_id, self._config, str(self._config.base), self._quota(worker), only)
            for worker in range(crawl.processes)
        ]
        self._near = NearIndex(crawl.near_k, prepared.fingerprints)
        self._children: dict[int, Child] = {}
        self._status: dict[int, Progress] = {}
        self._rounds: dict[int, int] = {}
        self._dead: list[Progress] = []
        self._deaths: dict[int, int] = {}
        self._finished: set[int] = set()
        self._scan: tuple[int, dict[int, int]] | None = None
        self._ended = ""
        self._ordered_at = 0.0
        self._drained = False
        self._clock = PausableClock()
        self._watch = Watch(project, run_id, "crawl" if only is None else "refresh", self._orders, self._earlier, beside)

    def run(self, stopping: Callable[[], int]) -> CrawlEnd:
        self._heed(self._orders.first, starting=True)
        for spec in self._specs:
            self._spawn(spec)
        broken_off = False
        while len(self._finished) < len(self._specs):
            self._listen()
            if not self._ended:
                self._orders.catch_up()
                self._heed(self._orders.news())
                self._ended = self._verdict(self._clock.seconds(), stopping())
                if self._ended:
                    self._report("ending", why=self._ended)
                    self._ordered_at = time.monotonic()
                    self._tell(("drain",))
                continue
            waited = time.monotonic() - self._ordered_at
            if stopping() > 1 or waited > KILL_S:
                self._ended = "interrupted" if stopping() else self._ended
                break  # whoever still runs is killed by `close`; the next run finds all that was acknowledged
            if waited > DRAIN_S and not broken_off:
                broken_off = True
                self._tell(("stop",))
        self._progress(last=True)
        return CrawlEnd(self._ended, **{name: self._sum(name) for name in COUNTED}, parked=self._parked())

    def close(self) -> None:
        for child in self._children.values():
            child.stop(grace_s=2.0)

    # messages
    def _spawn(self, spec: FetchSpec) -> None:
        self._children[spec.worker] = start(f"fetch-{spec.worker}", "corpus.app.fetch_process:main", spec)
        self._status[spec.worker], self._rounds[spec.worker] = Progress(), 0
        if self._beside is not None and self._beside.held:
            self._children[spec.worker].send(("hold", True))

    def _tell(self, message: Any) -> None:
        for worker, child in self._children.items():
            if worker not in self._finished:
                child.send(message)

    def _listen(self) -> None:
        by_connection = {child.connection: worker for worker, child in self._children.items() if worker not in self._finished}
        for connection in wait(list(by_connection), timeout=POLL_S):
            worker = by_connection[connection]  # type: ignore[index]
            try:
                self._hear(worker, self._children[worker].connection.recv())
            except (EOFError, ConnectionResetError):
                self._died(worker)
        if self._beside is not None and self._beside.look(ending=bool(self._ended)):
            self._tell(("hold", self._beside.held))
        self._progress()

    def _hear(self, worker: int, message: tuple[Any, ...]) -> None:
        match message:
            case ("status", facts):
                before, self._status[worker] = self._status.get(worker), Progress(**facts)
                self._say_stalled(worker, before.stalled if before else "", self._status[worker].stalled)
                self._rounds[worker] += 1
            case ("near", pages):
                self._children[worker].send(("near", self._near.ask(pages)))
            case ("errand", int(file), _):
                self._children[file % len(self._specs)].send(("errand", message[2]))
            case ("errand-done", errand, _, _):
                self._children[errand.asker].send(message)
            case ("error", CorpusError() as error):
                raise error
            case ("finished",):
                self._finished.add(worker)
                self._children[worker].process.join(5.0)
            case _:
                raise WorkerDied(f"a fetch process sent {message[:1]!r}, which no one understands", f"fetch-{worker}")

    def _say_stalled(self, worker: int, before: str, now: str) -> None:
        """A process that waits for its store says so once, and once when it goes on."""
        if now and not before:
            self._report("waiting for the store", worker=worker, why=now, what="nothing is lost; it goes on by itself")
        elif before and not now:
            self._report("the store answers again", worker=worker)

    def _died(self, worker: int) -> None:
        child = self._children[worker]
        child.process.join(5.0)
        self._deaths[worker] = self._deaths.get(worker, 0) + 1
        self._scan = None
        self._report("fetch process died", worker=worker, exit_status=child.exit_code(), deaths=self._deaths[worker])
        if self._deaths[worker] > RESPAWNS:
            hint = "see the lines above; what it had not acknowledged will be fetched again by the next run"
            raise WorkerDied(f"died {self._deaths[worker]} times (exit status {child.exit_code()})", f"fetch-{worker}", hint)
        self._dead.append(self._status[worker])
        recover_worker(self._project, worker)
        if self._ended:
            self._finished.add(worker)
        else:
            self._shares.spent(worker, self._status[worker].new_pages)
            self._spawn(replace(self._specs[worker], quota=self._quota(worker)))

    # decisions
    def _quota(self, worker: int) -> int | None:
        return None if self._budget.pages is None else self._shares.limit(worker)

    def _pages_left(self) -> int:
        return UNLIMITED if self._budget.pages is None else max(self._budget.pages - self._earlier, 0)

    def _heed(self, orders: Sequence[ControlEntry], *, starting: bool = False) -> None:
        """Take notice of what the operator ordered; fetch processes read the same log and obey the rest of it themselves."""
        if starting:
            for words in described(self._orders.standing):
                self._report("order in force", what=words)
        for order in () if starting else orders:
            self._report("order", n=order.n, action=order.action, value=order.value, **dict(order.detail), reason=order.reason)
            self._drained |= order.action == "drain"
        self._clock.pause(self._orders.standing.pause is not None)
        budget = budget_of(self._config.crawl, self._orders.standing)
        if budget.pages != self._budget.pages:
            self._budget = budget
            spent = {worker: status.new_pages for worker, status in self._status.items()}
            for worker, limit in self._shares.resize(self._pages_left(), spent).items():
                if worker in self._children and worker not in self._finished:
                    self._children[worker].send(("quota", limit))
            self._scan = None
        self._budget = budget

    def _verdict(self, seconds: float, interrupts: int) -> str:
        if interrupts or self._drained:
            return "interrupted"
        if self._budget.met(wire_bytes=self._sum("bytes_wire"), seconds=seconds):
            return "budget"
        if not self._quiet():
            return ""
        starving = [worker for worker, status in self._status.items() if status.starving]
        if starving:
            return "" if self._dealt_again(starving) else "budget"
        return "done" if self._config.crawl.until == "done" or self._specs[0].only is not None else ""

    def _dealt_again(self, starving: list[int]) -> bool:
        """Give what nobody else uses to those who can use it; False when the budget is used up."""
        spent = {worker: status.new_pages for worker, status in self._status.items()}
        limits = self._shares.deal_again(spent, starving)
        for worker, limit in limits.items():
            self._children[worker].send(("quota", limit))
        self._scan = None
        return bool(limits)

    def _quiet(self) -> bool:
        """All idle and everything sent was applied, in two scans of which the second began after the first ended."""
        statuses = self._status.values()
        sent, applied = sum(s.sent for s in statuses), sum(s.applied for s in statuses)
        if not all(s.idle for s in statuses) or sent != applied:
            self._scan = None
            return False
        if self._scan is None or self._scan[0] != sent:
            self._scan = (sent, dict(self._rounds))
            self._tell(("scan",))
            return False
        return all(self._rounds[worker] > before for worker, before in self._scan[1].items())

    def _sum(self, name: str) -> int:
        return sum(getattr(status, name) for status in [*self._status.values(), *self._dead])

    def _parked(self) -> dict[str, int]:
        parked: dict[str, int] = {}
        for status in self._status.values():
            for reason, hosts in status.parked.items():
                parked[reason] = parked.get(reason, 0) + hosts
        return parked

    def _progress(self, *, last: bool = False) -> None:
        if last or self._watch.due(self._sum("requests")):
            live = self._watch.look(list(self._status.values()), self._dead, self._budget, self._clock.seconds(), last=last)
            self._report("live", live=live)
