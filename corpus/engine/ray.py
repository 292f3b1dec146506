"""The Ray engine: tasks on the nodes of a Ray cluster, or of a small one that is started here (`corpus[ray]`).

A Ray task runs its function in a child of its own, like a worker of the local pool: a page that hangs or kills its process is
found and reported alike, and a child has a limit on its memory. Ray decides where tasks run and runs those of a lost node again.
Tasks carry names of files; Ray's object store holds specs and outcomes only. Starts no dashboard and reports no usage.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from corpus.engine.local import LocalPool, usable_cores
from corpus.engine.tasks import Crashed, Done, Task, TaskOutcome
from corpus.errors import UsageError, WorkerDied

LOST = 5
"""How often a task whose node or Ray worker went away is run again before it counts as crashed."""
INSTALL = "pip install 'corpus[ray]' on every node of the cluster"
AHEAD = 4
"""Tasks handed to Ray for each core of the cluster: more would only wait in the driver's memory."""
_ANSWER_S = 10.0
_NO_CLUSTER = "is its head running, and is this machine one of its nodes? without engine.address a cluster is started here"
_STORE = 128 * 2**20
"""Bytes of the object store of a cluster started here: nothing large goes through it."""
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_task_oom_retries": "2", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""What makes Ray's servers listen on this machine's loopback alone, on Linux too."""


@dataclass(frozen=True, slots=True)
class _Job:
    """What a Ray task is given beside its task: `after` is `module:function` of (spec, value), called where the work was done."""

    function: str
    memory: int
    after: str


class RayEngine:
    """Runs tasks as Ray tasks of one core and `memory` bytes each. `address`: `host:port` or `auto`; None starts a cluster here with
    `workers` cores, which ends with this process."""

    def __init__(
        self, address: str | None = None, *, workers: int | None = None, memory: int = 4 * 10**9, after: str = ""
    ) -> None:
        self._address, self._workers, self._memory, self._after = address, workers, memory, after

    def run(self, function: str, tasks: Iterable[Task]) -> Iterator[TaskOutcome]:
        """Raises UsageError where no node could ever run a task, WorkerDied when the cluster goes away."""
        ray = _connected(self._address, self._workers)
        cores = _room(ray, self._memory)
        remote = ray.remote(_run).options(num_cpus=1, memory=self._memory, max_retries=LOST)
        job, queue = _Job(function, self._memory, self._after), iter(tasks)
        waiting: dict[Any, Task] = {}
        try:
            while True:
                for task in itertools.islice(queue, AHEAD * cores - len(waiting)):
                    waiting[remote.remote(job, task)] = task
                if not waiting:
                    return
                ready, _ = ray.wait(list(waiting), num_returns=1)
                for reference in ready:
                    yield _outcome(ray, reference, waiting.pop(reference))
        finally:
            for reference in waiting:
                with contextlib.suppress(ray.exceptions.RayError):  # it has just ended, or the cluster is gone
                    ray.cancel(reference, force=True)


def _outcome(ray: Any, reference: Any, task: Task) -> TaskOutcome:
    try:
        kind, value, notes = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise WorkerDied(f"the task could not be run: {error.cause!r}", task.key, INSTALL) from error
    except ray.exceptions.RayError as error:
        return Crashed(task.key, LOST, f"Ray gave it up: {str(error).splitlines()[0]}")
    for path, text in notes.items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_bytes(text)
    if kind == "error":
        raise value
    return value if kind == "crashed" else Done(task.key, value)


def _run(job: _Job, task: Task) -> tuple[str, Any, dict[str, bytes]]:
    """On a node: the task in a child of its own, and what it left."""
    from corpus.errors import CorpusError

    for note in task.notes:
        Path(note).parent.mkdir(parents=True, exist_ok=True)
    try:
        (outcome,) = _pool(job.function, job.memory).run(job.function, [task])
        if isinstance(outcome, Crashed):
            return "crashed", outcome, {note: Path(note).read_bytes() for note in task.notes if Path(note).exists()}
        if job.after:
            module, _, name = job.after.partition(":")
            getattr(import_module(module), name)(task.spec, outcome.value)
    except CorpusError as error:
        return "error", error, {}
    return "done", outcome.value, {}


@functools.cache
def _pool(function: str, memory: int) -> LocalPool:
    """The child of a Ray worker that stays for the next task: starting one takes longer than many tasks."""
    return LocalPool(1, memory, warm=True)


def _connected(address: str | None, workers: int | None) -> Any:
    """Ray, connected; once per process. Raises UsageError without the package or the cluster."""
    wanted = _QUIET if address else _QUIET | _LOOPBACK
    os.environ.update({name: value for name, value in wanted.items() if name not in os.environ})
    try:
        import ray
    except ImportError:
        raise UsageError("Ray needs another package", "engine.kind", INSTALL) from None
    if ray.is_initialized():
        return ray
    if address not in (None, "auto"):
        answers(address)
    quiet: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "include_dashboard": None}
    own = {"num_cpus": workers or usable_cores(), "object_store_memory": _STORE, "include_dashboard": False}
    with _signals_kept():
        try:
            ray.init(address=address, **quiet) if address else ray.init(address="local", **(quiet | own))
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise UsageError(f"no Ray cluster: {str(error).splitlines()[0]}", "engine.address", _NO_CLUSTER) from error
    return ray


def answers(address: str) -> None:
    """Whether anybody listens at `host:port`: Ray itself would try for minutes. Raises UsageError."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except OSError as error:
        raise UsageError(f"no Ray cluster: {address} does not answer ({error})", "engine.address", _NO_CLUSTER) from error


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself; what an interrupt means is ours to say."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _room(ray: Any, memory: int) -> int:
    """Cores of the cluster's living nodes. Raises UsageError where no node has the memory of one task: it would wait for ever."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(node.get("CPU", 0) >= 1 and node.get("memory", 0) >= memory for node in nodes):
        most = int(max((node.get("memory", 0) for node in nodes), default=0))
        raise UsageError(
            f"no node of the Ray cluster has a core and {memory:,} bytes for a task; the most is {most:,}",
            "engine.memory",
            "lower it",
        )
    return int(sum(node.get("CPU", 0) for node in nodes))
