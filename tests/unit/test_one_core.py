"""The edge of `one_core` on a real system: which threads are where, whom it obeys, and what it leaves alone."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from corpus.engine import one_core
from corpus.engine.one_core import YIELDING, OneCore, Reading, read_system
from corpus.engine.process import Link, start

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
pytestmark = pytest.mark.skipif(len(CORES) < 2, reason="this system has one core for us, or does not say which")
DEADLINE_S = 30.0


class Machine:
    """A system that says what a test wants it to, a hundred times as fast: how much of each core others use. We use a whole one."""

    def __init__(self) -> None:
        self._zero, self._at, self._busy = time.monotonic(), 0.0, dict.fromkeys(CORES, 0.0)
        self.others: dict[int, float] = {}
        self.core: OneCore | None = None

    def read(self) -> Reading:
        before, self._at = self._at, 100 * (time.monotonic() - self._zero)
        for core in CORES:
            ours = self.core is not None and core == self.core.core
            self._busy[core] += (self._at - before) * (self.others.get(core, 0.0) + ours)
        return Reading(dict(self._busy), self._at, self._at)

    def watched(self, name: str = "") -> OneCore:
        """A watch over this process, of a kind of its own unless it has a name."""
        self.core = OneCore(name or f"test-{uuid4().hex}", self.read)
        return self.core


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A quiet machine, looked at every few milliseconds; this process has its cores back afterwards."""
    monkeypatch.setattr(one_core, "LOOK_S", 0.02)
    yield Machine()
    monkeypatch.undo()
    for task in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # a thread that has ended
            os.sched_setaffinity(int(task.name), CORES)


def masks() -> set[frozenset[int]]:
    """The cores of every thread of this process."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):  # a thread that has ended
            found.add(frozenset(os.sched_getaffinity(int(task.name))))
    return found


async def until(true: Callable[[], bool], core: OneCore) -> None:
    """Wait for it; generously, because other jobs may have the real machine."""
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, f"never came true; at {core.core}, threads {masks()}"
        await asyncio.sleep(0.005)


def played(core: OneCore, play: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run `play` beside the watch."""

    async def both() -> None:
        task = asyncio.create_task(core.run())
        try:
            await play()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(both())


def test_every_thread_is_there_and_free_again_afterwards(machine: Machine) -> None:
    """Threads that were there before, and those that come; and all of them have all cores again when it ends."""
    core, stop = machine.watched(), threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(3)]

    async def play() -> None:
        await until(lambda: core.core is not None and masks() == {frozenset({core.core})}, core)
        threads[1].start()
        await asyncio.to_thread(threads[2].start)
        assert masks() == {frozenset({core.core})}

    threads[0].start()
    try:
        played(core, play)
    finally:
        stop.set()
    assert core.core is None
    assert masks() == {frozenset(CORES)}


def test_a_core_that_others_fill_is_left(machine: Machine) -> None:
    """For an idler one; and for all cores where there is none."""
    core = machine.watched()

    async def play() -> None:
        await until(lambda: core.core is not None, core)
        first = core.core
        assert first is not None
        machine.others = {first: 0.8}
        await until(lambda: core.core not in {None, first}, core)
        assert masks() == {frozenset({core.core})}
        machine.others = dict.fromkeys(CORES, 0.9)
        await until(lambda: core.core is None, core)
        assert masks() == {frozenset(CORES)}

    played(core, play)


def test_who_sets_our_cores_from_outside_is_obeyed(machine: Machine) -> None:
    """`taskset` on a running crawl: it stays on what it was given, even if that is one core that it did not choose."""
    core = machine.watched()

    async def play() -> None:
        await until(lambda: core.core is not None, core)
        given = next(each for each in CORES if each != core.core)
        os.sched_setaffinity(0, {given})
        await until(lambda: core.core is None, core)
        machine.others = {given: 1.0}
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert os.sched_getaffinity(0) == {given}

    played(core, play)


def test_two_of_a_kind_have_two_cores_or_one_of_them_none(machine: Machine) -> None:
    """The second sees the first's name, and takes another core only while one is left for everybody."""
    name = f"test-{uuid4().hex}"
    child = start("first", "tests.unit.test_one_core:hold", name)
    core = machine.watched(name)
    try:
        assert child.connection.poll(DEADLINE_S)
        theirs = child.connection.recv()
        assert theirs in CORES
        assert masks() == {frozenset(CORES)}, "what one process chooses is nobody else's"

        async def play() -> None:
            if len(CORES) > 2:
                await until(lambda: core.core is not None, core)
            for _ in range(20):
                await asyncio.sleep(0.01)
                assert core.core != theirs
            assert len(CORES) > 2 or core.core is None
            child.stop()
            await until(lambda: core.core is not None, core)

        played(core, play)
    finally:
        child.stop()


def hold(name: str, link: Link) -> None:
    """In a process of its own: have a core until the parent goes."""
    machine = Machine()
    core = machine.watched(name)

    async def say() -> None:
        task = asyncio.create_task(core.run())
        await until(lambda: core.core is not None, core)
        link.send(core.core)
        await task

    asyncio.run(say())


def test_a_core_that_may_not_be_had_is_not_asked_for_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cores can be taken away while we run: the kernel then refuses, and the next best is ours."""
    core, real, asked = machine.watched(), os.sched_setaffinity, []
    gone = CORES[-1]

    def refuse(task: int, cores: Iterable[int]) -> None:
        if set(cores) == {gone}:
            asked.append(task)
            raise OSError(22, "Invalid argument")
        real(task, cores)

    async def play() -> None:
        await until(lambda: core.core is not None, core)
        first = core.core
        assert first is not None
        monkeypatch.setattr(os, "sched_setaffinity", refuse)
        nonlocal gone
        gone = next(each for each in CORES if each != first)
        machine.others = {each: 0.3 for each in CORES if each != gone}
        await until(lambda: len(asked) == 1, core)
        for _ in range(30):
            await asyncio.sleep(0.01)
        assert core.core != gone
        assert not any(gone in mask for mask in masks() if len(mask) == 1)
        assert len(asked) == 1

    played(core, play)


@pytest.mark.parametrize("case", ["no readings", "no such calls"])
def test_a_system_that_says_nothing_is_left_alone(case: str, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without readings nobody binds blindly; without the calls (macOS) the watch ends at once."""
    before = masks()
    core = OneCore("test", (lambda: None) if case == "no readings" else machine.read)
    if case == "no such calls":
        monkeypatch.delattr(os, "sched_setaffinity")
    asyncio.run(asyncio.wait_for(core.run(), DEADLINE_S))
    assert core.core is None
    assert masks() == before


def test_the_real_readings_are_of_every_core_we_may_use() -> None:
    """`/proc/stat` of this machine, whatever else it says."""
    reading = read_system()
    assert reading is not None
    assert set(CORES) <= set(reading.busy)
    assert all(seconds >= 0 for seconds in reading.busy.values())


def test_who_yields_to_us_counts_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A core that is full of processes of a lower priority is nearly ours, unless we are of one ourselves; waiting counts for nothing."""
    stat = tmp_path / "stat"
    stat.write_text(
        "cpu  1 1 1 1 1 1 1 1 1 1\ncpu0 100 400 20 9000 900 3 4 5 7 7\ncpu3 1 0 0 5 5 0 0 0 0 0\nintr 5\ncpu9 none\n", "ascii"
    )
    monkeypatch.setattr(one_core, "_STAT", stat)
    monkeypatch.setattr(os, "sysconf", lambda name: 100)
    for nice, busy in ((0, 1.32 + 4 * YIELDING), (5, 5.32)):
        monkeypatch.setattr(os, "nice", lambda by, nice=nice: nice)
        reading = read_system()
        assert reading is not None
        assert reading.busy == {0: pytest.approx(busy), 3: pytest.approx(0.01)}
