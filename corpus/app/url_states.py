"""The state of a page as everybody is told it: the frontier's, and `parsed` where its stored page was measured.

The frontier never stores *parsed*: it follows from the records of measured segments, here as in the view `pages`. Read-only.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from corpus.app.frontier_files import read_all
from corpus.app.frontier_view import tally
from corpus.app.project import Project
from corpus.app.segments import segment_of
from corpus.model import UrlState

_BY_FILE = "SELECT warc_file, count(*) FROM urls WHERE state = 'fetched' AND kind = 'page' GROUP BY 1"
MAP = "map"


def measured_segments(project: Project) -> frozenset[str]:
    """Names of the segments that were measured."""
    return frozenset(str(record.info["segment"]) for record in project.commits.list(MAP))


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
    rows = read_all(project.layout, _BY_FILE)
    parsed = sum(n for file, n in rows if file and segment_of(str(file)) in measured)
    fetched = found.pop((UrlState.FETCHED.value, ""))
    parsed = min(parsed, fetched)  # the tally was read a moment earlier
    found |= {(UrlState.PARSED.value, ""): parsed, (UrlState.FETCHED.value, ""): fetched - parsed}
    return {key: n for key, n in found.items() if n}
