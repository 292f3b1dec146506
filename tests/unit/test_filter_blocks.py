"""The block classifier as a whole: what it keeps, that it is the same everywhere, that nothing a page holds can hurt it."""

from __future__ import annotations

import re
import string
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.filter.blocks.extract import extract_blocks, extractor_name
from corpus.filter.blocks.model import FILE, dump, load, model
from corpus.page.tree import parse
from corpus.testing.demo.pages import Page, Site, sites
from corpus.testing.demo.render import html

_PAGES = [(site, page) for site in sites() for page in site.pages if sum(map(len, page.blocks)) > 150 and not page.copy_of]
WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff]|[^\W\u3040-\u30ff\u4e00-\u9fff]+")
_LANGUAGES = sorted({page.lang for _, page in _PAGES})


def _body(site: Site, page: Page) -> bytes:
    return html(page, site, {one.key: f"http://{one.key}.test" for one in sites()})


@pytest.mark.parametrize("language", _LANGUAGES)
def test_demo_pages_are_extracted_in_every_language(language: str) -> None:
    """In each language of the demo web the article is kept nearly whole and its surroundings are left out."""
    for site, page in _PAGES:
        if page.lang != language:
            continue
        text = extract_blocks(parse(_body(site, page), "text/html")).text
        wanted = Counter(WORD.findall("\n".join(block.lstrip("#- ") for block in page.blocks).lower()))
        found = Counter(WORD.findall(text.lower()))
        common = (wanted & found).total()
        assert common >= 0.95 * wanted.total(), page.path
        assert common >= 0.85 * found.total(), page.path


def test_demo_web_speaks_sixteen_languages() -> None:
    """The test above means something only while the demo web is multilingual."""
    assert len(_LANGUAGES) >= 16


def test_same_text_in_any_thread_and_order() -> None:
    """One after the other, backwards and in sixteen threads: the same texts and confidences."""
    bodies = [_body(site, page) for site, page in _PAGES][:48]
    once = [extract_blocks(parse(body, "text/html")) for body in bodies]
    again = [extract_blocks(parse(body, "text/html")) for body in reversed(bodies)][::-1]
    with ThreadPoolExecutor(16) as pool:
        threads = list(pool.map(lambda body: extract_blocks(parse(body, "text/html")), bodies))
    assert once == again == threads


def test_the_page_is_not_changed() -> None:
    """Links, opt-outs and metadata are read from the same tree afterwards."""
    page = parse(_body(*_PAGES[0]), "text/html")
    assert page.tree is not None
    before = page.tree.html
    extract_blocks(page)
    assert page.tree.html == before


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<",
        b"<html><body></body></html>",
        b"<frameset><frame></frameset>",
        b"<p>\x00\x01\xff\xfe</p>" * 50,
        b"<div>" * 3000 + b"deep " * 100,
        b"<b>" * 2000 + b"text " * 100,
        b"<table>" * 500 + b"<tr><td>cell" * 500,
        b"<p>" + b"word " * 200_000,
        b"<nav>" + b"<p>An unclosed navigation swallows the rest of this page, which is its text.</p>" * 20,
        "<p>\ud800\udc00 \u202e</p>".encode("utf-16-le", "surrogatepass") * 100,
    ],
    ids=range(11),
)
def test_odd_pages_are_answered(body: bytes) -> None:
    """No page raises, and the confidence is a probability."""
    found = extract_blocks(parse(body, "text/html"))
    assert 0.0 <= found.confidence <= 1.0
    assert bool(found.text) == (found.confidence > 0) or not found.text


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.sampled_from(["<div class=a>", "</div>", "<p>", "<li>", "<td>", "<br>", "<a href=x>", "<pre>", "one two.", "字", " "])
    )
)
def test_any_markup_is_answered(parts: list[str]) -> None:
    """Whatever the nesting, every printed word is the page's."""
    page = parse("".join(parts).encode(), "text/html; charset=utf-8")
    printed = set(extract_blocks(page).text.split()) - {"-", "|"}
    assert all(set(word) <= set("one two.字|-") for word in printed)


def test_unclosed_navigation_does_not_hide_the_page() -> None:
    """Where boilerplate elements hold everything, they are read."""
    body = b"<nav>" + b"".join(
        b"<p>Paragraph %d of a page whose navigation was never closed, as happens.</p>" % i for i in range(20)
    )
    assert "Paragraph 7" in extract_blocks(parse(body, "text/html")).text


@pytest.mark.parametrize("blocks", [0, 1, 55, 200])
def test_forest_answers_as_tree_after_tree_would(blocks: int) -> None:
    """How many trees are worked on together changes no score: the sum of each tree's own leaf decides."""
    for forest in (model().first, model().second):
        drawn = np.random.default_rng(blocks).choice(forest.border.ravel(), (len(forest.names), blocks))
        table = np.where(np.arange(blocks) % 2, drawn, np.nextafter(drawn, np.inf))
        sums = [0] * blocks
        for tree in range(forest.column.shape[1]):
            for block in range(blocks):
                asked = zip(forest.column[:, tree].tolist(), forest.border[:, tree].tolist(), strict=True)
                at = sum((table[column, block] > border) << level for level, (column, border) in enumerate(asked))
                sums[block] += int(forest.leaf[tree, at])
        assert forest.scores(table).tolist() == [int((forest.cut <= total).sum()) for total in sums]


def test_model_file_is_small_and_named_by_its_digest() -> None:
    """At most 200 kB, loaded and written again byte for byte; the label of a document changes with one byte of it."""
    raw = files("corpus.filter").joinpath(FILE).read_bytes()
    assert len(raw) <= 200_000
    trained = load(raw)
    assert trained.label == extractor_name() == model().label
    assert dump(trained.names.scores, (trained.first, trained.second)) == raw


def test_model_holds_single_words_only() -> None:
    """Names are single lower-case ASCII words of `class` and `id`: no text, no site."""
    assert all(set(word) <= set(string.ascii_lowercase) for word in model().names.scores)
