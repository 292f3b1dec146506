"""The pure URL filters: which sighting is refused, under which reason, and in which order."""

from __future__ import annotations

import time

import pytest

from corpus.crawl.settings import CrawlSettings
from corpus.crawl.traps import UrlRules, extension, most_repeated, parameters
from corpus.model import Kind, Sighting
from corpus.reasons import REASONS
from corpus.url.scope import UrlScope

RULES = UrlRules(CrawlSettings(), UrlScope(domains=("site.test",), exclude=("/private/",)))
BASE = "https://www.site.test"


def _judge(path: str, depth: int = 1, hops: int = 0, kind: Kind = Kind.PAGE) -> str:
    url = path if "://" in path else BASE + path
    return RULES.judge(Sighting(url, url, depth, kind, hops))


@pytest.mark.parametrize(
    ("path", "depth", "hops", "kind", "reason"),
    [
        ("/", 0, 0, Kind.PAGE, ""),
        ("/a/b.html?x=1", 20, 5, Kind.PAGE, ""),
        ("https://other.test/", 1, 0, Kind.PAGE, "out-of-scope"),
        ("/private/x", 1, 0, Kind.PAGE, "scope-exclude"),
        ("/a", 21, 0, Kind.PAGE, "too-deep"),
        ("/a", 21, 0, Kind.SITEMAP, ""),
        ("/a", 1, 6, Kind.PAGE, "too-many-redirects"),
        ("/" + "a" * 2001, 1, 0, Kind.PAGE, "url-too-long"),
        ("/?" + "&".join(f"p{n}=1" for n in range(12)), 1, 0, Kind.PAGE, ""),
        ("/?" + "&".join(f"p{n}=1" for n in range(13)), 1, 0, Kind.PAGE, "too-many-params"),
        ("/?" + ";".join(f"p{n}" for n in range(13)), 1, 0, Kind.PAGE, "too-many-params"),
        ("/a/b/a/b/a/b/", 1, 0, Kind.PAGE, ""),
        ("/a/b/a/b/a/b/a/b/", 1, 0, Kind.PAGE, "repeated-segments"),
        ("/photo.JPG", 1, 0, Kind.PAGE, "unwanted-extension"),
        ("/photo.jpg?size=big", 1, 0, Kind.PAGE, "unwanted-extension"),
        ("/view?file=photo.jpg", 1, 0, Kind.PAGE, ""),
        ("/sitemap.xml.gz", 1, 0, Kind.SITEMAP, ""),
        ("/sitemap.xml.gz", 1, 0, Kind.PAGE, "unwanted-extension"),
        ("/wiki/Node.js", 1, 0, Kind.PAGE, ""),
        ("/v1.0", 1, 0, Kind.PAGE, ""),
        ("/dir.zip/page", 1, 0, Kind.PAGE, ""),
        ("/.zip", 1, 0, Kind.PAGE, ""),
    ],
)
def test_each_rule_has_its_reason(path: str, depth: int, hops: int, kind: Kind, reason: str) -> None:
    """The first rule that says no names the reason; at its limit a rule still says yes."""
    assert _judge(path, depth, hops, kind) == reason
    assert reason == "" or reason in REASONS


def test_the_same_url_passes_when_it_is_found_nearer() -> None:
    """Depth and hops belong to the sighting, not to the URL."""
    assert _judge("/deep", 30) == "too-deep"
    assert _judge("/deep", 3) == ""


def test_parts_of_urls_without_a_path_are_nothing() -> None:
    """No path, no segments, no ending, no parameters: nothing to object to, and no exception."""
    for odd in ("https://site.test", "https://site.test?", "", "x", "https://site.test/?&&;"):
        assert (extension(odd), most_repeated(odd), parameters(odd)) == ("", 0, 0), odd


def test_hostile_urls_are_judged_in_linear_time() -> None:
    """A thousand URLs of two thousand characters, all slashes, dots or separators, take well under a second."""
    began = time.process_time()
    for filler in ("/a" * 990, "/" * 1990, "." * 1990, "?" + "&" * 1900, "?" + ";=" * 950):
        for n in range(200):
            _judge(f"/{n}{filler}")
    assert time.process_time() - began < 2.0
