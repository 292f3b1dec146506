"""The few operations durable files are made of, and the real disk behind them.

Everything in this room that must survive a power cut goes through this port, so that a simulated disk can cut the
power between any two steps. Reading needs no port: what is not whole is never under a name that readers open.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Protocol

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
"""Errors of a disk that is full: somebody may make room, and the same step then succeeds."""


class Disk(Protocol):
    """Errors are the system's own `OSError`s; callers translate them once, at their boundary."""

    def create(self, path: Path) -> int:
        """A new empty file open for writing at its end; FileExistsError if the name is taken."""
        ...

    def open(self, path: Path) -> int:
        """An existing file open for writing at its end."""
        ...

    def write(self, fd: int, data: bytes) -> None:
        """All of `data`, or an OSError after a part of it."""
        ...

    def truncate(self, fd: int, size: int) -> None: ...
    def sync(self, fd: int) -> None:
        """What was written to the file is on the platter when this returns."""
        ...

    def close(self, fd: int) -> None: ...
    def link(self, source: Path, target: Path) -> None:
        """A second name for a file; FileExistsError if the target exists (this is what create-only rests on)."""
        ...

    def replace(self, source: Path, target: Path) -> None: ...
    def unlink(self, path: Path) -> None: ...
    def make_folder(self, path: Path) -> None:
        """The folder and its parents, each entry durable."""
        ...

    def sync_folder(self, path: Path) -> None:
        """Names created, replaced or removed in the folder are on the platter when this returns."""
        ...


class LocalDisk:
    """The operating system's file system."""

    def create(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def open(self, path: Path) -> int:
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def write(self, fd: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        # fdatasync also flushes a changed length; macOS has only fsync
        getattr(os, "fdatasync", os.fsync)(fd)

    def close(self, fd: int) -> None:
        os.close(fd)

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target)

    def replace(self, source: Path, target: Path) -> None:
        source.replace(target)

    def unlink(self, path: Path) -> None:
        path.unlink()

    def make_folder(self, path: Path) -> None:
        if path.is_dir():
            return
        self.make_folder(path.parent)
        path.mkdir(exist_ok=True)
        self.sync_folder(path.parent)

    def sync_folder(self, path: Path) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
