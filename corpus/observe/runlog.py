"""`runs/<run>/log.jsonl`: what happened, one JSON object a line; and the same for a person on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, TextIO

LOG_BYTES_MAX = 64 * 2**20
"""A log stops growing here and says so: a year-long crawl must not fill the disk with words about itself."""


class Reporter(Protocol):
    """Told what happens; says nothing back."""

    def __call__(self, event: str, **facts: Any) -> None: ...


class RunLog:
    """Writes events to the log, and hands them on to a terminal. The time is asked from `wall`."""

    def __init__(self, path: Path, terminal: Reporter, *, wall: Callable[[], float] = time.time) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")
        self._terminal, self._wall = terminal, wall

    def __call__(self, event: str, **facts: Any) -> None:
        self._terminal(event, **facts)
        if self._file.tell() < LOG_BYTES_MAX:
            at = datetime.fromtimestamp(self._wall(), UTC).isoformat().replace("+00:00", "Z")
            self._file.write(json.dumps({"at": at, "event": event, **facts}, ensure_ascii=False, default=str) + "\n")
            self._file.flush()

    def close(self) -> None:
        self._file.close()


class Terminal:
    """Progress on stderr: a line rewritten in place on a terminal, a plain line every 20 s elsewhere."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False, plain_every_s: float = 20.0) -> None:
        self._stream: TextIO = sys.stderr if stream is None else stream
        self._quiet, self._every = quiet, plain_every_s
        self._live, self._last, self._open = self._stream.isatty(), 0.0, False

    def __call__(self, event: str, **facts: Any) -> None:
        if self._quiet:
            return
        text = " ".join([event, *(f"{key} {_short(value)}" for key, value in facts.items())])
        if event != "progress":
            self._line(text)
            return
        now = time.monotonic()
        if self._live and now - self._last >= 0.5:
            self._last, self._open = now, True
            self._stream.write(f"\r\x1b[2K{text[:200]}")
            self._stream.flush()
        elif not self._live and now - self._last >= self._every:
            self._last = now
            self._line(text)

    def _line(self, text: str) -> None:
        self._stream.write(("\r\x1b[2K" if self._open else "") + text + "\n")
        self._stream.flush()
        self._open = False


def _short(value: Any) -> str:
    text = f"{value:.1f}" if isinstance(value, float) else str(value)
    return "".join(ch if ch.isprintable() else "?" for ch in text)[:160]
