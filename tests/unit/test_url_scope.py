"""Scope: what is in, what is out, and that judging is total and cheap."""

from __future__ import annotations

import pickle
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.errors import UsageError
from corpus.reasons import REASONS
from corpus.url.canonical import canonical_url
from corpus.url.scope import UrlScope, matches

IN, OUT, EXCLUDED = "", "out-of-scope", "scope-exclude"


def test_domains_hosts_and_prefixes() -> None:
    """Domains reach all subdomains, hosts only themselves, prefixes only what starts so."""
    scope = UrlScope(
        domains=("*.cz", "example.org", "Bücher.example"),
        hosts=("www.other.net", "h.net:81", "127.0.0.1"),
        prefixes=("https://p.com/docs", "q.com/x"),
    )
    expected = {
        "http://cz/": IN,
        "http://a.b.cz/": IN,
        "http://example.org/": IN,
        "https://deep.er.example.org/x": IN,
        "http://notexample.org/": OUT,
        "http://example.org.evil.net/": OUT,
        "http://xn--bcher-kva.example/": IN,
        "http://www.other.net:8080/": IN,
        "http://other.net/": OUT,
        "http://a.www.other.net/": OUT,
        "http://h.net:81/": IN,
        "http://h.net/": OUT,
        "http://127.0.0.1:5000/": IN,
        "https://p.com/docs/a": IN,
        "https://p.com/": OUT,
        "http://p.com/docs/a": OUT,
        "http://q.com/x": IN,
        "https://q.com/xy": IN,
        "https://q.com.evil.net/x": OUT,
    }
    assert {url: scope.judge(url) for url in expected} == expected


def test_exclusions_win() -> None:
    """A prefix, a path prefix or a pattern excludes, whatever else says yes; outside the scope it is out-of-scope."""
    scope = UrlScope(
        domains=("example.org",),
        exclude=("https://example.org/no", "/private/", "*.pdf", "example.org/cal/*", "*/print/*", "/x*z"),
    )
    expected = {
        "https://example.org/no/a": EXCLUDED,
        "https://example.org/yes": IN,
        "http://www.example.org/private/a": EXCLUDED,
        "http://www.example.org/a/private/": IN,
        "http://example.org/a.pdf": EXCLUDED,
        "http://example.org/a.pdf?x": IN,
        "http://example.org/cal/2026": EXCLUDED,
        "http://example.org/a/print/b": EXCLUDED,
        "http://example.org/xyz": EXCLUDED,
        "http://other.net/a.pdf": OUT,
    }
    assert {url: scope.judge(url) for url in expected} == expected
    assert UrlScope(any=True, exclude=("*.pdf",)).judge("http://other.net/") == IN
    assert UrlScope().judge("http://example.org/") == OUT


def test_seeds_give_the_scope_when_nothing_else_does() -> None:
    """The seeds' registered domains; a host without one opens itself only; configuration replaces the seeds."""
    scope = UrlScope.from_seeds(
        ["https://www.example.co.uk/a", "http://127.0.0.1:8000/", "http://localhost/", "https://github.io/", "junk"]
    )
    assert (scope.domains, scope.hosts) == (("example.co.uk",), ("127.0.0.1", "github.io", "localhost"))
    assert scope.judge("http://blog.example.co.uk/") == IN
    assert scope.judge("http://other.co.uk/") == OUT
    assert scope.judge("http://someone.github.io/") == OUT
    assert UrlScope.from_seeds(["http://a.com/"], hosts=("b.com",)).judge("http://a.com/") == OUT
    assert UrlScope.from_seeds(["http://a.com/"], exclude=("/x",)).judge("http://a.com/x") == EXCLUDED


@pytest.mark.parametrize(
    "wrong", [{"domains": ("a b",)}, {"hosts": ("a/b",)}, {"domains": ("",)}, {"prefixes": ("http://",)}, {"exclude": ("",)}]
)
def test_wrong_entries_are_refused_when_built(wrong: dict[str, tuple[str, ...]]) -> None:
    """A typo in the configuration is an error with the key and a hint, not a silent empty scope."""
    with pytest.raises(UsageError) as caught:
        UrlScope(**wrong)
    assert caught.value.where.startswith("crawl.scope.")
    assert caught.value.hint


SCOPE = UrlScope(domains=("example.org",), prefixes=("a.com/x",), exclude=("*a*b*", "/p"))


@given(st.text(st.characters(codec=None), max_size=40) | st.text("htp:/.aexmplorg?*", max_size=40))
def test_judging_is_total(url: str) -> None:
    """Any str, canonical or not, is judged with '' or a reason code."""
    verdict = SCOPE.judge(url)
    assert verdict == "" or verdict in REASONS
    assert canonical_url(url) is not None or verdict == OUT


@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
@example("*ab*b", "ab")
@example("ab*ba", "aba")
def test_the_matcher_agrees_with_a_plain_definition(pattern: str, text: str) -> None:
    """The one-pass matcher says what recursive matching says."""

    def plain(p: str, t: str) -> bool:
        if not p:
            return not t
        if p[0] == "*":
            return plain(p[1:], t) or (bool(t) and plain(p, t[1:]))
        return bool(t) and p[0] == t[0] and plain(p[1:], t[1:])

    if "*" in pattern:
        assert matches(tuple(pattern.split("*")), text) == plain(pattern, text)


def test_no_pattern_can_stall() -> None:
    """Sixty stars against a long URL that almost matches take a moment."""
    scope = UrlScope(any=True, exclude=("*" + "a*" * 60 + "x",))
    start = time.process_time()
    assert scope.judge("http://example.org/" + "a" * 60_000) == IN
    assert time.process_time() - start < 0.5


def test_a_scope_survives_pickling() -> None:
    """Workers are spawned: the compiled scope travels."""
    copy = pickle.loads(pickle.dumps(SCOPE))
    assert copy == SCOPE
    assert copy.judge("http://example.org/") == IN
