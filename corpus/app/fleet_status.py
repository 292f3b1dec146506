"""A fleet seen from outside: who is there, what they own, how fast they are. Reads the server; loads it only where there is one."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from corpus.app.project import Project
from corpus.errors import Locked
from corpus.observe.metrics import FleetNumbers
from corpus.observe.words import many

if TYPE_CHECKING:
    from corpus.store.fleet_members import Member

NAMED = 5


def workers_there(project: Project) -> list[Member]:
    """The members of the fleet that are there now; none where the frontier is on this machine. Raises StoreError."""
    if not project.layout.server:
        return []
    from corpus.store.fleet_members import members_there

    return members_there(project.layout.server)


def named(members: Sequence[Member]) -> str:
    """Members by number and machine, the first of them."""
    first = ", ".join(f"worker {member.id} on {member.host}" for member in members[:NAMED])
    return f"{first} and {len(members) - NAMED} more" if len(members) > NAMED else first


def refuse_beside_workers(project: Project) -> None:
    """Raises Locked while workers crawl: a run of one machine would own all that they share."""
    there = workers_there(project)
    if there:
        crawl = "crawl here" if len(there) > 1 else "crawls here"
        raise Locked(f"{named(there)} {crawl}", "corpus worker", "start corpus worker to help them, or end them first")


def numbers(project: Project) -> FleetNumbers | None:
    """The fleet in numbers, for metrics; None where there is none, or its run is over. Raises StoreError."""
    if not project.layout.server:
        return None
    from corpus.store.fleet_members import newest_run

    ended, members = newest_run(project.layout.server)
    if ended or not members:
        return None
    there, version = [member for member in members if member.there], project.control.version()
    host = socket.gethostname()
    files = sum(len(member.report.get("files", ())) for member in there)
    return FleetNumbers(
        workers=len(there),
        here=sum(member.host == host for member in there),
        unowned=max(project.layout.spread - files, 0),
        pages=sum(int(member.report.get("pages", 0)) for member in members),
        behind=max((version - int(member.report.get("orders", version)) for member in there), default=0),
    )


def facts(project: Project) -> Iterable[tuple[str, str]]:
    """One line for the fleet, and one for each worker."""
    there = workers_there(project)
    if not there:
        return []
    version = project.control.version()
    pages_s = sum(member.report.get("pages_s", 0.0) for member in there)
    rows = [("fleet", f"{many(len(there), 'worker')}, {pages_s:.1f} pages/s")]
    for member in there:
        report = member.report
        behind = version - int(report.get("orders", version))
        where = f"{member.host}{f' ({member.region})' if member.region else ''}, process {member.pid}"
        does = (
            f"{len(report.get('files', ()))} partition files, {report.get('pages', 0)} pages, {report.get('pages_s', 0.0):.1f}/s"
        )
        extra = [
            *([f"{behind} orders behind"] if behind > 0 else []),
            *([str(report["stalled"])] if report.get("stalled") else []),
            *([member.state] if member.state != "live" else []),
        ]
        rows.append((f"worker {member.id}", "; ".join([where, does, *extra])))
    return rows
