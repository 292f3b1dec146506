"""Signatures: datasketch's numbers bit for bit, the same for NFC and NFD, and exact copies of short texts still meet."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.filter.signatures import VALUES, minhash, shingles, to_datasketch

_WORD = st.text(alphabet="abcdeé漢ก12", min_size=1, max_size=5)
_TEXT = st.lists(_WORD, max_size=40).map(" ".join)


@given(st.lists(_TEXT, min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_signatures_are_datasketchs(texts: list[str]) -> None:
    """Over the same 32-bit shingle hashes, datasketch's affine32 with seed 1 has the same 112 values."""
    datasketch = pytest.importorskip("datasketch")
    rows = minhash(texts)
    assert rows.shape == (len(texts), VALUES)
    assert rows.dtype == np.uint32
    for row, grams in zip(rows, shingles(texts), strict=True):
        theirs = datasketch.MinHash(num_perm=VALUES, seed=1, hashfunc=lambda value: value, scheme="affine32")
        theirs.update_batch([int(gram) & 0xFFFFFFFF for gram in grams])
        assert np.array_equal(theirs.hashvalues, row)
        assert to_datasketch(row) == theirs


@given(st.lists(_TEXT, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_the_batch_changes_no_signature(texts: list[str]) -> None:
    """A signature and a shingle set depend on their text alone; sets are sorted and hold no repeats."""
    together, sets = minhash(texts), shingles(texts)
    for index, text in enumerate(texts):
        assert np.array_equal(together[index], minhash([text])[0])
        assert np.array_equal(sets[index], shingles([text])[0])
        assert np.all(np.diff(sets[index].astype(object)) > 0)


@given(st.text(max_size=60))
@settings(deadline=None)
def test_normal_forms_do_not_matter(text: str) -> None:
    """The same text in NFC and NFD is a duplicate."""
    composed, apart = minhash([unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)])
    assert np.array_equal(composed, apart)


def test_short_texts_meet_only_their_copies() -> None:
    """Texts of fewer than five words have one shingle: equal for copies, different for others, none for white space."""
    one, copy, other, symbols, nothing, turned = shingles(
        ["same three words", "Same  three\nwords", "same three", "*** !", " \n", "words three same"]
    )
    assert not np.array_equal(one, turned)
    assert len(one) == 1
    assert np.array_equal(one, copy)
    assert not np.array_equal(one, other)
    assert len(symbols) == 1
    assert len(nothing) == 0


def test_vowel_signs_and_digits_count() -> None:
    """Pairs that differ only in a vowel sign, or only in numbers, have different shingles."""
    for one, other in (("यह कि वह है और", "यह की वह है और"), ("in 2023 we sold 10 cars", "in 2024 we sold 11 cars")):
        assert not set(shingles([one])[0].tolist()) & set(shingles([other])[0].tolist())


def test_five_word_shingles_count() -> None:
    """A text of n different words has n - 4 shingles."""
    assert len(shingles([" ".join(f"w{i}" for i in range(20))])[0]) == 16
