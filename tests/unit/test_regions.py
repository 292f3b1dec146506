"""Which regions are far from a partition, and who is given it then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.crawl.assign import owners
from corpus.crawl.regions import LEAST, Way, Ways, far_regions


def ways(**seconds: float) -> dict[int, dict[str, Way]]:
    return {3: {region: Way(LEAST, took) for region, took in seconds.items()}}


def test_a_clear_difference_counts() -> None:
    """Far is half as long again as the quickest and twenty milliseconds more; several may be near, and several far."""
    assert far_regions(ways(north=0.05, south=0.25), {}) == {3: ("south",)}
    assert far_regions(ways(north=0.05, east=0.06, south=0.25, west=0.2), {}) == {3: ("south", "west")}


@pytest.mark.parametrize(
    "seconds", [{"north": 0.1, "south": 0.14}, {"north": 0.004, "south": 0.02}, {"north": 0.1}, {}, {"north": 0.1, "south": 0.1}]
)
def test_a_small_one_or_an_unknown_one_does_not(seconds: dict[str, float]) -> None:
    """Within the margin, a few milliseconds, or nothing to compare with: nobody is far."""
    assert far_regions(ways(**seconds), {}) == {}


def test_a_few_connections_say_nothing() -> None:
    """A median counts from twenty connections on, and a region without one is not far."""
    known = ways(north=0.05, south=0.25)
    known[3]["south"] = Way(LEAST - 1, 0.25)
    assert far_regions(known, {}) == {}


def test_what_was_far_stays_far_until_it_clearly_is_not() -> None:
    """Between the two margins the last decision stands, so that files do not go to and fro."""
    between = ways(north=0.1, south=0.14)
    assert far_regions(between, {3: ("south",)}) == {3: ("south",)}
    assert far_regions(ways(north=0.1, south=0.12), {3: ("south",)}) == {}


def test_medians_are_of_new_connections_by_file() -> None:
    """An outlier moves nothing, and a file with few of them is not spoken of."""
    met = Ways()
    for n in range(LEAST):
        met.met(1, 9.0 if n == 7 else 0.05)
    met.met(2, 0.05)
    assert met.known() == {1: Way(LEAST, 0.05)}


@given(st.integers(1, 12), st.integers(1, 12), st.sets(st.integers(0, 15)), st.sets(st.integers(0, 15)))
def test_shares_stay_equal_and_go_to_the_near_while_they_have_room(
    north: int, south: int, for_north: set[int], for_south: set[int]
) -> None:
    """However far anybody is, every partition has one owner and shares differ by one at most; where the near have room for all that is
    far from the others, they get all of it."""
    names = {"north": [f"n{n}" for n in range(north)], "south": [f"s{n}" for n in range(south)]}
    far = {p: set(names["south"]) for p in for_north} | {p: set(names["north"]) for p in for_south - for_north}
    found = owners([*names["north"], *names["south"]], 16, far)
    sizes = [found.count(name) for group in names.values() for name in group]
    assert sum(sizes) == 16
    assert max(sizes) - min(sizes) <= 1
    if len(for_north) <= (16 // (north + south)) * north and not for_south:
        assert all(found[p].startswith("n") for p in for_north)
