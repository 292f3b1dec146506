"""Shortcuts of the map stage: each gives, for any text, what the long way gives."""

from __future__ import annotations

import ipaddress
import re
import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.filter import extract_meta, spans_pii, textclean
from corpus.filter.extract_meta import _may_be_commons, metadata
from corpus.filter.spans_pii import Span, pii
from corpus.filter.textclean import clean_text
from corpus.filter.tokens import CHUNK_CHARS, chunk, hash_strings
from corpus.page.tree import MAX_LINKS, parse

BREAKS = st.text(st.sampled_from("ab \t\n\r\x0b\x0c\x85\xa0\u2028\u0301\x00\ud800"), max_size=30)
PARTS = (
    "+49 (30) 1234567", "(212) 555-1234", "4111 1111 1111 1111", "8.8.8.8", "2a00:1450:4001:81b::200e", "::1", "de:ad:be", "12:30:45",
    *"0123456789abcfg+-(). :/,_x\u0661\n",
)  # fmt: skip
NUMBERS = st.lists(st.sampled_from(PARTS), max_size=14).map("".join)
_PLAIN_DIGITS = re.compile(r"(?<![\w.,/:#=+\-])\+?\(?\d(?:[\d()/.\-\u2010-\u2013\u00a0 ]{5,30})\d(?![\w/:=%]|[.,]\d)", re.ASCII)
_PLAIN_IPV4 = re.compile(r"(?<![\w.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(?![\w]|\.\d)", re.ASCII)
_PLAIN_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{2,39}(?![\w:])", re.ASCII)


@given(BREAKS)
def test_a_text_is_cleaned_as_by_every_pattern(text: str) -> None:
    """Patterns left out because they cannot match would have changed nothing."""
    whole = textclean._CONTROL.sub("", textclean._BREAKS.sub("\n", text))
    whole = textclean._TRAILING.sub("", unicodedata.normalize("NFC", whole))
    whole = textclean._BLANK_LINES.sub("\n\n", whole)
    assert clean_text(text) == (whole.strip("\n").rstrip() if whole.strip() else "")


@settings(max_examples=400)
@given(NUMBERS)
def test_numbers_and_addresses_are_where_the_plain_patterns_find_them(text: str) -> None:
    """Patterns written for speed match where those written for reading do."""
    assert [m.span() for m in spans_pii._DIGITS.finditer(text)] == [m.span() for m in _PLAIN_DIGITS.finditer(text)]
    assert [m.span() for m in spans_pii._IPV4.finditer(text)] == [m.span() for m in _PLAIN_IPV4.finditer(text)]
    assert list(spans_pii._ipv6(text)) == [
        Span("ipv6", *match.span()) for match in _PLAIN_IPV6.finditer(text) if _public_address(match[0])
    ]


def _public_address(run: str) -> bool:
    try:
        return any(c.isdigit() for c in run) and ipaddress.IPv6Address(run).is_global
    except ValueError:
        return False


def test_addresses_are_found_at_all() -> None:
    """The law above would hold for patterns that find nothing."""
    found = pii("call +49 (30) 1234567, ask 8.8.8.8 or [2a00:1450:4001:81b::200e]: 12:30:45")
    assert [span.kind for span in found] == ["phone", "ipv4", "ipv6"]


@given(
    st.lists(
        st.sampled_from(
            [
                "/a",
                "b?c=1",
                "#top",
                "https://creativecommons.org/licenses/by/4.0/",
                "//CREATIVECOMMONS.org/licenses/by-sa/4.0/deed.de",
                "https://creative\tcommons.org/licenses/by-nc/4.0/",
                "https://creativec%6fmmons.org/publicdomain/zero/1.0/",
                "https://\uff43reativecommons.org/licenses/by/3.0/",
                "mailto:x@y",
            ]
        ),
        max_size=6,
    ),
    st.sampled_from(["", "<base href='https://creativecommons.org/licenses/by/4.0/'>"]),
)
def test_a_licence_is_found_without_resolving_the_other_links(hrefs: list[str], base: str) -> None:
    """The licence that all links give is the one that the likely links give."""
    body = f"<html><head>{base}</head>" + "".join(f"<a href='{href}'>x</a>" for href in hrefs) + "creativecommons.org/"
    page = parse(body.encode(), "text/html; charset=utf-8", "https://a.example/")
    matches = [match for link in page.links if (match := extract_meta._CC.match(link.found))]
    licences = {extract_meta._DEED.sub("", match[0].lower()) + "/" for match in matches}
    assert metadata(page, page.url).license_url == (licences.pop() if len(licences) == 1 else None)


def test_links_of_a_crowded_page_are_all_resolved() -> None:
    """Past `MAX_LINKS` a choice could bring in what the limit cuts, so there is none."""
    body = "".join(f"<a href='/{n}'>x</a>" for n in range(MAX_LINKS + 1)).encode()
    page = parse(body, "text/html", "https://a.example/")
    assert page.links_of(_may_be_commons) == page.links
    few = parse(b"<a href='/1'>x</a><a href='/2'>x</a>", "text/html", "https://a.example/")
    assert [link.found for link in few.links_of(lambda href: href == "/2")] == ["https://a.example/2"]


def test_a_word_has_its_hash_wherever_it_stands() -> None:
    """At the start, behind other texts, in capitals, and in a text longer than the table of powers."""
    (alone,) = hash_strings(["wörter"])
    behind = chunk(["eins zwei", "drei WÖRTER"])
    assert behind.words.hash[-1] == alone
    far = chunk(["x " * (CHUNK_CHARS // 2 + 10) + "Wörter"])
    assert far.words.hash[-1] == alone
    assert far.tokens.hash[-1] == hash_strings(["Wörter"])[0]
