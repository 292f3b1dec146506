"""`ingest`: archives crawled by others become segments of ours, faults are named, and nothing is ever added twice."""

from __future__ import annotations

import gzip
import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from corpus.app.funnel import whole_funnel
from corpus.app.ingest import FileEnd, ingest
from corpus.app.project import Project, open_project
from corpus.app.verify import verify
from corpus.app.verify_faults import Findings
from corpus.app.verify_release import check_steps
from corpus.app.views import Views
from corpus.config.load import load_config
from corpus.errors import UsageError
from corpus.store.warc_read import read_at, read_captures
from corpus.testing.demo.server import serving
from tests.conformance.test_store_warc_ingest import EXPECTED
from tests.demo_corpus import DemoCorpus, corpus_cli


def quiet(event: str, **facts: object) -> None:
    """A reporter that keeps it to itself."""
    del event, facts


def new_corpus(folder: Path, more: str = "") -> Project:
    """A corpus that knows neither seeds nor a contact."""
    folder.mkdir(parents=True)
    (folder / "corpus.toml").write_text(f'[corpus]\nname = "taken-in"\n{more}', "utf-8")
    return open_project(load_config(folder / "corpus.toml", environment={}))


def files_of(project: Project) -> dict[str, bytes]:
    root = project.layout.root
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted((root / "warc").rglob("*")) if path.is_file()}


def response(url: str, body: bytes, date: str = "2024-05-17T10:00:00Z") -> bytes:
    """One WARC/1.0 response record as a plain crawler writes it."""
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(
        body, mtime=0
    )
    head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:x:{abs(hash(url))}>\r\nWARC-Date: {date}\r\nWARC-Target-URI: {url}\r\n"
    return (
        (head + f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n").encode()
        + block
        + b"\r\n\r\n"
    )


def test_other_peoples_archives(test_data: Path, tmp_path: Path) -> None:
    """All 34 archives: records and faults as the readers know them, every page readable at its place, twice adds nothing."""
    project = new_corpus(tmp_path / "c")
    ends = ingest(project, [str(test_data / "warc")], quiet)
    assert {Path(end.file).relative_to(test_data / "warc").as_posix() for end in ends} == set(EXPECTED)
    for end in ends:
        records, pages, words = EXPECTED[Path(end.file).relative_to(test_data / "warc").as_posix()]
        assert (end.records, end.pages + end.revisits, end.faults_total) == (records, pages, len(words)), end.file
        assert all(word in fault.reason for word, fault in zip(words, end.faults, strict=True))
    assert {end.crawl_id for end in ends if "whirlwind" in end.file and end.pages} == {"CC-MAIN-2024-22"}
    n = 0
    for path in sorted(project.layout.warc.rglob("*.warc.gz")):
        for capture in read_captures(path, path.name):
            n += 1
            assert not capture.fault
            assert read_at(path, capture.ref.offset, path.name) == capture
    assert n == sum(end.pages for end in ends) > 100
    before = files_of(project)
    again = ingest(project, [str(test_data / "warc")], quiet)
    assert files_of(project) == before
    assert [(e.records, e.pages, e.faults) for e in again] == [(e.records, e.pages, e.faults) for e in ends]
    assert all(end.known for end in again)
    assert verify(project, quiet).faults == []


def test_wet_pages_are_plain_text(test_data: Path, tmp_path: Path) -> None:
    """A WET record becomes a text/plain page of the crawl it is part of, and its text is extracted as it stands."""
    project = new_corpus(tmp_path / "c")
    (end,) = ingest(project, [str(test_data / "warc/whirlwind/whirlwind.warc.wet.gz")], quiet)
    assert (end.crawl_id, end.pages) == ("CC-MAIN-2024-22", 1)
    (path,) = project.layout.warc.rglob("*.warc.gz")
    (capture,) = read_captures(path, path.name)
    assert (capture.header("content-type") or "").startswith("text/plain")
    assert capture.header("content-length") == str(len(capture.body))


def test_pages_keep_their_bytes_and_their_place(tmp_path: Path) -> None:
    """Body, address, date and digest survive; the coding headers of the original are renamed; the source is on record."""
    archive = tmp_path / "a.warc"
    archive.write_bytes(response("http://example.org:80/a?x=1#frag", "Übung".encode()))
    project = new_corpus(tmp_path / "c")
    ingest(project, [str(archive)], quiet)
    (path,) = project.layout.warc.rglob("*.warc.gz")
    (capture,) = read_captures(path, path.name)
    assert (capture.url, capture.found) == ("http://example.org/a?x=1", "http://example.org:80/a?x=1#frag")
    assert capture.body == "Übung".encode()
    assert capture.header("x-archive-content-encoding") == "gzip"
    assert capture.header("content-encoding") is None
    assert capture.fetched_at == 1715940000.0
    text = gzip.decompress(path.read_bytes()).decode("utf-8")
    assert "corpus-source-file: a.warc" in text
    assert "msgtype=request" not in text


def test_a_later_visit_that_found_the_same_adds_no_page(test_data: Path, tmp_path: Path) -> None:
    """A revisit of its own address is counted and not stored: the page itself stays the newest version."""
    project = new_corpus(tmp_path / "c")
    (end,) = ingest(project, [str(test_data / "warc/warcio/example.warc.gz")], quiet)
    assert (end.pages, end.revisits) == (1, 1)


def test_an_interrupted_ingest_is_done_again(tmp_path: Path) -> None:
    """What a crash left of an ingest, sealed, recorded or open, gives way to the same bytes."""
    archive = tmp_path / "a.warc"
    archive.write_bytes(b"".join(response(f"http://example.org/{n}", b"<p>%d</p>" % n * 300) for n in range(12)))
    more = '[store]\nsegment_bytes = "1KiB"\n'
    whole = new_corpus(tmp_path / "whole", more)
    ingest(whole, [str(archive)], quiet)
    torn = new_corpus(tmp_path / "torn", more)
    ingest(torn, [str(archive)], quiet)
    segments = sorted(torn.layout.warc.rglob("*.warc.gz"))
    for record in (torn.layout.commits / "ingest").iterdir():
        record.unlink()
    segments[-1].rename(segments[-1].with_name(segments[-1].name + ".open"))
    segments[0].write_bytes(segments[0].read_bytes()[:-9])
    (end,) = ingest(torn, [str(archive)], quiet)
    assert not end.known
    assert files_of(torn) == files_of(whole)
    assert verify(torn, quiet).faults == []


def test_a_crawl_that_finds_our_segments_unrecorded_knows_their_origin(tmp_path: Path) -> None:
    """A sealed segment whose record a crash took is recorded as ingested, not as crawled."""
    archive = tmp_path / "a.warc"
    archive.write_bytes(response("http://example.org/", b"<p>hello</p>"))
    project = new_corpus(tmp_path / "c")
    ingest(project, [str(archive)], quiet)
    (record,) = (project.layout.commits / "segment").iterdir()
    before = record.read_bytes()
    record.unlink()
    assert verify(project, quiet, repair=True).ok
    assert record.read_bytes() == before
    assert json.loads(before)["info"]["origin"] == "ingest"


def test_what_cannot_be_taken_in(tmp_path: Path) -> None:
    """S3 and names of nothing are usage errors; files without a record end with exit 3; one good file among them is enough."""
    project = new_corpus(tmp_path / "c")
    config = ("-c", project.layout.root / "corpus.toml")
    for name in ("s3://commoncrawl/x.warc.gz", str(tmp_path / "none.warc"), str(tmp_path / "*.arc")):
        with pytest.raises(UsageError):
            ingest(project, [name], quiet)
        assert corpus_cli("ingest", name, *config).code == 2
    junk = tmp_path / "junk.warc.gz"
    junk.write_bytes(b"\x1f\x8b\x08junk")
    said = corpus_cli("ingest", junk, "--json", *config)
    assert said.code == 3
    assert said.json["pages"] == 0
    assert said.json["files"][0]["faults"][0]["offset"] == 0
    good = tmp_path / "good.warc"
    good.write_bytes(response("http://example.org/", b"<p>hello</p>") + b"\x00\x00 no record \r\n")
    said = corpus_cli("ingest", str(tmp_path / "*.warc*"), "--json", *config)
    assert said.code == 0
    assert said.json["pages"] == 1
    assert {frozenset(file) >= {"file", "records", "pages", "faults"} for file in said.json["files"]} == {True}


def test_hostile_archives_cost_bounded_memory(tmp_path: Path) -> None:
    """A bomb and a page past the body limit are a fault and a cut, not a crash."""
    bomb = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(100 * 2**20))
    head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Date: 2024-01-01T00:00:00Z\r\nWARC-Target-URI: http://e.org/\r\nContent-Length: {len(bomb)}\r\n\r\n"
    archive = tmp_path / "bomb.warc"
    archive.write_bytes(head.encode() + bomb + b"\r\n\r\n")
    end: FileEnd
    (end,) = ingest(new_corpus(tmp_path / "c"), [str(archive)], quiet)
    assert end.records == 1
    assert end.faults_total == 1 or end.pages == 1


@dataclass(frozen=True, slots=True)
class Old:
    """An archive of the demo web as somebody crawled it years ago, and the web itself, served again."""

    archive: Path
    origins: dict[str, str]
    log: Path


@contextmanager
def old_crawl(folder: Path) -> Iterator[Old]:
    log = folder / "contacts.jsonl"
    wanted = (
        "bakery:/sourdough.html", "bakery:/private/orders.html", "atelier:/archives/carnet-1.html", "wheels:/knots.html",
        "wheels:/letters/readers-1.html", "vcely:/vosk.html",
    )  # fmt: skip
    with serving(port=0, log=log) as served:
        records = []
        for name in wanted:
            key, _, path = name.partition(":")
            with urllib.request.urlopen(served.origins[key] + path) as answer:
                records.append(response(served.origins[key] + path, answer.read()))
        archive = folder / "old.warc"
        archive.write_bytes(b"".join(records))
        yield Old(archive, served.origins, log)


LOOPBACK = """
[crawl]
contact = "https://corpus.example/bot"
delay = "50ms"
delay_start = "50ms"
latency_factor = 1.0
allow_private = ["127.0.0.0/8"]
"""


def test_old_consent_is_asked_again_before_release(tmp_path: Path) -> None:
    """Ingested pages leave only after today's robots.txt, TDMRep and page signals were heard; no page is asked for."""
    with old_crawl(tmp_path) as old:
        project = new_corpus(tmp_path / "c", LOOPBACK)
        config = ("-c", project.layout.root / "corpus.toml")
        asked_before = len(old.log.read_text("utf-8").splitlines())
        assert corpus_cli("ingest", old.archive, *config).code == 0
        assert corpus_cli("process", *config).code == 0
        ended = corpus_cli("export", *config)
        assert ended.code == 0, ended.err
        asked = [json.loads(line)["target"] for line in old.log.read_text("utf-8").splitlines()[asked_before:]]
    assert {"/robots.txt", "/.well-known/tdmrep.json"} <= set(asked)
    assert not [target for target in asked if target.endswith(".html")]
    with Views(project) as views:
        kept = {url.split("/", 3)[3] for url in views.query("SELECT url FROM records")["url"].to_pylist()}
        reasons = {
            row["url"].split("/", 3)[3]: row["reason"] for row in views.query("SELECT url, reason FROM documents").to_pylist()
        }
        origins = set(views.query("SELECT DISTINCT origin FROM documents")["origin"].to_pylist())
    assert kept == {"sourdough.html", "knots.html"}
    assert reasons == {
        "sourdough.html": "", "knots.html": "", "private/orders.html": "robots", "archives/carnet-1.html": "tdmrep",
        "letters/readers-1.html": "robots-peer", "vosk.html": "meta-robots",
    }  # fmt: skip
    assert origins == {"ingest"}
    assert verify(project, quiet).faults == []


def test_stale_consent_holds_rows_back(tmp_path: Path) -> None:
    """With optout.stale = "block" nobody is asked and nothing leaves: every row is held back as stale, exit 3."""
    with old_crawl(tmp_path) as old:
        archive = old.archive
    project = new_corpus(tmp_path / "c", '[optout]\nstale = "block"\n')
    config = ("-c", project.layout.root / "corpus.toml")
    assert corpus_cli("ingest", archive, *config).code == 0
    assert corpus_cli("process", *config).code == 0
    ended = corpus_cli("export", "--json", *config)
    assert ended.code == 3
    assert "older than optout.recheck_after" in ended.json["sentence"]
    with Views(project) as views:
        reasons = set(views.query("SELECT reason FROM documents WHERE reason <> 'meta-robots'")["reason"].to_pylist())
    assert reasons == {"stale"}


def test_the_funnel_adds_up_between_any_two_verbs(tmp_path: Path) -> None:
    """Taken in, measured, decided, taken in again, measured again: out is the next step's in each time, and what waits has its reason."""
    with old_crawl(tmp_path) as old:
        archive = old.archive
    later = tmp_path / "later.warc.gz"
    later.write_bytes(gzip.compress(response("http://later.example/", b"<p>A page that came in after the release.</p>" * 9)))
    project = new_corpus(tmp_path / "c", '[optout]\nstale = "block"\n')
    config = ("-c", project.layout.root / "corpus.toml")
    waiting = []
    for verb in (("ingest", archive), ("process",), ("export",), ("ingest", later), ("process",), ("export", "--name", "v2")):
        assert corpus_cli(*verb, *config).code in (0, 3)
        steps = whole_funnel(project)
        findings = Findings()
        check_steps(steps, "", findings)
        assert findings.all() == []
        waiting.append({code: n for code, n in steps[1].dropped.items() if code in ("unprocessed", "undecided")})
    assert waiting == [{}, {"undecided": 6}, {}, {}, {"undecided": 1}, {}], "pages taken in are known once they are measured"


def test_without_a_contact_nobody_is_asked(tmp_path: Path) -> None:
    """Export of ingested pages needs a contact (or stale = "block"), and says so before anything is asked."""
    with old_crawl(tmp_path) as old:
        archive = old.archive
    project = new_corpus(tmp_path / "c")
    config = ("-c", project.layout.root / "corpus.toml")
    assert corpus_cli("ingest", archive, *config).code == 0
    assert corpus_cli("process", *config).code == 0
    ended = corpus_cli("export", *config)
    assert ended.code == 2
    assert "crawl.contact" in ended.err


def test_our_own_segments_travel(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """Segments of another corpus of ours come in with their canonical addresses and depths; its policy files do not."""
    project = new_corpus(tmp_path / "c")
    (end,) = ingest(project, [str(demo_corpus.folder / "warc")], quiet)
    theirs = demo_corpus.folder.glob("warc/crawl_id=*/*.warc.gz")
    before = {(c.url, c.depth, c.near_original) for path in theirs for c in read_captures(path, path.name)}
    after = {
        (c.url, c.depth, c.near_original)
        for path in project.layout.warc.rglob("*.warc.gz")
        for c in read_captures(path, path.name)
    }
    assert after == before
    assert end.faults_total == 0
