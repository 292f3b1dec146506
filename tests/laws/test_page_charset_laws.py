"""Decoding is total, says why, and never yields what text must not hold."""

from __future__ import annotations

import codecs as python_codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.page.charset import Decoded, decode, http_charset
from corpus.page.codecs import DECODERS, MULTI_BYTE
from corpus.page.labels import ENCODINGS, NAME_OF, encoding_name

SOURCES = {"bom", "http", "meta", "detected", "default"}
LABELS = st.sampled_from(sorted(NAME_OF))
HEADS = st.one_of(
    st.just(b""),
    st.sampled_from([b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"<\0?\0x\0", b"<!--", b"<meta ", b"<?xml encoding='x"]),
    LABELS.map(lambda label: f'<meta charset="{label}">'.encode()),
    LABELS.map(lambda label: f"<?xml version='1.0' encoding='{label}'?>".encode()),
)
BODIES = st.builds(bytes.__add__, HEADS, st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode("utf-8")))


@given(BODIES, st.none() | st.text(max_size=30) | LABELS.map("text/html; charset={}".format))
def test_decode_is_total(body: bytes, content_type: str | None) -> None:
    """Any bytes under any header: text without surrogates or NULs, a known encoding, a known source."""
    decoded = decode(body, content_type)
    decoded.text.encode("utf-8")
    assert "\0" not in decoded.text
    assert decoded.charset in ENCODINGS
    assert decoded.source in SOURCES
    assert decode(body, content_type) == decoded


@given(st.sampled_from(sorted(ENCODINGS)), st.binary(max_size=200), st.booleans())
def test_decoders_are_total(name: str, body: bytes, strict: bool) -> None:
    """A lenient decoder never raises, a strict one only for malformed bytes; where it does not, both agree."""
    lenient = DECODERS[name](body, False)
    lenient.encode("utf-8")
    try:
        assert DECODERS[name](body, True) == lenient
    except UnicodeDecodeError:
        assert "\ufffd" in lenient


PROSE = {
    "windows-1250": "Příliš žluťoučký kůň úpěl ďábelské ódy, a nikdo nevěděl proč.",
    "windows-1251": "Съешь же ещё этих мягких французских булок, да выпей чаю.",
    "windows-1252": "Voix ambiguë d’un cœur qui, au zéphyr, préfère les jattes de kiwis — €5.",
    "iso-8859-7": "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία της εποχής.",
    "windows-1255": "דג סקרן שט בים מאוכזב ולפתע מצא חברה.",
    "windows-1256": "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر.",
    "koi8-r": "Широкая электрификация южных губерний даст мощный толчок подъёму.",
    "shift_jis": "色は匂へど散りぬるを、我が世誰ぞ常ならむ。①",
    "euc-jp": "色は匂へど散りぬるを、我が世誰ぞ常ならむ。",
    "iso-2022-jp": "色は匂へど散りぬるを、我が世誰ぞ常ならむ。",
    "euc-kr": "다람쥐 헌 쳇바퀴에 타고파. 똠방각하",
    "gbk": "天地玄黄，宇宙洪荒。日月盈昃，辰宿列张。",
    "big5": "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。",
    "utf-8": "Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. 中 😀",
}
CODEC = {
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "gbk": "gb18030",
    "windows-1250": "cp1250",
    "windows-1251": "cp1251",
    "windows-1252": "cp1252",
    "windows-1255": "cp1255",
    "windows-1256": "cp1256",
}


@pytest.mark.parametrize("name", sorted(PROSE))
@pytest.mark.parametrize("place", ["http", "meta"])
def test_declared_prose_comes_back(name: str, place: str) -> None:
    """Prose in each family of encodings, declared by header or page, is read back exactly."""
    head = f"<html><meta charset={name}><p>" if place == "meta" else "<html><p>"
    page = head + PROSE[name] * 5
    body = page.encode(python_codecs.lookup(CODEC.get(name, name)).name)
    assert decode(body, f'text/html; charset="{name.upper()}"' if place == "http" else "text/html") == Decoded(page, name, place)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        (" Latin1\n", "windows-1252"),
        ("ISO-8859-9", "windows-1254"),
        ("UTF8", "utf-8"),
        ("gb2312", "gbk"),
        ("ks_c_5601-1987", "euc-kr"),
        ("iso-8559-1", None),
        ("utf-7", None),
        ("", None),
    ],
)
def test_labels_are_the_standards(label: str, name: str | None) -> None:
    """Labels map to WHATWG names whatever their case; unknown ones map to nothing."""
    assert encoding_name(label) == name


@pytest.mark.parametrize(
    ("content_type", "name"),
    [
        ("text/html; charset=utf-8", "utf-8"),
        ("text/html;charset='latin1'", "windows-1252"),
        ('text/html; Charset = "KOI8-R"; x=y', "koi8-r"),
        ("text/html; charset=", None),
        ("text/html", None),
        (None, None),
        ("charset=utf-8", None),
    ],
)
def test_header_charset(content_type: str | None, name: str | None) -> None:
    """The header's charset parameter, quoted or not."""
    assert http_charset(content_type) == name


E_ACUTE = "<p>Déjà vu à l'été, en forêt, près du châtelet"


def test_order_of_evidence() -> None:
    """Mark before header before page before the look of the bytes before the default."""
    latin, utf = E_ACUTE.encode("cp1252"), E_ACUTE.encode("utf-8")
    assert decode(b"\xef\xbb\xbf" + utf, "text/html; charset=latin1") == Decoded(E_ACUTE, "utf-8", "bom")
    assert decode(b"\xff\xfe" + E_ACUTE.encode("utf-16-le"), "text/html; charset=latin1") == Decoded(E_ACUTE, "utf-16le", "bom")
    assert decode(b"<meta charset=utf-8>" + latin, "text/html; charset=latin1").source == "http"
    typo = decode(b"<meta charset=utf-8>" + utf, "text/html; charset=ISO-8559-1")
    assert (typo.charset, typo.source) == ("utf-8", "meta")
    assert decode(utf) == Decoded(E_ACUTE, "utf-8", "detected")
    assert decode(b"plain") == Decoded("plain", "windows-1252", "default")
    assert decode(b"") == Decoded("", "windows-1252", "default")


def test_a_wrong_declaration_of_utf8_is_overruled() -> None:
    """UTF-8 is declared, the bytes are Latin-1: the next evidence is asked; a few bad bytes in good UTF-8 are not."""
    latin = E_ACUTE.encode("cp1252")
    wrong = decode(latin * 20, "text/html; charset=utf-8")
    assert (wrong.source, wrong.text[: len(E_ACUTE)]) == ("detected", E_ACUTE)
    second = decode(b"<meta charset=iso-8859-1>" + latin, "text/html; charset=utf-8")
    assert (second.charset, second.source) == ("windows-1252", "meta")
    good = decode(E_ACUTE.encode("utf-8") * 20 + b"\xe9", "text/html; charset=utf-8")
    assert (good.charset, good.source, good.text.count("\ufffd")) == ("utf-8", "http", 1)
    wide = decode(E_ACUTE.encode("utf-8"), "text/html; charset=utf-16")
    assert (wide.charset, wide.source) == ("utf-8", "detected")


def test_pages_that_were_reencoded_are_read_as_utf8() -> None:
    """A page that names a single-byte set in its markup but is UTF-8 throughout; a header is believed all the same."""
    body = b"<meta charset=windows-1251>" + PROSE["windows-1251"].encode("utf-8")
    assert decode(body).text.endswith(PROSE["windows-1251"])
    assert decode(body).source == "detected"
    assert decode(body, "text/html; charset=windows-1251").source == "http"


def test_utf16_without_a_mark_is_seen() -> None:
    """Markup with a NUL at every other byte is UTF-16, whichever way round."""
    for name, codec in (("utf-16le", "utf-16-le"), ("utf-16be", "utf-16-be")):
        page = "<html><body>" + E_ACUTE
        assert decode(page.encode(codec)) == Decoded(page, name, "detected")
        assert decode(page.encode(codec), "text/html; charset=utf-16" + name[-2:]) == Decoded(page, name, "http")


def test_nulls_and_c1_controls() -> None:
    """NULs read as U+FFFD; undefined bytes of Windows sets are the C1 controls the standard makes of them."""
    assert decode(b"a\0b", "text/html; charset=utf-8").text == "a\ufffdb"
    assert decode(b"\x81\x93", "text/html; charset=latin1").text == "\x81\u201c"
    assert decode(b"\x80", "text/html; charset=gbk").text == "\u20ac"
    assert decode(b"\xae", "text/html; charset=koi8-u").text == "\u045e"
    assert decode(b"\x80A", "text/html; charset=x-user-defined").text == "\uf780A"
    assert decode(b"\x1b$)C<b>x", "text/html; charset=iso-2022-kr").text == "\ufffd"


def test_malformed_pairs_swallow_no_markup() -> None:
    """A lead byte before `<` is one U+FFFD, and the `<` stays."""
    for name in sorted(set(MULTI_BYTE) - {"utf-16le", "utf-16be", "iso-2022-jp"}):
        assert DECODERS[name](b"\xc3<p>", False) in {"\ufffd<p>", "\uff83<p>"}
