"""Other people's tools on segments we wrote: warcio, fastwarc, datatrove."""

from __future__ import annotations

import gzip
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from corpus.crawl.ports import Original, Request
from corpus.model import Response
from corpus.store.layout import Layout, segment_name
from corpus.store.warc_write import SegmentWriter

BODY = "<!doctype html><title>é</title><p>Köln · 東京</p>".encode() * 50
URL = "http://a.test/köln?x=1"


@pytest.fixture(scope="module")
def segment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sealed segment with every shape of group that the crawl writes."""
    root = tmp_path_factory.mktemp("store")
    layout = Layout(root, root / ".local")
    writer = SegmentWriter(
        layout,
        layout.warc_dir("c"),
        lambda seq: segment_name(0, 1, seq),
        clock=lambda: 1.8e9,
        warcinfo={"operator": "x@example.org"},
    )
    plain = Response(
        status=200, headers=(("Content-Type", "text/html"), ("Transfer-Encoding", "chunked"), ("X-Odd", "a\r\nb")), body=BODY, decoded=BODY,
        raw_status="HTTP/1.1 200 OK", raw_request=b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", ip="127.0.0.2", started_at=1.8e9,
        ended_at=1.8e9 + 1, latency_s=0.1, bytes_wire=100,
    )  # fmt: skip
    request = Request(URL, "a.test", "127.0.0.2")
    call: dict[str, Any] = {"depth": 0, "via": "", "metadata": {}}
    writer.append(URL, request, plain, **call)
    encoded = replace(
        plain,
        body=gzip.compress(BODY),
        headers=(("Content-Type", "text/html"), ("Content-Encoding", "gzip")),
        started_at=1.8e9 + 1,
    )
    writer.append(URL, request, encoded, **call)
    writer.append(URL, request, replace(plain, body=b"", decoded=b"", started_at=1.8e9 + 2, headers=()), **call)
    writer.append_linked(URL, request, replace(plain, started_at=1.8e9 + 3), original="http://a.test/", distance=1, **call)
    writer.append_revisit(
        URL, request, replace(plain, started_at=1.8e9 + 4), original=Original("http://a.test/", "http://a.test/", 1.8e9), **call
    )
    writer.append_revisit(
        URL, request, replace(plain, status=304, body=b"", started_at=1.8e9 + 5), original=Original(URL), **call
    )
    (name,) = writer.rotate(force=True)
    return root / name


def test_warcio_check(segment: Path) -> None:
    """Every digest holds, every record is its own member."""
    result = subprocess.run(
        [sys.executable, "-m", "warcio.cli", "check", "-v", str(segment)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "digest pass" in result.stdout
    assert "fail" not in result.stdout


def test_warcio_reads_every_record(segment: Path) -> None:
    """Kinds, target addresses and decoded bodies as another library sees them."""
    from warcio.archiveiterator import ArchiveIterator

    kinds, bodies = [], []
    with segment.open("rb") as file:
        for record in ArchiveIterator(file):
            kinds.append(record.rec_type)
            if record.rec_type == "response":
                assert record.rec_headers.get_header("WARC-Target-URI") == URL
                bodies.append(record.content_stream().read())
    group = ["request", "response", "metadata"]
    revisit = ["request", "revisit", "metadata"]
    assert kinds == ["warcinfo", *group, *group, *group, "request", "metadata", *revisit, *revisit]
    assert bodies == [BODY, BODY, b""]


def test_fastwarc_check(segment: Path) -> None:
    """FastWARC finds every block digest right, and every payload digest but a revisit's, which is of a payload elsewhere."""
    tool = Path(sys.executable).with_name("fastwarc")
    if not tool.exists():
        pytest.skip("the fastwarc command is not installed: pip install fastwarc")
    result = subprocess.run([str(tool), "check", str(segment)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    from fastwarc.warc import ArchiveIterator

    kinds = []
    for record in ArchiveIterator(str(segment), parse_http=False, fsspec_args=False):
        kinds.append(str(record.record_type))
        assert record.verify_block_digest()
        if record.record_type == 4:
            record.parse_http()
            assert record.verify_payload_digest()
    assert len(kinds) == 18


def test_datatrove_reads_the_pages(segment: Path) -> None:
    """datatrove's reader, which skips records without an identified payload type, finds the pages."""
    reader = pytest.importorskip("datatrove.pipeline.readers", reason="pip install datatrove")
    documents = list(reader.WarcReader(str(segment.parent), glob_pattern="*.warc.gz").run())
    assert len(documents) >= 2
    assert "Köln" in documents[0].text
