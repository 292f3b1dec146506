"""Laws of the tokeniser: hashes and boundaries depend on the text alone."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpus.filter.charclass import UNICODE_VERSION, tables
from corpus.filter.tokens import chunk, hash_strings

_ALPHABET = "abZ é'.,-… \n\t1２#漢字かなカーกาเ้ြ်កន្ងהעربيहि\u0301\u200d\ud800\x00🙂"
_MARKED = "aZs1.,'-+()/:tn \n$\"=ld漢กé\u2019"
_texts = st.lists(
    st.text(alphabet=st.one_of(st.sampled_from(_ALPHABET), st.sampled_from(_MARKED), st.characters()), max_size=40), max_size=6
)


def _tokens(text: str) -> list[str]:
    part = chunk([text])
    return ["".join(map(chr, part.codes[a:b])) for a, b in zip(part.tokens.start, part.tokens.end, strict=True)]


@given(_texts)
@example(["x", "a.", "B.", "A. b", ".5", "'s", ").", "1k", "+1"])  # what looks back must not look into the text before
@settings(max_examples=300, deadline=None)
def test_a_batch_changes_no_token_and_no_hash(texts: list[str]) -> None:
    """Whatever texts stand beside it, a text has the same tokens with the same hashes."""
    if not texts:
        return
    together = chunk(texts)
    for doc, text in enumerate(texts):
        alone = chunk([text])
        a, b = together.tokens.bounds[doc], together.tokens.bounds[doc + 1]
        assert np.array_equal(together.tokens.hash[a:b], alone.tokens.hash)
        assert np.array_equal(together.tokens.start[a:b] - together.bounds[doc], alone.tokens.start)
        a, b = together.words.bounds[doc], together.words.bounds[doc + 1]
        assert np.array_equal(together.words.hash[a:b], alone.words.hash)


@given(st.text(alphabet=st.one_of(st.sampled_from(_ALPHABET), st.sampled_from(_MARKED), st.characters()), max_size=80))
@settings(max_examples=150, deadline=None)
def test_tokens_cover_everything_but_blanks(text: str) -> None:
    """Tokens stand in order, never overlap, and leave out nothing but blanks."""
    part = chunk([text])
    covered = np.zeros(len(part.codes), dtype=int)
    for a, b in zip(part.tokens.start, part.tokens.end, strict=True):
        assert a < b
        covered[a:b] += 1
    blank = (part.flags >> 8) == 1
    assert np.array_equal(covered == 0, blank)
    assert covered.max(initial=0) <= 1


@given(st.text(max_size=30), st.text(max_size=30))
@settings(deadline=None)
def test_equal_strings_and_only_they_share_a_hash(one: str, other: str) -> None:
    """A hash of a string is a function of it, and different strings of this size never met."""
    if one and other:
        first, second = hash_strings([one, other])
        assert (first == second) == (one == other)


def test_tokens_of_many_scripts() -> None:
    """Words, numbers, symbols and scripts without spaces are cut as the module says."""
    assert _tokens("Don't stop-me... it's 3.14, 1,000!") == [
        "Do",
        "n't",
        "stop",
        "-",
        "me",
        "...",
        "it",
        "'s",
        "3.14",
        ",",
        "1,000",
        "!",
    ]
    assert _tokens("我是人。你好") == ["我", "是", "人", "。", "你", "好"]
    assert _tokens("ラーメンはおいしい") == ["ラーメン", "は", "お", "い", "し", "い"]
    assert _tokens("ที่กรุงเทพ") == ["ที่", "ก", "รุ", "ง", "เท", "พ"]
    assert _tokens("မြန်မာ") == ["မြန်", "မာ"]
    assert _tokens("ខ្មែរ") == ["ខ្មែ", "រ"]
    assert _tokens("हिन्दी में") == ["हिन्दी", "में"]
    assert _tokens("한국어 문장입니다.") == ["한국어", "문장입니다", "."]


def test_marks_are_tokens_at_the_edges_of_a_piece_only() -> None:
    """What counts tokens sees what English tokenisers see: marks around a word apart, marks inside it not."""
    assert _tokens('("f(x):")') == ["(", '"', "f(x", "):", '"', ")"]
    assert _tokens("see os.path.join() at https://a.example.org/b-c?d=e#f.") == [
        "see", "os.path.join", "(", ")", "at", "https://a.example.org/b-c?d=e#f", ".",
    ]  # fmt: skip
    assert _tokens("COVID-19 well-known and/or x=y a+b 3-4 10km 5% e.g. U.S. end. NATO.") == [
        "COVID-19", "well", "-", "known", "and", "/", "or", "x", "=", "y", "a+b", "3", "-", "4", "10", "km", "5", "%", "e.g.", "U.S.",
        "end", ".", "NATO", ".",
    ]  # fmt: skip
    assert _tokens("wait...what? $5 they'll isn’t cannot") == [
        "wait", "...", "what", "?", "$", "5", "they", "'ll", "is", "n’t", "can", "not",
    ]  # fmt: skip


def test_words_are_what_they_were_before_marks_were_moved() -> None:
    """Near-duplicates compare UAX #29 words: an apostrophe or a full stop inside joins, a bracket parts."""
    part = chunk(["It's f(x) in os.path"])
    assert np.array_equal(part.words.hash, hash_strings(["it's", "f", "x", "in", "os.path"]))


def test_vowel_signs_make_different_words() -> None:
    """Marks belong to the word: Hindi, Thai and Arabic pairs that differ only in them have different hashes."""
    for one, other in (("कि", "की"), ("ที่", "ที้"), ("كَتَبَ", "كُتُب")):
        assert not np.array_equal(chunk([one]).words.hash, chunk([other]).words.hash)


def test_the_committed_table_is_the_generated_one() -> None:
    """Under the Unicode version the table was made with, generating it again gives the same bytes."""
    import unicodedata
    from importlib.resources import files

    import pytest

    from corpus.filter.charclass import generate

    if unicodedata.unidata_version != UNICODE_VERSION:
        pytest.skip(f"this Python has Unicode {unicodedata.unidata_version}, the table {UNICODE_VERSION}")
    assert files("corpus.filter").joinpath("data/unicode.bin").read_bytes() == generate()
    assert all(not table.flags.writeable for table in tables())
