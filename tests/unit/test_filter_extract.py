"""Extraction: readable text from good pages, an outcome in bounded time from bad ones, and no memory between pages."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from corpus.errors import UsageError
from corpus.filter.extract import PROFILES, extract
from corpus.model import Outcome

PAGE = """<!doctype html><html lang="de-CH"><head><title>Fallback title</title>
<meta property="og:title" content="Die alte  M&uuml;hle"><meta name="author" content="A. Beispiel">
<meta property="article:published_time" content="2024-03-05T10:00:00Z">
<link rel="license" href="/lizenz.html"></head><body>
<nav><a href="/">Start</a> <a href="/archiv">Archiv</a></nav><article><h1>Die alte Mühle</h1>
<p>Der Fluss führte den ganzen Sommer über wenig <b>Wasser</b>, und die Mühle an der Biegung stand zum ersten Mal seit Jahren still.</p>
<h2>Im Dorf</h2><p>Im Dorf störte das kaum jemanden. Die Kinder liefen über die Steine ans andere Ufer, wo der Obstgarten lag.</p>
<ul><li>erster Punkt der Liste mit einigen Worten<li>zweiter Punkt der Liste mit einigen Worten</ul>
<pre><code>def mill(x):
    return x + 1
</code></pre>
<table><tr><th>Jahr</th><th>Wasser</th></tr><tr><td>1999</td><td>viel</td></tr></table>
<p>Sie kamen spät nach Hause, mit Taschen voller Pflaumen, und niemand fragte, woher sie sie hatten oder wie lange sie fort gewesen waren.</p>
</article><footer>Impressum und Datenschutz</footer></body></html>"""


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_reads_the_article(profile: str) -> None:
    """Headings, paragraphs and code survive, in order, once each, without the navigation and without glued words."""
    text = extract(PAGE.encode(), profile=profile).text
    parts = [
        "Die alte Mühle",
        "wenig Wasser, und die Mühle",
        "Im Dorf",
        "störte das kaum jemanden",
        "return x + 1",
        "voller Pflaumen",
    ]
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)
    assert all(text.count(part) == 1 for part in parts[1:2] + parts[3:])
    assert "Archiv" not in text


def test_lists_and_tables_stay_readable() -> None:
    """The default profile keeps list items and cells apart."""
    lines = extract(PAGE.encode()).text.split("\n")
    assert any("erster Punkt" in line and "zweiter" not in line for line in lines)
    assert any("1999" in line and "viel" in line and "1999viel" not in line for line in lines)


def test_metadata_is_what_the_page_declares() -> None:
    """Title, author, day, licence (absolute), language and charset with its evidence are columns of their own."""
    found = extract(PAGE.encode(), url="https://www.example.org/a/b.html", content_type="text/html; charset=utf-8")
    assert (found.title, found.author, found.published) == ("Die alte Mühle", "A. Beispiel", "2024-03-05")
    assert found.license_url == "https://www.example.org/lizenz.html"
    assert (found.lang, found.charset, found.charset_source) == ("de-CH", "utf-8", "http")
    assert found.extractor.startswith("trafilatura/")
    assert found.outcome is Outcome.OK


@pytest.mark.parametrize(
    ("body", "content_type", "charset", "source"),
    [
        (PAGE.replace("Mühle", "Мельница").encode("cp1251", "ignore"), "text/html; charset=windows-1251", "windows-1251", "http"),
        (
            ("<meta charset=Shift_JIS>" + PAGE.replace("Mühle", "水車")).encode("shift_jis", "ignore"),
            "text/html",
            "shift_jis",
            "meta",
        ),
        (b"\xef\xbb\xbf" + PAGE.encode(), "text/html; charset=iso-8859-1", "utf-8", "bom"),
    ],
)
def test_charset_evidence_is_ranked_and_recorded(body: bytes, content_type: str, charset: str, source: str) -> None:
    """Byte order mark before header before meta: the text is right and the evidence is stored."""
    found = extract(body, content_type=content_type)
    assert (found.charset, found.charset_source) == (charset, source)
    assert any(word in found.text for word in ("Мельница", "水車", "Mühle"))
    assert "\ufffd" not in found.text


LEGACY = {
    "big5": "水車停了", "euc-jp": "水車が止まった", "euc-kr": "물레방아가 멈췄다", "gb18030": "水车停了", "gbk": "水车停了", "ibm866": "Мельница стояла",
    "iso-2022-jp": "水車が止まった", "iso-8859-2": "Młyn stał", "iso-8859-5": "Мельница стояла", "iso-8859-7": "Ο μύλος", "koi8-r": "Мельница стояла",
    "koi8-u": "Млин стояв її", "macintosh": "Die Mühle", "shift_jis": "水車が止まった", "utf-8": "Mühle 水車", "windows-1250": "Młyn stał", "windows-1251": "Мельница стояла",
    "windows-1252": "Die Mühle – €", "windows-1253": "Ο μύλος", "windows-1254": "Değirmen", "windows-1255": "הטחנה", "windows-1256": "الطاحونة",
    "windows-1257": "Malūnas", "windows-1258": "Cối xay", "windows-874": "โรงสี", "x-mac-cyrillic": "Мельница",
}  # fmt: skip
"""Label → words that it can spell."""
_PYTHON = {"windows-874": "cp874", "macintosh": "mac_roman", "x-mac-cyrillic": "mac_cyrillic"}


@pytest.mark.parametrize("where", ["http", "meta"])
@pytest.mark.parametrize("label", LEGACY)
def test_declared_encodings_reach_the_text(label: str, where: str) -> None:
    """In every encoding of the web, declared by the header or by the page itself, the words of the page are the text's."""
    words = LEGACY[label] if label != "windows-1258" else "Tôi ăn"
    head = f"<meta charset={label}>" if where == "meta" else ""
    body = f"<html><head>{head}</head><body><article>" + f"<p>{words} {'word ' * 20}</p>" * 5 + "</article></body></html>"
    header = "text/html" + (f"; charset={label}" if where == "http" else "")
    found = extract(body.encode(_PYTHON.get(label, label)), content_type=header, profile="fast")
    assert words in found.text
    assert (found.charset, found.charset_source) == (label, where)


def test_a_licence_anchor_counts() -> None:
    """`<a rel=license>` declares the licence, resolved against the page's address."""
    found = extract(
        b"<html><body><p>x</p><a class=b href='/lic?a=1&amp;b=2' rel='external license'>terms</a></body></html>",
        url="https://e.example/x/y",
    )
    assert found.license_url == "https://e.example/lic?a=1&b=2"


def test_structured_data_and_creative_commons_links() -> None:
    """JSON-LD gives author and day; one Creative Commons link is a licence, two different ones are none."""
    script = '<script type="application/ld+json">{"@graph":[{"@type":"Article","author":[{"name":"C. D."},{"name":"E"}],"datePublished":"2020-02-30x","headline":"H"},{"datePublished":"2020-02-03"}]}</script>'
    page = "<html><body>{}<p>text</p><a href='https://creativecommons.org/licenses/by/4.0/deed.de'>cc</a>{}</body></html>"
    found = extract(page.format(script, "").encode())
    assert (found.author, found.published) == ("C. D.; E", "2020-02-03")
    assert found.license_url == "https://creativecommons.org/licenses/by/4.0/"
    two = extract(page.format("", "<a href='http://creativecommons.org/publicdomain/zero/1.0/'>x</a>").encode())
    assert two.license_url is None


@pytest.mark.parametrize(
    "nasty",
    [
        '<script type="application/ld+json">' + "[" * 100_000 + "</script>",
        "<meta name=date content='9999-99-99'>",
        "<meta name=date content='0999-01-01'>",
        "<link rel=license href='http://[::1'>",
        "<title>" + "x" * 10**6,
    ],
)
def test_hostile_metadata_declares_nothing(nasty: str) -> None:
    """Broken JSON, impossible dates and odd URLs are ignored, not raised."""
    found = extract(f"<html><head>{nasty}</head><body><p>some text here</p></body></html>".encode())
    assert found.published is None
    assert len(found.title or "") <= 1000


def test_plain_text_is_kept_as_it_is() -> None:
    """text/plain is decoded, normalised and kept; tags in it are text."""
    found = extract(
        "Erste <b>Zeile</b>\r\nzweite u\u0308ber\x00 \r\n\r\n\r\n\r\ndritte".encode(), content_type="text/plain; charset=utf-8"
    )
    assert found.text.replace("\ufffd", "") == "Erste <b>Zeile</b>\nzweite über\n\ndritte"
    assert found.outcome is Outcome.OK


@pytest.mark.parametrize(
    ("body", "content_type", "outcome"),
    [
        (b"", None, Outcome.NO_TEXT),
        (b" \n\t ", "text/html", Outcome.NO_TEXT),
        (b"<html><body></body></html>", "text/html", Outcome.NO_TEXT),
        (b"%PDF-1.7 ...", "text/html", Outcome.UNSUPPORTED),
        (b"\x89PNG\r\n", None, Outcome.UNSUPPORTED),
        (b"{}", "application/json", Outcome.UNSUPPORTED),
        (b"\x00\x01\x02" * 100, None, Outcome.UNSUPPORTED),
        (b"<html><body><table>" + b"<tr><td>a</td><td>b 12</td></tr>" * 1_000_000, "text/html", Outcome.TOO_LARGE),
        (b"<div>" * 100_000 + b"deep" + b"</div>" * 100_000, "text/html", Outcome.TOO_LARGE),
        ((b"<div>" * 600 + b"</div>" * 600) * 12, "text/html", Outcome.TOO_LARGE),
        (b"<b><i>" * 50_000 + b"open", "text/html", Outcome.TOO_LARGE),
        (b"<html><p>" + b"word another " * 400_000, "text/html", Outcome.OK),
        (b"<p>x" * 50_000, "text/html", Outcome.OK),
        (b"<" * 200_000, "text/html", None),
        (bytes(range(256)) * 400, "text/html", None),
        (b"<!--" * 100_000, "text/html", None),
        (b"<a href=" * 100_000, "text/html", None),
        (b"<script type='application/ld+json'>" * 100_000, "text/html", None),
        (b"<a rel=license " * 50_000, "text/html", None),
        (b"<p>x</p><time " * 50_000, "text/html", None),
        (b"<p>x</p><a " + b" ".join(b'a%d=">"' % i for i in range(100_000)) + b">", "text/html", Outcome.TOO_LARGE),
    ],
)
def test_hostile_bodies_end_in_an_outcome_in_bounded_time(body: bytes, content_type: str | None, outcome: Outcome | None) -> None:
    """Empty, huge, deep, binary and broken bodies never raise, never hang, and say what became of them."""
    begin = time.process_time()
    found = extract(body, content_type=content_type)
    assert time.process_time() - begin < 5.0
    assert outcome is None or found.outcome is outcome
    assert (found.text != "") == (found.outcome is Outcome.OK)


def test_text_is_storable() -> None:
    """No surrogate, NUL or control character, in NFC, whatever the page holds."""
    found = extract(PAGE.replace("Wasser", "Was&#0;ser u&#x308;ber &#xD800; \x01\x1b").encode("utf-8"))
    found.text.encode("utf-8")
    assert not set(found.text) & set("\x00\x01\x1b")
    assert "über" in found.text


def test_an_unknown_profile_is_a_usage_error() -> None:
    """A typo in the profile stops at once."""
    with pytest.raises(UsageError, match="profile"):
        extract(b"x", profile="fastest")


_CODE = """
import sys, hashlib
from tests.unit.test_filter_extract import PAGE
from corpus.filter.extract import extract
order = sys.argv[1]
pages = [PAGE.replace("Mühle", word).encode() for word in ("Mühle", "Kirche", "Brücke", "Mühle")]
found = {}
for i in (range(4) if order == "up" else reversed(range(4))):
    found[i] = repr(extract(pages[i]))
print(hashlib.sha256(repr(sorted(found.items())).encode()).hexdigest())
"""


def test_no_page_changes_another() -> None:
    """Two processes that see the same pages in another order find the same text (a deduplicating extractor would not)."""
    answers = {
        subprocess.run([sys.executable, "-c", _CODE, order], capture_output=True, text=True, check=True, timeout=120).stdout
        for order in ("up", "down")
    }
    assert len(answers) == 1
