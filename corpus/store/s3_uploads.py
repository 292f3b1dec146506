"""Which multipart uploads this machine has under way: one note per upload, locked by the process that makes it.

S3 keeps the parts of an unfinished upload, and bills them, until somebody aborts it. A note whose lock is free belongs to
a process that died. (A death between the answer of S3 and the note leaves an upload without parts; a lifecycle rule of
the bucket ends those.)
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path


@dataclass(slots=True)
class UploadJournal:
    """Notes in a folder of this machine."""

    folder: Path
    _held: dict[Path, int] = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> Path:
        return self.folder

    def __setstate__(self, folder: Path) -> None:
        self.folder, self._held = folder, {}

    def remember(self, name: str, upload: str) -> Path:
        """Write a note and hold its lock; returns the note."""
        self.folder.mkdir(parents=True, exist_ok=True)
        note = self.folder / f"{sha256(upload.encode()).hexdigest()[:32]}.json"
        fd = os.open(note, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, json.dumps([name, upload]).encode())
        self._held[note] = fd
        return note

    def forget(self, note: Path) -> None:
        """The upload is complete or aborted."""
        note.unlink(missing_ok=True)
        fd = self._held.pop(note, None)
        if fd is not None:
            os.close(fd)

    def orphans(self) -> Iterator[tuple[Path, str, str]]:
        """(note, name, upload) of every upload whose process is gone. Damaged notes (a full disk) are dropped."""
        for note in sorted(self.folder.glob("*.json")):
            if note in self._held:
                continue
            try:
                fd = os.open(note, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                name, upload = json.loads(os.read(fd, 1 << 16))
            except BlockingIOError:
                continue
            except ValueError:
                note.unlink(missing_ok=True)
                continue
            finally:
                os.close(fd)
            yield note, str(name), str(upload)
