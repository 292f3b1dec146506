"""Ends a question to a server that says nothing: packets can vanish without any sign, and then whoever waits waits for ever.

A thread looks at the clock while a step lasts; past its time it cuts the connection under the step, which then fails like one
to a server that has died. Knows nothing of what is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LOOK_S = 0.25
HURRIED_S = 5.0
"""How long a step may last once we have been told to end."""


class Guard:
    """`cut`: called from another thread when a step has lasted for `limit_s`, or for `HURRIED_S` while `hurried()`; again every
    moment until it ends. Of nested steps the outermost counts."""

    def __init__(self, limit_s: float, cut: Callable[[], None], hurried: Callable[[], bool]) -> None:
        self._limit_s, self._cut, self._hurried = limit_s, cut, hurried
        self._began: float | None = None
        self._over = threading.Event()
        threading.Thread(target=self._watch, name="guard", daemon=True).start()

    @contextmanager
    def step(self) -> Iterator[None]:
        """What happens inside the block is watched."""
        before = self._began
        self._began = time.monotonic() if before is None else before
        try:
            yield
        finally:
            self._began = before

    def close(self) -> None:
        """Nothing is watched any more."""
        self._over.set()

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            began = self._began
            if began is None:
                continue
            limit_s = min(self._limit_s, HURRIED_S) if self._hurried() else self._limit_s
            if time.monotonic() - began > limit_s:
                self._cut()
