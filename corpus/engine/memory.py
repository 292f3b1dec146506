"""Memory that a process no longer uses, given back to the system: freed pieces of a large page's tree lie between others, and the C
library keeps all of it for later."""

from __future__ import annotations

import ctypes

LARGE = 7 * 2**20
"""Bytes of bodies in one batch that are few large pages: their trees take a hundred megabytes."""
EVERY = 32 * 2**20
"""Bytes of bodies in smaller batches after which the C library is asked: some milliseconds for some seconds of work."""


class GivenBack:
    """Called after bodies of so many bytes were parsed; now and then all free memory goes back. Where the C library cannot (it is
    not glibc), nothing happens."""

    def __init__(self, large: int = LARGE, every: int = EVERY) -> None:
        self._trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        self._large, self._every, self._seen = large, every, 0

    def __call__(self, size: int) -> None:
        self._seen += size
        if self._trim is not None and (size >= self._large or self._seen >= self._every):
            self._trim(0)
            self._seen = 0
