"""What a response says of itself: robots headers and meta elements, statuses, waits, licences, several responses at once."""

from __future__ import annotations

import pytest

from corpus.model import Gate, Use
from corpus.optout.challenge import challenge_page
from corpus.optout.consent import consent
from corpus.optout.filestate import file_state
from corpus.optout.links import advertised_licences
from corpus.optout.response import ResponseVerdict, judge_response, union
from corpus.optout.robots_tag import Directive, directives, epoch_of
from corpus.optout.settings import OptoutSettings
from corpus.optout.status import retry_after_s, status_row
from corpus.page.tree import LinkElement

NOW = 1_700_000_000.0
NORMAL = OptoutSettings()
Pairs = list[tuple[str, str]]


def _judge(
    headers: Pairs | None = None, metas: Pairs | str | None = None, status: int = 200, **options: object
) -> ResponseVerdict:
    chosen = OptoutSettings.model_validate(options)
    return judge_response("https://ex.com/a", status, headers or [], metas, NOW, chosen, "CorpusBot")


def _tag(value: str, **options: object) -> ResponseVerdict:
    return _judge([("X-Robots-Tag", value)], **options)


@pytest.mark.parametrize(
    ("value", "use", "follow", "images"),
    [
        ("noai", Use.NO, True, False),
        ("NOAI ,noimageai", Use.NO, True, False),
        ("no-ai", Use.NO, True, False),
        ("noimageai", Use.UNKNOWN, True, False),
        ("noindex;nofollow", Use.NO, False, False),
        ("none", Use.NO, False, False),
        ("nofollow", Use.UNKNOWN, False, True),
        ("max-snippet:0, noai", Use.NO, True, False),
        ("max-snippet: -1, max-image-preview:large, index", Use.UNKNOWN, True, True),
        ("otherbot: noindex, noai", Use.UNKNOWN, True, True),
        ("noai, otherbot: noindex", Use.NO, True, False),
        ("otherbot: noai, CorpusBot : noai", Use.NO, True, False),
        ("googlebot: noai", Use.UNKNOWN, True, True),
        ("GPTBot: noai", Use.NO, True, False),
        ("GPTBot: nofollow", Use.UNKNOWN, True, True),
        ("OAI-SearchBot: noindex", Use.UNKNOWN, True, True),
        ("unavailable_after: Wednesday, 25-Jun-2014 15:00:00 GMT, nofollow", Use.NO, False, False),
        ("unavailable_after: 25 Jun 2014 15:00:00 PST", Use.NO, True, False),
        ("unavailable_after: never, noai", Use.NO, True, False),
        ("all, noai", Use.NO, True, False),
        ("noai: yes", Use.NO, True, False),
        ("*: noai", Use.NO, True, False),
        ("all", Use.UNKNOWN, True, True),
        ("", Use.UNKNOWN, True, True),
        ("nosnippet", Use.UNKNOWN, True, True),
    ],
)
def test_robots_headers(value: str, use: Use, follow: bool, images: bool) -> None:
    """Directives, agents and dates of one header."""
    verdict = _tag(value)
    assert (verdict.use, verdict.follow, verdict.images) == (use, follow, images)
    assert verdict.store is (use is not Use.NO)
    assert (verdict.reason == "x-robots-tag") is (use is Use.NO)


def test_switches() -> None:
    """`noindex`, `noarchive`, `peers` and `near_miss` can each be given up, and then exactly theirs is."""
    assert _tag("noindex", noindex=False).use is Use.UNKNOWN
    assert _tag("none", noindex=False).follow is False
    assert _tag("noarchive, nocache", noarchive=False).use is Use.UNKNOWN
    assert _tag("noindex, noai", noindex=False).use is Use.NO
    assert _tag("no-ai", near_miss=False).use is Use.UNKNOWN
    assert _tag("GPTBot: noai", peers="off").use is Use.UNKNOWN
    assert _tag("GPTBot: noai", peers="quorum:2").use is Use.UNKNOWN
    assert _tag("GPTBot: noai, CCBot: noindex", peers="quorum:2").use is Use.NO
    assert _tag("Google-Extended: noai", peers="control").use is Use.NO


def test_dates() -> None:
    """A future date keeps the page until then, the earliest of several; a past one acts like noindex and purges."""
    verdict = _judge(
        [("X-Robots-Tag", "unavailable_after: 2099-01-01"), ("X-Robots-Tag", "unavailable_after: 2098-01-01T00:00:00Z")]
    )
    assert (verdict.use, verdict.store, verdict.drop_at, verdict.purge) == (Use.UNKNOWN, True, epoch_of("2098-01-01"), False)
    assert _tag("unavailable_after: 2020-01-01").purge is True
    assert epoch_of("2099-01-01T00:00:00+02:00") == epoch_of("2098-12-31 22:00:00 UTC")
    assert epoch_of("Sat, 01 Jan 2000 00:00:00 GMT") == 946_684_800.0
    for junk in ("", "soon", "2099-13-01", "32 Foo 2099", "0000-00-00", "9" * 50):
        assert epoch_of(junk) is None


def test_directives_know_their_agents() -> None:
    """A prefix addresses the rest of its value; a directive's own colon addresses nobody."""
    assert list(directives("noai, A-bot: noindex, max-snippet:3, b: none")) == [
        Directive("", "noai", ""),
        Directive("a-bot", "noindex", ""),
        Directive("a-bot", "max-snippet", "3"),
        Directive("b", "none", ""),
    ]


@pytest.mark.parametrize(
    ("name", "content", "use"),
    [
        ("robots", "noai", Use.NO),
        ("property:robots", "noai", Use.NO),
        ("http-equiv:x-robots-tag", "noai", Use.NO),
        ("corpusbot", "noindex", Use.NO),
        ("ccbot", "noai", Use.NO),
        ("googlebot", "noindex", Use.UNKNOWN),
        ("description", "robots: none of us read this, noai", Use.UNKNOWN),
        ("tdm-reservation", "1", Use.NO),
        ("tdm-reservation", "0", Use.YES),
        ("http-equiv:content-usage", "train-ai=n", Use.NO),
    ],
)
def test_meta_elements(name: str, content: str, use: Use) -> None:
    """Names that speak to us, whichever attribute carries them; other elements' text is never read as directives."""
    verdict = _judge(metas=[(name, content)])
    assert verdict.use is use
    assert all(item.source == "meta" for item in verdict.evidence)


@pytest.mark.parametrize(
    ("html", "use"),
    [
        ('<head><meta content="NOAI" name=Robots></head>', Use.NO),
        ("<!-- <meta name=robots content=noai> -->", Use.UNKNOWN),
        ("<script>'<meta name=robots content=noai>'</script>", Use.UNKNOWN),
        ("<body><p>text<meta name=robots content=noai>", Use.NO),
        ("<head>" + " " * 20_000 + "<meta name=robots content=noai>", Use.NO),
        ('<meta name="robots" content="index"><meta name="robots" content="noai">', Use.NO),
    ],
)
def test_html_is_parsed(html: str, use: Use) -> None:
    """Meta elements are found by parsing the whole document; comments and scripts hold none."""
    assert _judge(metas=html).use is use
    assert consent("https://ex.com/a", html=html.encode(), at=NOW).use is use


def test_other_headers() -> None:
    """AIPREF, Content-Signal and TDMRep headers, each repeated and in odd forms."""
    assert _judge([("content-usage", "train-ai=y"), ("Content-Usage", "train-ai=n")]).use is Use.NO
    assert _judge([("Content-Usage", "train-ai=y")]).use is Use.YES
    assert _judge([("Content-Signal", "search=yes, ai-train=no")]).reason == "content-signal"
    assert _judge([("TDM-Reservation", "1, 1")]).reason == "tdmrep"
    assert _judge([("TDM-Reservation", "1")], tdmrep=False).use is Use.UNKNOWN
    assert _judge([("tdm-reservation", "0")], metas=[("tdm-reservation", "1")]).use is Use.NO
    assert _judge([("tdm-reservation", "1")], metas=[("tdm-reservation", "0")]).use is Use.YES


LINK = '<https://ex.com/l.xml>; rel="license"; type="application/rsl+xml"'


def test_advertised_licences() -> None:
    """Only links of the RSL type count; a document that is not at hand is no permission."""
    assert advertised_licences(
        "https://ex.com/a/b",
        [LINK + ', </m.xml>;type=application/rsl+xml;rel="next license"'],
        [LinkElement("license", "application/rsl+xml", "n.xml")],
    ) == [
        "https://ex.com/a/n.xml",
        "https://ex.com/l.xml",
        "https://ex.com/m.xml",
    ]
    assert (
        advertised_licences(
            "https://ex.com/",
            ["<https://cc.org>; rel=license", "<" * 50_000, 'a; rel="license"'],
            [LinkElement("license", "", "x")],
        )
        == []
    )
    assert _judge([("Link", LINK)]).reason == "rsl"
    free = file_state(
        b'<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license><permits type="usage">ai-train</permits></license></content></rsl>'
    )
    with_it = judge_response(
        "https://ex.com/a", 200, [("Link", LINK)], None, NOW, NORMAL, "CorpusBot", licences={"https://ex.com/l.xml": free}
    )
    assert with_it.use is Use.YES


@pytest.mark.parametrize(
    ("status", "headers", "use", "reason", "purge", "retry", "record"),
    [
        (401, [], Use.NO, "http-401", False, "no", "login-required"),
        (401, [("WWW-Authenticate", "License")], Use.NO, "http-401", False, "no", "license-required"),
        (402, [("crawler-price", "USD 1")], Use.NO, "http-402", False, "no", "payment-required"),
        (403, [], Use.NO, "http-403", False, "no", "forbidden"),
        (404, [], Use.UNKNOWN, "http-404", False, "no", "not-found"),
        (410, [], Use.UNKNOWN, "http-410", True, "no", "gone"),
        (418, [], Use.UNKNOWN, "http-4xx", False, "no", "client-error"),
        (429, [], Use.UNKNOWN, "http-429", False, "exponential", "throttled"),
        (451, [], Use.NO, "http-451", True, "no", "legal"),
        (500, [], Use.UNKNOWN, "http-5xx", False, "exponential", "server-error"),
        (503, [("Retry-After", "9")], Use.UNKNOWN, "http-503", False, "after", "unavailable"),
        (999, [], Use.UNKNOWN, "http-5xx", False, "exponential", "server-error"),
        (302, [], Use.UNKNOWN, "redirected", False, "", "redirect"),
        (206, [], Use.UNKNOWN, "protocol", False, "no", "partial"),
        (200, [("cf-mitigated", "challenge")], Use.NO, "challenge", False, "no", "bot-challenge"),
        (503, [("cf-mitigated", "Challenge")], Use.NO, "challenge", False, "no", "bot-challenge"),
        (202, [("x-amzn-waf-action", "challenge")], Use.NO, "challenge", False, "no", "bot-challenge"),
    ],
)
def test_statuses(status: int, headers: Pairs, use: Use, reason: str, purge: bool, retry: str, record: str) -> None:
    """What is no success is never stored; each status says what follows."""
    verdict = _judge(headers, status=status)
    assert (verdict.use, verdict.reason, verdict.purge, verdict.retry, verdict.record) == (use, reason, purge, retry, record)
    assert not verdict.store
    answer = consent("https://ex.com/a", status=status, headers=headers, at=NOW)
    assert not answer.store
    assert not answer.export


def test_every_status_has_a_row() -> None:
    """Any number a server may send gets an answer, and only successes and 304 keep a body."""
    assert {status for status in range(1000) if status_row(status).keeps} == {*range(200, 300), 304} - {206}


@pytest.mark.parametrize(
    ("value", "date", "wanted"),
    [
        ("120", None, 120.0),
        (" 0 ", None, 0.0),
        ("Tue, 14 Nov 2023 22:13:30 GMT", None, 10.0),
        ("Tue, 14 Nov 2023 22:13:30 GMT", "Tue, 14 Nov 2023 22:13:00 GMT", 30.0),
        ("Tue, 14 Nov 2000 22:13:30 GMT", None, 0.0),
        ("-5", None, None),
        ("1.5", None, None),
        ("٣", None, None),
        ("soon", None, None),
        ("9" * 30, None, None),
    ],
)
def test_retry_after(value: str, date: str | None, wanted: float | None) -> None:
    """Seconds, or a date counted from the answer's own clock; nonsense is no wait that anybody asked for."""
    assert retry_after_s([value], date, NOW) == wanted


def test_several_responses_are_united() -> None:
    """A refusal on any hop, or in the kept copy that a 304 confirms, refuses the page; the page's own status decides the body."""
    hop = judge_response("https://a.com/1", 301, [("X-Robots-Tag", "noai")], None, NOW, NORMAL, "CorpusBot")
    page = _judge()
    assert union([hop, page], NORMAL).use is Use.NO
    assert union([page], NORMAL) == page
    kept, confirmed = _tag("noai"), _judge(status=304)
    assert (union([kept, confirmed], NORMAL).use, union([kept, confirmed], NORMAL).store) == (Use.NO, False)
    assert union([_judge(), _judge([("Content-Usage", "train-ai=n")], status=304)], NORMAL).reason == "content-usage"
    assert union([hop, _judge(status=404)], NORMAL).reason == "http-404"


def test_challenge_pages() -> None:
    """A wall is known by its own marks; prose about it is not enough in plain text."""
    assert challenge_page(b"<html><script>window._cf_chl_opt={}</script>")
    assert not challenge_page(b"User-agent: *\nDisallow: /cdn-cgi/\n# _cf_chl_opt")
    assert not challenge_page(b"<html>home</html>")


def test_the_profile_asks_the_whole_only() -> None:
    """A response without a permission is no refusal by itself, even under `permission-only`."""
    strict = OptoutSettings(profile="permission-only")
    verdict = judge_response("https://ex.com/a", 200, [], None, NOW, strict, "CorpusBot")
    assert (verdict.use, verdict.store) == (Use.UNKNOWN, True)
    whole = consent("https://ex.com/a", robots="Content-Signal: ai-train=yes", at=NOW, settings=strict)
    assert (whole.use, whole.gate) == (Use.YES, Gate.FETCH)
