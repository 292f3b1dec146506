"""When a member of a fleet takes files, lets go of them, and when a fleet has nothing left to do: decided from beats alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("psycopg")

from corpus.app.fleet_share import ALL, Change, Quiet, change, share, share_of
from corpus.store.fleet_members import Beat, Member, RunRow

ME, OTHER = 100, 101


def member(number: int, files: tuple[int, ...] = (), *, state: str = "live", alive: bool = True, **report: Any) -> Member:
    said = {"files": list(files), "life": 1, "idle": True, "sent": 0, "applied": 0, "heard": 0.0, **report}
    return Member(number, "here", 1, "", state, alive, said, 0.0, 0.0)


def beat(*members: Member, leases: dict[int, tuple[str, bool]] | None = None, now: float = 1.0) -> Beat:
    return Beat(now, RunRow(1, "x", "", 0, frozenset(ALL), 1.0), members, leases or {}, 0, ())


def test_shares_are_whole_and_equal() -> None:
    """Every file has one owner, numbers differ by at most one, and whoever is alone has all."""
    for n in range(1, 20):
        numbers = range(ME, ME + n)
        owned = [share(number, numbers) for number in numbers]
        assert sorted(file for files in owned for file in files) == list(ALL)
        assert max(map(len, owned)) - min(map(len, owned)) <= 1


def test_a_member_takes_what_is_free_and_waits_for_what_is_not() -> None:
    """Free: never leased, ended, or its own. What another holds is waited for; without patience it begins with the rest."""
    mine = share(ME, [ME, OTHER])
    alone = beat(member(ME))
    assert change(alone, ME, frozenset(), "member 100", patient=True) == Change(ALL, restart=False)
    held = {file: ("member 101", file == min(mine)) for file in ALL}
    both = beat(member(ME), member(OTHER), leases=held)
    assert change(both, ME, frozenset(), "member 100", patient=True) is None
    rest = tuple(sorted(mine - {min(mine)}))
    assert change(both, ME, frozenset(), "member 100", patient=False) == Change(rest, restart=False)
    own = dict.fromkeys(ALL, ("member 100", True))
    assert change(beat(member(ME), member(OTHER), leases=own), ME, frozenset(), "member 100", patient=True) == Change(
        tuple(sorted(mine)), restart=False
    )


def test_a_region_that_is_far_from_a_file_does_not_get_it_while_others_have_room() -> None:
    """Both of two members compute the same division, which is that of their regions; a region nobody is of changes nothing."""
    far = {file: ("south",) if file < 8 else ("north",) for file in ALL}
    both = (replace(member(ME), region="north"), replace(member(OTHER), region="south"))
    known = replace(beat(*both), run=replace(beat().run, far=far))
    assert share_of(known, ME) == frozenset(range(8))
    assert share_of(known, OTHER) == frozenset(range(8, 16))
    elsewhere = replace(known, run=replace(known.run, far=dict.fromkeys(ALL, ("east",))))
    assert share_of(elsewhere, ME) == share(ME, (ME, OTHER))


def test_a_member_lets_go_of_what_is_no_longer_its_share() -> None:
    """When somebody joins, the surplus goes and the rest stays; lost and draining members have no share; nothing to do is None."""
    mine = share(ME, [ME, OTHER])
    joined = beat(member(ME, ALL), member(OTHER))
    assert change(joined, ME, frozenset(ALL), "member 100", patient=True) == Change(tuple(sorted(mine)), restart=True)
    for gone in (member(OTHER, state="draining"), member(OTHER, alive=False), member(OTHER, state="lost")):
        assert change(beat(member(ME, ALL), gone), ME, frozenset(ALL), "member 100", patient=True) is None
    assert change(joined, ME, mine, "member 100", patient=True) is None
    more = beat(member(ME, tuple(mine)), member(OTHER, state="left"))
    assert change(more, ME, mine, "member 100", patient=True) == Change(ALL, restart=True)


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
