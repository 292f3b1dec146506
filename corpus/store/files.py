"""The durable files of a corpus by name, as paths on this disk: one port for a folder and for S3.

Stages read and write plain files; this port says when such a file is durable, and brings it here where it is not. A
name is a path relative to the root. `LocalFiles` is the folder itself; `corpus.store.s3_files` the same over a bucket.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from corpus.errors import StoreError, TryLater
from corpus.store.commits import file_sha256
from corpus.store.objects import check_name


class Files(Protocol):
    """Errors: StoreError for a file that is missing or not what its digest says, TryLater when the store does not answer.

    Picklable, so that tasks may carry it. `remote` says whether what is durable lies elsewhere than in the folder `root`.
    """

    @property
    def root(self) -> Path: ...
    @property
    def remote(self) -> bool: ...
    def local(self, name: str, digest: str = "") -> Path:
        """Where the file lies on this disk. Elsewhere than in a folder it is fetched, and checked against `digest` (SHA-256 hex)."""
        ...

    def all_local(self, files: Mapping[str, str] | Sequence[str]) -> list[Path]:
        """`local` of many, in order: name → digest, or names alone."""
        ...

    def open_far(self, name: str) -> BinaryIO:
        """The file for reading a little of it, without bringing all of it here."""
        ...

    def publish(self, files: Mapping[str, str]) -> None:
        """Make files that were written under `root` durable (name → digest). They appear whole or not at all."""
        ...

    def replace(self, name: str, digest: str) -> None:
        """Publish a file over an earlier content of the same name (a rewrite that the caller has decided upon)."""
        ...

    def remove(self, names: Iterable[str]) -> None:
        """Forget files; a name that is not there is fine."""
        ...

    def names(self, prefix: str) -> list[str]:
        """Names of durable files that begin with a folder's name and a slash, sorted."""
        ...

    def newest(self, prefix: str, suffix: str) -> str | None:
        """Of the durable files with this beginning and end, the one written last; of equal times the last name."""
        ...

    def size(self, name: str) -> int | None:
        """Bytes of a durable file; None when it is not there."""
        ...

    def reread(self, name: str) -> Path | None:
        """What the store itself holds now, whatever was kept here of it; None when it holds nothing."""
        ...


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The files are where they were written: nothing to bring, nothing to send."""

    root: Path
    remote: bool = False

    def local(self, name: str, digest: str = "") -> Path:
        return self.root / name

    def all_local(self, files: Mapping[str, str] | Sequence[str]) -> list[Path]:
        return [self.root / name for name in files]

    def open_far(self, name: str) -> BinaryIO:
        return (self.root / name).open("rb")

    def publish(self, files: Mapping[str, str]) -> None:
        return None

    def replace(self, name: str, digest: str) -> None:
        return None

    def remove(self, names: Iterable[str]) -> None:
        for name in names:
            (self.root / check_name(name)).unlink(missing_ok=True)

    def names(self, prefix: str) -> list[str]:
        found = (path for path in (self.root / prefix).rglob("*") if path.is_file())
        names = (path.relative_to(self.root).as_posix() for path in found)
        return sorted(name for name in names if not any(part.startswith(".") for part in name.split("/")))

    def newest(self, prefix: str, suffix: str) -> str | None:
        found = [
            (path.stat().st_mtime_ns, path.relative_to(self.root).as_posix()) for path in (self.root / prefix).glob(f"*/{suffix}")
        ]
        return max(found, default=(0, None))[1]

    def size(self, name: str) -> int | None:
        path = self.root / name
        return path.stat().st_size if path.is_file() else None

    def reread(self, name: str) -> Path | None:
        path = self.root / name
        return path if path.is_file() else None


def holds(files: Files, name: str, digest: str) -> bool:
    """Whether the store has this file with these bytes."""
    try:
        path = files.local(name, digest)
    except TryLater:
        raise
    except StoreError:
        return False
    return path.is_file() and file_sha256(path) == digest


def remove_folder(files: Files, name: str) -> None:
    """Everything below a folder, here and in the store."""
    files.remove(files.names(f"{name}/"))
    with contextlib.suppress(FileNotFoundError):  # nothing of it was ever here
        shutil.rmtree(files.root / name)
