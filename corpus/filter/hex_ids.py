"""Hex identities as machine words and back, a whole column at a time.

The families keep ids as hex text, because people and SQL read them; sorting and joining twenty million of them needs
words. Never builds a Python object per row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpus.errors import StoreError

Words = npt.NDArray[np.uint64]


def to_words(column: pa.Array | pa.ChunkedArray, digits: int, where: str) -> Words:
    """A column of `digits` hex digits a value as uint64 [n, digits // 16], most significant word first; null becomes 0.

    Raises StoreError naming `where` when a value has another length or is not hex.
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if array.null_count:
        array = array.fill_null("0" * digits)
    text = array.cast(pa.large_string())
    size = len(text)
    if size == 0:
        return np.empty((0, digits // 16), dtype=np.uint64)
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int64)[text.offset : text.offset + size + 1]
    if (np.diff(offsets) != digits).any():
        raise StoreError(f"an identity is not {digits} hex digits long", where, "run corpus verify")
    raw = memoryview(text.buffers()[2])[offsets[0] : offsets[-1]]
    try:
        packed = bytes.fromhex(str(raw, "ascii"))
    except ValueError as error:
        raise StoreError(f"an identity is not hex: {error}", where, "run corpus verify") from error
    if len(packed) != size * digits // 2:  # fromhex skips blanks, and a blank is no digit
        raise StoreError("an identity holds blanks", where, "run corpus verify")
    return np.frombuffer(packed, dtype=">u8").astype(np.uint64).reshape(size, digits // 16)


def to_hex(words: Words) -> pa.Array:
    """uint64 [n, w] as an Arrow string column of 16 * w lower-case hex digits."""
    size, width = words.shape
    digits = 16 * width
    text = np.ascontiguousarray(words).astype(">u8").tobytes().hex().encode("ascii")
    offsets = np.arange(size + 1, dtype=np.int64) * digits
    large = pa.Array.from_buffers(pa.large_string(), size, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text)])
    return large.cast(pa.string())
