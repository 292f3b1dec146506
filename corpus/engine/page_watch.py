"""Watches one page at a time inside a worker: how much CPU it may take, and which page it was if the worker ends.

The limit is CPU time counted by the kernel, not time on a clock: a busy machine or a stopped process changes nothing. Past it
the kernel ends the process (SIGPROF), because a parser in C holds the interpreter and cannot be interrupted from within. A
process that is nobody's worker is never ended: there only the note is kept. Costs four system calls a page.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from corpus.errors import TryLater

OVERRAN = -signal.SIGPROF
"""Exit status of a worker whose page took more CPU than it may."""


class PageWatch:
    """The note at `note` holds a page's digest while it is worked on and is empty between pages; gone after a good end."""

    def __init__(self, note: Path, cpu_s: float) -> None:
        self._path, self._cpu_s = note, cpu_s
        self._armed = multiprocessing.parent_process() is not None
        with _told(note):
            self._file = os.open(note, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)
        self._path.unlink(missing_ok=True)

    @contextmanager
    def page(self, digest: str) -> Iterator[None]:
        """While the body of this digest (hex) is worked on. Raises TryLater where there is no room for the note."""
        with _told(self._path):
            os.pwrite(self._file, digest.encode("ascii"), 0)
        if self._armed:
            signal.setitimer(signal.ITIMER_PROF, self._cpu_s)
        try:
            yield
        finally:
            if self._armed:
                signal.setitimer(signal.ITIMER_PROF, 0)
            os.ftruncate(self._file, 0)


@contextmanager
def _told(note: Path) -> Iterator[None]:
    """A note that cannot be written is an error of the disk, not of ours."""
    try:
        yield
    except OSError as error:
        raise TryLater(f"cannot be written: {error.strerror}", str(note)) from None


def page_of(note: Path) -> str:
    """Digest of the page a worker that is gone was at; "" when it was at none."""
    return note.read_text("ascii") if note.exists() else ""
