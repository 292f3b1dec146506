"""The partition files of a fetch process: locked on this machine, opened, claimed, and given back one by one or all at the end.

Everything here runs in the store thread; `own` is what both threads read. In a fleet files come and go (`crawl.moves`), and what
is free is taken at once: whoever comes too late for a file is told to try again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from corpus.app.frontier_files import frontier_path, open_file
from corpus.app.project import Project
from corpus.app.seat import FRESH_SEAT, hold, let_go, quiet_files
from corpus.crawl.moves import Arrival
from corpus.crawl.own_files import OwnFiles
from corpus.crawl.ports import FrontierStore
from corpus.crawl.seen import RecentSeen
from corpus.errors import Locked
from corpus.store.local_objects import failed
from corpus.store.locks import PartitionLock

LOCK_WAIT_S = 10.0
Came = Callable[[dict[int, FrontierStore]], None]


class FetchFiles:
    """`own`: stores by file; `epochs`: by file, also of those that have left. A `moves.Porter`."""

    def __init__(self, project: Project, owner: str, came: Came) -> None:
        """`came`: what is to be done with files that were claimed, before they count as ours."""
        self._project, self._owner, self._came = project, owner, came
        self._locks: dict[int, PartitionLock] = {}
        self._opened: dict[int, FrontierStore] = {}
        """Claimed, and not ours yet."""
        self._recent = RecentSeen()
        self.own, self.epochs = OwnFiles(), dict[int, int]()

    def start(self, files: Collection[int]) -> None:
        """What a process begins with: former owners are waited for. Raises Locked, StoreError."""
        for number in files:
            self._open(number, patient=True)
        self._take_in()

    def take_up(self, number: int) -> Arrival | None:
        if number not in self._opened:  # it is there when an earlier call was broken off after that
            try:
                self._open(number, patient=False)
            except Locked:  # another owner was quicker; whoever deals out files looks again
                return None
        self._take_in()
        return Arrival(self.epochs[number] <= FRESH_SEAT, quiet_files({number: self.own[number]}))

    def hand_over(self, number: int) -> None:
        self.own[number].close(clean=True)
        self.own.go(number)
        self._locks.pop(number).release()

    def close(self, *, clean: bool, free: bool) -> None:
        """All of them; `free` ends the leases of files that are not left in order."""
        for store in (*self.own.values(), *self._opened.values()):
            if free and not clean:
                let_go(store)
            store.close(clean=clean)
        for lock in self._locks.values():
            lock.release()

    def _open(self, number: int, *, patient: bool) -> None:
        layout = self._project.layout
        path = frontier_path(layout, number).with_suffix(".lock")
        lock = PartitionLock(path)
        try:
            lock.acquire(LOCK_WAIT_S if patient else 0.0)
        except OSError as error:
            raise failed(error, str(path)) from None
        store: FrontierStore | None = None
        try:
            crawl = self._project.config.crawl
            store = open_file(layout, number, self._recent, settings=crawl, patient=patient, meanwhile=self._hold)
            self.epochs[number] = store.claim(self._owner)
        except BaseException:
            if store is not None:
                store.close(clean=False)
            lock.release()
            raise
        self._locks[number], self._opened[number] = lock, store

    def _hold(self) -> None:
        """While one file takes long to come, in the thread that renews leases: those of the others go on."""
        hold((*self.own.values(), *self._opened.values()))

    def _take_in(self) -> None:
        self._came(self._opened)
        self.own.come(self._opened)
        self._opened = {}
