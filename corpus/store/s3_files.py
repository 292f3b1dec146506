"""The durable files of a corpus in a bucket, and the copies of them that this machine works with.

A file is made in the working folder, published create-only, and stays there as a copy. A copy is trusted while its
modification time is the mark of the digest it was checked against; anything else is read again or fetched again. The
working folder may be removed at any time when nothing runs: it holds nothing that is durable. Archives are the bulk of a
corpus, so copies of them are kept only up to a budget.
"""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from corpus.errors import AlreadyExists, StoreError
from corpus.store.commits import file_sha256
from corpus.store.local_objects import failed
from corpus.store.objects import check_name
from corpus.store.s3_objects import S3Objects
from corpus.store.writers import part_name

ARCHIVES = ("warc/", "sealed/")
"""Folders whose names are given once and for all: a name that is taken by other bytes is another machine's."""
ARCHIVE_COPIES = 8 * 2**30
"""Bytes of archives kept here beside what is being read."""
JUST_NOW_S = 120.0
"""A copy used so recently may be in somebody's hands and is not removed."""
AT_ONCE = 8
_BLOCK = 256 * 2**10
_MARK_FROM, _MARK_SPAN = 10**18, 2**59
"""Marks are times between 2001 and 2019, to the nanosecond."""


class S3Files:
    """`Files` over a bucket. `root` is the working folder."""

    remote = True

    def __init__(self, objects: S3Objects, root: Path, archive_copies: int = ARCHIVE_COPIES) -> None:
        self.root = root
        self._objects, self._archive_copies = objects, archive_copies

    def local(self, name: str, digest: str = "") -> Path:
        path = self.root / check_name(name)
        if path.is_file() and (not digest or _is_marked(path, digest) or _checked(path, digest)):
            _use(path)
            return path
        return self._fetch(name, path, digest)

    def all_local(self, files: Mapping[str, str] | Sequence[str]) -> list[Path]:
        pairs = list(files.items()) if isinstance(files, Mapping) else [(name, "") for name in files]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda pair: self.local(*pair), pairs))

    def open_far(self, name: str) -> BinaryIO:
        head = self._objects.head(name)
        if head is None:
            raise StoreError("recorded, and not there", name, "run corpus verify")
        return io.BufferedReader(_Far(self._objects, name, int(head["ContentLength"])), _BLOCK)

    def publish(self, files: Mapping[str, str]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(lambda pair: self._publish(*pair), files.items()):
                pass
        if any(name.startswith(ARCHIVES) for name in files):
            self._make_room()

    def _publish(self, name: str, digest: str) -> None:
        path = self.root / name
        try:
            self._objects.put_file_new(name, path)
        except FileNotFoundError:
            if self._digest(name) != digest:
                raise StoreError("was to be published, and is not there", name, "run corpus verify") from None
            return
        except AlreadyExists:
            if self._digest(name) != digest:
                if name.startswith(ARCHIVES):
                    hint = "one machine may crawl under a root: give each its own prefix"
                    raise StoreError("another machine has written this name", name, hint) from None
                self._objects.replace_file(name, path)  # no record speaks of it: a crash left it, or older options did
        _mark(path, digest)

    def replace(self, name: str, digest: str) -> None:
        self._objects.replace_file(name, self.root / name)
        _mark(self.root / name, digest)

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            self._objects.delete(name)
            (self.root / name).unlink(missing_ok=True)

    def names(self, prefix: str) -> list[str]:
        return self._objects.list(prefix if prefix.endswith("/") or not prefix else f"{prefix}/")

    def newest(self, prefix: str, suffix: str) -> str | None:
        found = [
            (item.modified, item.name)
            for item in self._objects.listing(f"{prefix}/")
            if item.name.endswith(f"/{suffix}") and item.name.count("/") == prefix.count("/") + 2
        ]
        return max(found)[1] if found else None

    def size(self, name: str) -> int | None:
        head = self._objects.head(name)
        return None if head is None else int(head["ContentLength"])

    def reread(self, name: str) -> Path | None:
        if not self._objects.exists(name):
            return None
        return self._fetch(name, self.root / check_name(name), "")

    # ---- how

    def _fetch(self, name: str, path: Path, digest: str) -> Path:
        """Bring an object here: checked, then whole under its name, and only then trusted."""
        part = path.with_name(part_name(path.suffix))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as out:
                found = self._objects.get_file(name, out)
            if digest and found != digest:
                raise StoreError("its bytes in the store are not those that were recorded", name, "run corpus verify")
            _mark(part, found)
            part.replace(path)
        except OSError as error:
            raise failed(error, str(path)) from error
        finally:
            part.unlink(missing_ok=True)
        if name.startswith(ARCHIVES):
            self._make_room()
        return path

    def _digest(self, name: str) -> str:
        """SHA-256 of what the store holds under a name; empty when nothing."""
        try:
            with Path(os.devnull).open("wb") as nowhere:
                return self._objects.get_file(name, nowhere)
        except StoreError:
            if self._objects.exists(name):
                raise
            return ""

    def _make_room(self) -> None:
        """Remove the copies of archives that were used longest ago, past the budget. Only copies: what is published and as it was."""
        found, total = [], 0
        for folder in ARCHIVES:
            for path in (self.root / folder).rglob("*.warc.gz"):
                with contextlib.suppress(FileNotFoundError):  # another process makes room too
                    stat = path.stat()
                    total += stat.st_size
                    found.append((stat.st_atime, stat.st_size, path, _MARK_FROM <= stat.st_mtime_ns < _MARK_FROM + _MARK_SPAN))
        for used, size, path, marked in sorted(found):
            if total <= self._archive_copies or time.time() - used < JUST_NOW_S:
                return
            if marked:
                path.unlink(missing_ok=True)
                total -= size


class _Far(io.RawIOBase):
    """An object as a file that is read where one looks: every read is one ranged request."""

    def __init__(self, objects: S3Objects, name: str, size: int) -> None:
        self._objects, self._name, self._size, self._at = objects, name, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        length = min(len(buffer), self._size - self._at)
        if length <= 0:
            return 0
        data = self._objects.get_range(self._name, self._at, length)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


def _mark_of(digest: str) -> int:
    return _MARK_FROM + int(digest[:16], 16) % _MARK_SPAN


def _mark(path: Path, digest: str) -> None:
    os.utime(path, ns=(time.time_ns(), _mark_of(digest)))


def _is_marked(path: Path, digest: str) -> bool:
    return path.stat().st_mtime_ns == _mark_of(digest)


def _checked(path: Path, digest: str) -> bool:
    """Whether an unmarked file has these bytes; it is then marked."""
    if file_sha256(path) != digest:
        return False
    _mark(path, digest)
    return True


def _use(path: Path) -> None:
    """Note the time of use (the file system may be mounted without), leaving the mark."""
    os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
