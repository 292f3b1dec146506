"""SimHash: 64 bits that change little when a page changes little. The near-copy gate's fingerprint.

Features are the different runs of three words, each once however often it stands there: a phrase that a template
repeats on every line must not outvote the text. Each votes on all 64 bits with its hash, and a bit is set where more
than half vote for it (a tie is no majority: the bit stays 0). All arithmetic is on integers modulo 2^64, so the value is
the same on every machine.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from corpus.page.words import Hashes, word_hashes

MIN_WORDS = 50
"""Shorter texts have no fingerprint: too few votes to tell a copy from a stranger."""
_CHUNK = 65_536
"""Features whose bits are counted at once: a few megabytes of memory, whatever the length."""
_ODD_1, _ODD_2, _ODD_3 = (np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9))
"""Odd 64-bit constants (golden ratio, and two primes of XXH64): one per place in the run, so that order counts."""


def simhash64(text: str) -> int | None:
    """The fingerprint of a text's words, 0..2^64-1; None under `MIN_WORDS` words."""
    return fingerprint(word_hashes(text))


def fingerprint(words: Hashes) -> int | None:
    """`simhash64` of words that are hashed already."""
    return None if len(words) < MIN_WORDS else vote(run_features(words))


def vote(features: Hashes) -> int:
    """The fingerprint of feature hashes, repeats counted once: each bit by majority, a tie is 0."""
    features = _different(features)
    votes = np.zeros(64, dtype=np.int64)
    for start in range(0, len(features), _CHUNK):
        votes += _bit_counts(features[start : start + _CHUNK])
    return int.from_bytes(np.packbits(votes * 2 > len(features)).tobytes(), "big")


def _different(features: Hashes) -> Hashes:
    """The sorted values, each once; a tenth of the cost of `numpy.unique`, which keeps more in hand."""
    return each_once(np.sort(features))


def each_once(ordered: Hashes) -> Hashes:
    """Sorted values without repeats."""
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def _bit_counts(features: Hashes) -> npt.NDArray[np.int64]:
    """In how many of the features each bit is set, highest first; shape [64].

    A feature's bits stand as bytes, eight of them in a 64-bit lane, and 255 features are added lane by lane: no byte can
    run over.
    """
    groups = -(-len(features) // 255)
    padded = np.zeros(groups * 255, dtype=">u8")
    padded[: len(features)] = features
    lanes = np.unpackbits(padded.view(np.uint8)).view(np.uint64).reshape(255, groups * 8)
    counts: npt.NDArray[np.int64] = lanes.sum(axis=0).view(np.uint8).reshape(groups, 64).sum(axis=0, dtype=np.int64)
    return counts


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


def run_features(hashes: Hashes) -> Hashes:
    """One hash per run of three words, finished so that every input bit reaches every output bit."""
    mixed: Hashes = hashes[:-2] * _ODD_1 + (hashes[1:-1] ^ (hashes[1:-1] >> np.uint64(29))) * _ODD_2 + hashes[2:] * _ODD_3
    mixed ^= mixed >> np.uint64(33)
    mixed *= _ODD_2
    mixed ^= mixed >> np.uint64(29)
    mixed *= _ODD_1
    mixed ^= mixed >> np.uint64(32)
    return mixed
