"""Why a member of a fleet stands still, in one sentence; empty while nothing but its hosts holds it up. Pure.

Only words: what is done about it is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from corpus.app.fleet_share import may_take, share_of
from corpus.observe.words import many
from corpus.store.fleet_members import Beat


def waits(beat: Beat | None, me: int, owned: Collection[int], node: str, *, connected: bool, gauges: Mapping[str, Any]) -> str:
    """`beat`: the last one; `owned`: files of its fetch process; `gauges`: what that said of itself (`doubt`, `quiet_s`, `quiet`)."""
    if not connected:
        return "this worker waits: the database server does not answer; it asks nobody once half a lease has passed without it"
    if gauges.get("doubt"):
        return "this worker waits: a lease is not renewed, so nothing is asked until the database server answers again"
    if beat is None:
        return ""
    want = share_of(beat, me)
    if not want:
        return spare(beat)
    held = sorted(file for file in want - set(owned) if not may_take(beat.leases.get(file), node))
    if held and not owned:
        whose = sorted({str(beat.leases[file][0]) for file in held})
        return (
            f"this worker waits for {many(len(held), 'partition file')} of its share, still leased to {', '.join(whose)}: whoever"
            " lives lets go of them a few at a time, the lease of whoever is lost has to end"
        )
    if float(gauges.get("quiet_s", 0.0)) > 0:
        return (
            f"this worker waits: hosts of {many(int(gauges.get('quiet', 0)), 'partition file')} rest for {float(gauges['quiet_s']):.0f} s more, because"
            " the last contacts of a lost worker may still run"
        )
    return ""


def spare(beat: Beat) -> str:
    """What a member is told that has no share."""
    live = sum(member.live for member in beat.members)
    return f"this worker waits: {live} workers share the {len(beat.leases)} partition files; it takes over as soon as one of them goes"
