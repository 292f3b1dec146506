"""When a member of a fleet takes files, lets go of them, and when a fleet has nothing left to do: decided from beats alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("psycopg")

from corpus.app.fleet_share import FEW, Quiet, change, share, share_of
from corpus.store.fleet_members import Beat, Member, RunRow
from corpus.url.partition import PARTITION_FILES

ME, OTHER = 100, 101
ALL = tuple(range(PARTITION_FILES))


def member(number: int, files: tuple[int, ...] = (), *, state: str = "live", alive: bool = True, **report: Any) -> Member:
    said = {"files": list(files), "life": 1, "idle": True, "sent": 0, "applied": 0, "heard": 0.0, **report}
    return Member(number, "here", 1, "", state, alive, said, 0.0, 0.0)


def beat(*members: Member, leases: dict[int, tuple[str, bool]] | None = None, now: float = 1.0) -> Beat:
    return Beat(now, RunRow(1, "x", "", 0, frozenset(ALL), 1.0), members, dict.fromkeys(ALL, ("", False)) | (leases or {}), 0, ())


def test_shares_are_whole_and_equal() -> None:
    """Every file has one owner, numbers differ by at most one, and whoever is alone has all."""
    for n in range(1, 20):
        numbers = range(ME, ME + n)
        owned = [share(number, numbers, len(ALL)) for number in numbers]
        assert sorted(file for files in owned for file in files) == list(ALL)
        assert max(map(len, owned)) - min(map(len, owned)) <= 1


def test_a_member_begins_with_all_that_is_free() -> None:
    """Free: never leased, ended, or its own. What another holds comes later; with nothing free it waits."""
    mine = share(ME, [ME, OTHER], len(ALL))
    assert change(beat(member(ME)), ME, frozenset(), "member 100") == ALL
    held = {file: ("member 101", file == min(mine)) for file in ALL}
    both = beat(member(ME), member(OTHER), leases=held)
    assert change(both, ME, frozenset(), "member 100") == tuple(sorted(mine - {min(mine)}))
    none = beat(member(ME), member(OTHER), leases=dict.fromkeys(ALL, ("member 101", True)))
    assert change(none, ME, frozenset(), "member 100") is None
    own = dict.fromkeys(ALL, ("member 100", True))
    assert change(beat(member(ME), member(OTHER), leases=own), ME, frozenset(), "member 100") == tuple(sorted(mine))


def test_a_region_that_is_far_from_a_file_does_not_get_it_while_others_have_room() -> None:
    """Both of two members compute the same division, which is that of their regions; a region nobody is of changes nothing."""
    far = {file: ("south",) if file < 8 else ("north",) for file in ALL}
    both = (replace(member(ME), region="north"), replace(member(OTHER), region="south"))
    known = replace(beat(*both), run=replace(beat().run, far=far))
    assert share_of(known, ME) == frozenset(range(8))
    assert share_of(known, OTHER) == frozenset(range(8, 16))
    elsewhere = replace(known, run=replace(known.run, far=dict.fromkeys(ALL, ("east",))))
    assert share_of(elsewhere, ME) == share(ME, (ME, OTHER), len(ALL))


def test_a_member_moves_towards_its_share_a_few_files_at_a_time() -> None:
    """When somebody joins, the surplus goes in steps and the rest stays; what is free comes in steps; nothing to do is None."""
    mine = share(ME, [ME, OTHER], len(ALL))
    joined = beat(member(ME, ALL), member(OTHER))
    owned, steps = frozenset(ALL), 0
    while (due := change(joined, ME, owned, "member 100")) is not None:
        assert mine <= set(due) < owned
        assert len(owned - set(due)) <= FEW
        owned, steps = frozenset(due), steps + 1
    assert (owned, steps) == (mine, 2)
    more = beat(member(ME, tuple(mine)), member(OTHER, state="left"))
    while (due := change(more, ME, owned, "member 100")) is not None:
        assert owned < set(due)
        assert len(set(due) - owned) <= FEW
        owned, steps = frozenset(due), steps + 1
    assert (owned, steps) == (frozenset(ALL), 4)


def test_who_has_no_share_lets_everything_go() -> None:
    """A member that leaves has no share, whether it says so or is silent; the last step owns nothing."""
    for gone in (member(OTHER, state="draining"), member(OTHER, alive=False), member(OTHER, state="lost")):
        assert change(beat(member(ME, ALL), gone), ME, frozenset(ALL), "member 100") is None
        assert change(beat(member(ME, ALL), gone), OTHER, frozenset({3}), "member 101") == ()


def test_the_end_is_seen_twice() -> None:
    """The second look counts only when every member reported after the first one was over, and nothing has changed since."""
    half, rest = ALL[:8], ALL[8:]
    first = beat(member(ME, half, sent=3), member(OTHER, rest, applied=3), now=10.0)
    quiet = Quiet()
    assert not quiet.look(first)
    assert not quiet.look(replace(first, now=10.5))
    late = beat(member(ME, half, sent=3, heard=10.4), member(OTHER, rest, applied=3, heard=9.9), now=11.0)
    assert not quiet.look(late)
    done = beat(member(ME, half, sent=3, heard=10.9), member(OTHER, rest, applied=3, heard=10.0), now=11.5)
    assert quiet.look(done)


NOT_YET: dict[str, tuple[Member, ...]] = {
    "a file without an owner": (member(ME, ALL[:15], heard=99.0),),
    "a file with two": (member(ME, ALL, heard=99.0), member(OTHER, ALL[:1], heard=99.0)),
    "somebody at work": (member(ME, ALL, heard=99.0, idle=False),),
    "something under way": (member(ME, ALL, heard=99.0, sent=1),),
    "somebody leaving": (member(ME, ALL, heard=99.0), member(OTHER, state="draining")),
}


@pytest.mark.parametrize("why", sorted(NOT_YET))
def test_it_is_not_over(why: str) -> None:
    """However often it is looked at."""
    quiet = Quiet()
    assert not any(quiet.look(beat(*NOT_YET[why], now=float(n))) for n in range(5))


def test_a_new_process_or_new_links_begin_the_looks_anew() -> None:
    """A fetch process that began between the looks, or links that were sent and applied meanwhile, make the first look void."""
    for second in (member(ME, ALL, heard=50.0, life=2), member(ME, ALL, heard=50.0, sent=1, applied=1)):
        quiet = Quiet()
        assert not quiet.look(beat(member(ME, ALL), now=10.0))
        assert not quiet.look(beat(second, now=60.0))
        assert not quiet.look(beat(second, now=61.0))
        assert quiet.look(beat(replace(second, report={**second.report, "heard": 61.0}), now=62.0))


def test_a_file_that_moved_begins_the_looks_anew() -> None:
    """Who owned it may have said that it rests before the new owner had looked at it."""
    quiet = Quiet()
    for at, mine in ((10.0, 8), (60.0, 9), (61.0, 9)):
        assert not quiet.look(beat(member(ME, ALL[:mine], heard=at - 2), member(OTHER, ALL[mine:], heard=at - 2), now=at))
    assert quiet.look(beat(member(ME, ALL[:9], heard=61.5), member(OTHER, ALL[9:], heard=60.5), now=62.0))
