"""Which core a process keeps its threads on: laws of the decision, then the stories it was made for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.engine.core_choice import CROWDED, LOOKS, REST_S, Place, Seen, choose
from corpus.engine.one_core import others

CORES = range(4)
SHARES = st.floats(0.0, 1.0)
USED = st.dictionaries(st.sampled_from(CORES), SHARES)
SETS = st.frozensets(st.sampled_from(CORES))
LOOKED = st.builds(Seen, used=USED, own=st.floats(0.0, 1.5), taken=SETS, here=st.none() | st.sampled_from(CORES))
PLACES = st.builds(Place, core=st.none() | st.sampled_from(CORES), decided_at=st.floats(-1e6, 0.0), worse=st.integers(0, 3))


def after(
    looks: list[Seen], place: Place | None = None, allowed: frozenset[int] = frozenset({0, 1}), at: float = 0.0
) -> list[Place]:
    """The places of one look a second."""
    places, now = [place or Place()], at
    for seen in looks:
        places.append(choose(places[-1], allowed, seen, now))
        now += 1.0
    return places[1:]


@given(PLACES, SETS, LOOKED)
def test_a_core_is_always_one_that_may_be_had(place: Place, allowed: frozenset[int], seen: Seen) -> None:
    """Allowed, read, nobody else's; and never the last one that is nobody's."""
    core = choose(place, allowed, seen, 1.0).core
    if core is not None:
        assert core in allowed - set(seen.taken)
        assert core in seen.used
        assert len(allowed - set(seen.taken)) >= 2


@given(st.lists(LOOKED, max_size=60), SETS)
def test_nobody_goes_to_and_fro(looks: list[Seen], allowed: frozenset[int]) -> None:
    """Whatever is seen, a core that was moved to for its idleness is left for another one after ten seconds at the soonest, and after
    a crowd none is asked for as long. (To leave a core, or to lose it, is another thing.)"""
    place, moved, gave_up = Place(), float("-inf"), float("-inf")
    for now, seen in enumerate(looks):
        before, place = place, choose(place, allowed, seen, float(now))
        if (
            before.core is not None
            and place.core not in {None, before.core}
            and before.core in allowed - set(seen.taken)
            and before.core in seen.used
        ):
            assert now - moved >= REST_S
            moved = now
        elif place.core is None and place.decided_at == now:
            gave_up = now
        elif before.core is None and place.core is not None and before.decided_at == gave_up:
            assert now - gave_up >= REST_S


@given(st.dictionaries(st.sampled_from(CORES), SHARES, min_size=2), st.sampled_from(CORES))
def test_equal_looks_end_in_one_place(used: dict[int, float], start: int) -> None:
    """Where others do the same all the time and come no nearer, there are at most a move and a giving up in a minute after the first choice."""
    quiet = {core: share / 2 * CROWDED for core, share in used.items()}
    for each in (quiet, used):
        places = after([Seen(each, 1.0)] * 60, Place(start if start in each else None), frozenset(each))
        cores = [place.core for place in places]
        changes = sum(a != b for a, b in pairwise(cores))
        assert changes <= 1


@given(st.integers(1, 6), st.integers(1, 5), st.randoms(use_true_random=False))
def test_two_of_a_kind_are_never_together(cores: int, processes: int, lot: object) -> None:
    """Any number of processes that look in any order: each core has one at most, one core is nobody's, and no core that could be had stays free."""
    allowed, places = frozenset(range(cores)), [Place() for _ in range(processes)]
    for turn in range(20 * processes):
        n = lot.randrange(processes) if turn < 15 * processes else turn % processes  # type: ignore[attr-defined]
        taken = frozenset(place.core for m, place in enumerate(places) if m != n and place.core is not None)
        places[n] = choose(places[n], allowed, Seen(dict.fromkeys(allowed, 0.0), 1.0, taken), float(turn))
        had = [place.core for place in places if place.core is not None]
        assert len(had) == len(set(had)) <= cores - 1
    assert len(had) == min(processes, cores - 1)


@given(st.dictionaries(st.sampled_from(CORES), SHARES, min_size=1), SHARES, st.frozensets(st.sampled_from(CORES)))
def test_what_others_used_is_what_we_did_not(busy: dict[int, float], own: float, ours: frozenset[int]) -> None:
    """Shares lie between nothing and all that was used; our own are taken from our cores alone, and no more of them than we used."""
    told = others(busy, own, ours)
    assert all(0.0 <= told[core] <= busy[core] for core in busy)
    assert all(told[core] == busy[core] for core in busy.keys() - ours)
    assert sum(busy.values()) - sum(told.values()) <= own + 1e-9
    if sum(busy.get(core, 0.0) for core in ours) >= own > 0 and ours:
        assert sum(busy.values()) - sum(told.values()) == pytest.approx(own, abs=1e-3)  # as little is not divided by


def test_an_idle_machine_keeps_us_where_we_are() -> None:
    """The first look is enough; without a word from the kernel it is the last core."""
    assert [p.core for p in after([Seen({0: 0.0, 1: 0.0}, 1.0, here=0)] * 5)] == [0] * 5
    assert [p.core for p in after([Seen({0: 0.0, 1: 0.0}, 1.0)] * 5)] == [1] * 5


def test_a_neighbour_on_our_core_sends_us_to_the_idle_one() -> None:
    """Twice seen it is left; once is an accident."""
    busy, idle = Seen({0: 0.5, 1: 0.0}, 1.0), Seen({0: 0.0, 1: 0.0}, 1.0)
    assert [p.core for p in after([idle, busy, idle, busy, idle], Place(0))] == [0] * 5
    assert [p.core for p in after([busy] * LOOKS, Place(0))] == [0] * (LOOKS - 1) + [1]


def test_a_neighbour_that_comes_after_us_is_fled_every_ten_seconds_at_most() -> None:
    """One who always turns up where we are, as another that flees too would."""
    place, moves = Place(0), []
    for now in range(60):
        assert place.core is not None
        before, place = place.core, choose(place, {0, 1}, Seen({place.core: 0.3, 1 - place.core: 0.0}, 1.0), float(now))
        moves += [now] if place.core != before else []
    assert moves == [1, 11, 21, 31, 41, 51]


def test_a_full_machine_has_no_core_for_us_and_a_quiet_one_again() -> None:
    """Two neighbours on two cores: the kernel finds us our turns. Ten seconds after that was decided a core may be had again."""
    full, quiet = Seen({0: 0.6, 1: 0.5}, 1.0), Seen({0: 0.1, 1: 0.1}, 1.0)
    cores = [p.core for p in after([full] * 4 + [quiet] * 12, Place(1))]
    assert cores == [1, None, None, None, *[None] * 7, *[1] * 5]
    assert [p.core for p in after([full] * 4)] == [None] * 4


def test_who_hardly_works_has_no_core() -> None:
    """So that whoever works finds one; a little work does not take one, and does not lose one either."""
    used = {0: 0.0, 1: 0.0}
    assert [p.core for p in after([Seen(used, 0.01), Seen(used, 0.1), Seen(used, 0.5), Seen(used, 0.1), Seen(used, 0.01)])] == [
        None,
        None,
        1,
        1,
        None,
    ]


def test_one_core_is_none() -> None:
    """With one core there is nothing to choose, and with two of which another process has one the other is for everybody."""
    assert choose(Place(), {3}, Seen({3: 0.0}, 1.0), 0.0).core is None
    assert choose(Place(1), {0, 1}, Seen({0: 0.0, 1: 0.0}, 1.0, taken={0}), 0.0).core is None


def test_a_core_that_was_taken_away_is_left_at_once() -> None:
    """No look is waited for."""
    assert choose(Place(2, 0.0), {0, 1}, Seen({0: 0.1, 1: 0.0}, 1.0), 1.0) == Place(1)


def test_the_other_thread_of_a_core_counts() -> None:
    """Of two idle cores the one whose sibling is idle too."""
    seen = Seen({0: 0.0, 1: 0.0, 2: 1.0, 3: 0.0}, 1.0, here=0, beside={0: {2}, 2: {0}, 1: {3}, 3: {1}})
    assert choose(Place(), {0, 1, 2, 3}, seen, 0.0).core == 3
    assert choose(Place(), {0, 2}, seen, 0.0).core is None
