"""All threads of this process on one core, for as long as that core is nearly ours (`corpus.engine.core_choice` decides).

Linux only: elsewhere, and wherever the system does not say how much its cores are used, the process is left alone. Which
cores other processes of this kind have is told by names that the kernel frees when their owner dies; containers with
networks of their own do not see each other's, and are told apart by use alone. Processes started from here would inherit the
core, so a process that starts others must not use this. Whoever sets our cores from outside is obeyed.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from corpus.engine.core_choice import Place, Seen, choose

LOOK_S = 1.0
JITTER = 0.25
"""Of it: two that chose the same core at the same moment do not leave it at the same moment."""
STRONG = 0.9
"""Of the fastest core: slower ones (of an efficient kind) are not chosen."""
_STAT, _TASKS, _CPUS = Path("/proc/stat"), Path("/proc/self/task"), Path("/sys/devices/system/cpu")
_SPEEDS = ("cpu_capacity", "cpufreq/cpuinfo_max_freq")
_NICE, _IDLE = 1, (3, 4)
_COUNTED = 8
"""user nice system idle iowait irq softirq steal; what follows is counted in user already."""
YIELDING = 0.25
"""What use at a lower priority counts: the share that a process of nice 5, as processing beside a crawl is, takes from one of nice 0."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Seconds: `busy` of each core since the machine started (less for those who yield to us), `own` of this process, `at` monotonic."""

    busy: Mapping[int, float]
    own: float
    at: float


def read_system() -> Reading | None:
    """What the system says of its cores; None where it does not."""
    try:
        lines = _STAT.read_text("ascii").splitlines()
    except OSError:
        return None
    tick, busy = os.sysconf("SC_CLK_TCK"), {}
    yielding = YIELDING if os.nice(0) <= 0 else 1.0  # those who are nice themselves get no more than others who are
    for line in lines[1:]:
        name, *counts = line.split()[: 1 + _COUNTED]
        if not name.startswith("cpu"):
            break
        used = sum(int(count) for n, count in enumerate(counts) if n not in _IDLE)
        busy[int(name[3:])] = (used - (1 - yielding) * int(counts[_NICE])) / tick
    return Reading(busy, time.process_time(), time.monotonic()) if busy else None


class OneCore:
    """Made when the process begins its work, so that something is known of the machine when `run` looks first."""

    def __init__(self, kind: str, read: Callable[[], Reading | None] = read_system) -> None:
        """`kind`: processes of one kind never share a core while another one is free."""
        self._kind, self._read = kind, read
        self._place = Place()
        self._claim: socket.socket | None = None
        self._allowed: frozenset[int] = frozenset()
        self._beside: dict[int, frozenset[int]] = {}
        self._before = read()

    @property
    def core(self) -> int | None:
        """The core that the process has; None while it has all it may use."""
        return self._place.core

    async def run(self) -> None:
        """Look, decide, move, until cancelled; then the threads have all their cores again."""
        if not hasattr(os, "sched_setaffinity"):
            return
        try:
            while self._before is not None and (now := self._read()) is not None:
                self._obey()
                elapsed = max(now.at - self._before.at, 1e-3)
                own = (now.own - self._before.own) / elapsed
                busy = {core: (now.busy[core] - self._before.busy.get(core, 0.0)) / elapsed for core in now.busy}
                self._look(others(busy, own, self._allowed if self.core is None else {self.core}), own, now.at)
                self._before = now
                await asyncio.sleep(LOOK_S * random.uniform(1 - JITTER, 1 + JITTER))
        finally:
            self._let_go()

    def _obey(self) -> None:
        """The cores we may use: those of our start, or what somebody else has set since (or was left when cores were taken away)."""
        mask = frozenset(os.sched_getaffinity(0))
        if mask != (self._allowed if self.core is None else {self.core}):
            self._release()
            self._allowed, self._place = mask, Place()
            self._beside = {core: _beside(core) for core in mask}

    def _look(self, used: Mapping[int, float], own: float, at: float) -> None:
        taken = frozenset(core for core in self._allowed if core != self.core and _is_claimed(self._name(core)))
        place = choose(self._place, _strong(self._allowed), Seen(used, own, taken, _here(), self._beside), at)
        if place.core is not None and place.core == self.core:
            with suppress(OSError):  # taken away since: the next look finds what the kernel left us
                _bind({place.core})  # again: there may be threads whose maker had not been reached
        elif place.core != self.core and not self._move(place.core):
            return
        self._place = place

    def _move(self, core: int | None) -> bool:
        """Claim a core and go there (None: give up ours). Whether that was possible."""
        if core is None:
            self._let_go()
            return True
        claim = _claim(self._name(core))
        if claim is None:  # somebody was faster; or such names cannot be had here
            return False
        try:
            _bind({core})
        except OSError:  # taken away since
            claim.close()
            self._allowed -= {core}
            with suppress(OSError):  # where we were, if some threads have moved; else the next look finds what the kernel left us
                _bind(self._allowed if self.core is None else {self.core})
            return False
        self._release()
        self._claim = claim
        return True

    def _let_go(self) -> None:
        self._release()
        if self.core is not None:
            self._place = Place()
            with suppress(OSError):  # none of them is left to us: the kernel has chosen others already
                _bind(self._allowed)

    def _release(self) -> None:
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def _name(self, core: int) -> str:
        return f"\0corpus-{self._kind}-core-{core}"


def others(busy: Mapping[int, float], own: float, ours: Collection[int]) -> dict[int, float]:
    """What others used of each core. What we used went to the cores `ours`: where there are several, as they were used altogether."""
    total = max(sum(busy.get(core, 0.0) for core in ours), own, 1e-3)
    return {core: min(max(share - own * share / total if core in ours else share, 0.0), 1.0) for core, share in busy.items()}


def _bind(cores: Collection[int]) -> None:
    """Every thread. Raises OSError when none of the cores may be used."""
    os.sched_setaffinity(0, cores)
    for task in _TASKS.iterdir():
        with suppress(ProcessLookupError):  # a thread that has ended meanwhile
            os.sched_setaffinity(int(task.name), cores)


def _here() -> int | None:
    """The core on which this thread was run last."""
    try:
        return int((_TASKS / str(os.getpid()) / "stat").read_text("ascii").rpartition(")")[2].split()[36])
    except (OSError, IndexError, ValueError):
        return None


def _claim(name: str) -> socket.socket | None:
    """The name, held while the socket is open; None where somebody else has it or it cannot be had."""
    try:
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    except OSError:  # no handle left
        return None
    try:
        claim.bind(name)
    except OSError:
        claim.close()
        return None
    return claim


def _is_claimed(name: str) -> bool:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            return probe.connect_ex(name) == 0
    except OSError:  # no handle left: nobody knows, so it is not ours to take
        return True


def _strong(cores: Collection[int]) -> Collection[int]:
    """Those that are about as fast as the fastest, as far as the system says how fast they are."""
    speeds = {core: _speed(core) for core in cores}
    most = max(speeds.values(), default=0)
    return [core for core, speed in speeds.items() if speed >= STRONG * most]


def _speed(core: int) -> int:
    for file in _SPEEDS:
        with suppress(OSError, ValueError):  # not said on this kind of machine
            return int((_CPUS / f"cpu{core}" / file).read_text("ascii"))
    return 0


def _beside(core: int) -> frozenset[int]:
    """The other threads of a core (`0,4` or `0-1`); none where the system does not say."""
    try:
        text = (_CPUS / f"cpu{core}" / "topology" / "thread_siblings_list").read_text("ascii")
        spans = [part.split("-") for part in text.strip().split(",")]
        return frozenset(n for span in spans for n in range(int(span[0]), int(span[-1]) + 1)) - {core}
    except (OSError, ValueError):
        return frozenset()
