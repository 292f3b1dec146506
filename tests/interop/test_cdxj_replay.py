"""Our index read by others: pywb replays a crawl byte for byte, and cdxj-indexer finds the same captures in the same places."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.statusandheaders import StatusAndHeaders

from corpus.app.index import captures
from corpus.app.ingest import ingest
from corpus.app.project import Project
from corpus.app.run import run_all
from corpus.app.verify import verify
from corpus.observe.runlog import Terminal
from corpus.store.cdxj import FIELDS, Entry
from tests.apart import apart
from tests.optout_web import Web, html, project, serving

HOST = "127.30.8.1"
Crawled = tuple[Project, Web, dict[str, list[bytes]]]
PAGES = ("/stays", "/changes", "/a%20b?x=1&B=2", "/Case/Page.html")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    """Two visits of four pages and a redirect: the second finds one changed and the others not modified. And the bodies served."""
    web, bodies = Web((HOST,)), {}
    web.index(*PAGES, "/old", "/twin")
    web.put("/old", "", ("Location", "/stays"), status=301)
    for seed, path in enumerate(PAGES):
        web.page(path, seed, ("ETag", f'"{seed}"'))
        bodies[path] = [web.files[HOST, path].body]
    web.files[HOST, "/twin"] = web.files[HOST, "/stays"]
    bodies["/twin"] = bodies["/stays"]
    folder = tmp_path_factory.mktemp("replay")
    with serving(web):
        made = project(folder, web, more='[recrawl]\nevery = "1s"\n[extract]\nprofile = "fast"')
        run_all(made, quiet=True, stages=("crawl",))
        web.put("/changes", html(77), ("ETag", '"new"'))
        bodies["/changes"].append(web.files[HOST, "/changes"].body)
        time.sleep(1.3)
        run_all(made, quiet=True, stages=("crawl",))
    return made, web, bodies


@contextmanager
def wayback(root: Path, folder: Path) -> Iterator[str]:
    """A pywb over a corpus' own files: no copy, no conversion."""
    folder.mkdir()
    (folder / "config.yaml").write_text(
        f"collections:\n  c:\n    index_paths: {root}/cdxj/\n    archive_paths: {root}/\n", "utf-8"
    )
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [str(apart("wayback")), "-b", "127.0.0.1", "-p", str(port), "-d", str(folder)], stdout=log, stderr=log, cwd=folder
        )
        try:
            until = time.monotonic() + 30
            while time.monotonic() < until:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert server.poll() is None, (folder / "log").read_text()
                    time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(10)


def get(url: str) -> tuple[int, bytes, dict[str, str]]:
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    try:
        with urllib.request.build_opener(Stay).open(url, timeout=20) as answer:
            return answer.status, answer.read(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, error.read(), dict(error.headers)


def test_pywb_replays_every_page_byte_for_byte(crawled: Crawled, tmp_path: Path) -> None:
    """Each capture at its own moment has the bytes that were served, a copy of another page too; a redirect leads on."""
    apart("wayback")
    made, web, bodies = crawled
    with wayback(made.layout.root, tmp_path / "pywb") as server:
        for path, served in bodies.items():
            entries = list(captures(made, web.url(path)))
            answered = [entry for entry in entries if entry.status == "200"]
            assert len(answered) == len(served), path
            for entry, body in zip(answered, served, strict=True):
                assert get(f"{server}/c/{entry.timestamp}id_/{entry.url}")[:2] == (200, body), path
        twins = [next(iter(captures(made, web.url(path)))) for path in ("/stays", "/twin")]
        assert sorted(entry.mime for entry in twins) == ["text/html", "warc/revisit"]  # one of the two came first
        status, _, headers = get(f"{server}/c/id_/{web.url('/old')}")
        assert (status, headers["Location"]) == (301, "/stays")
        assert get(f"{server}/c/id_/{web.url('/nowhere')}")[0] == 404


def test_a_304_leads_to_the_page_it_confirms(crawled: Crawled, tmp_path: Path) -> None:
    """At the moment of the second visit pywb repeats the 304; the capture it refers to is in the index, and has the page."""
    apart("wayback")
    made, web, bodies = crawled
    with wayback(made.layout.root, tmp_path / "pywb") as server:
        entry = next(entry for entry in captures(made, web.url("/stays")) if entry.status == "304")
        assert entry.mime == "warc/revisit"
        assert get(f"{server}/c/{entry.timestamp}id_/{entry.url}")[:2] == (304, b"")
        target = _headers(made, entry).get_header("WARC-Refers-To-Target-URI")
        original = [found for found in captures(made, target) if found.status == "200" and found.timestamp <= entry.timestamp][-1]
        assert get(f"{server}/c/{original.timestamp}id_/{target}")[:2] == (200, bodies["/stays"][0])
    for path in ("/a%20b?x=1&B=2", "/Case/Page.html"):  # no other page has their bytes, so each was stored whole
        first, second = captures(made, web.url(path))
        record = _headers(made, first)
        assert (first.status, second.status) == ("200", "304")
        assert _headers(made, second).get_header("WARC-Refers-To-Date") == record.get_header("WARC-Date")
        assert _headers(made, second).get_header("WARC-Refers-To-Target-URI") == record.get_header("WARC-Target-URI")


def _headers(made: Project, entry: Entry) -> StatusAndHeaders:
    with (made.layout.root / entry.filename).open("rb") as file:
        file.seek(entry.offset)
        return next(iter(ArchiveIterator(file))).rec_headers


def test_cdxj_indexer_finds_the_same_captures(crawled: Crawled, tmp_path: Path, test_data: Path) -> None:
    """The same keys, times and fields as another indexer, for our own segments and for those of archives taken in."""
    theirs = apart("cdxj-indexer")
    made, _, _ = crawled
    ingest(made, [str(test_data / "warc")], Terminal(quiet=True))
    assert verify(made, Terminal(quiet=True)).ok
    root = made.layout.root
    segments = [str(path) for path in sorted((root / "warc").rglob("*.warc.gz"))]
    told = subprocess.run([str(theirs), "--sort", "--dir-root", str(root), *segments], capture_output=True, text=True, check=True)
    expected = sorted(_fields(line) for line in told.stdout.splitlines())
    ours = sorted(_fields(line) for path in made.layout.cdxj.iterdir() for line in path.read_text("ascii").splitlines())
    assert len(ours) > 40
    assert ours == expected


def _fields(line: str) -> tuple[str, ...]:
    """A line's parts; what a record does not say is `-` in ours, absent in theirs (and a 304's digest that of nothing)."""
    key, timestamp, told = line.split(" ", 2)
    values = json.loads(told)
    digest = "-" if values.get("status") == "304" else values["digest"]
    rest = (values.get("mime", "unk"), values.get("status", "-"), digest, *(values[name] for name in FIELDS[4:]))
    return key, timestamp, values["url"], *rest
