"""The one fetch process of a member, as its supervisor holds it: begun with some files, told of others, ended in order or killed.

It knows no server and decides nothing about shares; what the process says that others must act on comes out as messages.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from multiprocessing.connection import wait
from typing import Any

from corpus.app.crawl import DRAIN_S, KILL_S, POLL_S
from corpus.app.fetch_process import FetchSpec
from corpus.crawl.worker import Progress
from corpus.engine.process import Child, start
from corpus.observe.runlog import Reporter

QUICK_S = 60.0
"""A process that dies within this died young; one that has said nothing for so long past its leases is stuck."""


class Hand:
    """`files`: what its last words were said of; `status`: those words; `ending`: why it was told to end, or empty."""

    def __init__(self, report: Reporter, held_s: float) -> None:
        self._report, self._held_s = report, held_s
        self._child: Child | None = None
        self._began = self._heard_at = self._drained_at = self._told_at = 0.0
        self._broken_off = False
        self.files: tuple[int, ...] = ()
        self._meant: tuple[int, ...] = ()
        """What it was last told to own, and how often it has been told."""
        self._told = 0
        self.status = Progress()
        self.dead: list[Progress] = []
        """The last words of those before it."""
        self.ending = ""
        self.young_deaths = 0

    @property
    def at_work(self) -> bool:
        return self._child is not None

    def total(self, name: str) -> int:
        """A counter over this process and those before it."""
        return sum(getattr(status, name) for status in (*self.dead, self.status))

    def begin(self, spec: FetchSpec) -> None:
        self.files = self._meant = spec.files
        self.status, self.ending, self._broken_off, self._told = Progress(), "", False, 0
        self._child = start(f"fetch-{spec.worker}", "corpus.app.fetch_process:main", spec)
        self._began = self._heard_at = time.monotonic()

    def send(self, message: Any) -> None:
        """Tell it something, if it is there."""
        if self._child is not None:
            self._child.send(message)

    @property
    def moving(self) -> bool:
        """It was told to own other files, and has not said that it is done with that."""
        return self.at_work and self._told > self.status.moved

    @property
    def kept(self) -> tuple[int, ...]:
        """Files that are its own and stay so."""
        return tuple(file for file in self.files if file in self._meant)

    def own(self, files: tuple[int, ...], seeds: tuple[int, ...]) -> None:
        """Let go of all other files, and take these as far as they are free; `seeds`: those whose seeds nobody has planted."""
        if files != self._meant:  # what could not be had is asked for again and again, and said once
            self._report(
                "moving files",
                let_go=",".join(str(file) for file in self.files if file not in files),
                take=",".join(str(file) for file in files if file not in self.files),
            )
        self._told, self._meant, self._told_at = self._told + 1, files, time.monotonic()
        self.send(("own", self._told, files, seeds))

    def drain(self, why: str) -> None:
        """Take nothing new, acknowledge what is in flight, release the files, end."""
        if self._child is None or self.ending:
            return
        self.ending, self._drained_at = why, time.monotonic()
        self._report("draining", why=why, files=len(self.files))
        self._child.send(("drain",))

    def give_up(self, why: str) -> None:
        """End without waiting for room on the disk; files are released, and what is not acknowledged is fetched again by others."""
        if self._child is None or self.ending:
            return
        self.ending, self._drained_at = why, time.monotonic()
        self._report("giving up", why=why, files=len(self.files))
        self._child.send(("give-up",))

    def hurry(self, *, hard: bool) -> None:
        """What ends takes no longer than it must; what says nothing for longer than its leases last is ended, and one whose files do not
        move for so long ends in order: a new one begins with what it should have."""
        if self._child is None:
            return
        now = time.monotonic()
        if self.moving and not self.status.stalled and now - self._told_at > self._held_s + QUICK_S:
            self.drain("share")
        if not self.ending:
            late = now - self._heard_at > self._held_s + QUICK_S
        else:
            waited = now - self._drained_at
            if waited > DRAIN_S and not self._broken_off:
                self._broken_off = True
                self._child.send(("stop",))
            late = hard or waited > (KILL_S if self.ending == "interrupted" else self._held_s + KILL_S)
        if late:
            self._child.process.kill()

    def kill(self) -> None:
        """At once; its end is heard by `listen`."""
        if self._child is not None:
            self._child.process.kill()

    def listen(self) -> Iterator[tuple[Any, ...]]:
        """Its messages, waiting a moment for the first; the last is ("gone", clean, exit status, why it was ending)."""
        if self._child is None:
            time.sleep(POLL_S)
            return
        for _ in wait([self._child.connection], timeout=POLL_S):
            try:
                message = self._child.connection.recv()
            except (EOFError, ConnectionResetError):
                yield self._gone(clean=False)
                return
            match message:
                case ("status", facts):
                    self.status, self._heard_at = Progress(**facts), time.monotonic()
                    self.files = self.status.files
                case ("finished",):
                    yield self._gone(clean=True)
                case _:
                    yield message

    def close(self) -> None:
        """It is gone afterwards."""
        if self._child is not None:
            self._child.stop(grace_s=2.0)
            self._child = None

    def _gone(self, *, clean: bool) -> tuple[Any, ...]:
        assert self._child is not None, "it was there"
        self._child.process.join(5.0)
        code, self._child = self._child.exit_code(), None
        young = time.monotonic() - self._began < QUICK_S
        self.young_deaths = 0 if clean else self.young_deaths + 1 if young else 1
        self.dead.append(self.status)
        self.files, self.status, why, self.ending = (), Progress(parked=self.status.parked), self.ending, ""
        return ("gone", clean, code, why)
