"""Objects in a folder: temporary file, fsync, link, fsync of the folder.

A name appears only when its bytes are on the platter; whatever else a crash leaves begins with `.part-` and is never
listed. Nothing is ever replaced: `sealed` exists for families and release files, whose content a name decides.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from corpus.errors import AlreadyExists, NoRoom, StoreError, UsageError
from corpus.store.disk import NO_ROOM, Disk, LocalDisk
from corpus.store.objects import check_name, under
from corpus.store.writers import part_name

_CHUNK = 1 << 20


class LocalObjects:
    """`ObjectStore` over one folder; the folder is made on the first write."""

    def __init__(self, root: Path, disk: Disk | None = None) -> None:
        self._root = root
        self._disk: Disk = disk or LocalDisk()

    def put_new(self, name: str, data: bytes) -> None:
        self._put(name, lambda fd: self._disk.write(fd, data))

    def put_file_new(self, name: str, local_path: Path) -> None:
        def copy(fd: int) -> None:
            with local_path.open("rb") as source:
                while chunk := source.read(_CHUNK):
                    self._disk.write(fd, chunk)

        self._put(name, copy)

    def get(self, name: str) -> bytes:
        try:
            return self._path(name).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise StoreError("there is no such object", name) from None
        except OSError as error:
            raise failed(error, name) from error

    def exists(self, name: str) -> bool:
        return self._path(name).is_file()

    def list(self, prefix: str) -> list[str]:
        folder = self._root / prefix.rpartition("/")[0]
        if not folder.resolve().is_relative_to(self._root.resolve()):
            raise StoreError(f"not a valid object prefix: {prefix[:200]!r}")
        return under(self._walk(folder), prefix)

    def delete(self, name: str) -> None:
        path = self._path(name)
        try:
            self._disk.unlink(path)
            self._disk.sync_folder(path.parent)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise failed(error, name) from error

    def _path(self, name: str) -> Path:
        return self._root / check_name(name)

    def _walk(self, folder: Path) -> Iterator[str]:
        for parent, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            at = Path(parent).relative_to(self._root).as_posix()
            for name in files:
                if not name.startswith("."):
                    yield name if at == "." else f"{at}/{name}"

    def _put(self, name: str, fill: Callable[[int], None]) -> None:
        target = self._path(name)
        try:
            if target.exists():  # the usual conflict, without writing first; the link below is what decides
                raise FileExistsError
            self._disk.make_folder(target.parent)
            part = _write_part(self._disk, target.parent, fill)
            try:
                self._disk.link(part, target)
            finally:
                self._disk.unlink(part)
            self._disk.sync_folder(target.parent)
        except FileExistsError:
            self._settle(target.parent, name)
            raise AlreadyExists("this object exists already", name) from None
        except OSError as error:
            raise failed(error, name) from error

    def _settle(self, folder: Path, name: str) -> None:
        """The other writer may not have synced the folder yet, and our caller will build on the object being there."""
        try:
            self._disk.sync_folder(folder)
        except OSError as error:
            raise failed(error, name) from error


@contextlib.contextmanager
def sealed(path: Path, disk: Disk | None = None) -> Iterator[Path]:
    """A path to write a file to; on leaving, its bytes become `path` whole, or (on an error) not at all.

    For outputs whose content their name decides, so that replacing one by another is replacing like by like.
    """
    disk = disk or LocalDisk()
    disk.make_folder(path.parent)
    part = path.with_name(part_name(path.suffix))
    try:
        yield part
        fd = disk.open(part)
        try:
            disk.sync(fd)
        finally:
            disk.close(fd)
        disk.replace(part, path)
        disk.sync_folder(path.parent)
    except OSError as error:
        raise failed(error, str(path)) from error
    finally:
        part.unlink(missing_ok=True)


def named_output(output: str | Path) -> Path:
    """A file that a person named to write to. Raises UsageError when its folder is not there: a slip makes no folders."""
    path = Path(output)
    if not path.absolute().parent.is_dir():
        raise UsageError("there is no such folder", str(path.parent), "make it first, or name another file")
    return path


def _write_part(disk: Disk, folder: Path, fill: Callable[[int], None]) -> Path:
    part = folder / part_name()
    fd = disk.create(part)
    try:
        try:
            fill(fd)
            disk.sync(fd)
        finally:
            disk.close(fd)
    except OSError:
        disk.unlink(part)
        raise
    return part


def failed(error: OSError, where: str) -> StoreError:
    """A disk's refusal in plain words: `NoRoom` when it is full, for somebody may make some."""
    kind = NoRoom if error.errno in NO_ROOM else StoreError
    return kind(
        f"the disk refused: {error.strerror or error}",
        where,
        "free some space or repair the disk, then run the same command again",
    )
