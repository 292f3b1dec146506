"""A file for what does not fit into memory: without a name, so that it is gone with the process, whatever ends that."""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from corpus.store.local_objects import failed


class ScratchFile:
    """Bytes at the end of a file in `folder`, which exists; the file is made with the first of them. A full disk raises NoRoom."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._open = folder, ExitStack()
        self._fd, self._size = -1, 0

    def __enter__(self) -> ScratchFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._open.close()

    def append(self, data: memoryview) -> int:
        """Keep the bytes; returns their offset."""
        offset = self._size
        try:
            if self._fd < 0:
                file = self._open.enter_context(tempfile.TemporaryFile(dir=self._folder, buffering=0))  # noqa: SIM115
                self._fd = file.fileno()
            while len(data):
                written = os.pwrite(self._fd, data, self._size)
                self._size += written
                data = data[written:]
        except OSError as error:
            raise failed(error, str(self._folder)) from error
        return offset

    def read(self, offset: int, size: int) -> bytes:
        """Bytes that were kept."""
        found = b""
        try:
            while len(found) < size:  # the kernel gives at most 2 GiB at once
                part = os.pread(self._fd, size - len(found), offset + len(found))
                if not part:
                    raise EOFError(f"{size} bytes at {offset} were never kept")
                found = found + part if found else part
        except OSError as error:
            raise failed(error, str(self._folder)) from error
        return found
