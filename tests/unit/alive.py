"""Whether a process lives, for tests that must leave none behind."""

from __future__ import annotations

from pathlib import Path


def alive(pid: int) -> bool:
    """Is there a process with this id that is not a zombie? Linux."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("latin-1")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}
