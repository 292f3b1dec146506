"""The kill harness: start a command, kill -9 it at a seeded moment, see that nothing of it lives on, start it again.

Linux only (it reads /proc). Every process of the run is known by a mark in its environment, which children inherit
however they are started and whoever adopts them; only processes with this run's own mark are ever killed, each by
its pid. A survivor is killed too, and then reported as an AssertionError.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from corpus.errors import UsageError

MARK = "CORPUS_RUN_MARK"
"""Environment variable that every process of one run carries."""
ORPHAN_GRACE_S = 2.0
"""So long may a worker outlive its supervisor."""
_PROC = Path("/proc")
_POLL_S = 0.02


class Victim(StrEnum):
    """What is killed: the supervisor alone (its workers must notice), every process of the run at once, or one of the two by lot."""

    SUPERVISOR = "supervisor"
    TREE = "tree"
    EITHER = "either"


@dataclass(frozen=True, slots=True)
class Process:
    """A living process of a run."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: the moment after the start, who lived on when it came, and how long they took to die (seconds)."""

    after_s: float
    orphans: tuple[Process, ...]
    orphans_gone_s: float


@dataclass(frozen=True, slots=True)
class KillReport:
    """What happened. `kills` is shorter than asked for when the command ended before a moment came.

    `exit_code`, `stdout`, `stderr` are those of the run that was allowed to end.
    """

    seed: int
    victim: Victim
    kills: tuple[Kill, ...]
    exit_code: int
    stdout: str
    stderr: str


def run_until_killed(
    argv: Sequence[str],
    *,
    seed: int,
    after_s: tuple[float, float] = (0.2, 3.0),
    kills: int = 1,
    victim: Victim = Victim.SUPERVISOR,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float = 120.0,
    under_way: Callable[[], bool] | None = None,
) -> KillReport:
    """Start `argv`, kill it at a moment of `after_s` drawn from `seed`, `kills` times; then run it to its end.

    The moments count from the start, or from when `under_way` first says so (a slow machine spends long on loading).
    `env` is added to the environment. Raises AssertionError when a process of the run lives on `ORPHAN_GRACE_S` after
    a kill or after the orderly end, TimeoutError when the last run takes longer than `timeout_s`, UsageError where
    there is no /proc.
    """
    if not (_PROC / "self" / "environ").exists():
        raise UsageError("the kill harness reads /proc", sys.platform, "run these tests on Linux")
    draw = random.Random(seed)
    mark = uuid.uuid4().hex
    run = _Run(list(argv), {**os.environ, **(env or {}), MARK: mark}, cwd, mark)
    done: list[Kill] = []
    try:
        for _ in range(kills):
            moment = draw.uniform(*after_s)
            child = run.start()
            if under_way is not None:
                run.wait_until(child, under_way, timeout_s)
            ended = run.ended(child, moment)
            if ended is None:
                orphans = tuple(
                    one for one in marked(mark) if one.pid != child.pid
                )  # after the kill they may be gone too soon to see
                killed = draw.choice((Victim.SUPERVISOR, Victim.TREE)) if victim is Victim.EITHER else victim
                _kill(child.pid, mark, killed)
                done.append(Kill(moment, orphans, _gone(mark, f"seed {seed}, killed {killed} after {moment:.3f} s")))
                continue
            _gone(mark, f"seed {seed}, after an orderly end")
            return KillReport(seed, victim, tuple(done), child.returncode, *ended)
        child = run.start()
        ended = run.ended(child, timeout_s)
        if ended is None:
            raise TimeoutError(f"seed {seed}: the last run did not end within {timeout_s:g} s")
        _gone(mark, f"seed {seed}, after the last run")
        return KillReport(seed, victim, tuple(done), child.returncode, *ended)
    finally:
        run.clear()


@dataclass(slots=True)
class _Run:
    """The command, and every process that was started for it."""

    argv: list[str]
    env: dict[str, str]
    cwd: Path | None
    mark: str
    children: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            self.argv, env=self.env, cwd=self.cwd, text=True, errors="replace", start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self.children.append(child)
        return child

    def ended(self, child: subprocess.Popen[str], within_s: float) -> tuple[str, str] | None:
        """stdout and stderr when it ended in time, None while it runs."""
        try:
            return child.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            return None

    def wait_until(self, child: subprocess.Popen[str], under_way: Callable[[], bool], within_s: float) -> None:
        """Until it is so, or the child has ended; TimeoutError when neither comes."""
        until = time.monotonic() + within_s
        while child.poll() is None and not under_way():
            if time.monotonic() > until:
                raise TimeoutError(f"not under way within {within_s:g} s: {self.argv}")
            time.sleep(_POLL_S)

    def clear(self) -> None:
        """Kill what is left of the run and reap our own children."""
        _kill_marked(self.mark)
        for child in self.children:
            child.communicate()


def marked(mark: str) -> list[Process]:
    """Living processes (zombies left out) whose environment carries this mark, by pid."""
    needle = f"{MARK}={mark}".encode()
    found = []
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # it ended while we looked, or it belongs to somebody else
                # A zombie's environ reads as empty, so it is not found.
                if needle in (folder / "environ").read_bytes().split(b"\0"):
                    command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
                    found.append(Process(int(folder.name), command))
    return sorted(found, key=lambda one: one.pid)


def _kill(supervisor: int, mark: str, victim: Victim) -> None:
    with suppress(ProcessLookupError):  # it ended by itself this very moment
        os.kill(supervisor, signal.SIGKILL)
    if victim is Victim.TREE:
        _kill_marked(mark)


def _kill_marked(mark: str) -> None:
    """Kill until none is left: a process may start another one while we look, and dying takes a moment."""
    deadline = time.monotonic() + ORPHAN_GRACE_S
    while (left := marked(mark)) and time.monotonic() < deadline:
        for one in left:
            with suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def _gone(mark: str, story: str) -> float:
    """Seconds until no process of the run is left. Raises AssertionError after `ORPHAN_GRACE_S`."""
    began = time.monotonic()
    while left := marked(mark):
        waited = time.monotonic() - began
        if waited > ORPHAN_GRACE_S:
            lines = "\n".join(f"  pid {one.pid}: {one.command[:200]}" for one in left)
            raise AssertionError(f"{story}: still alive after {waited:.1f} s\n{lines}")
        time.sleep(_POLL_S)
    return time.monotonic() - began
