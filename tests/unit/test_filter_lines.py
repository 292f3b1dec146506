"""Line rules: C4, DCLM and FineWeb on small texts whose right answer can be read off."""

from __future__ import annotations

from typing import Any

import pytest

from corpus.filter.lines import lines
from corpus.filter.measure import measure, measured_chunks
from corpus.filter.tokens import chunk


def _row(text: str, code: str = "en") -> dict[str, Any]:
    row: dict[str, Any] = measure([text], [code]).to_pylist()[0]
    return row


def _kinds(text: str, code: str = "en") -> list[tuple[str, str]]:
    (part,) = measured_chunks([text], [code])
    return [(span.kind, text[span.start : span.end]) for span in part.spans[0]]


def test_c4_keeps_lines_that_are_sentences() -> None:
    """Lines without an end mark, with too few words, about JavaScript or cookies fail, each for its own reason."""
    text = "\n".join(
        [
            "This line is a good sentence.",
            "This one has no mark",
            "Two words.",
            "Just three words.",
            "Please enable JavaScript in your browser.",
            "We make use of cookies on this site.",
            "It goes on and on...",
            "A cited fact stands here.[12]",
            f"One {'x' * 1001} broken word.",
        ]
    )
    row = _row(text)
    assert (row["c4_lines"], row["c4_sentences"]) == (3, 3)
    assert row["c4_open_lines"] == 5
    kinds = _kinds(text)
    assert ("c4-end-mark", "This one has no mark") in kinds
    assert ("c4-end-mark", "It goes on and on...") in kinds
    assert ("c4-few-words", "Two words.") in kinds
    assert ("c4-javascript", "Please enable JavaScript in your browser.") in kinds
    assert ("c4-policy", "We make use of cookies on this site.") in kinds
    assert ("c4-long-word", f"One {'x' * 1001} broken word.") in kinds
    assert all(line != "A cited fact stands here.[12]" for _, line in kinds)


def test_c4_document_rules_look_at_surviving_lines_only() -> None:
    """A bracket or filler counts where C4 would have kept the line so far."""
    row = _row("function() { return 1\nA sentence with a { in the middle of it.\nLorem ipsum dolor sit amet is filler.")
    assert (row["c4_curly"], row["c4_open_curly"]) == (1, 2)
    assert (row["c4_lorem_ipsum"], row["c4_open_lorem_ipsum"]) == (1, 1)


def test_dclm_lines() -> None:
    """Capitals, digits, counters, single words and shop bars are told from prose."""
    text = "ALL CAPITAL LETTERS HERE\n12345\n3 likes\n1.2k followers\nword\nYou have 3 items in cart\nThis is an ordinary line of text.\nClick to Read more..."
    found = [pair for pair in _kinds(text) if pair[0].startswith("dclm")]
    assert ("dclm-upper", "ALL CAPITAL LETTERS HERE") in found
    assert ("dclm-numeric", "12345") in found
    assert ("dclm-counter", "3 likes\n1.2k followers") in found  # lines of one kind that follow each other are one span
    assert ("dclm-one-word", "word") in found
    assert ("dclm-boilerplate", "You have 3 items in cart") in found
    assert ("dclm-boilerplate", "Click to Read more...") in found
    assert all(line != "This is an ordinary line of text." for _, line in found)


def test_sentences_of_several_scripts() -> None:
    """End marks of any script count; initials, numbers and lower-case continuations end nothing."""
    for text, expected in (
        ("One. Two! Three? Four", 4),
        ("J. R. Smith paid 3.50 euros. He left.", 2),
        ("He said e.g. this and that.", 1),
        ("“Quoted.” Then more.", 2),
        ("我来了。你好吗？很好！", 3),
        ("यह पहला है। यह दूसरा है।", 2),
        ("هل أنت هنا؟ نعم. حسنا", 3),
        ("", 0),
        ("\n\n", 0),
    ):
        part = chunk([text])
        assert int(lines(part).sentences.sum()) == expected, text


def test_a_chinese_article_passes_the_rules_made_for_english() -> None:
    """600 characters without a space and with "。": words, end marks and sentences are counted in its own terms."""
    sentence = "这座城市的图书馆在去年春天重新开放，很多居民每天都来这里读书和学习。"
    other = "管理员说，新的阅览室比以前更加明亮，孩子们也有了自己的空间。"
    text = "\n".join((sentence + other).replace("春天", f"第{'一二三四五六七八九十'[i]}个月") for i in range(10))
    row = _row(text, "zh")
    assert row["words"] > 500
    assert row["sentences"] == 20
    assert row["c4_lines"] == 10
    assert row["c4_sentences"] == 20
    assert row["end_mark_line_ratio"] == 1.0
    assert row["mean_word_length"] is None
    assert row["dclm_one_word_lines"] == 0
    assert row["stop_words"] >= 2


def test_repeated_lines_are_spans_from_the_second_on() -> None:
    """A line of five words or more that came before is marked; the first one and short ones are not."""
    line = "this line is repeated in full"
    found = [pair for pair in _kinds(f"{line}\nshort one\n{line}\nshort one") if pair[0] == "repeated-line"]
    assert found == [("repeated-line", line)]


def test_a_language_is_named_in_any_spelling_and_never_unknown() -> None:
    """`english` measures like `en`; a language nobody knows is an error, not a rule that silently never applies."""
    text = "the cat and the dog went to the river with that old man"
    assert _row(text, "English") == _row(text, "en")
    with pytest.raises(ValueError, match="klingon"):
        measure([text], ["klingon"])
    with pytest.raises(ValueError, match="1 texts, but 2 languages"):
        measure([text], ["en", "en"])
