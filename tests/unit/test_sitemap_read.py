"""Reading sitemaps: every form, every damage, no entity, no bomb."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.crawl.sitemap import MAX_URLS, SitemapUrl, read_sitemap
from corpus.testing.web_hostile import bomb

URLSET = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'


def urls(body: bytes | str) -> list[str]:
    return [entry.url for entry in read_sitemap(body.encode() if isinstance(body, str) else body).urls]


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_raising(body: bytes) -> None:
    """Whatever a server sends, the result is a value."""
    for start in (b"", b"<urlset>", b"\x1f\x8b", b"\xff\xfe"):
        read_sitemap(start + body)


@given(st.lists(st.integers(0, 10**6), max_size=30), st.integers(0, 400))
def test_a_damaged_file_gives_what_was_whole_before_the_damage(numbers: list[int], cut: int) -> None:
    """A cut file's URLs are a prefix of the whole file's."""
    whole = URLSET.format("".join(f"<url><loc>http://a.test/{n}</loc></url>" for n in numbers))
    assert urls(whole) == list(dict.fromkeys(f"http://a.test/{n}" for n in numbers))
    assert urls(whole)[: len(urls(whole[:cut]))] == urls(whole[:cut])


def test_an_entry_keeps_priority_and_date() -> None:
    """The site's own claims; nonsense is the default."""
    body = URLSET.format(
        "<url><loc> http://a.test/1?x=1&amp;y=2 </loc><priority>0.8</priority><lastmod>2026-09-01</lastmod></url>"
        "<url><loc>http://a.test/2</loc><priority>nan</priority></url><url><loc>http://a.test/3</loc><priority>7</priority></url>"
    )
    assert read_sitemap(body.encode()).urls == (
        SitemapUrl("http://a.test/1?x=1&y=2", 0.8, "2026-09-01"),
        SitemapUrl("http://a.test/2"),
        SitemapUrl("http://a.test/3", 1.0),
    )


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("\ufeffhttp://a.test/1\r\nhttp://a.test/2\nnot a url\nftp://a.test/\n", ["http://a.test/1", "http://a.test/2"]),
        ("<rss><channel><link>http://a.test/</link><item><link>http://a.test/1</link><guid>x</guid></item></channel></rss>", ["http://a.test/1"]),
        ('<feed><link href="http://a.test/"/><entry><link rel="edit" href="http://a.test/e"/><link href="http://a.test/1"/></entry></feed>', ["http://a.test/1"]),
        (URLSET.format('<s:url xmlns:s="x"><s:loc>http://a.test/1</s:loc></s:url>'), ["http://a.test/1"]),
        ("\n\n" + URLSET.format("<url><loc>http://a.test/1</loc></url>"), ["http://a.test/1"]),
        (URLSET.format("<url><loc>http://a.test/1</loc><image:image xmlns:image='i'><image:loc>http://a.test/i.png</image:loc></image:image></url>"), ["http://a.test/1"]),
        (URLSET.format("<url><loc>javascript:alert(1)</loc></url><url><loc>/relative</loc></url>"), []),
        ("", []),
    ],
)  # fmt: skip
def test_forms(body: str, found: list[str]) -> None:
    """Plain text, RSS, Atom, prefixes, stray white space, images beside pages; only http URLs."""
    assert urls(body) == found
    assert urls(gzip.compress(body.encode())) == found
    assert urls(body.replace("\ufeff", "").encode("utf-16")) == found or "<?xml" in body


def test_an_index_names_children() -> None:
    """Children are not pages."""
    read = read_sitemap(b"<sitemapindex><sitemap><loc>http://a.test/s1.xml</loc></sitemap></sitemapindex>")
    assert (read.urls, read.children) == ((), ("http://a.test/s1.xml",))


def test_entities_and_doctypes_are_not_read() -> None:
    """Neither a local file nor a billion laughs: the parse ends at the DOCTYPE."""
    laughs = (
        '<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>' + URLSET.format("<url><loc>http://a.test/&b;</loc></url>")[21:]
    )
    leak = '<!DOCTYPE u [<!ENTITY x SYSTEM "file:///etc/passwd">]><urlset><url><loc>http://a.test/&x;</loc></url></urlset>'
    for body in (laughs, leak):
        read = read_sitemap(body.encode())
        assert read.urls == ()
        assert "DOCTYPE" in read.fault


def test_limits() -> None:
    """50,000 URLs, 50 MB, some levels; what was read before stays."""
    many = "".join(f"<url><loc>http://a.test/{n}</loc></url>" for n in range(MAX_URLS + 10))
    read = read_sitemap(gzip.compress(URLSET.format(many).encode()))
    assert len(read.urls) == MAX_URLS
    assert read.fault
    assert "nested" in read_sitemap(b"<urlset>" + b"<a>" * 100).fault
    assert read_sitemap(bomb("gzip")).fault
    assert read_sitemap(bomb("nested")).fault
    assert len(read_sitemap("\n".join(f"http://a.test/{n}" for n in range(MAX_URLS + 9)).encode()).urls) == MAX_URLS


def test_real_files(test_data: Path) -> None:
    """Files of a crawler's own collection, good and bad: counts of pages and children."""
    expected = {
        "rss/feed.rss": (3, 0), "rss/xmlRss_pubDate.xml": (7, 0), "sitemaps/atom.xml": (2, 0), "sitemaps/sitemap.badns.xml": (2, 0),
        "sitemaps/sitemap.index.xml": (0, 15), "sitemaps/sitemap.ns.xml": (2, 0), "sitemaps/sitemap.txt": (2, 0),
        "sitemaps/sitemap.txt.gz": (5, 0), "sitemaps/sitemap-with-bom.txt": (2, 0), "sitemaps/xmlSitemap.gz": (5, 0),
        "sitemaps/extension/sitemap-images.xml": (1, 0), "sitemaps/extension/sitemap-links.xml": (3, 0),
        "sitemaps/extension/sitemap-news.xml": (2, 0), "sitemaps/extension/hebdenbridgetimes-articles-sitemap.xml": (74, 0),
    }  # fmt: skip
    archive = test_data / "sitemaps" / "crawler-commons.tar.gz"
    if not archive.exists():
        pytest.skip(f"no {archive}")
    found = {}
    with tarfile.open(archive) as tar:
        for name in expected:
            member = tar.extractfile(name)
            assert member is not None
            read = read_sitemap(member.read())
            found[name] = (len(read.urls), len(read.children))
    assert found == expected
