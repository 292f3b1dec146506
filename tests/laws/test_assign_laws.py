"""Who owns which partition: equal shares that every member computes alike, and few moves when somebody comes or goes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corpus.crawl.assign import moves, owners, quota, wanted

_names = st.lists(st.text(min_size=1, max_size=6), unique=True, min_size=1, max_size=12)


@given(_names, st.integers(0, 70))
def test_every_partition_has_one_owner_and_shares_are_equal(names: list[str], partitions: int) -> None:
    """The members' wishes are a partition of the partitions, and no two differ by more than one in size."""
    wishes = [wanted(name, names, partitions) for name in names]
    assert sorted(number for wish in wishes for number in wish) == list(range(partitions))
    sizes = [len(wish) for wish in wishes]
    assert max(sizes) - min(sizes) <= 1
    assert max(sizes) == quota(partitions, len(names))


@given(_names, st.integers(0, 40), st.randoms())
def test_neither_order_nor_repeats_of_the_members_matter(names: list[str], partitions: int, random: object) -> None:
    """Two members that heard of each other in another order agree."""
    other = names + names[:2]
    random.shuffle(other)  # type: ignore[attr-defined]
    assert owners(other, partitions) == owners(names, partitions)


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.integers(1, 5))
def test_steps_lead_to_what_is_wanted_and_never_let_go_of_it(owned: set[int], want: set[int], at_most: int) -> None:
    """Each step is small, touches nothing that is right already, and ever fewer partitions are wrong."""
    wish = sorted(want, reverse=True)
    while True:
        release, acquire = moves(owned, wish, at_most=at_most)
        if not release and not acquire:
            break
        assert max(len(release), len(acquire)) <= at_most
        assert not set(release) & want
        assert set(acquire) <= want - owned
        owned = (owned - set(release)) | set(acquire)
    assert owned == want


@given(st.integers(2, 9), st.integers(0, 1000))
def test_who_is_not_there_wants_nothing(members: int, partitions: int) -> None:
    """A member that was given up owns nothing, and without anybody nobody owns anything."""
    names = [f"w{number}" for number in range(members)]
    assert wanted("stranger", names, min(partitions, 64)) == []
    assert owners([], partitions) == ()
    assert quota(partitions, 0) == 0


def test_a_member_that_goes_moves_little_else() -> None:
    """Over many fleets, less than twice what the gone member owned changes hands; a plain modulo moves nearly all."""
    moved = left = 0
    for seed in range(20):
        names = [f"{seed}-{number}" for number in range(8)]
        before, after = owners(names, 256), owners(names[:-1], 256)
        moved += sum(a != b for a, b in zip(before, after, strict=True))
        left += before.count(names[-1])
    assert moved < 2 * left


def test_the_answer_is_the_same_for_ever() -> None:
    """Members of different versions must agree: the answer for known names is written down here."""
    assert owners(["a", "b", "c"], 12) == owners(("c", "b", "a"), 12)
    assert "".join(owners(["a", "b", "c"], 12)) == "baccbbcbcaaa"
