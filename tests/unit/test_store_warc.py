"""Writing and reading our own segments: what goes in comes out, and nothing hostile gets between."""

from __future__ import annotations

import gzip
import hashlib
import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.crawl.ports import CaptureSink, Original, Request
from corpus.errors import StoreError
from corpus.model import CaptureRef, Response
from corpus.store.layout import Layout, segment_name
from corpus.store.warc_groups import encode_group
from corpus.store.warc_read import read_at, read_captures
from corpus.store.warc_recover import describe
from corpus.store.warc_source import PlainSource, open_source
from corpus.store.warc_stream import Fault, RawRecord, read_records
from corpus.store.warc_write import SegmentWriter

HTML = b"<!doctype html><title>t</title><p>words and words</p>" * 40
URL = "http://a.test/path?q=1"
REQUEST = Request(URL, "a.test", "127.0.0.7")
PLAIN = Response(
    status=200, headers=(("Content-Type", "text/html; charset=utf-8"), ("X-B", "2"), ("x-b", "1")), body=HTML, decoded=HTML,
    raw_status="HTTP/1.1 200 Fine", raw_request=b"GET /path?q=1 HTTP/1.1\r\nHost: a.test\r\n\r\n", ip="127.0.0.7",
    started_at=1_800_000_000.123456, ended_at=1_800_000_000.623, latency_s=0.25, bytes_wire=2000, tls="strict",
)  # fmt: skip


class _Now:
    def __init__(self) -> None:
        self.s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.s


def _writer(root: Path, now: _Now | None = None, **options: Any) -> SegmentWriter:
    layout = Layout(root, root / ".local")
    return SegmentWriter(
        layout, layout.warc_dir("2026-11"), lambda seq: segment_name(3, 17, seq), clock=now or _Now(), identity="run",
        warcinfo={"software": "corpus/test", "operator": "ops@example.org", "robots": "obey"}, **options,
    )  # fmt: skip


def _raw(path: Path) -> list[RawRecord]:
    with open_source(path) as source:
        records = list(read_records(source))
    assert all(isinstance(record, RawRecord) for record in records)
    return [record for record in records if isinstance(record, RawRecord)]


def _put(writer: CaptureSink, response: Response, url: str = URL, **metadata: str) -> tuple[CaptureRef, int]:
    return writer.append(url, replace(REQUEST, url=url), response, depth=4, via="http://a.test/", metadata=metadata)


def test_a_capture_comes_back_as_it_went_in(tmp_path: Path) -> None:
    """Address, status, headers in order and case, body, depth, time to the microsecond, digest, place."""
    writer = _writer(tmp_path)
    ref, end = _put(writer, PLAIN)
    assert writer.pending_bytes == end
    assert writer.rotate(force=True) == ["warc/crawl_id=2026-11/s03-000017-000000.warc.gz"] == [ref.file]
    (capture,) = read_captures(tmp_path / ref.file, ref.file)
    assert (capture.url, capture.found, capture.status, capture.headers, capture.body) == (URL, URL, 200, PLAIN.headers, HTML)
    assert (capture.depth, capture.fetched_at, capture.ref, capture.fault) == (4, 1_800_000_000.123456, ref, "")
    assert capture.content_sha256 == hashlib.sha256(HTML).hexdigest()
    assert read_at(tmp_path / ref.file, ref.offset, ref.file) == capture
    data = (tmp_path / ref.file).read_bytes()
    assert len(data) == end
    assert gzip.decompress(data[ref.offset : ref.offset + ref.length]).startswith(b"WARC/1.1\r\nWARC-Type: response\r\n")
    (sealed,) = writer.take_sealed()
    assert sealed == describe(tmp_path / ref.file, ref.file)
    assert (sealed.pages, sealed.records, sealed.bytes, sealed.sha256) == (1, 4, end, hashlib.sha256(data).hexdigest())


def test_the_group_is_request_response_metadata(tmp_path: Path) -> None:
    """Order, links, payload type, address, and a warcinfo in front that says who we are and by which rules we go."""
    writer = _writer(tmp_path)
    chunked = replace(PLAIN, headers=(*PLAIN.headers, ("TRANSFER-encoding", "chunked")), truncated="length")
    ref, _ = _put(writer, chunked, **{"corpus-simhash": "00ff"})
    writer.rotate(force=True)
    info, request, response, metadata = _raw(tmp_path / ref.file)
    assert [info.kind, request.kind, response.kind, metadata.kind] == ["warcinfo", "request", "response", "metadata"]
    assert b"operator: ops@example.org\r\n" in info.block
    assert b"robots: obey\r\n" in info.block
    assert request.get("WARC-Concurrent-To") == metadata.get("WARC-Concurrent-To") == response.get("WARC-Record-ID")
    assert response.get("WARC-Identified-Payload-Type") == "text/html"
    assert response.get("WARC-IP-Address") == "127.0.0.7"
    assert response.get("WARC-Truncated") == "length"
    assert response.get("WARC-Date") == "2027-01-15T08:00:00.123456Z"
    assert response.block.startswith(b"HTTP/1.1 200 Fine\r\nContent-Type: text/html; charset=utf-8\r\nX-B: 2\r\nx-b: 1\r\n")
    assert b"\r\nX-Crawler-TRANSFER-encoding: chunked\r\n" in response.block
    for line in (b"corpus-url: " + URL.encode(), b"corpus-depth: 4", b"corpus-via: http://a.test/", b"corpus-simhash: 00ff",
                 b"fetchTimeMs: 500", b"corpus-tls: strict", b"corpus-fetched-at: 1800000000123456"):  # fmt: skip
        assert line + b"\r\n" in metadata.block
    assert len({record.get("WARC-Record-ID") for record in (info, request, response, metadata)}) == 4


def test_an_encoded_body_is_stored_as_sent_and_read_decoded(tmp_path: Path) -> None:
    """The payload digest is over the stored bytes; the capture's body and digest are over the decoded ones."""
    writer = _writer(tmp_path)
    body = gzip.compress(HTML)
    ref, _ = _put(writer, replace(PLAIN, body=body, headers=(("Content-Encoding", "gzip"),)))
    writer.rotate(force=True)
    (capture,) = read_captures(tmp_path / ref.file, ref.file)
    assert capture.body == HTML
    assert _raw(tmp_path / ref.file)[2].block.endswith(b"\r\n\r\n" + body)


def test_linked_copies_and_revisits(tmp_path: Path) -> None:
    """A near copy keeps no HTML and names its original; a 304 and an identical payload are revisits; all are captures."""
    writer = _writer(tmp_path)
    _put(writer, PLAIN)
    call: dict[str, Any] = {"depth": 1, "via": "", "metadata": {}}
    linked, _ = writer.append_linked(
        "http://a.test/copy", replace(REQUEST, url="http://a.test/copy"), PLAIN, original=URL, distance=2, **call
    )
    same, _ = writer.append_revisit(
        "http://a.test/same", replace(REQUEST, url="http://a.test/same"), PLAIN, original=Original(URL, URL, 1.5), **call
    )
    known = {"corpus-content-sha256": "ab" * 32}
    unchanged = replace(PLAIN, status=304, raw_status="HTTP/1.1 304 Not Modified", body=b"", decoded=b"")
    fresh, end = writer.append_revisit(URL, REQUEST, unchanged, original=Original(URL), **{**call, "metadata": known})
    assert end < 6000
    writer.rotate(force=True)
    path = tmp_path / linked.file
    captures = list(read_captures(path, linked.file))
    assert [(c.url, c.status, c.near_original, c.near_distance, c.body == b"") for c in captures] == [
        (URL, 200, "", None, False), ("http://a.test/copy", 200, URL, 2, True),
        ("http://a.test/same", 200, URL, 0, True), (URL, 304, URL, 0, True),
    ]  # fmt: skip
    assert [capture.ref for capture in captures[1:]] == [linked, same, fresh]
    assert [read_at(path, ref.offset, ref.file).url for ref in (linked, same, fresh)] == [
        "http://a.test/copy",
        "http://a.test/same",
        URL,
    ]
    assert captures[1].content_sha256 == captures[0].content_sha256
    assert captures[3].content_sha256 == "ab" * 32
    assert sum(HTML[:30] in record.block for record in _raw(path)) == 1
    assert "server-not-modified" in [record for record in _raw(path) if record.kind == "revisit"][1].get("WARC-Profile")


def test_rotation_by_size_age_and_force(tmp_path: Path) -> None:
    """A segment is sealed when it is big enough or old enough; without captures there is no segment at all."""
    now = _Now()
    writer = _writer(tmp_path, now, segment_bytes=4000, segment_age_s=60)
    assert writer.rotate(force=True) == []
    writer.sync()
    assert not (tmp_path / "warc").exists()
    _put(writer, PLAIN)
    writer.sync()
    assert [path.name for path in (tmp_path / "warc/crawl_id=2026-11").iterdir()] == ["s03-000017-000000.warc.gz.open"]
    assert writer.rotate() == []
    now.s += 61
    assert len(writer.rotate()) == 1
    for n in range(3):
        _put(writer, replace(PLAIN, body=bytes(range(256)) * 20, started_at=n))
    assert len(writer.rotate()) == 1
    assert sorted(path.name for path in (tmp_path / "warc/crawl_id=2026-11").iterdir()) == [
        "s03-000017-000000.warc.gz", "s03-000017-000001.warc.gz",
    ]  # fmt: skip
    assert [segment.pages for segment in writer.take_sealed()] == [1, 3]
    writer.close()
    with pytest.raises(StoreError):
        _put(writer, PLAIN)


def test_the_same_capture_encodes_to_the_same_bytes() -> None:
    """Encoding is a pure function: no clock, no random id."""
    one, two = (encode_group(URL, REQUEST, PLAIN, depth=1, via="", metadata={}, identity="x") for _ in range(2))
    assert one == two
    assert one != encode_group(URL, REQUEST, PLAIN, depth=1, via="", metadata={}, identity="y")
    known = hashlib.sha1(PLAIN.body, usedforsecurity=False).digest()
    assert one == encode_group(URL, REQUEST, PLAIN, depth=1, via="", metadata={}, identity="x", payload=known)


HOSTILE = st.text(st.characters(codec=None, categories=("L", "N", "P", "S", "Z", "Cc", "Cs")), max_size=40)


@given(name=HOSTILE, value=HOSTILE, tail=HOSTILE, via=HOSTILE, status=HOSTILE)
def test_no_value_breaks_out_of_its_line(name: str, value: str, tail: str, via: str, status: str) -> None:
    """Line breaks, NULs and lone surrogates in headers, addresses and notes never make a new header, record or failure."""
    inject = "\ud800\r\nWARC-Type: warcinfo\r\nContent-Length: 0\r\n\r\nWARC/1.1\r\n"
    url = "http://a.test/" + tail + inject
    response = replace(
        PLAIN,
        headers=((name + inject, value + inject), ("Content-Type", inject)),
        raw_status=f"HTTP/1.1 200 {status}{inject}",
        ip=inject,
    )
    group = encode_group(
        url, replace(REQUEST, url=url), response, depth=0, via=via + inject, metadata={"k" + inject: value + inject}
    )
    text = gzip.decompress(group.data)
    assert text.count(b"\nWARC/1.1\r\n") == 2, "three records, two of them behind another"
    assert text.count(b"\nWARC-Type: ") == 3
    response_text = gzip.decompress(group.data[group.offset : group.offset + group.length])
    assert response_text.partition(b"\r\n\r\n")[0].count(b"\n") == response_text.partition(b"\r\n\r\n")[0].count(b"\r\n")


@given(st.text(max_size=60), st.text(max_size=60))
def test_addresses_survive(path: str, query: str) -> None:
    """Whatever the found address, the record's target is one token, and printable addresses come back unchanged."""
    url = f"http://a.test/{path}?{query}"
    group = encode_group(URL, replace(REQUEST, url=url), PLAIN, depth=0, via="", metadata={})
    head = gzip.decompress(group.data[group.offset : group.offset + group.length]).partition(b"\r\n\r\n")[0]
    (target,) = [line[17:].decode() for line in head.split(b"\r\n") if line.startswith(b"WARC-Target-URI: ")]
    assert not any(char <= " " for char in target)
    if url.isascii() and url.isprintable() and not set(url) & set(" <>"):
        assert target == url


def test_damage_is_named_and_stepped_over(tmp_path: Path) -> None:
    """Damage in any one member: the captures around it are read, and one capture with a fault says where."""
    writer = _writer(tmp_path)
    refs = [_put(writer, replace(PLAIN, started_at=float(n)), f"http://a.test/{n}")[0] for n in range(5)]
    writer.rotate(force=True)
    path = tmp_path / refs[0].file
    whole = path.read_bytes()
    for ref in refs:
        data = bytearray(whole)
        data[ref.offset + ref.length // 2] ^= 0x55
        path.write_bytes(data)
        captures = list(read_captures(path, ref.file))
        faults = [capture for capture in captures if capture.fault]
        assert [fault.ref.offset for fault in faults] == [ref.offset]
        assert [capture.ref for capture in captures if not capture.fault] == [other for other in refs if other != ref]
        assert read_at(path, ref.offset).fault


def test_damage_at_any_byte_never_raises_and_never_invents(tmp_path: Path) -> None:
    """Flip, cut or overwrite anywhere: reading ends, and every capture read is one that was written."""
    writer = _writer(tmp_path)
    for n in range(3):
        _put(writer, replace(PLAIN, started_at=float(n)), f"http://a.test/{n}")
    writer.rotate(force=True)
    (path,) = (tmp_path / "warc").rglob("*.gz")
    whole = path.read_bytes()
    originals = {(capture.url, capture.body) for capture in read_captures(path, "f")}
    for at in range(0, len(whole), 17):
        for data in (whole[:at], whole[:at] + b"\x1f\x8b\x08\x00" + whole[at + 4 :], whole[:at] + b"\0" * 40 + whole[at:]):
            path.write_bytes(data)
            captures = list(read_captures(path, "f"))
            assert {(capture.url, capture.body) for capture in captures if not capture.fault} <= originals
            assert len(captures) <= 8


def test_a_body_that_is_not_the_recorded_one_is_a_fault(tmp_path: Path) -> None:
    """The metadata's digest binds the body: an archive whose body was exchanged is not read as that page."""
    writer = _writer(tmp_path)
    ref, _ = _put(writer, PLAIN, **{"corpus-content-sha256": "00" * 32})
    writer.rotate(force=True)
    (capture,) = read_captures(tmp_path / ref.file, ref.file)
    assert "digest" in capture.fault


def test_a_record_beyond_the_caps_is_cut_not_held(tmp_path: Path) -> None:
    """A block past the cap is cut and said to be, and reading goes on behind it."""
    writer = _writer(tmp_path)
    ref, _ = _put(writer, replace(PLAIN, body=bytes(3 * 2**20), decoded=bytes(3 * 2**20)))
    _put(writer, PLAIN, "http://a.test/next")
    writer.rotate(force=True)
    with open_source(tmp_path / ref.file) as source:
        records = [record for record in read_records(source, max_block=2**20) if isinstance(record, RawRecord)]
    assert [len(record.block) <= 2**20 for record in records] == [True] * 7
    assert [record.cut for record in records] == [False, False, True, False, False, False, False]


def test_the_write_side_stays_small() -> None:
    """A fetch process that writes segments and logs loads no pyarrow, duckdb, trafilatura or fastwarc."""
    code = (
        "import sys, corpus.store.warc_write, corpus.store.warc_recover, corpus.store.local_objects, corpus.store.commits, "
        "corpus.store.consent_log, corpus.store.control_log, corpus.store.locks, corpus.store.layout\n"
        "print([m for m in ('pyarrow', 'duckdb', 'trafilatura', 'fastwarc') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def _member(head: bytes, block: bytes, length: int | None = None, level: int = 6) -> bytes:
    size = len(block) if length is None else length
    return gzip.compress(b"WARC/1.1\r\n" + head + b"\r\nContent-Length: %d\r\n\r\n" % size + block + b"\r\n\r\n", level, mtime=0)


def _items(path: Path, data: bytes) -> list[str]:
    path.write_bytes(data)
    with open_source(path) as source:
        return [item.kind if isinstance(item, RawRecord) else f"fault at {item.offset}" for item in read_records(source)]


def test_a_lying_length_does_not_eat_the_next_record(tmp_path: Path) -> None:
    """Content-Length past the member's end: a fault at its offset, and the record behind it is read."""
    short = _member(b"WARC-Type: resource", b"abc", 100)
    assert _items(tmp_path / "x", short + _member(b"WARC-Type: request", b"")) == ["fault at 0", "resource", "request"]
    assert _items(tmp_path / "x", _member(b"WARC-Type: resource", b"abcdef", 3) + short)[:1] == ["resource"]
    for length in ("-1", "x", "9" * 30, "1e3", "²"):
        head = f"WARC-Type: a\r\nContent-Length: {length}".encode()
        data = gzip.compress(b"WARC/1.1\r\n" + head + b"\r\n\r\nabc\r\n\r\n")
        assert _items(tmp_path / "x", data + _member(b"WARC-Type: request", b"")) == ["fault at 0", "request"]


class _Dripping(PlainSource):
    """The same bytes, one by one."""

    def pull(self) -> bool:
        byte = self._file.read(1)
        self.buf += byte
        self._at += len(byte)
        return bool(byte)


_HEAD_PIECES = st.sampled_from(
    [
        b"A: b",
        b"WARC-Type:  x\t",
        b"a",
        b":",
        b" folded",
        b"\t",
        b"\xc3",
        b"\xa4",
        b"\x85",
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\r\n",
        b"x" * 5000,
    ]
)


@given(st.lists(_HEAD_PIECES, max_size=30))
def test_a_head_reads_the_same_however_its_bytes_come_in(pieces: list[bytes]) -> None:
    """Whole in the buffer, as nearly always, or byte after byte: the same record, or the same fault."""
    data = b"WARC/1.1\nContent-Length: 2\r\n" + b"".join(pieces) + b"\r\n\r\nab\r\n\r\n"

    def first(source: PlainSource) -> RawRecord | Fault:
        return next(iter(read_records(source)))

    assert first(PlainSource(io.BytesIO(data))) == first(_Dripping(io.BytesIO(data)))


def test_a_head_without_end_is_a_fault_wherever_its_bytes_are(tmp_path: Path) -> None:
    """A head is bounded whether it is at hand or not."""
    lines = b"X: y\r\n" * 20_000
    assert _items(tmp_path / "x", _member(lines[:-2], b"") + _member(b"WARC-Type: request", b"")) == ["fault at 0", "request"]


def test_chance_is_not_a_second_fault(tmp_path: Path) -> None:
    """Behind damage, bytes that look like a gzip head by chance are passed over; text in a page never poses as a record."""
    fake = b"\r\n\r\nWARC/1.1\r\nWARC-Type: forged\r\nContent-Length: 0\r\n\r\n\r\n\r\n"
    damaged = bytearray(_member(b"WARC-Type: resource", b"x" * 50 + b"\x1f\x8b\x08\x00" * 20 + fake * 3, level=0))
    damaged[30] ^= 0xFF
    data = bytes(damaged)
    good = _member(b"WARC-Type: request", b"")
    assert _items(tmp_path / "x", good + data + good) == ["request", f"fault at {len(good)}", "request"]
    headless = gzip.compress(b"WARC/1.1\r\nWARC-Type: resource\r\n\r\n" + fake * 3)
    assert _items(tmp_path / "x", headless + good) == ["fault at 0", "request"]
