"""The local engine: a pool of spawned processes on this machine.

A worker that dies takes one task with it; the task is tried again in a fresh worker, three times in all, and is
then reported as `Crashed` (at once where a page overran its limit). A task that raises one of our errors stops the run with that error.
"""

from __future__ import annotations

import os
import resource
import traceback
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import wait
from typing import Any

from corpus.engine.page_watch import OVERRAN
from corpus.engine.process import Child, Link, start
from corpus.engine.tasks import Crashed, Done, Task, TaskOutcome
from corpus.errors import CorpusError, WorkerDied

TRIES = 3
OUT_OF_MEMORY = 137
"""Exit status of a worker that needed more memory than it may have (that of a shell whose child was killed)."""


@dataclass(slots=True)
class _Run:
    queue: deque[Task]
    tries: dict[str, int] = field(default_factory=dict)
    busy: dict[Child, Task] = field(default_factory=dict)


def usable_cores() -> int:
    """Cores this process may run on: a batch system gives a job fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class LocalPool:
    """At most `workers` processes; none is started for work that is not there.

    `memory`: bytes that a worker's data may take; one that needs more ends, as if the system had killed it. `warm`: workers outlive a
    call and wait for the next one, of the same function; they end with this process.
    """

    def __init__(self, workers: int | None = None, memory: int | None = None, *, warm: bool = False) -> None:
        self._workers, self._memory, self._warm = workers or usable_cores(), memory, warm
        self._children: list[Child] = []

    def run(self, function: str, tasks: Iterable[Task]) -> Iterator[TaskOutcome]:
        run, children = _Run(deque(tasks)), self._children
        try:
            while run.queue or run.busy:
                idle = [child for child in children if child not in run.busy]
                while run.queue and (idle or len(children) < self._workers):
                    child = idle.pop() if idle else self._started(function)
                    task = run.queue.popleft()
                    run.busy[child] = task
                    child.send((task.key, task.spec))
                yield from self._collect(run, children)
        finally:
            self._stop(list(run.busy) if self._warm else list(children))

    def close(self) -> None:
        """End the workers that wait."""
        self._stop(list(self._children))

    def _stop(self, children: Sequence[Child]) -> None:
        for child in children:
            self._children.remove(child)
            child.stop(grace_s=0.5)

    def _started(self, function: str) -> Child:
        child = start(f"worker-{len(self._children)}", "corpus.engine.local:_worker", (function, self._memory))
        self._children.append(child)
        return child

    def _collect(self, run: _Run, children: list[Child]) -> Iterator[TaskOutcome]:
        """Wait for at least one child to answer or die."""
        ready = wait([child.connection for child in run.busy])
        for child in [child for child in run.busy if child.connection in ready]:
            task = run.busy.pop(child)
            try:
                kind, value = child.connection.recv()
            except (EOFError, ConnectionResetError):
                child.process.join()
                children.remove(child)
                outcome = self._died(run, task, child)
                if outcome is not None:
                    yield outcome
                continue
            if kind == "error":
                raise value
            yield Done(task.key, value)

    def _died(self, run: _Run, task: Task, child: Child) -> Crashed | None:
        tries = run.tries[task.key] = run.tries.get(task.key, 0) + 1
        overran = child.exit_code() == OVERRAN
        if tries < TRIES and not overran:
            run.queue.append(task)
            return None
        return Crashed(task.key, tries, f"worker ended with exit status {child.exit_code()}", overran)


def _worker(spec: tuple[str, int | None], link: Link) -> None:
    function, memory = spec
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    module, _, name = function.partition(":")
    call = getattr(import_module(module), name)
    while True:
        message = link.receive()
        if message is None:
            continue
        key, spec = message
        link.send(_attempt(call, key, spec))


def _attempt(call: Any, key: str, spec: Any) -> tuple[str, Any]:
    try:
        return ("done", call(spec))
    except CorpusError as error:
        return ("error", error)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)  # what the system does to a worker that takes too much, and handled alike
    except Exception as error:  # noqa: BLE001  (our own bug: carried whole to the parent, which stops the run)
        return ("error", WorkerDied(f"task raised {error!r}", key, traceback.format_exc()))


class InlineEngine:
    """Runs every task in this process, in order: for tests and small inputs."""

    def run(self, function: str, tasks: Iterable[Task]) -> Iterator[TaskOutcome]:
        module, _, name = function.partition(":")
        call = getattr(import_module(module), name)
        for task in tasks:
            yield Done(task.key, call(task.spec))
