"""Laws of the canonical form: it is total, idempotent, and names the same resource as what is fetched."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from hypothesis import example, given, settings
from hypothesis import strategies as st

from corpus.url import canonical as canonical_module
from corpus.url.canonical import MAX_CHARS, canonical_links, canonical_url, fetch_url
from corpus.url.host import authority_of, host_of, partition_file, partition_of, path_and_query, registered_domain

PIECES = st.sampled_from((
    "http://", "https://", "//", "/", "\\", "?", "#", "&", "=", ";", ":", "@", ".", "..", "%2e", "%2E%2e", "%2F", "%23", "%25", "%3B",
    "%41", "%7e", "%c3%a9", "%", "%%", "%%34%31", "%4", "xn--", "é", "ß", "中", "[::1]", "127.1", "0x7f.1", "a", "b", "A.COM",
    "example.org", "localhost", "utm_source=x", "gclid=1", ";jsessionid=AB12", "..;jsessionid=1", "PHPSESSID=2", "user:pw@",
    "(S(lit3py55t21z5v55vlm25s55))", ":80", ":443", ":0", "^", "|", "{", "\x00", "\x7f", "\ud800", "\ud83d\ude00", "amp;utm_x=1",
    "~", "'", '"', "\t", "\n", " ",
))  # fmt: skip
TEXT = st.one_of(
    st.lists(PIECES, max_size=12).map("".join),
    st.lists(PIECES, max_size=12).map(lambda pieces: "http://a.example/" + "".join(pieces)),
    st.text(st.characters(codec=None), max_size=30),
)


@given(TEXT, st.none() | TEXT)
@example("http://a/%%34%31", None)
@example("http://a/..;jsessionid=1/b", None)
@example("http://a/;jsessionid=A%/%41", None)
@example("http://a/x;jsessionid=1;jsessionid=2?utm%5Fa=1&&b", None)
def test_canonical_is_total_and_idempotent(url: str, base: str | None) -> None:
    """Any str (NULs, lone surrogates) has a canonical URL or none, and canonical URLs are their own."""
    canonical = canonical_url(url, base)
    if canonical is not None:
        assert canonical.startswith(("http://", "https://"))
        assert canonical_url(canonical) == canonical
        assert "#" not in canonical
        canonical.encode("ascii")


@given(TEXT, st.none() | TEXT)
def test_what_is_fetched_has_the_same_key(url: str, base: str | None) -> None:
    """canonical(fetch(u)) == canonical(u), and the fetch form is its own."""
    found = fetch_url(url, base)
    assert (found is None) == (canonical_url(url, base) is None)
    if found is not None:
        assert canonical_url(found) == canonical_url(url, base)
        assert fetch_url(found) == found


RELATIVE = st.one_of(
    TEXT,
    st.lists(
        st.sampled_from(("/", "../", "..", ".", "a", "b.html", "~u", "-", "?", "?q=1&r=%41", "#", "#x y", "http://a.example", ":80", ":81", "//", " ")),
        max_size=6,
    ).map("".join),
)  # fmt: skip
BASES = st.sampled_from((
    "http://a.example/", "http://a.example:81/x/y/z.html?q=/1/2", "https://a.example/x//y/", "http://a.example/%7Ea/%2F;p/x(1)",
    "http://a.example", "http://[::1]:81/a/b", "http://u:p@a.example/x/", "http://a.example/x/../../y/z?", "no base", "mailto:x",
))  # fmt: skip


def one_by_one(hrefs: list[str], base: str) -> list[tuple[str, str]]:
    """(canonical form, fetch form) of each link by the parser, each canonical form once."""
    root = fetch_url(base)
    found: dict[str, str] = {}
    for href in hrefs:
        canonical, fetched = canonical_url(href, root), fetch_url(href, root)
        if canonical is not None and fetched is not None:
            found.setdefault(canonical, fetched)
    return list(found.items())


@settings(deadline=None)
@given(st.lists(RELATIVE, max_size=8), BASES)
@example(
    ["../../../../x", "..", "../", "", "#top", "?", "/", "//b/x", "/../x", "x/../y", ".x", "a/.b", "a//b", "x:y"],
    "http://a.example/p/q/r?s#t",
)
@example(
    [
        "http://a.example",
        "http://a.example/",
        "http://a.example:80/x",
        "http://a.example.org/x",
        "http://a.example@b/",
        "http://a.examples/x",
    ],
    "http://a.example/p/q",
)
def test_ordinary_links_lead_where_the_parser_says(hrefs: list[str], base: str) -> None:
    """Links that are put together without the parser are those that it gives, and so are their keys."""
    assert canonical_links(hrefs, base) == one_by_one(hrefs, base)


@given(st.lists(PIECES, max_size=10).map(lambda pieces: "http://a.example/" + "".join(pieces)))
def test_escapes_never_change_the_resource(url: str) -> None:
    """Normalising escapes leaves the decoded bytes alone, and no delimiter is made or lost."""
    found = fetch_url(url)
    if found is None:
        return
    tail = path_and_query(found)
    spelled = canonical_module.one_spelling(tail)
    assert unquote_to_bytes(spelled) == unquote_to_bytes(tail)
    for delimiter in "/?#;&=:+,@!$'()*":
        assert spelled.count(delimiter) == tail.count(delimiter)
    assert spelled.upper().count("%25") == tail.upper().count("%25")


@given(st.lists(TEXT, max_size=8), TEXT)
def test_a_batch_says_the_same_as_one_by_one(hrefs: list[str], base: str) -> None:
    """`canonical_links` gives each key once, in order, with the form that was found first."""
    assert canonical_links(hrefs, base) == one_by_one(hrefs, base)


@settings(deadline=None)  # the first call reads the suffix list
@given(TEXT)
def test_host_functions_are_total(url: str) -> None:
    """Host, authority, domain and partition of any str are defined, and agree between key and fetch form."""
    host = host_of(url)
    assert host_of(url) == host_of(fetch_url(url) or "")
    assert bool(host) == bool(authority_of(url)) == (fetch_url(url) is not None)
    canonical = canonical_url(url)
    if canonical is not None:
        assert host_of(canonical) == host
        assert authority_of(canonical) == authority_of(url)
    domain = registered_domain(host)
    assert host == domain or host.endswith("." + domain)
    assert registered_domain(domain) == domain
    for spread in (16, 64, 256):
        assert partition_of(domain) % spread == partition_file(domain, spread)


def test_work_is_bounded() -> None:
    """Past 64 kB, before or after normalisation, a URL is none; a megabyte is refused at once."""
    assert canonical_url("http://a/" + "x" * (MAX_CHARS - 9)) is not None
    assert canonical_url("http://a/" + "x" * MAX_CHARS) is None
    assert canonical_url("http://a/" + "中" * (MAX_CHARS // 2)) is None
    assert canonical_url("x" * 10_000_000) is None
    assert canonical_url("x", "http://a/" + "y" * MAX_CHARS) is None
