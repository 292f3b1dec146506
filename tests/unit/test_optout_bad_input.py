"""The issue's bad inputs, through the path a crawl takes: an answer to robots.txt, its row, the book, the decision."""

from __future__ import annotations

import hashlib
import time
from urllib.parse import urlsplit

import pytest

from corpus.crawl.authority import Ask, AuthorityBook, Decided, Step, Wait
from corpus.crawl.authority_read import Follow, Read, asked_at, read_answer, row_of
from corpus.crawl.desk import Errand
from corpus.crawl.ports import AuthorityRow, QueuedUrl
from corpus.model import Access, Failed, Failure, FetchResult, Gate, Kind, Response, Use
from corpus.optout.settings import OptoutSettings

SITE, AUTHORITY, NOW = "http://ex.test", "http://ex.test:80", 1_000_000.0
SETTINGS = OptoutSettings()
PLAIN = (("Content-Type", "text/plain"),)
HTML = (("Content-Type", "text/html"),)


def response(body: bytes, status: int = 200, headers: tuple[tuple[str, str], ...] = PLAIN, truncated: str = "") -> Response:
    return Response(status, headers, body, body, f"HTTP/1.1 {status}", b"", "127.0.0.1", NOW, NOW, 0.01, len(body), truncated)


def queued(path: str = "/page", host: str = "ex.test") -> QueuedUrl:
    url = f"http://{host}{path}"
    return QueuedUrl(url, url, host, host, Kind.PAGE, 0, 0, "", 0, 0.5)


class Reader:
    """Answers the book's questions from a table; a file that is not in it is not there."""

    def __init__(self, settings: OptoutSettings = SETTINGS) -> None:
        self.settings, self.bodies = settings, dict[str, bytes]()
        self.book = AuthorityBook(settings, "CorpusBot", self.bodies.__getitem__)
        self.asked: list[str] = []

    def read(self, ask: Ask, result: FetchResult, now: float) -> None:
        errand = Errand(ask.authority, ask.kind, ask.url, 0, "ex.test")
        answer = read_answer(errand, result, self.settings)
        if isinstance(answer, Follow):  # ai.txt has a second address
            errand = Errand(ask.authority, ask.kind, answer.url, answer.hops, "ex.test")
            answer = read_answer(errand, result, self.settings)
        assert isinstance(answer, Read)
        before = self.book.row(ask.authority, ask.kind, asked_at(errand))
        row = row_of(errand, answer, now, self.settings, pace_s=5.0, before=before)
        if row.digest:
            self.bodies[row.digest] = answer.body
        self.book.learn([row])

    def step(self, path: str, files: dict[str, FetchResult], now: float = NOW) -> Step:
        """Ask for what the book wants until it decides or waits."""
        while True:
            step = self.book.step(queued(path), now)
            if not isinstance(step, Ask):
                return step
            self.asked.append(step.url)
            assert len(self.asked) < 50, "the book goes round in circles"
            self.read(step, files.get(urlsplit(step.url).path, response(b"", 404)), now)


def decide(
    body: bytes, path: str = "/page", headers: tuple[tuple[str, str], ...] = PLAIN, status: int = 200, truncated: str = ""
) -> Step:
    return Reader().step(path, {"/robots.txt": response(body, status, headers, truncated)})


def gate(step: Step) -> str:
    """`wait`, or the gate of a decision."""
    return step.consent.gate.value if isinstance(step, Decided) else "wait"


FILLER = b"# nothing to see here, only many lines\n"
SMALL = b"User-agent: *\nDisallow: /page\n"
GROUPS = b"".join(b"User-agent: bot%d\nDisallow: /x%d\n\n" % (n, n) for n in range(10_000))
BAD: dict[str, tuple[bytes, str]] = {
    "600 KiB, the rule inside the limit": (SMALL + FILLER * 16_000, "skip"),
    "600 KiB, the rule past the limit": (b"User-agent: *\nDisallow: /other\n" + FILLER * 16_000 + b"Disallow: /page\n", "fetch"),
    "UTF-16 with a mark": (SMALL.decode().encode("utf-16"), "skip"),
    "UTF-16 without one": (SMALL.decode().encode("utf-16-le"), "skip"),
    "UTF-8 mark": (b"\xef\xbb\xbf" + SMALL, "skip"),
    "a mark in mid-file": (b"User-agent: other\nDisallow: /\n\xef\xbb\xbfUser-agent: *\nDisallow: /page\n", "skip"),
    "10,000 groups, ours last": (GROUPS + b"User-agent: corpusbot\nDisallow: /page\n", "skip"),
    "10,000 groups, none ours": (GROUPS, "fetch"),
    "comma list": (b"User-agent: GPTBot, CCBot\nDisallow: /\n", "skip"),
    "comma list with us": (b"User-agent: other, CorpusBot\nDisallow: /\n", "skip"),
    "versioned agent": (b"User-agent: GPTBot/1.1\nDisallow: /\n", "skip"),
    "versioned, ours": (b"User-agent: CorpusBot/9.9\nDisallow: /\n", "skip"),
    "misspelt disallow": (b"User-agent: *\nDissallow: /page\n", "skip"),
    "misspelt agent line": (b"Useragent *\nDisalow /page\n", "skip"),
    "swapped near-miss": (b"User-agent: *\nContent-Usage: ai-train=n\n", "skip"),
    "near-miss value": (b"User-agent: *\nContent-Usage: train-ai=no\n", "skip"),
    "signal between agents": (b"User-agent: GPTBot\nContent-Signal: search=yes\nUser-agent: CCBot\nDisallow: /\n", "skip"),
    "NULs and rubbish": (b"\0\xff\xfe\0" * 1000, "fetch"),
    "CR only": (b"User-agent: *\rDisallow: /page\r", "skip"),
    "line separators are no line ends": (b"User-agent: *\nDisallow: /page # see\xe2\x80\xa8Allow: /page\n", "skip"),
    "cut in a rule": (b"User-agent: *\nDisallow: /pa", "skip"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_decided(name: str) -> None:
    """Each is decided as the protocols' texts say, without an exception, in bounded time."""
    body, expected = BAD[name]
    began = time.process_time()
    assert gate(decide(body)) == expected
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (response(b"<!DOCTYPE html><title>Not found</title><p>Sorry", 200, HTML), "fetch"),
        (response(b"<!DOCTYPE html><title>Just a moment...</title>", 403, (*HTML, ("cf-mitigated", "challenge"))), "wait"),
        (response(b"", 202, (("x-amzn-waf-action", "challenge"),)), "wait"),
        (response(SMALL[:20], truncated="disconnect"), "wait"),
        (response(b"User-agent: *\n", truncated="time"), "wait"),
        (response(b"busy", 429), "wait"),
        (response(b"oops", 500), "wait"),
        (response(b"part", 206), "wait"),
        (response(b"no", 401), "skip"),
        (response(b"no", 403), "skip"),
        (response(b"no", 451), "skip"),
        (response(b"", 404), "fetch"),
        (response(b"", 410), "fetch"),
        (Failed(Failure.TIMEOUT, "no answer", NOW, NOW), "wait"),
        (Failed(Failure.DECODE, "a bomb", NOW, NOW, status=200), "wait"),
        (response(b"", 301, (("Location", "http://[::bad"),)), "wait"),
    ],
)
def test_answers_that_are_no_file(answer: FetchResult, expected: str) -> None:
    """A soft 404 states nothing; challenges, broken transfers and trouble wait; a denial refuses. None of them allows by accident."""
    assert gate(Reader().step("/page", {"/robots.txt": answer})) == expected


def test_sixty_wildcards_against_a_long_path() -> None:
    """The whole decision takes less than a millisecond once the rules are loaded."""
    body = b"User-agent: *\n" + b"".join(b"Disallow: /%s%d$\n" % (b"*a" * 60, n) for n in range(60))
    reader = Reader()
    path = "/" + "a" * 2_000
    assert gate(reader.step(path, {"/robots.txt": response(body)})) == "fetch"
    rules = reader.book.rules(AUTHORITY)
    best = 1.0
    for _ in range(20):
        began = time.process_time()
        rules.judge(f"{SITE}{path}", NOW)
        best = min(best, time.process_time() - began)
    assert best < 0.001


def test_an_unreadable_file_waits_and_remembers_since_when() -> None:
    """Tries that fail in a row keep the time of the first; after 30 days the answer is no, and it is still asked again."""
    reader = Reader()
    silent = Failed(Failure.CONNECT, "refused", NOW, NOW)
    assert isinstance(reader.step("/page", {"/robots.txt": silent}), Wait)
    late = NOW + 31 * 86_400
    assert isinstance(reader.step("/page", {"/robots.txt": silent}, late), Wait)
    row = reader.book.row(AUTHORITY, Kind.ROBOTS)
    assert row is not None
    assert (row.unreachable_since, row.read_at) == (NOW, late)
    given_up = reader.book.rules(AUTHORITY).judge(f"{SITE}/page", late)
    assert (given_up.access, given_up.gate, given_up.export) == (Access.NO, Gate.DEFER, False)
    assert gate(reader.step("/page", {"/robots.txt": response(b"")}, late + 10)) == "fetch"
    row = reader.book.row(AUTHORITY, Kind.ROBOTS)
    assert row is not None
    assert row.unreachable_since is None


def test_side_files_that_cannot_be_read_defer() -> None:
    """robots.txt allows; a tdmrep.json in trouble defers the page, and a later answer decides it."""
    reader = Reader()
    trouble: dict[str, FetchResult] = {"/robots.txt": response(b""), "/.well-known/tdmrep.json": response(b"", 503)}
    step = reader.step("/page", trouble)
    assert gate(step) == "defer"
    assert reader.book.unread(queued(), NOW).until > NOW
    fine = trouble | {"/.well-known/tdmrep.json": response(b'[{"location": "/", "tdm-reservation": 1}]')}
    step = reader.step("/page", fine, NOW + 10)
    assert isinstance(step, Decided)
    assert step.consent.use is Use.NO


RSL_NO = b'<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license><prohibits type="usage">ai-train</prohibits></license></content></rsl>'
RSL_YES = RSL_NO.replace(b"prohibits", b"permits")


def test_every_advertised_document_is_read_and_a_changed_address_asked_for() -> None:
    """Two License lines are two documents; when robots.txt names another address, that one is asked for."""
    reader = Reader()
    two = b"License: http://ex.test/a.xml\nLicense: http://ex.test/b.xml\nUser-agent: *\nAllow: /\n"
    files: dict[str, FetchResult] = {
        "/robots.txt": response(two),
        "/a.xml": response(RSL_YES),
        "/b.xml": response(RSL_NO),
        "/c.xml": response(RSL_YES),
    }
    assert gate(reader.step("/page", files)) == "skip"
    assert [url for url in reader.asked if url.endswith(".xml")] == [f"{SITE}/a.xml", f"{SITE}/b.xml"]
    files["/robots.txt"] = response(b"License: http://ex.test/c.xml\nUser-agent: *\nAllow: /\n")
    step = reader.step("/page", files, NOW + 2 * SETTINGS.robots_ttl)
    assert isinstance(step, Decided)
    assert (step.consent.gate, step.consent.use) == (Gate.FETCH, Use.YES)
    assert reader.asked[-1] == f"{SITE}/c.xml"


def test_a_licence_that_may_not_be_asked_for_is_no_licence() -> None:
    """robots.txt refuses the document's path: it is not asked, and the page is not licensed. Another owner's is held."""
    reader = Reader()
    body = b"License: http://ex.test/l.xml\nUser-agent: *\nDisallow: /l.xml\n"
    step = reader.step("/page", {"/robots.txt": response(body), "/l.xml": response(RSL_YES)})
    assert gate(step) == "skip"
    assert f"{SITE}/l.xml" not in reader.asked
    elsewhere = b"License: http://other.test/l.xml\nUser-agent: *\nAllow: /\n"
    assert gate(decide(elsewhere)) == "hold"


def test_a_licence_server_in_trouble_defers() -> None:
    """A 503 is no statement that there is no licence: the page waits for the next try."""
    body = b"License: http://ex.test/l.xml\nUser-agent: *\nAllow: /\n"
    reader = Reader()
    assert gate(reader.step("/page", {"/robots.txt": response(body), "/l.xml": response(b"", 503)})) == "defer"


def test_a_denial_hears_nothing_but_robots() -> None:
    """An authority that shuts us out is asked for robots.txt and for nothing else."""
    reader = Reader()
    assert gate(reader.step("/page", {"/robots.txt": response(b"User-agent: *\nDisallow: /\n")})) == "skip"
    assert reader.asked == [f"{AUTHORITY}/robots.txt"]


def test_idle_hosts_cost_little() -> None:
    """When a host goes, its matchers go; what stays compiled answers the same when it comes back."""
    reader = Reader()
    files: dict[str, FetchResult] = {"/robots.txt": response(SMALL)}
    assert gate(reader.step("/page", files)) == "skip"
    row = reader.book.row(AUTHORITY, Kind.ROBOTS)
    assert row is not None
    reader.book.forget([AUTHORITY])
    assert reader.book.row(AUTHORITY, Kind.ROBOTS) is None
    reader.book.learn([row, AuthorityRow(AUTHORITY, Kind.TDMREP, "absent", 404, "", NOW, NOW + 10)])
    assert row.digest == hashlib.sha256(SMALL).hexdigest()
    assert gate(reader.step("/page", files)) == "skip"
