"""Who may write: one process per stage, one per partition file. Readers take no lock.

The operating system's flock decides, so a lock dies with its process, however it died; the file beside it only says
who holds it, for the message. `local` must be a disk of this machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from corpus.errors import Locked, StoreError
from corpus.store.disk import NO_ROOM
from corpus.store.writers import boot_id

_POLL_S = 0.02
_GRACE_S = 0.1
"""Somebody who only looks at the lock holds it for a moment too."""


@contextlib.contextmanager
def stage_lock(folder: Path, stage: str, *, shared: bool = False, wall: Callable[[], float] = time.time) -> Iterator[None]:
    """Hold a stage's lock; `Locked` (naming pid, host and age) when another process does. `shared`: with others that share it."""
    lock = PartitionLock(folder / f"{stage}.lock", shared=shared, wall=wall)
    lock.acquire(_GRACE_S)
    try:
        yield
    finally:
        lock.release()


def holder(path: Path) -> dict[str, Any] | None:
    """What the present holder of a lock file says of itself (pid, host, boot_id, started_at); None when nobody holds it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # who may only read may look too
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _who(fd)
    finally:
        os.close(fd)
    return None


class PartitionLock:
    """An flock on one file, waited for: a successor takes over when its predecessor has let go or died."""

    def __init__(self, path: Path, *, shared: bool = False, wall: Callable[[], float] = time.time) -> None:
        self._path, self._shared, self._wall = path, shared, wall
        self._fd: int | None = None

    def acquire(
        self, wait_s: float, *, monotonic: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        """Take the lock, waiting up to `wait_s` seconds. Raises Locked after that; StoreError where locks do not work."""
        if self._fd is not None:
            raise Locked("this process holds the lock already", str(self._path))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            until = monotonic() + wait_s
            while not _try(fd, self._path, shared=self._shared):
                if monotonic() >= until:
                    raise _locked(_who(fd), self._path, self._wall())
                sleep(_POLL_S)
            _sign(fd, self._wall())
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def release(self) -> None:
        """Let go; the file stays (removing it would let two successors lock two files of one name)."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            if not self._shared:  # of several the last one's words stand, and others may hold it still
                os.ftruncate(fd, 0)
            os.close(fd)

    def __enter__(self) -> Self:
        self.acquire(0.0)
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _try(fd: int, path: Path, *, shared: bool) -> bool:
    try:
        fcntl.flock(fd, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise StoreError(
            f"locks do not work here: {error.strerror}", str(path), "put store.local on a disk of this machine"
        ) from error
    return True


def _sign(fd: int, wall: float) -> None:
    value = {"pid": os.getpid(), "host": socket.gethostname(), "boot_id": boot_id(), "started_at": wall}
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(value).encode(), 0)
    except OSError as error:
        if error.errno not in NO_ROOM:  # the lock holds without the words about it
            raise


def _who(fd: int) -> dict[str, Any]:
    """The holder's own words; empty while it is still writing them."""
    try:
        value = json.loads(os.pread(fd, 4096, 0))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _locked(who: dict[str, Any], path: Path, wall: float) -> Locked:
    started = who.get("started_at")
    age = f"for {max(wall - started, 0):.0f} s" if isinstance(started, int | float) else "since just now"
    name = f"process {who.get('pid', 'unknown')} on {who.get('host', 'this machine')}"
    return Locked(f"{path.stem} is locked by {name}, {age}", str(path), "wait for it, or stop that process")
