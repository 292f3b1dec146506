"""Which member of a fleet owns which partitions: every member computes the same answer from the same list, so nobody hands it out.

Rendezvous hashing held to equal shares: a partition goes to the member it likes best that still has room. No two members differ
by more than one partition, and few partitions move when a member comes or goes. Pure: knows no lease, no clock and no server;
the lease of a partition decides all the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

_MIX = np.uint64(0x9E3779B97F4A7C15)
_32 = np.uint64(32)
_SLOTS = 1 << 22
"""Weights that are held at once (32 MB): a fleet is ranked a slice of partitions at a time."""


def quota(partitions: int, members: int) -> int:
    """How many partitions a member may own at most: an equal share, rounded up; 0 where there is no member."""
    return -(-partitions // members) if members > 0 else 0


def owners(members: Iterable[str], partitions: int, far: Mapping[int, Collection[str]] | None = None) -> tuple[str, ...]:
    """The owner of every partition 0..partitions-1; empty without members. Neither order nor repeats of `members` matter.

    `far`: by partition, members that are given it only when nobody else has room."""
    names = sorted(set(members))
    if not names:
        return ()
    least, more = divmod(partitions, len(names))
    held = [0] * len(names)
    found = [""] * partitions
    order = sorted(range(partitions), key=lambda partition: partition not in far) if far else range(partitions)
    for partition, liked in zip(order, _liked(names, order), strict=True):  # where somebody is far room is given out first
        if far and partition in far:
            liked.sort(key=[name in far[partition] for name in names].__getitem__)
        at = next(at for at in liked if held[at] < least or (more and held[at] == least))
        more -= held[at] == least
        held[at] += 1
        found[partition] = names[at]
    return tuple(found)


def wanted(member: str, members: Sequence[str], partitions: int, far: Mapping[int, Collection[str]] | None = None) -> list[int]:
    """The partitions `member` should own, the one it likes best first; none for who is not among `members`."""
    mine = [partition for partition, owner in enumerate(owners(members, partitions, far)) if owner == member]
    weights = _weights([member], np.array(mine, dtype=np.int64)).ravel().tolist()
    return [partition for _, partition in sorted(zip(weights, mine, strict=True), key=lambda pair: (-pair[0], pair[1]))]


def moves(owned: Iterable[int], wanted: Sequence[int], *, at_most: int) -> tuple[list[int], list[int]]:
    """The next step from what is owned to what is wanted: (release, acquire), at most `at_most` of either.

    Released in the order of their numbers, acquired in the order they are liked. A partition that is wanted is never released.
    """
    have, want = set(owned), set(wanted)
    return sorted(have - want)[:at_most], [partition for partition in wanted if partition not in have][:at_most]


def _liked(names: Sequence[str], partitions: Sequence[int]) -> Iterable[list[int]]:
    """For each of these partitions the places of all members in `names`, the one it likes best first; ties by name."""
    step = max(1, _SLOTS // len(names))
    for start in range(0, len(partitions), step):
        weights = _weights(names, np.array(partitions[start : start + step], dtype=np.int64))
        yield from (order.tolist() for order in np.argsort(~weights, axis=1, kind="stable"))


def _weights(names: Sequence[str], partitions: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """How much each partition likes each member, [partitions, members]: 64 mixed bits of both."""
    member = np.array([_hash(name) for name in names], dtype=np.uint64)
    part = np.array([_hash(str(number)) for number in partitions.tolist()], dtype=np.uint64)
    mixed: npt.NDArray[np.uint64] = part[:, None] ^ member[None, :]
    for _ in range(2):
        mixed = mixed * _MIX
        mixed ^= mixed >> _32
    return mixed


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")
