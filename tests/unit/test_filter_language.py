"""Language: names are normalised, hostile and empty input is `und`, and the batch changes nothing."""

from __future__ import annotations

import pytest

from corpus.filter.language import Language, detect_language, detect_languages, model_digest
from corpus.filter.languages import code_of_label, normalise_language, table


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("en", "en"), ("eng", "en"), ("English", "en"), (" GERMAN ", "de"), ("ger", "de"), ("zh-Hant", "zh"), ("cmn", "zh"), ("pt_BR", "pt"), ("arb", "ar"),
        ("nb", "no"), ("Swiss German", "als"), ("fil", "tl"), ("iw", "he"), ("Farsi", "fa"), ("en-US", "en"), ("und", "und"),
    ],
)  # fmt: skip
def test_names_and_codes_are_normalised(given: str, code: str) -> None:
    """ISO codes of any part, English names, regions and retired codes all lead to our one code."""
    assert normalise_language(given) == code


@pytest.mark.parametrize(
    ("given", "near"),
    [("englsh", "english"), ("Portugese", "portuguese"), ("klingon", "unknown"), ("", "unknown"), ("xx", "unknown")],
)
def test_unknown_languages_are_refused_with_a_suggestion(given: str, near: str) -> None:
    """A typo is a ValueError that names the nearest language, never a filter that drops everything."""
    with pytest.raises(ValueError, match=near):
        normalise_language(given)


def test_the_table_is_whole() -> None:
    """Every label of the vendored model has a row, and codes are ISO 639-1 where one exists."""
    import fasttext

    from corpus.filter.language import _model

    assert fasttext
    codes = {code_of_label(label) for label in _model(None).get_labels()}
    assert codes == set(table())
    assert all(len(code) == 2 or not any(len(other) == 2 and other != "bh" for other in table()[code].others) for code in codes)


@pytest.mark.parametrize(
    "text", ["", "  \n", "12345 67,890", "ok", "!!! ??? ...", "a" * 500, "\ud800\udfff" * 30, "\x00" * 50, "x=1; y=2; f(x)"]
)
def test_short_and_empty_text_is_undetermined(text: str) -> None:
    """What holds no sentence has no language."""
    assert detect_language(text).code == "und"


def test_scripts_decide_where_one_language_owns_them() -> None:
    """A Thai sentence is Thai, kana makes Japanese, and the script is ISO 15924's."""
    assert detect_language("สวัสดีครับ ผมชื่อสมชาย").code == "th"
    assert detect_language("これは日本語で書かれた短い文です。").script == "Jpan"
    assert detect_language("這是一個用繁體中文寫的句子，內容很普通。").script == "Hani"
    assert detect_language("Это обычное русское предложение.").script == "Cyrl"


def test_surrogates_newlines_and_addresses_do_no_harm() -> None:
    """Line breaks, lone surrogates, URLs and digits do not change the answer."""
    plain = detect_language("This is an ordinary English sentence about nothing in particular.")
    noisy = detect_language(
        "This is an ordinary\nEnglish \ud800sentence https://exemple.fr/une-page 12345 about nothing in particular."
    )
    assert plain.code == noisy.code == "en"


def test_the_batch_changes_no_answer() -> None:
    """Batches, repeats and order give the same values; scores are rounded."""
    texts = [
        "Guten Morgen, wie geht es Ihnen heute?",
        "",
        "Bonjour, comment allez-vous aujourd'hui ?",
        "Guten Morgen, wie geht es Ihnen heute?",
    ]
    found = detect_languages(texts)
    assert found == [detect_language(text) for text in texts]
    assert found[0] == found[3]
    assert all(language.score == round(language.score, 4) for language in found)
    assert detect_languages([]) == []
    assert isinstance(found[0], Language)


def test_a_long_text_is_sampled_in_bounded_time() -> None:
    """Five million characters cost no more than a few thousand."""
    import time

    begin = time.process_time()
    assert detect_language("the quick brown fox jumps over a lazy dog and runs " * 100_000).code == "en"
    assert time.process_time() - begin < 1.0


def test_the_model_has_the_digest_that_is_recorded() -> None:
    """The vendored file is the one the notice names."""
    assert model_digest() == "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"
