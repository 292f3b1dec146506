"""Hostile pages: every work limit holds, in time and in what comes back."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.page.flatten import flatten, is_heavy
from corpus.page.simhash import simhash64
from corpus.page.tree import MAX_BODY, MAX_LINKS, Page, parse
from corpus.page.words import MAX_WORDS, word_hashes

N = 100_000
URL = "https://example.org/"
DEEP = {
    "nested div": "<div>" * N,
    "nested lists": "<ul><li>" * (N // 2),
    "nested tables": "<table><tr><td>" * (N // 3),
    "nested formatting": "".join(f"<b a={i}>" for i in range(N)),
    "formatting rebuilt": "".join(f"<p><b a={i}>x" for i in range(3_000)),
    "anchors and blocks": "<a><div>" * (N // 2),
    "closing tags": "<div>" * (N // 2) + "</p></i></x>" * (N // 6),
    "select": "<select>" + "<option>x" * N,
    "attributes": "<div " + " ".join(f"a{i}=1" for i in range(N)) + ">",
    "attributes behind a comment": "<!-- <a b='-->" + "<div " + " ".join(f"a{i}=1" for i in range(N)) + ">",
    "bodies": "".join(f"<body a{i}=1>" for i in range(N)),
    "open comments": "<!--" * N,
    "angle brackets": "<" * 5_000_000,
    "one line": "x " * 2_500_000,
    "one word": "x" * 5_000_000,
    "nulls": "\0" * 1_000_000 + "<a href=/end>x",
    "entities": "&amp" * N,
    "svg": "<svg><foreignObject>" * (N // 2),
}


def read_all(page: Page) -> None:
    """Everything a page offers."""
    assert len(page.links) <= MAX_LINKS
    assert len(word_hashes(page.visible_text)) <= MAX_WORDS
    assert (page.metas, page.link_elements, page.title, page.language_attributes, page.canonical) is not None
    simhash64(page.visible_text)


@pytest.mark.parametrize("name", sorted(DEEP))
def test_no_page_stalls_or_crashes(name: str) -> None:
    """Whatever the nesting, a page is read whole within two seconds, and what stands at its end is still found."""
    body = (DEEP[name] + "</select></script>--></a><p>last<a href=/end>end</a>").encode()
    start = time.process_time()
    page = parse(body, "text/html; charset=utf-8", URL)
    read_all(page)
    assert time.process_time() - start < 2.0
    assert not page.fault
    if name not in {"angle brackets", "attributes behind a comment"}:
        assert [link.url for link in page.links if link.url.endswith("/end")] == ["https://example.org/end"]


def test_lists_are_capped() -> None:
    """Ten megabytes of links are ten thousand links; a body past the limit is cut and says so."""
    body = b"".join(b"<a href=/%d>w%d </a>" % (i, i) for i in range(450_000))
    assert len(body) > MAX_BODY
    start = time.process_time()
    page = parse(body, "text/html; charset=utf-8", URL)
    assert len(page.links) == MAX_LINKS
    assert page.truncated
    assert page.flattened
    assert len(word_hashes(parse(b"w " * 1_000_000, "text/plain", URL).visible_text)) == MAX_WORDS
    assert time.process_time() - start < 4.0


TAGS = st.sampled_from((
    "<a href=/a>", "</a>", "<A HREF='b'>x", "<area href=c>", "<b class='x'>", "</b>", "<p>", "</p>", "<div hidden>", "</div>", "<!-- -->", "<!-->",
    "<!--", "-->", "<script>", "</script>", "<style>", "</style>", "<title>T", "</title>", "<template>", "</template>", "<meta name=a content='<>'>",
    "<link rel=next href=d>", "<base href=//h/>", "<textarea>", "</textarea>", "<table><td>", "<svg>", "<", ">", "\"", "'", "&lt;", "word ", "\0", "\ufffd", "é",
))  # fmt: skip


@given(st.lists(TAGS, max_size=30).map("".join), st.sampled_from([None, "text/html", "text/html; charset=utf-16"]))
def test_any_markup_is_a_page(html: str, content_type: str | None) -> None:
    """No soup of tags raises, and everything a page offers is defined."""
    page = parse(html.encode("utf-8"), content_type, URL)
    assert not page.fault
    read_all(page)


@given(st.binary(max_size=400), st.text(max_size=20))
def test_any_bytes_are_a_page(body: bytes, url: str) -> None:
    """No bytes and no address raise."""
    read_all(parse(body, None, url))


@settings(max_examples=30)
@given(st.lists(TAGS, max_size=30).map("".join))
def test_flattening_is_stable(html: str) -> None:
    """Flattening a flat page changes nothing that a page offers, and a flat page is never heavy."""
    once = flatten(html)
    assert not is_heavy(once)
    first, second = (
        parse(once.encode(), "text/html; charset=utf-8", URL),
        parse(flatten(once).encode(), "text/html; charset=utf-8", URL),
    )
    assert first.links == second.links
    assert first.metas == second.metas


def test_flattening_loses_nothing_on_real_pages(test_data: Path) -> None:
    """A hundred real pages: the same links, metas, relations and title, whether flattened or not."""
    import tarfile

    with tarfile.open(test_data / "rawhtml" / "hplt100-CC.tar.gz") as archive:
        for member in archive:
            source = archive.extractfile(member)
            if source is None or not member.name.endswith(".html"):
                continue
            whole = parse(source.read(), None, URL)
            flat = parse(flatten(whole.text).encode(), "text/html; charset=utf-8", URL)
            assert {link.url for link in flat.links} == {link.url for link in whole.links}
            assert flat.metas == whole.metas
            assert flat.link_elements == whole.link_elements
            assert flat.title == whole.title
