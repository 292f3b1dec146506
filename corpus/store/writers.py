"""Temporary files and their writers. A name says which process of which machine writes it, so that what a dead writer left
can be told from what a living one is writing, without any lock.

Nothing ever reads a temporary file; a whole one is renamed. A name of other making is nobody's here and stays.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

PREFIX = ".part-"
_NAME = re.compile(r"\.part-(\d+)-([0-9a-f]{8})-")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """What the system calls this start of the machine; empty where it does not say."""
    return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""


def part_name(suffix: str = "") -> str:
    """A new name for a temporary file of this process."""
    return f"{PREFIX}{os.getpid()}-{_machine()}-{secrets.token_hex(6)}{suffix}"


@cache
def _machine() -> str:
    """This machine since it was started: pids of another one, or of before, say nothing here."""
    return sha256(f"{socket.gethostname()}\0{boot_id()}".encode()).hexdigest()[:8]


def lives(pid: int) -> bool:
    """Whether a process is there and no zombie (where the system does not tell, it is none)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    with suppress(OSError):  # no /proc here
        return Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()[0] != "Z"
    return True


def dead_parts(root: Path) -> Iterator[Path]:
    """Temporary files below a folder whose writer was a process of this machine and is gone."""
    for folder, _, files in os.walk(root):
        for file in files:
            match = _NAME.match(file)
            if match is not None and match[2] == _machine() and not lives(int(match[1])):
                yield Path(folder, file)


def remove_dead_parts(root: Path) -> int:
    """Remove them; returns how many there were. Safe beside any living writer."""
    count = 0
    for path in dead_parts(root):
        path.unlink(missing_ok=True)
        count += 1
    return count
