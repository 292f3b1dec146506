"""Lines of `corpus status` about the crawl's own judgement: hosts given up, traps, seen URLs, near copies.

Read-only, beside a running crawl.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from corpus.app.frontier_files import read_all, read_columns
from corpus.app.near_copies import gate_report, gate_sentence
from corpus.app.project import Project
from corpus.crawl.memory import sentence

NAMED = 20


def facts(project: Project) -> Iterable[tuple[str, str]]:
    """For `status.FACTS`."""
    yield "memory budget", sentence()
    yield from _retired(project)
    closed = [row[0] for row in read_columns(project.layout, "closed_pattern", ("pattern",))]
    if closed:
        yield "traps", f"{len(closed)} patterns closed, such as {', '.join(sorted(closed)[:3])}"
    yield from _seen(project)
    gate = gate_report(project)
    if gate.copies:
        yield "near copies", gate_sentence(gate)


def _retired(project: Project) -> Iterator[tuple[str, str]]:
    rows = list(read_all(project.layout, "SELECT host, next_contact FROM hosts WHERE state = 'retired' ORDER BY host"))
    for host, at in rows[:NAMED]:
        day = datetime.fromtimestamp(at, UTC).date().isoformat()
        yield "retired", f"{host}: no answer for days; a run after {day} tries it once more"
    if len(rows) > NAMED:
        yield "retired", f"and {len(rows) - NAMED} more hosts"


def _seen(project: Project) -> Iterator[tuple[str, str]]:
    total: dict[str, float] = {}
    for name, value in read_all(project.layout, "SELECT name, value FROM meta WHERE name LIKE 'seen_%'"):
        total[name] = total.get(name, 0) + float(value)
    if total:
        passed = f"{total['seen_dropped']:.0f} sightings passed over without a look-up, about {total['seen_lost']:.1f} URLs lost"
        yield (
            "seen",
            f"bloom: {passed}; of {total['seen_looked_up']:.0f} looked up all the same {total['seen_wrong']:.0f} were new",
        )
