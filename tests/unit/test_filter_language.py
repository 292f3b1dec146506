"""Language: names are normalised, hostile and empty input is `und`, and the batch changes nothing."""

from __future__ import annotations

from importlib.resources import files

import pytest

from corpus.filter.language import Language, detect_language, detect_languages, model_digest
from corpus.filter.languages import code_of_label, normalise_language, table
from corpus.filter.lookalikes import own_letters, told_apart
from corpus.filter.second_opinion import Opinion, known, mixed, weigh


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
    assert codes <= set(table())
    assert set(table()) - codes <= known(), "a row for a language that nobody would ever name"
    assert all(len(code) == 2 or not any(len(other) == 2 and other != "bh" for other in table()[code].others) for code in table())


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
    """The vendored file is the one the notice names; what answers beside it is part of its digest in the stage key."""
    path = str(files("corpus.filter").joinpath("models/lid.176.ftz"))
    assert model_digest(path) == "8f3472cfe8738a7b6099e8e999c3cbfae0dcd15696aac7d7738a8039db603e83"
    assert model_digest() != model_digest(path)


@pytest.mark.parametrize(
    ("text", "together"),
    [
        ("Namhlanje siyahamba siye edolobheni ukuze sithenge ukudla nezimpahla zokugqoka zezingane zethu ezincane ekhaya.", "zu"),
        ("Nhasi tiri kuenda kumusika kunotenga chikafu nembatya dzevana vedu vadiki vari kumba namai vavo.", "sn"),
        ("Ọjà náà kún fún àwọn ènìyàn tí wọ́n ń ra oúnjẹ, aṣọ àti àwọn nǹkan mìíràn fún ọjọ́ ọdún tí ó ń bọ̀.", "yo"),
    ],
)
def test_a_second_opinion_names_what_the_model_does_not(text: str, together: str) -> None:
    """Languages that lid.176 lacks or underrates are named by CLD2; a model by path answers alone."""
    assert detect_language(text).code == together
    path = str(files("corpus.filter").joinpath("models/lid.176.ftz"))
    assert detect_languages([text], path)[0].code != together


def test_small_languages_are_told_from_their_neighbour_by_words_of_their_own() -> None:
    """Several different words, against the neighbour's: a Scots sentence is Scots, an English one that quotes it is not."""
    assert (
        told_apart("the fowk o the toun haein nae siller, they gaed tae the kirk wi aw thair bairns frae the glen", "en") == "sco"
    )
    assert told_apart("all of the people in the town sang a song with the words tae and wi to end the night", "en") == "en"
    assert told_apart("fowk wi tae and of nothing here", "en") == "en"  # three against two decide nothing
    assert told_apart("this one is in no group of anything", "zu") == "zu"
    assert own_letters("уый æмæ мах цæуæм", "Cyrl") == "os"
    assert own_letters("обычное предложение", "Cyrl") is None


def test_a_text_in_two_languages_has_none() -> None:
    """Half English, half Greek or German is `und`; English with a few foreign names is English."""
    english = "The committee met on Monday and agreed that the new rules should be published before the end of the year. " * 3
    german = (
        "Der Ausschuss trat am Montag zusammen und beschloss, dass die neuen Regeln noch in diesem Jahr erscheinen sollen. " * 3
    )
    assert detect_language(english + german).code == "und"
    assert detect_language(english + "Signed by Jürgen Großmann and Łukasz Żółkiewski.").code == "en"


def test_a_mixture_is_english_and_another_or_two_scripts() -> None:
    """A model that is sure is no mixture, and neither are two relatives, which is how a rare language looks."""
    assert mixed("es", 0.6, Opinion("es", 69, True, "en", 30))
    assert mixed("ru", 0.6, Opinion("ru", 60, True, "de", 40))
    assert not mixed("es", 0.96, Opinion("es", 69, True, "en", 30))
    assert not mixed("fi", 0.4, Opinion("fi", 60, True, "et", 40))
    assert not mixed("es", 0.6, Opinion("es", 80, True, "en", 20))


def test_weighing_is_a_closed_set_of_rules() -> None:
    """Who is believed: the model when it is sure, CLD2 for what the model swallows, neither for a language without a row."""
    cld2 = Opinion("bho", 95, True, "und", 0)
    assert weigh("hi", 0.97, cld2, 900) == "bho"
    assert weigh("fr", 0.97, cld2, 900) == "fr"
    assert weigh("fr", 0.40, cld2, 900) == "bho"
    assert weigh("fr", 0.70, cld2, 120) == "fr"
    assert weigh("hsb", 0.40, cld2, 900) == "hsb"  # CLD2 has no Sorbian: it names a neighbour
    assert weigh("und", 0.0, cld2, 900) == "bho"
    assert weigh("fr", 0.40, Opinion("und", 0, False, "und", 0), 900) == "fr"
