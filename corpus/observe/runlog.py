"""`runs/<run>/log.jsonl`: what happened, one JSON object a line; and the same for a person on stderr.

The log is bounded: numbers of a crawl that goes on are written ever more rarely, and a full file is set aside as
`log.1.jsonl` in place of the one before it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from corpus.observe.live import Live
from corpus.observe.room import if_there_is_room
from corpus.observe.terminal import Terminal

__all__ = ["LOG_BYTES_MAX", "Reporter", "RunLog", "Terminal", "told_to_all"]

LOG_BYTES_MAX = 32 * 2**20
"""A file of the log; there are at most two: a year-long crawl must not fill the disk with words about itself."""
OFTEN_S, OFTEN_FOR_S, SELDOM_S = 1.0, 60.0, 20.0
"""Numbers are written every second of the first minute, then every twenty."""


class Reporter(Protocol):
    """Told what happens; says nothing back."""

    def __call__(self, event: str, **facts: Any) -> None: ...


def told_to_all(*reporters: Reporter) -> Reporter:
    """One reporter that tells all of them."""

    def tell(event: str, **facts: Any) -> None:
        for reporter in reporters:
            reporter(event, **facts)

    return tell


class RunLog:
    """Writes events to the log, and hands them on. The time is asked from `wall`."""

    def __init__(self, path: Path, onward: Reporter, *, wall: Callable[[], float] = time.time, most: int = LOG_BYTES_MAX) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._most = path, most
        self._file = path.open("a", encoding="utf-8")
        self._onward, self._wall = onward, wall
        self._began = wall()
        self._numbers_at, self._asked = float("-inf"), 0

    def __call__(self, event: str, **facts: Any) -> None:
        self._onward(event, **facts)
        live = facts.get("live")
        if isinstance(live, Live):
            if self._worth_a_line(live):
                self._write("progress", {"stage": live.stage, **live.line()})
        else:
            self._write(event, facts)

    def close(self) -> None:
        with if_there_is_room():
            self._file.close()

    def _worth_a_line(self, live: Live) -> bool:
        now = self._wall()
        every = OFTEN_S if now - self._began < OFTEN_FOR_S else SELDOM_S
        first = bool(live.requests) and not self._asked
        if now - self._numbers_at < every and not first:
            return False
        self._numbers_at, self._asked = now, live.requests
        return True

    def _write(self, event: str, facts: dict[str, Any]) -> None:
        with if_there_is_room():
            self._append(event, facts)

    def _append(self, event: str, facts: dict[str, Any]) -> None:
        if self._file.tell() >= self._most:
            self._file.close()
            self._path.replace(self._path.with_name("log.1.jsonl"))
            self._file = self._path.open("a", encoding="utf-8")
        at = datetime.fromtimestamp(self._wall(), UTC).isoformat().replace("+00:00", "Z")
        self._file.write(json.dumps({"at": at, "event": event, **facts}, ensure_ascii=False, default=str) + "\n")
        self._file.flush()
