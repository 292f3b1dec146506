"""From a tree to readable text: segmentation and rendering, without the model's judgement."""

from __future__ import annotations

import pytest
from selectolax.lexbor import LexborHTMLParser

from corpus.filter.blocks.segment import segment
from corpus.filter.blocks.text import readable


def _text(body: str) -> str:
    found = segment(LexborHTMLParser(f"<body>{body}"))
    return readable(found, range(len(found.texts)))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<h1>Head</h1><p>One <b>bold</b> word.</p>tail", "Head\n\nOne bold word.\n\ntail"),
        ("<p>in<b>side</b>, <i>a</i> <i>b</i></p>", "inside, a b"),
        ("<div><a>one</a><a>two</a></div>", "one two"),
        ("<p>see <a>here</a>s</p>", "see heres"),
        ("<p>first<br>line<br><br>second</p>", "first\nline\n\nsecond"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul><p>d", "- a\n- b\n  - c\n\nd"),
        ("<ul><li><p>a</p><p>more</p><li>b</ul>", "- a\n  more\n- b"),
        ("<table><tr><th>k<th>v<tr><td>x<td>1</table><p>end", "k | v\nx | 1\n\nend"),
        ("<dl><dt>term<dd>meaning</dl>", "term\nmeaning"),
        ("<pre>\ndef f():\n    return 1\n</pre><p>so</p>", "def f():\n    return 1\n\nso"),
        ("<script>no()</script><style>p{}</style><template><p>no</p></template><p>yes</p>", "yes"),
        ("<noscript><img alt=no>enable scripts</noscript><p>yes</p>", "yes"),
        ("<p>中文<b>粗体</b>字</p>", "中文粗体字"),
    ],
)
def test_structure_survives_as_lines(body: str, text: str) -> None:
    """Headings, paragraphs, lists, tables and code keep their shape; words are neither glued nor parted."""
    assert _text(body) == text


def test_long_block_is_printed_once() -> None:
    """A block that a page carries twice (once for phones) stands once in the text; short lines may repeat."""
    long = "This sentence of rather many words stands on the page twice, once for small screens."
    assert _text(f"<p>{long}</p><p>yes</p><div>{long}</div><p>yes</p>") == f"{long}\n\nyes\n\nyes"


def test_long_noscript_is_content() -> None:
    """Forum software keeps whole threads in `noscript`: a long one is read."""
    assert "reply" in _text("<noscript>" + "<p>A reply of the thread with some words in it.</p>" * 10 + "</noscript>")


def test_boilerplate_elements_are_entered_on_request_only() -> None:
    """`nav`, `footer`, `aside` and `dialog` are skipped with all they hold, unless everything is asked for."""
    tree = LexborHTMLParser("<body><nav><div>menu</div></nav><p>text</p><footer><p>foot</p></footer>")
    assert segment(tree).texts == ["text"]
    assert segment(tree, keep_all=True).texts == ["menu", "text", "foot"]


def test_ends_cover_each_elements_blocks() -> None:
    """`first:end` of an element are exactly the blocks whose owners lie in it."""
    found = segment(LexborHTMLParser("<body><div><p>a<section>b<ul><li>c<li>d</ul></section></div><p>e"))
    for node in range(len(found.parent)):
        inside = [at for at, owner in enumerate(found.owner) if node in _path(found.parent, owner)]
        assert inside == list(range(found.first[node], found.end[node]))


def _path(parent: list[int], node: int) -> set[int]:
    path = {node}
    while node:
        node = parent[node]
        path.add(node)
    return path
