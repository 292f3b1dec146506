"""The canonical form by example: what is folded, and what must never be."""

from __future__ import annotations

import pytest

from corpus.url.canonical import canonical_links, canonical_url, fetch_url

SAME = [
    ("HTTP://Example.ORG", "http://example.org/"),
    ("http://example.org:80/a", "http://example.org/a"),
    ("https://example.org:443/a", "https://example.org/a"),
    ("http://example.org:8080/a", "http://example.org:8080/a"),
    ("http://user:secret@example.org/a#top", "http://example.org/a"),
    ("http://example.org/a/./b/../c", "http://example.org/a/c"),
    ("http://example.org/%7euser/%61%2d%2D%5f", "http://example.org/~user/a--_"),
    ("http://example.org/%c3%a9", "http://example.org/%C3%A9"),
    ("http://example.org/é", "http://example.org/%C3%A9"),
    ("http://bücher.example/", "http://xn--bcher-kva.example/"),
    ("http://example.org\\a\\b", "http://example.org/a/b"),
    ("  http://example.org/\t a\n", "http://example.org/%20a"),
    ("http://[::1]:80/", "http://[::1]/"),
    ("http://0x7f.1/", "http://127.0.0.1/"),
    ("http://a_b.example.org/", "http://a_b.example.org/"),
    ("http://example.org/?utm_source=x&b=2&gclid=1&a=1", "http://example.org/?b=2&a=1"),
    ("http://example.org/?UTM_Medium=x", "http://example.org/"),
    ("http://example.org/?utm%5Fsource=x&fbclid=y&msclkid=z", "http://example.org/"),
    ("http://example.org/?a=1&amp;utm_source=x", "http://example.org/?a=1"),
    ("http://example.org/a;jsessionid=AB12CD?x=1", "http://example.org/a?x=1"),
    ("http://example.org/a;v=2;JSESSIONID=AB12CD;w/b", "http://example.org/a;v=2;w/b"),
    ("http://example.org/?id=1&PHPSESSID=abc", "http://example.org/?id=1"),
    ("http://example.org/?ASPSESSIONIDQABB=abc", "http://example.org/"),
    ("http://example.org/(S(lit3py55t21z5v55vlm25s55))/orders", "http://example.org/orders"),
    ("http://example.org/a?x=\ud83d\ude00", "http://example.org/a?x=%F0%9F%98%80"),
    ("http://example.org/a?x=\ud800", "http://example.org/a?x=%EF%BF%BD"),
]


@pytest.mark.parametrize(("url", "expected"), SAME)
def test_spellings_of_one_resource_share_a_key(url: str, expected: str) -> None:
    """Case, default ports, escapes of plain characters, fragments, users, campaigns and sessions are folded."""
    assert canonical_url(url) == expected


KEPT = [
    "http://example.org/a%23b",
    "http://example.org/a%25b",
    "http://example.org/a%252525b",
    "http://example.org/a%2Fb",
    "http://example.org/a%3Bb",
    "http://example.org/?a",
    "http://example.org/?a=",
    "http://example.org/?",
    "http://example.org/?b=1&a=2",
    "http://example.org/?&&a",
    "http://example.org/?q=c%2B%2B+x",
    "http://example.org//a///b/",
    "http://example.org/a;v=1",
    "http://example.org/%%34%31",
    "http://example.org/100%",
    "http://example.org/..;jsessionid=1/b",
    "http://example.org/?ref=1&sid=2&source=3&id=4",
    "http://example.org/?xutm_source=1",
    "http://example.org/(S(short))/orders",
    "http://example.org./",
]


@pytest.mark.parametrize("url", KEPT)
def test_what_could_mean_another_resource_stays(url: str) -> None:
    """Reserved escapes, empty values, order, doubled slashes and ambiguous names are left as they are."""
    assert canonical_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a",
        "//a/b",
        "ftp://a/",
        "mailto:a@b",
        "javascript:void(0)",
        "http://",
        "http://a b/",
        "http://[1",
        "\x00",
        "http://a\x00b/",
    ],
)
def test_what_is_no_web_address_has_no_key(url: str) -> None:
    """Other schemes, relative references without a base, and invalid hosts give None."""
    assert canonical_url(url) is None
    assert fetch_url(url) is None


def test_what_is_fetched_keeps_every_parameter() -> None:
    """The key drops tracking; the request does not, and it keeps the page's own spelling of escapes."""
    url = "http://u:p@example.org/%7ea;jsessionid=1?utm_source=x#f"
    assert fetch_url(url) == "http://example.org/%7ea;jsessionid=1?utm_source=x"
    assert canonical_url(url) == "http://example.org/~a"


def test_links_resolve_against_the_base() -> None:
    """Relative references, protocol-relative and empty ones follow WHATWG."""
    base = "https://example.org/a/b.html?q#f"
    cases = {
        "c": "https://example.org/a/c",
        "../c": "https://example.org/c",
        "//h.example/x": "https://h.example/x",
        "?z": "https://example.org/a/b.html?z",
        "": "https://example.org/a/b.html?q",
        "#g": "https://example.org/a/b.html?q",
        "https:d": "https://example.org/a/d",
        "http:d": "http://d/",
    }
    for href, expected in cases.items():
        assert canonical_url(href, base) == expected


def test_a_batch_keeps_the_first_sighting_of_each_key() -> None:
    """Links come back in order, one per key, with the form first found."""
    hrefs = ["b?utm_source=1", "mailto:x@y", "b", "/c", "b?utm_source=1", "#top"]
    assert canonical_links(hrefs, "http://example.org/a/") == [
        ("http://example.org/a/b", "http://example.org/a/b?utm_source=1"),
        ("http://example.org/c", "http://example.org/c"),
        ("http://example.org/a/", "http://example.org/a/"),
    ]


def test_a_batch_without_a_base_keeps_absolute_links() -> None:
    """A page whose own address is unusable still yields its absolute links."""
    assert canonical_links(["/a", "http://example.org/b"], "about:blank") == [("http://example.org/b", "http://example.org/b")]
