"""Free memory that the C library keeps goes back to the system now and then."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from corpus.engine.memory import GivenBack


def _resident() -> int:
    with Path("/proc/self/statm").open(encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.skipif(getattr(ctypes.CDLL(None), "malloc_trim", None) is None, reason="the C library is not glibc")
@pytest.mark.parametrize("limits", [(6, 100), (100, 11)])
def test_what_lies_free_between_others_goes_back(limits: tuple[int, int]) -> None:
    """A hundred megabytes in small pieces, all but the last freed, leave the process once enough bytes were parsed, at once for a large batch."""
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    pieces = [library.malloc(65_536) for _ in range(1_600)]
    for piece in pieces:
        ctypes.memset(piece, 1, 65_536)
    for piece in pieces[:-1]:
        library.free(piece)  # the last one stays on top: without being asked the library gives nothing back
    before = _resident()
    tell = GivenBack(*limits)
    tell(5)
    assert before - _resident() < 10 * 2**20
    tell(6)
    assert before - _resident() > 50 * 2**20
    library.free(pieces[-1])
