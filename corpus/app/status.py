"""What a folder holds, in counts. Read-only, beside a running crawl.

Whoever has one more number worth a line in `corpus status` and on the status page adds a function to `FACTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from corpus.app import crawl_facts, freshness
from corpus.app.frontier_files import read_all
from corpus.app.frontier_view import tally
from corpus.app.orders import Orders, described
from corpus.app.process import map_records
from corpus.app.project import Project
from corpus.app.release import releases
from corpus.app.segments import page_segments
from corpus.store.locks import holder

PARKED_SHOWN = 50
ORDERS_SHOWN = 20
Facts = Callable[[Project], Iterable[tuple[str, str]]]


def orders_in_force(project: Project) -> Iterable[tuple[str, str]]:
    """What the operator ordered and has not lifted."""
    orders = Orders(project)
    blocked = [f"{entry.kind} {entry.value} is blocked by order {entry.n}" for entry in orders.tombstones.blocked]
    shown = [
        *blocked[:ORDERS_SHOWN],
        *([f"and {len(blocked) - ORDERS_SHOWN} more blocks"] if len(blocked) > ORDERS_SHOWN else []),
    ]
    return [("order", words) for words in (*described(orders.standing), *shown)]


FACTS: list[Facts] = [orders_in_force, freshness.facts, crawl_facts.facts]
"""Each gives (name, words) pairs; they are shown in this order, as they are."""


def status(project: Project) -> dict[str, Any]:
    """Counts by state and reason, parked hosts with their reason, who holds the folder, and whatever `FACTS` adds."""
    hosts: dict[tuple[str, str], int] = {}
    parked: list[dict[str, Any]] = []
    for host, state, reason, queued, next_contact in read_all(
        project.layout, "SELECT host, state, reason, queued, next_contact FROM hosts"
    ):
        hosts[state, reason] = hosts.get((state, reason), 0) + 1
        if state == "parked" and len(parked) < PARKED_SHOWN:
            at = datetime.fromtimestamp(next_contact, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
            parked.append({"host": host, "reason": reason, "queued": queued, "next_contact": at})
    return {
        "urls": _rows(tally(project)),
        "hosts": _rows(hosts),
        "parked": sorted(parked, key=lambda row: str(row["host"])),
        "segments": len(page_segments(project)),
        "measured": len(map_records(project)),
        "releases": [name for name, _ in releases(project)],
        "running": running(project),
        "facts": [{"name": name, "value": value} for facts in FACTS for name, value in facts(project)],
    }


def _rows(counts: dict[tuple[str, str], int]) -> list[dict[str, Any]]:
    return [{"state": state, "reason": reason, "n": n} for (state, reason), n in sorted(counts.items()) if n]


def running(project: Project) -> str:
    """Which stage holds the folder, by which process; empty when none does."""
    for stage in ("crawl", "process", "export"):
        found = holder(project.layout.locks / f"{stage}.lock")
        if found:
            return f"{stage} by process {found.get('pid')} on {found.get('host')}"
    return ""
