"""Numbers and texts as Arrow columns and back, without what pyarrow loads for such a step.

`pyarrow.array` and `Array.to_numpy` ask whether a value is pandas', and to ask they import it: a third of a CPU-second for whoever
has it and does not use it; `pyarrow.compute` writes a Python function with its documentation for each of its kernels. For the
library, whose callers may well use both; our own commands leave pandas out altogether (`engine.lean`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow._compute import call_function  # what pyarrow.compute.call_function is, without its 300 siblings


def call(kernel: str, *columns: pa.Array) -> Any:
    """What an Arrow kernel of that name answers."""
    return call_function(kernel, list(columns))


def numbers(column: pa.Array) -> npt.NDArray[Any]:
    """A column of integers without nulls, as an array that may not be written to."""
    return np.from_dlpack(column)


def integers(values: npt.NDArray[np.int64]) -> pa.Array:
    """An array as an int64 column."""
    held = np.ascontiguousarray(values, dtype=np.int64)
    return pa.Array.from_buffers(pa.int64(), len(held), [None, pa.py_buffer(held)])


def flags(values: npt.NDArray[np.bool_]) -> pa.Array:
    """An array as a column of truth values."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(np.packbits(values, bitorder="little"))])


def texts(values: Sequence[str | None]) -> pa.Array:
    """Strings as a column; None becomes null. Raises TypeError for what is neither."""
    builder = pa.lib.StringBuilder()
    builder.append_values(values)
    return builder.finish()
