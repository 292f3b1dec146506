"""A machine whose clock is wrong by CORPUS_TEST_SKEW seconds: whoever puts this folder first on PYTHONPATH lives on it."""

from __future__ import annotations

import os
import time

_SKEW_S = float(os.environ.get("CORPUS_TEST_SKEW", "0"))
_true, _true_ns = time.time, time.time_ns

time.time = lambda: _true() + _SKEW_S
time.time_ns = lambda: _true_ns() + int(_SKEW_S * 1e9)
