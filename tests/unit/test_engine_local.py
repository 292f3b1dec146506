"""The local engine: every task answered once, crashes contained, no orphans."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from corpus.engine.local import OUT_OF_MEMORY, LocalPool
from corpus.engine.ray import answers
from corpus.engine.tasks import Crashed, Done, Task
from corpus.errors import StoreError, UsageError


def double(spec: int) -> int:
    return spec * 2


def crash(spec: str) -> str:
    if spec == "bad":
        os.kill(os.getpid(), signal.SIGSEGV)
    return spec


def eat(spec: int) -> int:
    return len(bytearray(spec))


def whoami(spec: int) -> int:
    if spec:
        os._exit(spec)
    return os.getpid()


def refuse(spec: str) -> None:
    raise StoreError("no room", spec, "make room")


def sleep_long(spec: str) -> None:
    Path(spec).write_text(str(os.getpid()))
    time.sleep(60)


@pytest.mark.parametrize("workers", [1, 3])
def test_every_task_is_answered_once(workers: int) -> None:
    """Ten tasks give ten outcomes, whatever the number of workers."""
    tasks = [Task(str(n), n) for n in range(10)]
    outcomes = list(LocalPool(workers).run("tests.unit.test_engine_local:double", tasks))
    assert sorted(outcomes, key=lambda o: int(o.key)) == [Done(str(n), n * 2) for n in range(10)]


def test_a_crash_costs_one_task_only() -> None:
    """A task that kills its worker is tried three times, reported, and the others are done."""
    tasks = [Task(name, name) for name in ("a", "bad", "b")]
    outcomes = {o.key: o for o in LocalPool(2).run("tests.unit.test_engine_local:crash", tasks)}
    assert outcomes["a"] == Done("a", "a")
    assert outcomes["b"] == Done("b", "b")
    assert isinstance(outcomes["bad"], Crashed)
    assert outcomes["bad"].tries == 3


def test_a_worker_has_no_more_memory_than_it_may() -> None:
    """A task that asks for more ends its worker, as if the system had killed it; the next one runs."""
    tasks = [Task("eat", 3 * 10**9), Task("eat little", 10)]
    outcomes = {o.key: o for o in LocalPool(1, memory=2 * 10**9).run("tests.unit.test_engine_local:eat", tasks)}
    assert outcomes["eat"] == Crashed("eat", 3, f"worker ended with exit status {OUT_OF_MEMORY}")
    assert outcomes["eat little"] == Done("eat little", 10)


def test_warm_workers_wait_for_the_next_call() -> None:
    """Two calls are answered by one process; after a crash by another."""
    pool = LocalPool(1, warm=True)
    try:
        first, second = (list(pool.run("tests.unit.test_engine_local:whoami", [Task("x", 0)])) for _ in range(2))
        assert first == second
        (crashed,) = pool.run("tests.unit.test_engine_local:whoami", [Task("x", 1)])
        assert isinstance(crashed, Crashed)
        assert list(pool.run("tests.unit.test_engine_local:whoami", [Task("x", 0)])) != first
    finally:
        pool.close()


def test_a_cluster_that_does_not_answer_is_said_at_once() -> None:
    """An address where nobody listens is a wrong configuration, not minutes of trying."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
        answers(f"127.0.0.1:{port}")
    with pytest.raises(UsageError, match="does not answer"):
        answers(f"127.0.0.1:{port}")


def test_our_errors_cross_the_border_whole() -> None:
    """An error raised in a worker arrives with what, where and hint."""
    with pytest.raises(StoreError) as caught:
        list(LocalPool(1).run("tests.unit.test_engine_local:refuse", [Task("x", "disk")]))
    assert (caught.value.what, caught.value.where, caught.value.hint) == ("no room", "disk", "make room")


def test_workers_die_with_their_parent(tmp_path: Path) -> None:
    """Kill -9 of the parent ends its workers within two seconds."""
    marker = tmp_path / "pid"
    script = (
        "from corpus.engine.local import LocalPool\nfrom corpus.engine.tasks import Task\n"
        f"list(LocalPool(1).run('tests.unit.test_engine_local:sleep_long', [Task('x', {str(marker)!r})]))"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2])
    deadline = time.monotonic() + 20
    while not (marker.exists() and marker.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    worker = int(marker.read_text())
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 2
    while _running(worker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _running(worker)


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False
