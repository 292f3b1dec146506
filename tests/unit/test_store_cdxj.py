"""The index of captures: keys as replay tools fold them, lines of every replayable record, look-ups by bisection."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.crawl.ports import Original, Request
from corpus.errors import StoreError
from corpus.model import Response
from corpus.store.cdxj import FIELDS, find, index_lines, parse
from corpus.store.layout import Layout, segment_name
from corpus.store.warc_groups import Group
from corpus.store.warc_write import SegmentWriter
from corpus.url.surt import surt

BODY = b"<!doctype html><title>x</title>"
PAGE = "http://www.a.test/B%20c/?z=1&A=2"


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("http://www.Example.com/A/?b=2&a=1", "com,example)/a?a=1&b=2"),
        ("https://example.com:443/", "com,example)/"),
        ("https://example.com:8443/x/", "com,example:8443)/x"),
        ("http://example.com?", "com,example)/"),
        ("http://example.com/a/../b//./c", "com,example)/b/c"),
        ("http://127.0.0.1:4000/x", "1,0,0,127:4000)/x"),
        ("http://m\u00fcnchen.de/\u00fc", "de,xn--mnchen-3ya)/%c3%bc"),
        ("http://e.com/%25%32%35", "com,e)/%25"),
        ("http://e.com/x?sid=0123456789abcdef0123456789abcdef&y=1", "com,e)/x?y=1"),
        ("http://u:p@e.com/a b", "com,e)/a%20b"),
        ("", "-"),
    ],
)
def test_keys_are_those_of_the_wayback_tools(url: str, key: str) -> None:
    """Host reversed without www, everything folded; `tests/interop` compares thousands with the tools themselves."""
    assert surt(url) == key


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(max_size=60), st.text(alphabet="ahtp:/?#[]@%.&=\u00fc \n\0", max_size=40).map("http://".__add__)))
def test_any_text_has_a_key_without_a_space(url: str) -> None:
    """Law: total, printable ASCII, no blank, and the key of a key's own URL form is bounded."""
    key = surt(url)
    assert key
    assert key.isascii()
    assert key.isprintable()
    assert " " not in key


_PLAIN = Response(
    status=200, headers=(("Content-Type", "text/html; charset=utf-8"),), body=BODY, decoded=BODY, raw_status="HTTP/1.1 200 OK",
    raw_request=b"GET / HTTP/1.1\r\n\r\n", ip="127.0.0.2", started_at=1.8e9, ended_at=1.8e9 + 1, latency_s=0.1, bytes_wire=9,
)  # fmt: skip


def _writer(root: Path) -> SegmentWriter:
    layout = Layout(root, root / ".local")
    return SegmentWriter(layout, layout.warc_dir("c"), lambda seq: segment_name(0, 1, seq), clock=lambda: 1.8e9, warcinfo={})


def _segment(root: Path) -> tuple[Path, str]:
    writer, plain = _writer(root), _PLAIN
    call: dict[str, Any] = {"depth": 0, "via": "", "metadata": {}}
    request = Request(PAGE, "www.a.test", "127.0.0.2")
    writer.append(PAGE, request, plain, **call)
    writer.append_linked(PAGE, request, replace(plain, started_at=1.8e9 + 1), original="http://a.test/", distance=1, **call)
    writer.append_revisit(PAGE, request, replace(plain, started_at=1.8e9 + 2), original=Original("http://a.test/"), **call)
    writer.append_revisit(
        PAGE, request, replace(plain, status=304, body=b"", started_at=1.8e9 + 3, raw_status=""), original=Original(PAGE), **call
    )
    (name,) = writer.rotate(force=True)
    return root / name, name


def test_a_segment_has_a_line_for_each_record_with_something_to_replay(tmp_path: Path) -> None:
    """Response and revisits, in the order of time, with the place of their own gzip member; a linked copy has nothing to show."""
    path, name = _segment(tmp_path)
    lines = index_lines(path, name)
    assert lines == sorted(lines) == index_lines(path, name)
    entries = [parse(line) for line in lines]
    assert [(entry.timestamp, entry.mime, entry.status) for entry in entries] == [
        ("20270115080000", "text/html", "200"),
        ("20270115080002", "warc/revisit", "200"),
        ("20270115080003", "warc/revisit", "304"),
    ]
    assert {entry.key for entry in entries} == {"test,a)/b%20c?a=2&z=1"}
    assert entries[0].digest == entries[1].digest
    assert entries[2].digest == "-"
    data = path.read_bytes()
    for entry in entries:
        assert entry.filename == name
        assert data[entry.offset : entry.offset + 2] == b"\x1f\x8b"
        assert entry.offset + entry.length == len(data) or data[entry.offset + entry.length :][:2] == b"\x1f\x8b"
    assert all(b'"' + field.encode() + b'"' in lines[0] for field in FIELDS)


HOSTILE = st.text(st.sampled_from('ab:; \r\n\0\t<>"/%\u00a0\u00fc\u2028\ud800\x85chunked'), max_size=24)
NAMES = st.sampled_from(["Content-Type", "content-type", "Transfer-Encoding", "", " ", "X"]) | HOSTILE


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["whole", "linked", "revisit"]), HOSTILE.map("http://a.test/".__add__) | HOSTILE, st.lists(st.tuples(NAMES, HOSTILE), max_size=4),
            HOSTILE.map("HTTP/1.1 200 ".__add__) | HOSTILE.map("HTTP/".__add__) | st.just(""), st.sampled_from([200, 204, 304, 404, 7]),
            st.sampled_from([b"", BODY, b"\r\n\r\nHTTP/1.1 500 no", b"5\r\nabcde\r\n0\r\n\r\n"]),
        ),
        max_size=6,
    )
)  # fmt: skip
def test_what_is_noted_while_writing_is_what_reading_finds(
    captures: list[tuple[str, str, list[tuple[str, str]], str, int, bytes]],
) -> None:
    """Law: the index that a writer hands over with a segment is byte for byte the one made from the file, whatever servers sent."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        writer = _writer(root)
        for n, (form, url, headers, raw, status, body) in enumerate(captures):
            response = replace(
                _PLAIN,
                status=status, headers=tuple(headers), body=body, decoded=body, raw_status=raw, ip="127.0.0.2", started_at=1.8e9 + n / 7,
                ended_at=1.8e9 + n, latency_s=0.1, bytes_wire=9,
            )  # fmt: skip
            call: dict[str, Any] = {"depth": 0, "via": url, "metadata": {"x": url}}
            request = Request(url, "a.test", "127.0.0.2")
            match form:
                case "whole":
                    writer.append(PAGE, request, response, **call)
                case "linked":
                    writer.append_linked(PAGE, request, response, original=url, distance=1, **call)
                case _:
                    writer.append_revisit(PAGE, request, response, original=Original(url), **call)
        writer.append(PAGE, Request(PAGE, "a.test", ""), replace(_PLAIN, started_at=1.9e9), depth=0, via="", metadata={})
        (name,) = writer.rotate(force=True)
        (segment,) = writer.take_sealed()
        assert list(segment.index or ()) == index_lines(root / name, name)


def test_an_index_that_is_not_wholly_known_is_not_handed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A capture that was encoded elsewhere, an address without end, or more captures than memory is given to: then the file is read.
    The next segment begins anew."""
    far = "http://a.test/" + "x" * 9_000

    def index_of(*urls: str, copied: bool = False) -> object:
        call: dict[str, Any] = {"depth": 0, "via": "", "metadata": {}}
        for url in urls:
            writer.append(url, Request(url, "a.test", ""), _PLAIN, **call)
        if copied:
            writer.append_group(Group(b"", 0, 0, 1))
        (name,) = writer.rotate(force=True)
        (segment,) = writer.take_sealed()
        assert segment.index is None or list(segment.index) == index_lines(tmp_path / name, name)
        return segment.index

    writer = _writer(tmp_path)
    assert index_of(PAGE, far, PAGE) is None
    assert index_of(PAGE, PAGE) is not None
    assert index_of(PAGE, copied=True) is None
    monkeypatch.setattr("corpus.store.warc_write._LINES_MAX", 2)
    assert index_of(PAGE, PAGE) is not None
    assert index_of(PAGE, PAGE, PAGE) is None


def test_a_damaged_segment_is_indexed_as_far_as_it_can_be_read(tmp_path: Path) -> None:
    """A member with a flipped byte has no line, and those around it keep theirs."""
    path, name = _segment(tmp_path)
    whole = index_lines(path, name)
    second = parse(whole[1])
    data = bytearray(path.read_bytes())
    data[second.offset + second.length // 2] ^= 0xFF
    path.write_bytes(data)
    assert set(index_lines(path, name)) <= set(whole)
    assert whole[0] in index_lines(path, name)
    assert whole[2] in index_lines(path, name)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["a", "b", "bb", "b/c", "d?x=1"]), st.integers(0, 10**5), st.integers(0, 300)), max_size=30
        ),
        max_size=3,
    ),
    st.sampled_from(["a", "b", "bb", "b/c", "c", "d?x=1", "zz"]),
)
def test_a_bisection_finds_what_a_scan_finds(files: list[list[tuple[str, int, int]]], wanted: str) -> None:
    """Law: every line of the key in every file, oldest first, whatever the lengths of the lines around."""
    with tempfile.TemporaryDirectory() as folder:
        paths, expected = [], []
        for number, rows in enumerate(files):
            lines = sorted(
                f'{surt("http://e.com/" + path)} {at:014d} {{"url": "http://e.com/{path}", "mime": "m", "status": "200", "digest": "{"x" * pad}",'
                f' "length": "1", "offset": "2", "filename": "f{number}"}}\n'.encode()
                for path, at, pad in rows
            )
            paths.append(Path(folder) / str(number))
            paths[-1].write_bytes(b"".join(lines))
            expected += [parse(line) for line in lines if line.split(b" ")[0].decode() == surt("http://e.com/" + wanted)]
        found = list(find(paths, f"http://www.e.com/{wanted}"))
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert [entry.timestamp for entry in found] == sorted(entry.timestamp for entry in found)


def test_what_is_no_line_says_so() -> None:
    """Damage is an error of ours with the line in it, not an exception of a parser."""
    for line in (b"", b"a b c", b'a 1 {"url": "x"}', b"\xff\xfe 1 {}"):
        with pytest.raises(StoreError, match="CDXJ"):
            parse(line)
