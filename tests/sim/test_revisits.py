"""What a recrawl stores of pages that came again unchanged: a reference to the capture that holds them, never the bytes twice."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from corpus.crawl.ports import Original, Request
from corpus.crawl.settings import RecrawlSettings
from corpus.model import Kind, Response
from corpus.store.layout import Layout
from corpus.store.warc_write import SegmentWriter
from corpus.testing.web_answer import Answer, Ask
from corpus.testing.web_hosts import Page
from corpus.testing.web_text import paragraphs
from tests.sim.crawl_kit import Crawl, settings
from tests.sim.crawl_webs import HTML, Web, check_funnel

MONTH = 34 * 86_400.0
URL = "http://c.test/same"


def _text(key: str) -> bytes:
    return "".join(f"<p>{text}</p>" for text in paragraphs(1, key, "en", 900)).encode()


def _web(packed: dict[str, int]) -> Web:
    """A page that never changes, one that always does, and one whose bytes on the wire change while its content does not."""

    def changing(ask: Ask) -> Answer:
        return Answer(headers=HTML, body=_text(f"visit {ask.nth}"))

    def repacked(ask: Ask) -> Answer:
        body = gzip.compress(_text("packed"), compresslevel=packed["level"], mtime=0)
        return Answer(headers=(*HTML, ("Content-Encoding", "gzip")), body=body)

    home = b'<a href="/same">a</a><a href="/new">b</a><a href="/packed">c</a>'
    pages = {
        "/same": Page(lambda ask: Answer(headers=HTML, body=_text("same"))),
        "/new": Page(changing),
        "/packed": Page(repacked),
    }
    return Web({"c.test": {"/": Page(lambda ask: Answer(headers=HTML, body=home)), **pages}})


def test_an_unchanged_page_is_a_revisit_of_its_first_whole_capture() -> None:
    """Twice unchanged: twice a revisit, and each refers to the first capture; a changed page is stored whole, and then again
    referred to; other bytes on the wire are stored, because a revisit record must name the digest of what it stands for."""
    packed = {"level": 9}
    crawl = Crawl(_web(packed), settings(near_copies="link"), recrawl=RecrawlSettings(every=30 * 86_400.0))
    crawl.run()
    first = crawl.row(URL)
    for visit in (1, 2):
        crawl.clock._now += MONTH
        packed["level"] = 9 if visit == 1 else 1
        crawl.run()
        assert crawl.sinks["pages"].revisits.count((URL, URL)) == visit
        row = crawl.row(URL)
        assert (row["state"], row["http_status"]) == ("not-modified", 200)
        assert row["content_sha256"] == first["content_sha256"]
    kept = [url for url, _, _ in crawl.sinks["pages"].kept]
    assert kept.count(URL) == 1
    assert kept.count("http://c.test/new") == 3
    assert kept.count("http://c.test/packed") == 2
    queued = next(store for store in crawl.files.values() if store.lookup(URL))._data.visits
    whole = next(visit.whole for visit in queued.values() if visit.url == URL)
    assert whole is not None
    assert whole.at == first["fetched_at"]
    check_funnel(crawl)


@pytest.mark.parametrize(("status", "profile"), [(200, "identical-payload-digest"), (304, "server-not-modified")])
def test_a_revisit_record_says_where_the_bytes_are(tmp_path: Path, status: int, profile: str) -> None:
    """The record that other people's tools resolve: profile, address and date of the capture it refers to, of the same bytes also
    their digest (a 304 has none)."""
    writer = SegmentWriter(
        Layout(tmp_path, tmp_path / "l"), tmp_path / "warc", lambda n: f"s00-000001-{n:06d}", clock=lambda: 0.0
    )
    answer = Response(200, HTML, _text("x"), _text("x"), "HTTP/1.1 200 OK", b"GET / HTTP/1.1\r\n\r\n", "192.0.2.1", 1_800_000_000.25, 1_800_000_001.0, 0.1, 9)  # fmt: skip
    request = Request(URL, "c.test", "192.0.2.1", Kind.PAGE)
    writer.append(URL, request, answer, depth=0, via="", metadata={})
    again = replace(answer, status=status, body=answer.body if status == 200 else b"", started_at=1_900_000_000.0)
    writer.append_revisit(URL, request, again, depth=0, via="", metadata={}, original=Original(URL, URL, answer.started_at))
    writer.sync()
    writer.rotate(force=True)
    (path,) = (tmp_path / "warc").glob("*.warc.gz")
    found = {}
    with path.open("rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type in ("response", "revisit"):
                found[record.rec_type] = record.rec_headers
                assert (record.rec_type == "revisit") == (record.content_stream().read() == b"")
    response, revisit = found["response"], found["revisit"]
    assert revisit["WARC-Profile"] == f"http://netpreserve.org/warc/1.1/revisit/{profile}"
    assert revisit["WARC-Refers-To-Target-URI"] == response["WARC-Target-URI"]
    assert revisit["WARC-Refers-To-Date"] == response["WARC-Date"]
    assert revisit["WARC-Payload-Digest"] == (response["WARC-Payload-Digest"] if status == 200 else None)
