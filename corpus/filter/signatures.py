"""MinHash signatures, scheme `a32-1`: 112 values of 32 bits over 5-word shingles.

NFC text → word hashes in lower case (shared with the tokeniser) → a 64-bit mix of five in a row → its low 32 bits through
datasketch 2.0's `affine32` permutations with seed 1, bit for bit. Digits and combining marks count. A text of fewer than
five words has one shingle, the whole of it, so exact copies still meet. The scheme id stands in every file that holds them.
"""

from __future__ import annotations

import functools
import itertools
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from corpus.filter.tokens import U64, Chunk, chunks, hash_strings, measured_part, mix64

SCHEME: Final = "a32-1"
VALUES: Final = 112
NGRAM: Final = 5
_SEED: Final = 1
_STEP = np.uint64(0x9E6C63D0876A9A35)
_SHORT = np.uint64(0xB492B66FBE98F273)
_M1, _M2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)  # MurmurHash3's 32-bit finalizer, datasketch's pre-mix
U32 = NDArray[np.uint32]


@functools.cache
def _permutations() -> tuple[U32, U32]:
    """datasketch's parameters: odd multipliers first, then the offsets, from one legacy generator."""
    generator = np.random.RandomState(_SEED)
    odd = generator.randint(0, 1 << 31, VALUES, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    return odd, generator.randint(0, 1 << 32, VALUES, dtype=np.uint32)


def chunk_shingles(chunk: Chunk) -> tuple[U64, NDArray[np.int64]]:
    """All shingles of a chunk in text order, repeats included, and the bounds of each document's share."""
    words = chunk.words
    sizes = np.diff(words.bounds)
    n = len(words)
    if n >= NGRAM:
        grams = words.hash[: n - NGRAM + 1].copy()
        for step in range(1, NGRAM):
            grams *= _STEP
            grams += words.hash[step : n - NGRAM + 1 + step]
        grams = mix64(grams)
        whole = words.doc[: n - NGRAM + 1] == words.doc[NGRAM - 1 :]
        grams = grams[whole]
    else:
        grams = np.zeros(0, dtype=np.uint64)
    per_doc = np.maximum(sizes - NGRAM + 1, 0)
    short = np.flatnonzero(sizes < NGRAM)
    if not len(short):
        return grams, np.concatenate(([0], np.cumsum(per_doc)))
    lone = [_whole_text(chunk, int(doc)) for doc in short]
    filled = np.array([value is not None for value in lone], dtype=bool)
    at = np.concatenate(([0], np.cumsum(per_doc)))[short][filled]
    values = np.array([value for value in lone if value is not None], dtype=np.uint64)
    per_doc[short] = filled
    return np.insert(grams, at, values), np.concatenate(([0], np.cumsum(per_doc)))


def _whole_text(chunk: Chunk, doc: int) -> int | None:
    """The one shingle of a short text: its words (or, without any, its characters); None for white space alone."""
    words = chunk.words
    mine = words.hash[words.bounds[doc] : words.bounds[doc + 1]]
    if not len(mine):
        folded = " ".join(chunk.texts[doc].split())
        return int(hash_strings([folded])[0]) if folded else None
    gram = np.full(1, _SHORT, dtype=np.uint64)
    for word in mine:
        gram = gram * _STEP + word
    return int(mix64(gram)[0])


def signatures(grams: U64, bounds: NDArray[np.int64]) -> U32:
    """`[n, 112]` minima; a document without shingles has datasketch's empty value (all bits set) throughout."""
    docs = len(bounds) - 1
    result = np.full((docs, VALUES), 0xFFFFFFFF, dtype=np.uint32)
    filled = np.flatnonzero(np.diff(bounds))
    if not len(filled):
        return result
    mixed = _fmix32(grams.astype(np.uint32))
    starts = bounds[filled]
    row, column = np.empty_like(mixed), np.empty((VALUES, len(filled)), dtype=np.uint32)
    for k, (odd, offset) in enumerate(zip(*_permutations(), strict=True)):
        np.multiply(mixed, odd, out=row)
        np.add(row, offset, out=row)
        column[k] = np.minimum.reduceat(row, starts)
    result[filled] = column.T
    return result


def _fmix32(values: U32) -> U32:
    values = values ^ (values >> np.uint32(16))
    values *= _M1
    values ^= values >> np.uint32(13)
    values *= _M2
    values ^= values >> np.uint32(16)
    return values


def distinct_counts(grams: U64, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many different shingles each document has."""
    sizes = np.diff(bounds)
    doc = np.repeat(np.arange(len(sizes)), sizes)
    keyed = grams ^ (doc.astype(np.uint64) * np.uint64(0xA24BAED4963EE407))
    order = np.argsort(keyed)
    ranked = keyed[order]
    repeats = order[1:][ranked[1:] == ranked[:-1]]
    return sizes - np.bincount(doc[repeats], minlength=len(sizes))


def _nfc(texts: Sequence[str]) -> list[str]:
    return [measured_part(unicodedata.normalize("NFC", text)) for text in texts]


def minhash(texts: Sequence[str]) -> U32:
    """Signatures of texts, uint32 `[n, 112]`, rows in the order given."""
    parts = [signatures(*chunk_shingles(part)) for part in chunks(_nfc(texts))]
    return np.concatenate(parts) if parts else np.zeros((0, VALUES), dtype=np.uint32)


def shingles(texts: Sequence[str]) -> list[U64]:
    """The shingle set of each text, sorted: what two texts are verified by (exact Jaccard)."""
    result: list[U64] = []
    for part in chunks(_nfc(texts)):
        grams, bounds = chunk_shingles(part)
        result += [np.unique(grams[a:b]) for a, b in itertools.pairwise(bounds)]
    return result


def to_datasketch(row: U32) -> Any:
    """A signature as a `datasketch.MinHash` (its own package, not installed with this one)."""
    from datasketch import MinHash

    return MinHash(num_perm=VALUES, seed=_SEED, hashvalues=np.array(row, dtype=np.uint32), scheme="affine32")
