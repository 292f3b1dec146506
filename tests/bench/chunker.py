"""Content-defined chunks as a hub that stores files by chunk cuts them: a rolling Gear hash, 64 KiB on average.

Bounds of 8 and 128 KiB a chunk, like Xet's. Only for measuring how much of a file is new beside another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

MEAN_BITS = 16
LEAST, MOST = 8 * 1024, 128 * 1024
_WINDOW = 64
_BLOCK = 1 << 21
_GEAR = np.frombuffer(b"".join(hashlib.sha256(bytes([n])).digest()[:8] for n in range(256)), dtype=np.uint64)


def chunks(data: bytes) -> Iterator[bytes]:
    """The chunks of some bytes, in order."""
    cuts = _candidates(np.frombuffer(data, dtype=np.uint8))
    start = 0
    while start < len(data):
        at = int(np.searchsorted(cuts, start + LEAST))
        end = min(int(cuts[at]) if at < len(cuts) else len(data), start + MOST, len(data))
        yield data[start:end]
        start = end


def _candidates(values: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Ends of chunks, as far as the bytes before them decide: one in 2^16."""
    found = []
    for start in range(0, len(values), _BLOCK):
        low = max(start - _WINDOW, 0)
        state = _GEAR[values[low : start + _BLOCK]].copy()
        shift = 1
        while shift < _WINDOW:  # after the last round each word has heard of the 64 bytes up to its own
            state[shift:] += state[:-shift] << np.uint64(shift)
            shift *= 2
        ends = np.flatnonzero(state >> np.uint64(64 - MEAN_BITS) == 0) + low + 1
        found.append(ends[ends > start])
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def new_bytes(old: bytes, new: bytes) -> int:
    """Bytes of `new` in chunks that `old` does not have."""
    known = {hashlib.sha256(chunk).digest() for chunk in chunks(old)}
    return sum(len(chunk) for chunk in chunks(new) if hashlib.sha256(chunk).digest() not in known)
