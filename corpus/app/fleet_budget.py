"""Budgets that hold over a whole fleet: pages are dealt out by the server, bytes and time are summed over members.

`max_pages` is never passed by what is acknowledged: a member begins only pages it was dealt. What a member that died had been
dealt is found again when nothing else is left, by counting what is stored. Bytes may be passed by what a beat brings, and
time by a beat, because both are looked at once a beat.
"""

from __future__ import annotations

from corpus.app.fleet_hand import Hand
from corpus.app.fleet_share import total
from corpus.app.frontier_files import read_all
from corpus.app.project import Project
from corpus.app.spending import Budget
from corpus.model import UrlState
from corpus.store.fleet_members import Beat, Fleet


def stored_pages(project: Project) -> int:
    """Pages that the frontier holds as fetched, over all runs."""
    states = (UrlState.FETCHED.value, UrlState.NOT_MODIFIED.value)
    query = "SELECT coalesce(sum(n), 0) FROM tally WHERE page = 1 AND state IN (?, ?)"
    return sum(int(n) for (n,) in read_all(project.layout, query, states))


class PageShare:
    """What one fetch process was dealt; it counts from its own beginning."""

    def __init__(self) -> None:
        self._limit: int | None = None

    def unused(self, spent: int) -> int:
        """Pages that were dealt and not stored."""
        return 0 if self._limit is None else max(self._limit - spent, 0)

    def first(self, fleet: Fleet, beat: Beat, limit: int | None) -> int | None:
        """What a new process may store; None: as many as there are."""
        self._limit = None if limit is None else fleet.deal(_portion(beat, limit), limit)
        return self._limit

    def see_to(self, fleet: Fleet, beat: Beat, me: int, limit: int | None, hand: Hand) -> None:
        """More for a process that starves; what an idle one does not use goes to those who starve."""
        if not hand.at_work or hand.ending:
            return
        before, status = self._limit, hand.status
        if limit is None:
            self._limit = None if before is None else 1 << 40
        elif before is None:
            self._limit = status.new_pages + fleet.deal(_portion(beat, limit), limit)
        elif status.starving:
            self._limit = before + fleet.deal(_portion(beat, limit), limit)
        elif status.idle and not hand.moving and self.unused(status.new_pages) and _others_starve(beat, me):
            fleet.give_back(self.unused(status.new_pages))
            self._limit = status.new_pages
        if self._limit != before and self._limit is not None:
            hand.send(("quota", self._limit))


def _portion(beat: Beat, limit: int) -> int:
    """Half of an equal share of what is left: nobody holds much that others could use."""
    live = sum(member.live for member in beat.members) or 1
    return max((limit - beat.run.dealt) // (2 * live), 1)


def _others_starve(beat: Beat, me: int) -> bool:
    return any(member.there and member.id != me and member.report.get("starving") for member in beat.members)


def used(beat: Beat, budget: Budget, seconds: float) -> list[list[object]]:
    """[key, used, limit] of what bounds the run, over all members; pages are those that were dealt out."""
    rows: list[tuple[str, float, float | None]] = [
        ("crawl.max_pages", beat.run.dealt, budget.pages),
        ("crawl.max_bytes", total(beat, "bytes_wire"), budget.bytes),
        ("crawl.max_time", round(seconds, 1), budget.seconds),
    ]
    return [list(row) for row in rows if row[2] is not None]


def verdict(project: Project, fleet: Fleet, beat: Beat, budget: Budget, seconds: float, *, quiet: bool) -> str:
    """Why the run ends: `done`, `budget`, or not (empty). `seconds`: since it was opened, without pauses."""
    if budget.met(wire_bytes=total(beat, "bytes_wire"), seconds=seconds):
        return "budget"
    if not quiet:
        return ""
    there = [member for member in beat.members if member.there]
    if not any(member.report.get("starving") for member in there):
        return "done"
    if budget.pages is None or beat.run.dealt < budget.pages:
        return ""
    really = stored_pages(project) + sum(int(member.report.get("unused", 0)) for member in there)
    if really >= budget.pages:
        return "budget"
    fleet.recount(beat.run.dealt, really)
    return ""
