"""What a group commit works out of texts is what each text gives alone; and the short cuts on the way change no value."""

from __future__ import annotations

import random

import numpy as np

from corpus.crawl.gate import Fingerprint
from corpus.crawl.nouns import Ack, HostRow, Request, Settled
from corpus.crawl.prints import numbers, with_numbers
from corpus.crawl.settlement import CaptureJob, Settlement
from corpus.model import Response, UrlState
from corpus.page import flatten, words
from corpus.page.simhash import simhash64


def settlement(n: int, text: str | None) -> Settlement:
    url = f"https://a.test/{n}"
    answer = Response(200, (), b"", b"", "", b"", "192.0.2.1", 0.0, 0.0, 0.0, 0)
    job = CaptureJob(url, Request(url, "a.test", "192.0.2.1"), answer, 0, "", "", Fingerprint(url, "", None))
    other = Settled(f"{url}/other", UrlState.REFUSED)
    return Settlement(0, Ack(host=HostRow("a.test", "a.test"), settled=(Settled(url, UrlState.FETCHED), other)), job, unread=text)


def test_a_batch_gets_the_numbers_of_each_page() -> None:
    """Capture, row and yields hold what the page's own text gives; what came with its numbers, and other rows, stay as they are."""
    rng = random.Random(4)
    texts = [
        " ".join(rng.choice(["one", "two", "three", "four", "five", "six", "seven"]) for _ in range(size))
        for size in (0, 10, 60, 500)
    ]
    ready = settlement(9, None)
    found = with_numbers([*(settlement(n, text) for n, text in enumerate(texts)), ready])
    assert found[-1] is ready
    for text, one in zip(texts, found, strict=False):
        assert one.unread is None
        assert one.capture is not None
        assert one.capture.fingerprint is not None
        assert one.ack.settled[0].simhash == one.capture.fingerprint.simhash == simhash64(text)
        assert one.ack.settled[1].simhash is None
        assert one.capture.said is not None
        assert np.array_equal(one.capture.said.runs, numbers(one.capture.url, text)[1].runs)
    assert [one.ack.settled[0].simhash is None for one in found] == [True, True, False, False, True]


def test_words_in_capitals_are_the_same_words() -> None:
    """Every letter of the first plane hashes like its lower case, those that fold by context or into two included."""
    plane = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    for start in range(0, len(plane), 4096):
        text = " ".join(f"x{letter}y" for letter in plane[start : start + 4096])
        assert np.array_equal(words.word_hashes(text), words.word_hashes(text.lower()))


def test_the_quick_count_never_misses_a_formatting_tag() -> None:
    """Pages that would make a parser rebuild for minutes are not passed over by the count that comes first."""
    rng = random.Random(5)
    pieces = [
        "<b ",
        "<BIG\n",
        "<code\t",
        "<em ",
        "<font ",
        "<I ",
        "<nobr ",
        "<s ",
        "<small ",
        "<strike ",
        "<Strong ",
        "<tt ",
        "<u ",
    ]
    pieces += ["<b>", "<br ", "<sub ", "a ", ">", "class='x'", "<td ", "</b ", "<", " "]
    for _ in range(300):
        html = "".join(rng.choice(pieces) for _ in range(rng.randint(1, 200)))
        assert flatten._rebuilt_at_most(html) >= len(flatten._FORMATTING.findall(html))
    heavy = "".join(f"<font size={n}>x" for n in range(1_500))
    assert flatten.is_heavy(heavy)
