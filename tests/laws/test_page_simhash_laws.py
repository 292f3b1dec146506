"""SimHash: stable everywhere, close for near copies, far for strangers, and its bands find every near pair."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.page.simhash import MIN_WORDS, blocks, distance, simhash64
from corpus.page.words import MAX_WORDS, word_hashes

BITS = st.integers(0, 2**64 - 1)


@given(BITS, st.sets(st.integers(0, 63), max_size=7))
def test_bands_find_every_near_pair(fingerprint: int, flipped: set[int]) -> None:
    """For every k, two fingerprints at most k bits apart share a band key (pigeonhole)."""
    other = fingerprint
    for bit in flipped:
        other ^= 1 << bit
    assert distance(fingerprint, other) == len(flipped)
    for k in range(max(1, len(flipped)), 8):
        assert set(blocks(fingerprint, k)) & set(blocks(other, k))
        assert len(set(blocks(fingerprint, k))) == k + 1
        assert all(0 <= key < 2**63 for key in blocks(fingerprint, k))


def test_bands_hold_all_bits() -> None:
    """k = 3 cuts four bands of sixteen bits, and together they are the fingerprint."""
    fingerprint = 0x0123_4567_89AB_CDEF
    assert [key & 0xFFFF for key in blocks(fingerprint, 3)] == [0xCDEF, 0x89AB, 0x4567, 0x0123]
    with pytest.raises(ValueError, match="1 to 7"):
        blocks(fingerprint, 0)


UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
WORD = re.compile(rf"(?=[{UNSPACED}])\w|[^\W{UNSPACED}]+")


def words(text: str) -> list[str]:
    """What a word is, said slowly."""
    return WORD.findall(text.lower())


def mark(words: list[str]) -> int:
    """The fingerprint of words."""
    return simhash64(" ".join(words)) or 0


def _prose(seed: int, count: int = 700) -> list[str]:
    choose = random.Random(seed)
    return [f"w{choose.randrange(3000)}" for _ in range(count)]


def test_near_copies_are_near_and_strangers_far() -> None:
    """One changed word in 700 mostly moves at most 3 bits, never many; unrelated texts differ in about half of them."""
    near, far = [], []
    for seed in range(60):
        text, other = _prose(seed), _prose(seed + 1000)
        copy = list(text)
        copy[seed * 7] = "changed"
        near.append(distance(mark(text), mark(copy)))
        far.append(distance(mark(text), mark(other)))
    assert sum(d <= 3 for d in near) >= 42
    assert max(near) <= 9
    assert min(far) > 12
    assert 28 < sum(far) / len(far) < 36


def test_golden_values() -> None:
    """The same number on every machine and in every version: fingerprints are stored."""
    assert simhash64(" ".join(f"word{n}" for n in range(60))) == GOLDEN_ASCII
    assert simhash64("\u00fcber \u65e5 \ud800 a\0b \U00020000\U0001d7d8. " * 20) == GOLDEN_ODD


GOLDEN_ASCII = 0x9A8C96D2804263EE
GOLDEN_ODD = 0xD517D219500C7874


def test_order_counts_and_short_texts_have_none() -> None:
    """The same words in another order are another text; under fifty words there is nothing to say."""
    text = _prose(1, 200)
    assert mark(text) != mark(text[::-1])
    assert simhash64(" ".join(text[: MIN_WORDS - 1])) is None
    assert simhash64(" ".join(text[:MIN_WORDS])) is not None


def test_long_texts_are_counted_whole() -> None:
    """Texts beyond one block of features: the majority over all of them, in bounded time."""
    text = _prose(3, 20_000)
    start = time.process_time()
    assert distance(mark(text), mark([*text, "end"])) <= 2
    assert time.process_time() - start < 1.0


@given(
    st.text(max_size=200)
    | st.text(st.sampled_from("aB\u0130\u00df9_ .\n\u65e5\u30a2\u30fb\u0e01\u0e31\ud800\U00020000\U0001f600"), max_size=60)
)
def test_one_hash_a_word(text: str) -> None:
    """As many hashes as words, equal exactly where the words are, whatever surrounds them."""
    found, hashes = words(text), word_hashes(text).tolist()
    assert len(hashes) == len(found)
    assert dict(zip(found, hashes, strict=True)) == {word: word_hashes(word)[0] for word in found}
    assert len(set(hashes)) == len(set(found))


def test_blocks_do_not_show() -> None:
    """A text of many blocks has the hashes of its words: no word is cut, and none past the limit is read."""
    text = [f"w{n}\u00e9" for n in range(60_000)]
    assert word_hashes(" ".join(text)).tolist() == [word_hashes(word)[0] for word in text]
    assert len(word_hashes("\u00e9" * 300_000)) == 5
    assert len(word_hashes("\u0130" * 300_000)) == MAX_WORDS
    assert len(word_hashes("\u65e5" * 300_000)) == MAX_WORDS


def test_a_repeated_frame_does_not_make_strangers_alike() -> None:
    """Pages of one sentence frame with different words in it are different texts: none is within 3 bits of another."""
    frame = ["the", "{}", "of", "the", "{}", "was", "seen", "near", "the", "{}", "on", "the", "day", "when", "the", "{}", "came"]
    texts = []
    for seed in range(24):
        choose = random.Random(seed)
        texts.append([word if word != "{}" else f"noun{choose.randrange(4000)}" for _ in range(30) for word in frame])
    marks = [mark(text) for text in texts]
    assert min(distance(a, b) for at, a in enumerate(marks) for b in marks[at + 1 :]) > 3
