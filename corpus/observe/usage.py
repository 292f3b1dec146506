"""CPU-seconds and peak memory of this process and the children it has waited for."""

from __future__ import annotations

import resource
import sys

_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def cpu_seconds() -> dict[str, float]:
    """User plus system time so far, of this process and of its reaped children."""
    usage = {"supervisor": resource.getrusage(resource.RUSAGE_SELF), "workers": resource.getrusage(resource.RUSAGE_CHILDREN)}
    return {who: round(u.ru_utime + u.ru_stime, 3) for who, u in usage.items()}


def peak_rss_bytes() -> int:
    """The largest single process seen so far."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) * _RSS_UNIT
