"""What a run leaves for whoever looks at it from another process: `live.json`, the present moment, and `series.jsonl`, the past.

Both are bounded: the series is thinned by half whenever it is full, so it always spans the whole run. A reader of either
never sees half a document.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from corpus.observe.live import Live
from corpus.observe.room import if_there_is_room

LIVE, SERIES = "live.json", "series.jsonl"
EVERY_S = 1.0
POINTS_MAX = 1200
COLUMNS = (
    "at", "seconds", "pages", "requests", "bytes_wire", "pages_s", "active", "waiting", "backing_off", "parked", "queued", "refused",
    "failed", "lag_ms",
)  # fmt: skip
"""A point is a list of these."""


class LiveFile:
    """A `Reporter` that keeps the two files of one run up to date; the folder exists."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._points: list[list[float]] = []
        self._step_s, self._written_at, self._point_at = EVERY_S, float("-inf"), float("-inf")
        self._latest: Live | None = None

    def __call__(self, event: str, **facts: Any) -> None:
        live = facts.get("live")
        if not isinstance(live, Live):
            return
        self._latest = live
        with if_there_is_room():
            if live.at - self._written_at >= EVERY_S:
                self._write(live)
            if live.at - self._point_at >= self._step_s:
                self._add(live)

    def close(self) -> None:
        """The last moment is kept whole."""
        if self._latest is not None:
            with if_there_is_room():
                self._write(self._latest)
                self._add(self._latest)

    def _write(self, live: Live) -> None:
        self._written_at = live.at
        part = self._folder / f".{LIVE}.part"
        part.write_text(json.dumps(live.document(), ensure_ascii=True), "ascii")
        os.replace(part, self._folder / LIVE)  # noqa: PTH105  (said at once: no reader sees half of it)

    def _add(self, live: Live) -> None:
        self._point_at = live.at
        self._points.append(point(live))
        if len(self._points) > POINTS_MAX:
            self._points, self._step_s = self._points[::2], self._step_s * 2
            part = self._folder / f".{SERIES}.part"
            part.write_text("".join(json.dumps(row) + "\n" for row in self._points), "ascii")
            os.replace(part, self._folder / SERIES)  # noqa: PTH105
        else:
            with (self._folder / SERIES).open("a", encoding="ascii") as file:
                file.write(json.dumps(self._points[-1]) + "\n")


def point(live: Live) -> list[float]:
    """One row of the series."""
    parked = max(sum(live.parked.values()), live.hosts.get("parked", 0))
    return [
        round(live.at, 2), live.seconds, live.pages, live.requests, live.bytes_wire, round(live.pages_s, 2), live.hosts.get("active", 0),
        live.hosts.get("waiting", 0), live.hosts.get("backing-off", 0), parked, live.frontier.get("queued", 0),
        sum(live.refused.values()), sum(live.failed.values()), live.lag_ms,
    ]  # fmt: skip


def read_live(folder: Path) -> Live | None:
    """The latest moment of a run; None when it left none (or a broken disk cut it)."""
    try:
        document = json.loads((folder / LIVE).read_bytes())
    except (OSError, ValueError):
        return None
    return Live.of(document) if isinstance(document, dict) else None


def read_series(folder: Path) -> list[list[float]]:
    """The points of a run, oldest first; a last line that is being written is left out."""
    try:
        lines = (folder / SERIES).read_bytes().split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines[:-1]:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # a crash in the middle of a write
        if isinstance(row, list) and len(row) == len(COLUMNS):
            found.append(row)
    return found
