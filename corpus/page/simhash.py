"""SimHash: 64 bits that change little when a page changes little. The near-copy gate's fingerprint.

Features are the different runs of three words, each once however often it stands there: a phrase that a template
repeats on every line must not outvote the text. Each votes on all 64 bits with its hash, and a bit is set where more
than half vote for it (a tie is no majority: the bit stays 0). Words are hashed by XXH3-64 over UTF-8 and mixed in integer
arithmetic modulo 2^64, so the value is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

MIN_WORDS = 50
"""Shorter texts have no fingerprint: too few votes to tell a copy from a stranger."""
_CHUNK = 8_192
"""Features whose bits are counted at once: 512 kB of memory, whatever the length, and counts that fit 16 bits."""
_ODD_1, _ODD_2, _ODD_3 = (np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
"""Odd 64-bit constants (golden ratio, and two primes of XXH64): one per place in the run, so that order counts."""

Hashes = npt.NDArray[np.uint64]


def simhash64(words: Sequence[str]) -> int | None:
    """The fingerprint of a word sequence, 0..2^64-1; None under `MIN_WORDS` words."""
    if len(words) < MIN_WORDS:
        return None
    return vote(run_features(_word_hashes(words)))


def vote(features: Hashes) -> int:
    """The fingerprint of feature hashes, repeats counted once: each bit by majority, a tie is 0."""
    features = np.unique(features)
    votes = np.zeros(64, dtype=np.int64)
    for start in range(0, len(features), _CHUNK):
        block = features[start : start + _CHUNK].astype(">u8").view(np.uint8).reshape(-1, 8)
        votes += np.unpackbits(block, axis=1).sum(axis=0, dtype=np.uint16)
    return int.from_bytes(np.packbits(votes * 2 > len(features)).tobytes(), "big")


def distance(a: int, b: int) -> int:
    """In how many of the 64 bits two fingerprints differ."""
    return (a ^ b).bit_count()


def blocks(fingerprint: int, k: int = 3) -> tuple[int, ...]:
    """Band keys for "at most `k` bits differ": two such fingerprints share at least one key (pigeonhole).

    The 64 bits are cut into k + 1 bands as even as possible (k = 3: four of 16 bits); a key holds the band's number
    above bit 56 and its bits below, so keys of all bands can share one table. 1 <= k <= 7.
    """
    if not 1 <= k <= 7:
        raise ValueError("k is 1 to 7")
    edges = [64 * band // (k + 1) for band in range(k + 2)]
    return tuple(
        band << 56 | (fingerprint >> low) & ((1 << (high - low)) - 1) for band, (low, high) in enumerate(pairwise(edges))
    )


def _word_hashes(words: Sequence[str]) -> Hashes:
    coded = "\0".join(words).encode("utf-8", "surrogatepass").split(b"\0")  # one encoding for all is four times as fast
    if len(coded) != len(words):
        coded = [word.encode("utf-8", "surrogatepass") for word in words]
    return np.fromiter(map(xxh3_64_intdigest, coded), dtype=np.uint64, count=len(words))


def run_features(hashes: Hashes) -> Hashes:
    """One hash per run of three words, finished so that every input bit reaches every output bit."""
    mixed: Hashes = hashes[:-2] * _ODD_1 + (hashes[1:-1] ^ (hashes[1:-1] >> np.uint64(29))) * _ODD_2 + hashes[2:] * _ODD_3
    mixed ^= mixed >> np.uint64(33)
    mixed *= _ODD_2
    mixed ^= mixed >> np.uint64(29)
    mixed *= _ODD_1
    mixed ^= mixed >> np.uint64(32)
    return mixed
