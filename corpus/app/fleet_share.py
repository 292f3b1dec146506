"""Who owns which partition files in a fleet, and whether the fleet has nothing left to ask. Pure: members in, answers out.

The shares are `crawl.assign`'s; what is said here is when a member may take, and when it must let go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from corpus.crawl.assign import moves, wanted
from corpus.store.fleet_members import Beat, Member

FEW = 4
"""In how many steps a member at least would let all files go, or take them: the hosts of the others are visited meanwhile."""


def share(me: int, members: Iterable[int], spread: int, far: Mapping[int, Collection[int]] | None = None) -> frozenset[int]:
    """The partition files, of `spread`, that `me` should own. `far`: by file, members that are given it only where nobody else has
    room."""
    away = {file: {str(number) for number in numbers} for file, numbers in (far or {}).items()}
    return frozenset(wanted(str(me), [str(number) for number in members], spread, away))


def share_of(beat: Beat, me: int) -> frozenset[int]:
    """The same among those who live, by what is known of regions. Every file has a lease, in force or not."""
    live = [member for member in beat.members if member.live]
    far = {file: {member.id for member in live if member.region in regions} for file, regions in beat.run.far.items()}
    return share(me, (member.id for member in live), len(beat.leases), far)


def change(beat: Beat, me: int, owned: frozenset[int], node: str) -> tuple[int, ...] | None:
    """The partition files that `me` owns after its next step towards its share; None: it stays as it is (for now). Who owns nothing
    takes all that is free."""
    spread = len(beat.leases)
    at_hand = [file for file in sorted(share_of(beat, me)) if file in owned or may_take(beat.leases.get(file), node)]
    release, acquire = moves(owned, at_hand, at_most=spread // FEW if owned else spread)
    return tuple(sorted((owned - set(release)) | set(acquire))) if release or acquire else None


def may_take(lease: tuple[str, bool] | None, node: str) -> bool:
    """Whether a file may be taken: (whose it was, whether the lease is in force)."""
    return lease is None or lease[0] == node or not lease[1]


def gives_way(full_s: float, wait_s: float, others: Iterable[Member]) -> bool:
    """Whether a member whose disk has been full for `full_s` gives its files back: after `wait_s`, and only to somebody with room."""
    return full_s > wait_s and any(member.live and not member.report.get("full") for member in others)


class Quiet:
    """Whether nothing can happen any more: every file has an owner at rest, and all that was sent was applied, in two looks of
    which the second was reported by everybody after the first one was over (by the server's clock)."""

    def __init__(self) -> None:
        self._first: tuple[tuple[int, tuple[tuple[int, ...], ...]], float] | None = None

    def look(self, beat: Beat) -> bool:
        """Take in a beat; True on the second of two looks that agree."""
        there = [member for member in beat.members if member.there]
        key = (_total(there, "sent"), tuple(_owned(member) for member in there))
        if not self._rests(beat, there):
            self._first = None
            return False
        if self._first is None or self._first[0] != key:
            self._first = (key, beat.now)
            return False
        began = self._first[1]
        return all(float(member.report["heard"]) >= began for member in there if member.report["files"])

    @staticmethod
    def _rests(beat: Beat, there: Sequence[Member]) -> bool:
        files = sorted(file for member in there for file in member.report.get("files", ()))
        return (
            files == sorted(beat.leases)
            and beat.run.seeded == beat.leases.keys()
            and all(member.live and member.report.get("idle") for member in there)
            and _total(there, "sent") == _total(there, "applied")
        )


def _owned(member: Member) -> tuple[int, ...]:
    """Who owns what, and in which of its lives."""
    return member.id, int(member.report.get("life", 0)), *sorted(map(int, member.report.get("files", ())))


def _total(members: Sequence[Member], name: str) -> int:
    return sum(int(member.report.get(name, 0)) for member in members)


def total(beat: Beat, name: str) -> int:
    """A counter of the run over all its members, those that have gone included."""
    return _total(beat.members, name)
