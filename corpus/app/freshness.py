"""How fresh the corpus probably is, from what the crawl has seen of its pages' changes. Read-only, beside a running crawl.

A page whose rate of change is estimated (`crawl.recrawl`) still equals its copy with probability e^(-rate * age), age
counted from the visit that last brought or confirmed a version. Pages visited once count with the rates of those that
were compared: nobody knows better. Without any comparison there is no estimate.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from corpus.app.frontier_files import read_all, read_columns
from corpus.app.project import Project
from corpus.crawl.ports import History
from corpus.crawl.recrawl import bin_rate, rate_bin

_PAGES = """
SELECT v.seen, v.changed, v.watched_s, coalesce(v.checked_at, v.fetched_at), u.again FROM url u JOIN visit v ON v.host = u.host AND v.uid = u.uid
WHERE u.kind = 0 AND (v.checked_at IS NOT NULL OR v.content_sha256 IS NOT NULL)
"""
MOST_MISSES = 5
_AGE_STEP = 1.2
"""Ages of pages visited once are counted in steps of a fifth: exact enough for an average."""


@dataclass(slots=True)
class Freshness:
    """`compared`: pages that were compared with themselves at least once; `fresh`: the estimated share of pages whose copy
    equals the page now; `changes_per_day`: the average rate of those compared; `due`: pages in line for another visit."""

    pages: int = 0
    compared: int = 0
    fresh: float | None = None
    changes_per_day: float | None = None
    due: int = 0
    versions: dict[str, int] = field(default_factory=dict)
    """What visits found: first visits aside, links of the version chains by change, and pages that stayed unchanged."""

    def document(self) -> dict[str, Any]:
        return asdict(self)


def freshness_now(project: Project, wall: float) -> Freshness:
    """The estimate at `wall` (epoch seconds). Nothing is read of a corpus in which no page was visited twice."""
    told, fresh, total_rate = Freshness(), 0.0, 0.0
    told.versions = _versions(project)
    if not told.versions:
        return told
    rates: dict[int, int] = {}
    once: dict[int, int] = {}
    for seen, changed, watched_s, checked_at, again in read_all(project.layout, _PAGES):
        if checked_at is None:
            continue
        told.pages += 1
        told.due += bool(again)
        age_s = max(wall - checked_at, 1.0)
        number = None if seen is None else rate_bin(History(seen, changed, watched_s, checked_at))
        if number is None:
            step = round(math.log(age_s, _AGE_STEP))
            once[step] = once.get(step, 0) + 1
            continue
        told.compared += 1
        rates[number] = rates.get(number, 0) + 1
        total_rate += bin_rate(number)
        fresh += math.exp(-bin_rate(number) * age_s)
    if told.compared:
        known = [(bin_rate(number), n) for number, n in rates.items()]
        for step, n in once.items():
            fresh += n * sum(m * math.exp(-rate * _AGE_STEP**step) for rate, m in known) / told.compared
        told.fresh = round(fresh / told.pages, 4)
        told.changes_per_day = round(total_rate / told.compared * 86_400.0, 4)
    return told


def _versions(project: Project) -> dict[str, int]:
    counts: dict[str, int] = {}
    for change, first_at, last_at in read_columns(project.layout, "version", ("change", "first_at", "last_at")):
        if change:
            counts[change] = counts.get(change, 0) + 1
        if last_at > first_at:
            counts["unchanged"] = counts.get("unchanged", 0) + 1
    return dict(sorted(counts.items()))


def facts(project: Project) -> list[tuple[str, str]]:
    """For `corpus status`: the estimate, and what caches in front of hosts did, as far as they say."""
    words = sentence(freshness_now(project, time.time()))
    found = [("freshness", words)] if words else []
    hosts = [
        (n or 0, m or 0, host) for n, m, host in read_columns(project.layout, "hosts", ("cache_misses", "cache_hits", "host"))
    ]
    misses, hits = sum(row[0] for row in hosts), sum(row[1] for row in hosts)
    if misses or hits:
        most = ", ".join(f"{host} {n}" for n, _, host in sorted(hosts, key=lambda row: (-row[0], row[2]))[:MOST_MISSES] if n)
        words = f"{misses} of {misses + hits} answers that told of a cache were misses, which cost their origins most"
        found.append(("caches", f"{words}: {most}" if most else words))
    return found


def sentence(told: Freshness) -> str:
    """For a person; empty before anything was compared."""
    if told.fresh is None:
        return ""
    return (
        f"about {told.fresh:.1%} of {told.pages} pages are as they were fetched (estimated from {told.compared} that were "
        f"compared with themselves; {told.changes_per_day:g} changes a day on average)"
    )
