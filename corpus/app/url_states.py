"""The state of a page as everybody is told it: the frontier's, and `parsed` where its stored page was measured.

The frontier never stores *parsed*: it follows from the records of measured segments, here as in the view `pages`. Read-only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from corpus.app.frontier_files import file_at, read_all, read_one
from corpus.app.frontier_view import tally
from corpus.app.project import Project
from corpus.app.segments import segment_of
from corpus.model import UrlState

_BY_FILE = "SELECT warc_file, count(*) FROM urls WHERE state = 'fetched' AND kind = 'page' GROUP BY 1"
MAP = "map"
COSTS = 100.0
"""Counting that took t seconds is not gone on with for 100 t."""


class Measured:
    """Names of the segments that were measured; each record is read once, however often it is asked."""

    def __init__(self, project: Project) -> None:
        self._commits = project.commits
        self._names: dict[str, str] = {}

    def names(self) -> frozenset[str]:
        keys = self._commits.keys(MAP)
        for key in keys:
            if key not in self._names and (record := self._commits.get(MAP, key)) is not None:
                self._names[key] = str(record.info["segment"])
        return frozenset(self._names[key] for key in keys if key in self._names)


def measured_segments(project: Project) -> frozenset[str]:
    """Names of the segments that were measured."""
    return Measured(project).names()


def state_of(row: Mapping[str, Any], measured: Set[str]) -> str:
    """The state of a row of the frontier. `measured`: names of segments."""
    state = str(row["state"])
    parsed = state == UrlState.FETCHED and row["warc_file"] and segment_of(str(row["warc_file"])) in measured
    return UrlState.PARSED.value if parsed else state


def states(project: Project) -> dict[tuple[str, str], int]:
    """Pages by (state, reason), exclusions that are only counted included."""
    found = tally(project)
    measured = measured_segments(project)
    if not measured or not found.get((UrlState.FETCHED.value, "")):
        return found
    fetched = found.pop((UrlState.FETCHED.value, ""))
    parsed = min(_parsed(read_all(project.layout, _BY_FILE), measured), fetched)  # the tally was read a moment earlier
    found |= {(UrlState.PARSED.value, ""): parsed, (UrlState.FETCHED.value, ""): fetched - parsed}
    return {key: n for key, n in found.items() if n}


class StatesNow:
    """Pages by state for whoever asks every few seconds. Where the stored pages of a partition file lie is counted once, and then file
    after file in a hundredth of the time, because that looks at every page; which of them were measured is known at once."""

    def __init__(self, project: Project, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._project, self._monotonic = project, monotonic
        self._measured = Measured(project)
        self._lie: dict[int, list[tuple[Any, ...]]] = {}
        """(archive, pages in it) by partition file"""
        self._next, self._due = 0, float("-inf")

    def by_state(self, *, anew: bool = False) -> dict[str, int]:
        """`anew`: count everything now."""
        found: Counter[str] = Counter()
        for (state, _), n in tally(self._project).items():
            found[state] += n
        fetched = found[UrlState.FETCHED.value]
        measured = self._measured.names() if fetched else frozenset()
        if measured:
            self._count(anew=anew)
            parsed = min(sum(_parsed(files, measured) for files in self._lie.values()), fetched)
            found[UrlState.PARSED.value], found[UrlState.FETCHED.value] = parsed, fetched - parsed
        return {state: n for state, n in found.items() if n}

    def _count(self, *, anew: bool) -> None:
        whole = anew or not self._lie
        for _ in range(self._project.layout.spread):
            began = self._monotonic()
            if not whole and began < self._due:
                return
            path = file_at(self._project.layout, self._next)
            self._lie[self._next] = list(read_one(path, _BY_FILE)) if path.exists() else []
            self._next = (self._next + 1) % self._project.layout.spread
            ended = self._monotonic()
            self._due = ended + COSTS * (ended - began)


def _parsed(lie: Iterable[tuple[Any, ...]], measured: Set[str]) -> int:
    """How many of the stored pages (archive, pages in it) were measured."""
    return sum(n for file, n in lie if file and segment_of(str(file)) in measured)
