"""Progress on stderr for a person: a board that is drawn anew on a terminal, plain lines elsewhere (numbers every 20 s).

Crawled text that gets here (names of hosts) is made printable first.
"""

from __future__ import annotations

import re
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from corpus.observe.live import Live
from corpus.observe.words import count, duration, many, printable, rate, size

if TYPE_CHECKING:
    from corpus.observe.board import Board

DRAW_EVERY_S = 0.5
_NUMBER = re.compile(r"[\d.,]+")


class Terminal:
    """A `Reporter`. `stream` absent: stderr."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False, plain_every_s: float = 20.0) -> None:
        self._stream: TextIO = sys.stderr if stream is None else stream
        self._quiet, self._every = quiet, plain_every_s
        self._tty, self._last = self._stream.isatty(), float("-inf")
        self._open = False
        self._board: Board | None = None
        self._stalled = ""

    def __call__(self, event: str, **facts: Any) -> None:
        if self._quiet:
            return
        live = facts.get("live")
        if isinstance(live, Live):
            self._numbers(live)
            return
        text = " ".join([event, *(f"{key} {_short(value)}" for key, value in facts.items() if value not in ("", None))])
        if event != "progress":
            self._line(text)
            return
        now = time.monotonic()
        if self._tty and now - self._last >= DRAW_EVERY_S:
            self._end_board()
            self._last, self._open = now, True
            self._stream.write(f"\r\x1b[2K{text[:200]}")
            self._stream.flush()
        elif not self._tty and now - self._last >= self._every:
            self._last = now
            self._line(text)

    def close(self) -> None:
        """Leave the terminal in order; the last board stays to be read."""
        self._end_board()

    def _numbers(self, live: Live) -> None:
        now = time.monotonic()
        if self._tty:
            if now - self._last >= DRAW_EVERY_S or self._board is None:
                self._last = now
                self._draw(live)
            return
        reason = _NUMBER.sub("", live.stalled)  # a wait that counts down is one reason
        if reason and reason != self._stalled:
            self._line(plain_line(live))
        elif now - self._last >= self._every:
            self._last = now
            self._line(plain_line(live))
        self._stalled = reason

    def _draw(self, live: Live) -> None:
        if self._board is None:
            from corpus.observe.board import Board

            self._board = Board(self._stream)
        self._board.draw(live)

    def _line(self, text: str) -> None:
        if self._board is not None:
            self._board.say(text)
            return
        self._stream.write(("\r\x1b[2K" if self._open else "") + text + "\n")
        self._stream.flush()
        self._open = False

    def _end_board(self) -> None:
        if self._board is not None:
            self._board.close()
            self._board = None


def plain_line(live: Live) -> str:
    """Everything that matters, in one line without control characters."""
    parts = [
        f"{live.stage} {duration(live.seconds)}",
        f"pages {count(live.pages)} at {rate(live.pages_s)}/s (mean {rate(live.pages_s_mean)}/s)",
        f"{size(live.bytes_s)}/s",
        "hosts " + " ".join(f"{n} {state}" for state, n in host_counts(live)),
        f"queued {count(live.frontier.get('queued', 0))}",
        f"refused {count(sum(live.refused.values()))}",
        f"errors {count(sum(live.failed.values()))}",
    ]
    if live.waiting_limit and (live.processed_segments or live.waiting_segments):
        parts.append(processing_words(live))
    for key, used, limit in live.budget:
        parts.append(f"{100 * used / limit:.0f} % of {key}")
    if live.eta_s is not None:
        parts.append(f"ends in {duration(live.eta_s)} ({live.bound})")
    if live.stalled:
        parts.append(live.stalled)
    return printable(" \u00b7 ".join(parts), 1000)


def processing_words(live: Live) -> str:
    """What is processed while the crawl goes on, and what waits for it."""
    done = f"{many(live.processed_segments, 'segment')} ({size(live.processed_bytes)}) processed"
    return f"{done}, {live.waiting_segments} ({size(live.waiting_bytes)} of {size(live.waiting_limit)}) wait"


def host_counts(live: Live) -> list[tuple[str, int]]:
    """Hosts by state, in the order a person asks for; parked ones of this run's account."""
    parked = sum(live.parked.values())
    counts = [(state, live.hosts.get(state, 0)) for state in ("active", "waiting", "backing-off")]
    return [*counts, ("parked", max(parked, live.hosts.get("parked", 0)))]


def _short(value: Any) -> str:
    return printable(f"{value:.1f}" if isinstance(value, float) else str(value))
