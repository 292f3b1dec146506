"""What a folder holds, in counts. Read-only, beside a running crawl.

Whoever has one more number worth a line in `corpus status` and on the status page adds a function to `FACTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from corpus.app import crawl_facts, fleet_status, freshness
from corpus.app.frontier_files import read_all
from corpus.app.frontier_view import parked_hosts
from corpus.app.orders import Orders, described
from corpus.app.process import map_records
from corpus.app.project import Project
from corpus.app.release import releases
from corpus.app.segments import page_segments
from corpus.app.url_states import states
from corpus.store.locks import holder

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


FACTS: list[Facts] = [orders_in_force, fleet_status.facts, freshness.facts, crawl_facts.facts]
"""Each gives (name, words) pairs; they are shown in this order, as they are."""


def status(project: Project) -> dict[str, Any]:
    """Counts by state and reason, parked hosts with their reason, who holds the folder, and whatever `FACTS` adds."""
    hosts: dict[tuple[str, str], int] = {}
    for state, reason in read_all(project.layout, "SELECT state, reason FROM hosts"):
        hosts[state, reason] = hosts.get((state, reason), 0) + 1
    return {
        "urls": _rows(states(project)),
        "hosts": _rows(hosts),
        "parked": parked_hosts(project),
        "segments": len(page_segments(project)),
        "measured": len(map_records(project)),
        "releases": [name for name, _ in releases(project)],
        "running": running(project),
        "facts": [{"name": name, "value": value} for facts in FACTS for name, value in facts(project)],
    }


def _rows(counts: dict[tuple[str, str], int]) -> list[dict[str, Any]]:
    return [{"state": state, "reason": reason, "n": n} for (state, reason), n in sorted(counts.items()) if n]


def running(project: Project) -> str:
    """Which stage holds the folder, by which process, or which workers crawl it together; empty when nobody works on it."""
    there = fleet_status.workers_there(project)
    if there:
        return f"crawl by {fleet_status.named(there)}"
    for stage in ("crawl", "process", "export"):
        found = holder(project.layout.locks / f"{stage}.lock")
        if found:
            return f"{stage} by process {found.get('pid')} on {found.get('host')}"
    return ""
