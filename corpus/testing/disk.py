"""A disk that loses power, and one that fills up: for proving that what is durable is durable.

`CrashingDisk` works on a real folder and keeps, beside it, what a careless kernel would not have written yet: bytes
behind the last sync of a file, names behind the last sync of a folder. At the chosen step the power goes (`PowerCut`),
every further step fails too, and `settle` leaves on the folder what the seed lets survive. `MemoryObjects` is an
`ObjectStore` without any disk.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from corpus.errors import AlreadyExists, StoreError
from corpus.store.disk import LocalDisk
from corpus.store.objects import check_name, under


class PowerCut(Exception):
    """The power went; the process is dead. Not an OSError: no code of ours may handle it."""


@dataclass(slots=True)
class _File:
    """What of one inode is durable: `synced` of `written` bytes, and a cut-off `tail` that may come back."""

    synced: int = 0
    written: int = 0
    tail: bytes = b""


@dataclass(slots=True)
class _Name:
    """One change of a folder that is not durable yet, and how to take it back."""

    folder: Path
    undo: Callable[[], None]


@dataclass(slots=True)
class CrashingDisk:
    """`Disk` with seeded faults. `crash_at`: the step (from 1) at which the power goes. `capacity`: bytes that may be written in all.

    Survivable by law, for any seed and step: a name seen after the crash is whole; what a returned call promised is there.
    """

    seed: int
    crash_at: int | None = None
    capacity: int | None = None
    steps: int = 0
    dead: bool = False
    _real: LocalDisk = field(default_factory=LocalDisk)
    _files: dict[tuple[int, int], _File] = field(default_factory=dict)
    _inode_paths: dict[tuple[int, int], set[Path]] = field(default_factory=dict)
    _fds: dict[int, tuple[int, int]] = field(default_factory=dict)
    _names: list[_Name] = field(default_factory=list)
    _attic: Path | None = None

    def create(self, path: Path) -> int:
        self._step()
        fd = self._real.create(path)
        key = self._track(fd, path)
        self._files[key] = _File()
        self._names.append(_Name(path.parent, lambda: self._remove(path)))
        return fd

    def open(self, path: Path) -> int:
        self._step()
        fd = self._real.open(path)
        key, size = self._track(fd, path), path.stat().st_size
        self._files.setdefault(key, _File(size, size))
        return fd

    def write(self, fd: int, data: bytes) -> None:
        file = self._files[self._fds[fd]]
        room = len(data) if self.capacity is None else min(len(data), self.capacity)
        if self._is_last():
            self._real.write(fd, data[: self._rng().randint(0, room)])
        self._step()
        self._real.write(fd, data[:room])
        file.written, file.tail = file.written + room, b""
        if self.capacity is not None:
            self.capacity -= room
            if room < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def truncate(self, fd: int, size: int) -> None:
        self._step()
        key = self._fds[fd]
        file = self._files[key]
        path = next(path for path in self._inode_paths[key] if path.exists() and _key(path) == key)
        file.tail = path.read_bytes()[size : file.synced]
        self._real.truncate(fd, size)
        file.written, file.synced = size, min(file.synced, size)

    def sync(self, fd: int) -> None:
        self._step()
        file = self._files[self._fds[fd]]
        file.synced, file.tail = file.written, b""

    def close(self, fd: int) -> None:
        self._fds.pop(fd, None)
        self._real.close(fd)  # the kernel closes a dead process's files too

    def link(self, source: Path, target: Path) -> None:
        self._step()
        self._real.link(source, target)
        self._inode_paths.setdefault(_key(target), set()).add(target)
        self._names.append(_Name(target.parent, lambda: self._remove(target)))

    def replace(self, source: Path, target: Path) -> None:
        self._step()
        old, new = self._keep(target) if target.exists() else None, self._keep(source)
        self._real.replace(source, target)

        def undo() -> None:
            if old:
                shutil.copyfile(old, target)
            else:
                self._remove(target)
            shutil.copyfile(new, source)

        self._names.append(_Name(target.parent, undo))

    def unlink(self, path: Path) -> None:
        self._step()
        kept = self._keep(path)
        self._real.unlink(path)
        self._names.append(_Name(path.parent, lambda: self._restore(kept, path)))

    def make_folder(self, path: Path) -> None:
        self._step()
        self._real.make_folder(path)

    def sync_folder(self, path: Path) -> None:
        self._step()
        self._names = [name for name in self._names if name.folder != path]
        if not self._names:
            self._clear_attic()

    def settle(self) -> None:
        """After a PowerCut: undo, as the seed decides, what was never synced. The folder is then what the next start finds."""
        rng = self._rng()
        for fd in list(self._fds):
            self.close(fd)
        for key, file in self._files.items():
            self._tear(key, file, rng)
        for name in reversed(self._names):
            if rng.random() < 0.5:
                name.undo()
        self._clear_attic()

    def _clear_attic(self) -> None:
        if self._attic:
            shutil.rmtree(self._attic)
            self._attic = None

    def _tear(self, key: tuple[int, int], file: _File, rng: random.Random) -> None:
        """Cut an unsynced tail somewhere, sometimes leave zeros where its bytes should be, sometimes forget a cut."""
        for path in sorted(self._inode_paths.get(key, set())):
            if not path.exists() or _key(path) != key:
                continue
            size = path.stat().st_size
            with path.open("r+b") as handle:
                if file.tail and rng.random() < 0.5:
                    handle.seek(0, os.SEEK_END)
                    handle.write(file.tail)
                if size <= file.synced:
                    return
                handle.truncate(rng.randint(file.synced, size))
                if rng.random() < 0.5:
                    handle.truncate(file.synced)
                    handle.truncate(rng.randint(file.synced, size))
            return

    def _step(self) -> None:
        if self.dead:
            raise PowerCut("the process is dead")
        self.steps += 1
        if self.steps == self.crash_at:
            self.dead = True
            raise PowerCut(f"at step {self.steps}, seed {self.seed}")

    def _is_last(self) -> bool:
        return not self.dead and self.steps + 1 == self.crash_at

    def _rng(self) -> random.Random:
        return random.Random(f"{self.seed}/{self.crash_at}")

    def _track(self, fd: int, path: Path) -> tuple[int, int]:
        key = _key(path)
        self._fds[fd] = key
        self._inode_paths.setdefault(key, set()).add(path)
        return key

    def _keep(self, path: Path) -> Path:
        """A second name for a file about to lose this one, out of the way but on the same disk."""
        if self._attic is None:
            self._attic = path.parent / ".attic"
            self._attic.mkdir(exist_ok=True)
        kept = self._attic / str(self.steps)
        kept.unlink(missing_ok=True)
        os.link(path, kept)
        self._inode_paths.setdefault(_key(kept), set()).add(kept)
        return kept

    def _restore(self, kept: Path, path: Path) -> None:
        if not path.exists():
            os.link(kept, path)

    def _remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)


class MemoryObjects:
    """An `ObjectStore` in a dictionary."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def put_new(self, name: str, data: bytes) -> None:
        if check_name(name) in self._objects:
            raise AlreadyExists("this object exists already", name)
        self._objects[name] = bytes(data)

    def put_file_new(self, name: str, local_path: Path) -> None:
        self.put_new(name, local_path.read_bytes())

    def get(self, name: str) -> bytes:
        try:
            return self._objects[check_name(name)]
        except KeyError:
            raise StoreError("there is no such object", name) from None

    def exists(self, name: str) -> bool:
        return check_name(name) in self._objects

    def list(self, prefix: str) -> list[str]:
        return under(self._objects, prefix)

    def delete(self, name: str) -> None:
        self._objects.pop(check_name(name), None)


def _key(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_dev, stat.st_ino
