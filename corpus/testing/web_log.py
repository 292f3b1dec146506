"""The server's own account of every contact: who asked what, when it arrived, when it was over.

Politeness is judged from this log and not from what the crawler says of itself. A line is written (and flushed) the
moment an answer ends, so a file survives the death of the client and of the server.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from corpus.errors import StoreError


@dataclass(frozen=True, slots=True)
class Contact:
    """One request. Monotonic times for gaps, wall times for people; `end` is `sent`, `client-left`, `reset`,
    `closed` (by a fault), `stopped` (the server ended first)."""

    n: int
    host: str
    ip: str
    port: int
    target: str
    status: int
    agent: str
    arrived: float
    ended: float
    arrived_wall: float
    ended_wall: float
    end: str
    tag: str = ""
    request: str = ""
    """The request's bytes as latin-1 text."""

    @property
    def url(self) -> str:
        place = self.host if self.port == 80 else f"{self.host}:{self.port}"
        return f"http://{place}{self.target}"


class ContactLog(list[Contact]):
    """All contacts in the order they ended; `path` gets each as one JSON line."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__()
        self._file = None if path is None else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def add(self, contact: Contact) -> None:
        self.append(contact)
        if self._file is not None:
            os.write(self._file, json.dumps(asdict(contact), ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_log(path: Path) -> list[Contact]:
    """Read a JSONL log, by arrival. A half-written last line (the server was killed) is left out; a broken line
    elsewhere raises StoreError."""
    lines = path.read_bytes().split(b"\n")
    contacts = []
    for number, line in enumerate(lines, 1):
        if not line:
            continue
        try:
            contacts.append(Contact(**json.loads(line)))
        except (ValueError, TypeError) as exc:
            if number < len(lines):
                raise StoreError(f"line {number} is no contact: {exc}", str(path)) from exc
    return sorted(contacts, key=lambda c: (c.arrived, c.n))
