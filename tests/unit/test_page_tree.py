"""One page: links, metas, relations, title, languages, visible words."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from corpus.page.tree import Link, LinkElement, Page, cut, is_markup, parse

URL = "https://example.org/dir/page.html"


def page(html: str, url: str = URL) -> Page:
    return parse(html.encode("utf-8"), "text/html; charset=utf-8", url)


def test_links_are_resolved_folded_and_in_order() -> None:
    """Anchors and areas, each key once with the form first found; other schemes and anchors without href do not count."""
    html = """<a href="a?utm_source=x">1</a><a name=here>2</a><a href="mailto:x@y">3</a><a href=" /b\n">4</a><a href="a">5</a>
    <map><area href="//other.net/c"></map><a href="javascript:void(0)">6</a><a href="http://[">7</a>"""
    assert page(html).links == [
        Link("https://example.org/dir/a", "https://example.org/dir/a?utm_source=x"),
        Link("https://example.org/b", "https://example.org/b"),
        Link("https://other.net/c", "https://other.net/c"),
    ]


def test_what_is_not_markup_has_no_links() -> None:
    """Comments, scripts, templates, text areas and frames' fallback hold no links, metas or words."""
    hidden = "<a href=x>secret</a><meta name=robots content=noindex>"
    for around in (
        "<!-- {} -->",
        "<script>'{}'</script>",
        "<template>{}</template>",
        "<textarea>{}</textarea>",
        "<iframe>{}</iframe>",
        "<style>{}</style>",
    ):
        found = page("<p>seen</p>" + around.format(hidden))
        assert found.links == []
        assert found.metas == []
        assert around.startswith("<textarea") or found.visible_text.split() == ["seen"]


def test_the_base_element_counts() -> None:
    """Links resolve against the first base with an href, itself resolved; a base that is no web address is ignored."""
    assert page("<base target=x><base href='/root/'><base href='/no/'><a href=a>").links == [
        Link("https://example.org/root/a", "https://example.org/root/a")
    ]
    assert page("<base href='data:x'><a href=a>").links[0].url == "https://example.org/dir/a"
    assert page("<a href=a><a href='http://b.net/'>", url="").links == [Link("http://b.net/", "http://b.net/")]


def test_relations_that_lead_on_are_links() -> None:
    """Paging and other languages are links; feeds, styles and icons are not."""
    html = """<link rel=next href=2><link rel="alternate" hreflang=de href=/de/><link rel=alternate type=application/rss+xml href=/feed>
    <link rel=stylesheet href=s.css><link rel=icon href=i.ico>"""
    assert [link.url for link in page(html).links] == ["https://example.org/dir/2", "https://example.org/de/"]


def test_nofollow_needs_every_mention() -> None:
    """A link is nofollow when all elements that lead there say so."""
    html = "<a rel='ugc NoFollow' href=a></a><a rel=nofollow href=b></a><a href='b?gclid=1'></a><a rel=nofollowed href=c></a>"
    assert [(link.url[-1], link.nofollow) for link in page(html).links] == [("a", True), ("b", False), ("c", False)]


def test_metas_of_head_and_body() -> None:
    """Name, property and http-equiv, wherever the element stands; a scripted page's noscript counts."""
    html = """<head><META NAME=" Robots " CONTENT="noindex"><meta property="og:title" name=title content="T"><noscript><meta name=tdm-reservation
    content=1></noscript></head><body><meta http-equiv="Content-Language" content="de"><meta name=empty><meta charset=utf-8></body>"""
    assert page(html).metas == [
        ("robots", "noindex"),
        ("title", "T"),
        ("property:og:title", "T"),
        ("tdm-reservation", "1"),
        ("http-equiv:content-language", "de"),
        ("empty", ""),
    ]


def test_link_elements_as_written() -> None:
    """rel and type are folded, href is as written."""
    html = "<link rel=' License  EXTERNAL' type='Application/RSL+xml' href='../l.xml'><link rel=x><link href=y>"
    assert page(html).link_elements == [LinkElement("license external", "application/rsl+xml", "../l.xml")]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<link rel=canonical href='/c?utm_source=1#x'>", "https://example.org/c"),
        ("<link rel=canonical href='https://other.net/c'>", None),
        ("<link rel=canonical href='http://['>", None),
        ("<base href='https://other.net/'><link rel=canonical href='c'>", None),
        ("<p>", None),
    ],
)
def test_the_canonical_relation_stays_on_its_host(html: str, expected: str | None) -> None:
    """A page may name another address for itself, on its own host only."""
    assert page(html).canonical == expected


def test_title_and_languages() -> None:
    """The document's title, not a drawing's; languages as written, from the root and the metas."""
    html = "<html lang=' de-AT '><head><title> A\n &amp;  B </title><meta http-equiv=content-language content=de></head><svg><title>no</title></svg>"
    assert page(html).title == "A & B"
    assert page(html).language_attributes == ["de-AT", "de"]
    assert page("<p><svg><title>no</title></svg>").title == ""
    assert page("").language_attributes == []


def test_visible_text() -> None:
    """What a reader sees; a body hidden until scripts run is seen, a long noscript too."""
    html = """<html hidden><body style="display:none"><h1>Über Uns</h1><p>one<b>two</b> three_4</p><div hidden>no<p hidden>no</p></div>
    <div style="Color:red; DISPLAY: none">no</div><noscript>Please enable</noscript><script>no()</script><!-- no --></body>"""
    assert page(html).visible_text.split() == ["Über", "Uns", "one", "two", "three_4"]
    assert page("<noscript>" + "word " * 60 + "</noscript>").visible_text.split() == ["word"] * 60
    assert page("<p>日本語 abc カナ").visible_text == "日本語 abc カナ"


def test_the_last_text_is_the_visible_text() -> None:
    """Taken from the tree itself it is the same, and what the crawl reads of a page is complete before and after."""
    html = """<link rel=canonical href=/c><base href=/d/><svg><a href=s>s</a></svg><div hidden><a href=a>x</a><p hidden>y</div>
    <style>z</style><noscript><meta name=robots content=noindex>turn on scripts</noscript><p>seen<script>1</script>"""
    for whole in (html, html + "<noscript>" + "word " * 60 + "</noscript>", "", "<frameset><frame>"):
        kept, spent = page(whole), page(whole)
        text = spent.last_text()
        assert text == kept.visible_text
        assert spent.last_text() == spent.visible_text == text
        for name in ("links", "metas", "link_elements", "canonical", "base"):
            assert getattr(spent, name) == getattr(kept, name), name
    assert parse(b"plain <b>", "text/plain", URL).last_text() == "plain <b>"


TAGS = st.sampled_from(
    [
        "a",
        "area",
        "base",
        "link",
        "meta",
        "noscript",
        "script",
        "style",
        "template",
        "iframe",
        "div",
        "p",
        "b",
        "svg",
        "title",
        "body",
        "html",
    ]
)
ATTRIBUTES = st.lists(
    st.sampled_from(
        [
            "hidden", "HIDDEN=x", "style='display:none'", 'style="x:y;DISPLAY: NONE"', "style=color:red", "style", "href=/a", "href='b c'", "rel=nofollow",
            "name=robots", "content=noindex", "rel=canonical",
        ]
    ),
    max_size=3,
)  # fmt: skip
MARKUP = st.one_of(
    st.tuples(TAGS, ATTRIBUTES).map(lambda each: f"<{each[0]} {' '.join(each[1])}>"), TAGS.map("</{}>".format), st.sampled_from(["one ", "two", "\u00fc", "x" * 210])
)  # fmt: skip


@given(st.lists(MARKUP, max_size=30).map("".join))
def test_one_walk_reads_and_strips_what_two_do(html: str) -> None:
    """Law: whichever is asked for first, the text, the elements and what follows from them are the same, hidden links and metas included."""
    kept, spent, late = page(html), page(html), page(html)
    names = ("links", "metas", "link_elements", "canonical", "base")
    before = [getattr(late, name) for name in names]
    assert kept.visible_text == spent.last_text() == late.last_text()
    assert before == [getattr(spent, name) for name in names] == [getattr(kept, name) for name in names]
    assert kept._elements == spent._elements


_UNSEEN_TAGS = st.sampled_from(["script", "template", "iframe", "noscript", "div", "span", "table", "td"])
_UNSEEN_MARKS = st.sampled_from(["", " hidden", ' style="display:none"', ' hidden style="display: none; display:none"'])
_NESTED = st.recursive(
    st.just("x"),
    lambda inner: st.builds(
        lambda tag, mark, parts: f"<{tag}{mark}>y{''.join(parts)}</{tag}>",
        _UNSEEN_TAGS,
        _UNSEEN_MARKS,
        st.lists(inner, max_size=3),
    ),
    max_leaves=12,
)


class _Watched:
    """A node that tells when it is freed."""

    def __init__(self, node: LexborNode, freed: list[int]) -> None:
        self.mem_id, self._node, self._freed = node.mem_id, node, freed

    def decompose(self) -> None:
        self._freed.append(self.mem_id)
        self._node.decompose()


@given(_NESTED)
def test_what_is_freed_is_not_touched_again(html: str) -> None:
    """Hidden things lie inside hidden things, and one may match twice: each is freed once, and nothing after what it lies in."""
    tree = LexborHTMLParser(f"<body>{html}<p>end</p>")
    nodes = tree.css("script,template,iframe,noscript,body [hidden],body [style*='display:none']")
    above: dict[int, set[int]] = {}
    for node in nodes:
        parent, ids = node.parent, set()
        while parent is not None:
            ids.add(parent.mem_id)
            parent = parent.parent
        above[node.mem_id] = ids
    freed: list[int] = []
    cut([_Watched(node, freed) for node in nodes])  # type: ignore[misc]
    assert sorted(freed) == sorted(above)
    assert not any(above[number] & set(freed[:at]) for at, number in enumerate(freed))
    assert tree.body is not None
    assert tree.body.text().endswith("end")


def test_elements_are_found_wherever_they_stand() -> None:
    """One walk finds what a walk per tag finds: in drawings, tables and bodies, in any letter case, and nothing in templates."""
    html = """<svg><a href=1></a><A HREF=2></A></svg><table><a href=3><tr><td><AREA href=4></table><math><mi><a href=5></math>
    <template><a href=6></template><body><meta name=a content=b><select><a href=7></select><noscript><a href=8></noscript>"""
    found = page(html)
    assert found.tree is not None
    for tag in ("a", "area", "meta"):
        assert found._elements[tag] == [node.attributes for node in found.tree.tags(tag)], tag
    assert {link.url[-1] for link in found.links} >= {"1", "2", "3", "4", "5", "8"}
    assert "6" not in {link.url[-1] for link in found.links}


def test_reading_changes_nothing() -> None:
    """Text is read from a copy: links and metas read afterwards are complete, and the tree is as it was."""
    found = page("<div hidden><a href=a>x</a></div><script>1</script><p>y")
    assert found.tree is not None
    before = found.tree.html
    assert found.visible_text.strip() == "y"
    assert found.tree.html == before
    assert len(found.links) == 1


def test_plain_text_has_no_tree() -> None:
    """Text and data types are decoded and have text, but no links or metas."""
    found = parse(b"<a href=x>Plain Text", "text/plain", URL)
    assert (found.tree, found.links, found.metas, found.title) == (None, [], [], "")
    assert found.visible_text == "<a href=x>Plain Text"
    assert [
        is_markup(kind) for kind in (None, "", "TEXT/HTML; x", "application/xhtml+xml", "junk", "application/json", "text/css")
    ] == [True] * 5 + [False] * 2


def test_real_pages_yield_links_and_words(test_data: Path) -> None:
    """A hundred real pages in 22 languages: every one parses without a fault, nearly all have words and links."""
    import tarfile

    pages = []
    with tarfile.open(test_data / "rawhtml" / "hplt100-CC.tar.gz") as archive:
        for member in archive:
            body = archive.extractfile(member)
            if body is not None and member.name.endswith(".html"):
                pages.append(parse(body.read(), None, URL))
    assert len(pages) == 100
    assert not any(found.fault for found in pages)
    assert sum(len(found.visible_text.split()) >= 50 for found in pages) >= 85
    assert sum(bool(found.links) for found in pages) >= 90
    assert sum(bool(found.title) for found in pages) >= 90
