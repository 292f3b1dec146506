"""Patterns of URLs, what they yield, and the budgets that domains earn: pure decisions."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.crawl.budget import YIELD_START, allowance, grows, spent_up
from corpus.crawl.nouns import ClosedPattern, DomainYield
from corpus.crawl.templates import fold, patterns
from corpus.crawl.yields import NEW_SHARE, NEW_WORDS, REOPEN_S, SaidBefore, Yields
from corpus.page.novelty import sample_runs
from corpus.page.words import word_hashes
from corpus.testing.web_text import LANGUAGES, paragraphs
from corpus.url.canonical import canonical_url
from corpus.url.partition import partition_file


def test_patterns_fold_what_counts_and_what_names_a_visit() -> None:
    """Numbers, UUIDs, hexadecimal and long mixed tokens are one sign; words stay; a page of its own name has no pattern."""
    assert patterns("http://a.test/cal/2026/11?view=week") == (
        "a.test/cal/#/#?view",
        "a.test/cal/#/#?*",
        "a.test/cal/#/*",
        "a.test/cal/*",
    )
    assert patterns("https://a.test/about") == ()
    assert patterns("https://a.test/") == ()
    assert fold("/x/550e8400-e29b-41d4-a716-446655440000/deadbeef01/Zk3fQ9xLw0aPq7RtYu81") == "/x/#/#/#"
    assert fold("/defaced/facade/v2") == "/defaced/facade/v#"
    assert patterns("http://a.test/s?b=1&a=2") == patterns("http://a.test/s?a=9&b=7")


def test_patterns_of_hostile_urls_take_linear_time() -> None:
    """Two thousand characters of anything are folded in a moment."""
    began = time.process_time()
    for filler in ("a" * 2000, "1" * 2000, "a1" * 1000, "abcdef-" * 280, "/1" * 1000, "&x1=2" * 400, "?" * 2000):
        for n in range(20):
            patterns(f"http://a.test/{n}{filler}")
            patterns(f"http://a.test/?{n}{filler}")
    assert time.process_time() - began < 1.5


def test_session_ids_are_folded_by_name_and_shape_together() -> None:
    """`sid=<MD5>` names a visit; `sid=42`, `s=berlin` and a digest under another name are content."""
    digest = "0123456789abcdef0123456789abcdef"
    assert canonical_url(f"http://a.test/p?sid={digest}&x=1") == "http://a.test/p?x=1"
    assert canonical_url(f"http://a.test/p?PHPSESSID=1&s={digest}") == "http://a.test/p"
    for kept in ("sid=42", "s=berlin", f"file={digest}", "session=2026-11-30", f"s={'1' * 32}", f"s={'a' * 32}"):
        assert canonical_url(f"http://a.test/p?{kept}") == f"http://a.test/p?{kept}"


def _said(text: str):  # type: ignore[no-untyped-def]
    return sample_runs(word_hashes(text), len(text))


def test_another_date_is_nothing_new_to_say() -> None:
    """Numbers are passed over; other words are new; no words are nothing."""
    before = SaidBefore()
    text = "the hall is open on {} and the next meeting of the choir is on {} as always in the old school by the river"
    assert before.share_new("a.test", _said(text.format(3, 2026)).runs) == 1.0
    assert before.share_new("a.test", _said(text.format(17, 1999)).runs) == 0.0
    assert before.share_new("b.test", _said(text.format(17, 1999)).runs) == 1.0
    assert before.share_new("a.test", _said("words of quite another kind stand here and nothing else is said at all").runs) == 1.0
    assert before.share_new("a.test", _said("").runs) == 0.0
    assert len(_said(" ".join(f"w{n}" for n in range(100_000))).runs) <= 64


@pytest.mark.parametrize("language", LANGUAGES)
def test_prose_of_few_words_is_new_in_every_script(language: str) -> None:
    """Hundreds of pages made of the same few phrases in another order say something new each; scripts without spaces too."""
    before = SaidBefore()
    for n in range(150):
        text = " ".join(paragraphs(4, f"a.test/{n}", language, 400))
        said = _said(text)
        share = before.share_new("a.test", said.runs)
        assert share >= NEW_SHARE or share * said.words >= NEW_WORDS, (n, share)


def _page(book: Yields, n: int, text: str, *fresh: str, original: str = "") -> None:
    book.learn(f"http://a.test/x/{n}", original=original, said=_said(text), leads_to=lambda: list(fresh), wall=5.0)


STANDING = " ".join(f"word{n}" for n in range(60))


def test_only_stale_pages_that_lead_on_close_a_pattern_early() -> None:
    """Eleven lures close it; as many copies that lead nowhere new do not, nor lures into another pattern."""
    trap, copies, aside = Yields(), Yields(), Yields()
    for n in range(14):
        _page(trap, n, STANDING, f"http://a.test/x/{n + 1}")
        _page(copies, n, STANDING)
        _page(aside, n, STANDING, f"http://a.test/other/{n}")
    assert trap.excludes("http://a.test/x/99", "a.test", "a.test") == "trap"
    assert trap.excludes("http://a.test/y", "a.test", "a.test") == ""
    assert copies.excludes("http://a.test/x/99", "a.test", "a.test") == ""
    assert aside.excludes("http://a.test/x/99", "a.test", "a.test") == ""
    mirror = Yields()
    for n in range(400):
        _page(mirror, n, " ".join(f"w{n}x{i}" for i in range(60)), f"http://a.test/x/{n + 1}", original=f"http://a.test/y/{n}")
    assert mirror.excludes("http://a.test/x/999", "a.test", "a.test") == ""
    news = trap.news()
    assert {row.pattern for row in news.closed} == {"a.test/x/#", "a.test/x/*"}
    assert trap.news().closed == ()
    later = Yields()
    later.restore(news.closed, (), 6.0)
    assert later.excludes("http://a.test/x/99", "a.test", "a.test") == "trap"
    rebuilt = Yields()
    rebuilt.restore(news.closed, (), 5.0 + REOPEN_S)
    assert rebuilt.excludes("http://a.test/x/99", "a.test", "a.test") == ""


@given(st.lists(st.booleans(), max_size=100))
def test_a_pattern_of_which_most_pages_are_new_is_never_closed(flips: list[bool]) -> None:
    """Two new pages pay for a lure, before it or after it, however many lures there are in the end."""
    book = Yields()
    for n, first in enumerate(flips):
        for k, new in enumerate((True, True, False) if first else (False, True, True)):
            text = " ".join(f"w{n}x{k}x{i}" for i in range(60)) if new else STANDING
            _page(book, n, text, f"http://a.test/x/{n}z")
    assert book.excludes("http://a.test/x/1", "a.test", "a.test") == ""


def test_budgets_grow_with_links_and_new_pages_and_stop_while_copies_prevail() -> None:
    """The rules as numbers: a start, more per linking domain, two per new page, nothing while over half of the last are copies."""
    assert allowance(0, 0) == YIELD_START
    assert allowance(10, 0b1011) == YIELD_START + 3 * 200 + 20
    assert grows(0, 10)
    assert grows((1 << 32) - 1, 64)
    assert not grows((1 << 33) - 1, 64)
    assert grows((1 << 64) - 1, 15)
    assert not spent_up(999, 0, 0)
    assert spent_up(1_000, 0, 0)
    assert not spent_up(1_000_000, 500_000, 0)


def test_domains_that_link_are_counted_once_each() -> None:
    """The same domain a hundred times is one; bits are handed out once to be stored, and survive."""
    book = Yields()
    for n in range(100):
        book.linked("a.test", f"b{n % 5}.test")
    links = book.new_links()
    assert 3 <= links["a.test"].bit_count() <= 5
    assert book.new_links() == {}
    book.restore((), (DomainYield("a.test", linkers=links["a.test"]),), 0.0)
    book.linked("a.test", "b1.test")
    assert book.new_links() == {}
    book.restore((ClosedPattern("a.test", "a.test/x/*", 0.0),), (), 1.0)
    assert book.excludes("http://a.test/x/", "a.test", "a.test") == "trap"


def test_memory_is_bounded() -> None:
    """The memory of what was said is one block, whatever is said."""
    before = SaidBefore(1 << 16)
    for n in range(200):
        before.share_new("a.test", np.arange(n * 64, n * 64 + 64, dtype=np.uint64) << np.uint64(30))
    assert before._table.nbytes <= 1 << 16


def test_what_left_with_its_file_comes_back_as_its_other_owner_left_it() -> None:
    """Counts of a domain and a host's retirement are those of the store when the file returns; those of other files stay."""
    book, gone, kept = Yields(), DomainYield("distant.test", judged=10, novel=10), DomainYield("near.test", judged=5, novel=5)
    assert partition_file("distant.test", 16) != partition_file("near.test", 16)
    book.restore((), (gone, kept), 0.0)
    for host in ("distant.test", "www.near.test"):
        book.retire(host)
    book.forget(lambda domain: partition_file(domain, 16) == partition_file("distant.test", 16))
    assert book.excludes("http://distant.test/", "distant.test", "distant.test") == ""
    assert book.excludes("http://www.near.test/", "www.near.test", "near.test") == "host-retired"
    book.restore((), (DomainYield("distant.test", judged=1_000, novel=0), DomainYield("near.test", judged=1_000, novel=0)), 1.0)
    assert book.excludes("http://distant.test/", "distant.test", "distant.test") == "low-yield"
    assert book.excludes("http://near.test/", "near.test", "near.test") == ""
