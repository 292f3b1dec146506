"""Thirty-four archives of other people: good, clipped, misframed, misdigested, lz4, ARC, WET. All readable pages, every fault named."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from corpus.model import Capture
from corpus.store.warc_ingest import Fault, RecordCount, ingest_captures
from corpus.store.warc_read import read_at
from corpus.store.warc_source import open_source
from corpus.store.warc_stream import RawRecord, read_records

# file: records, pages, words that must stand in the faults (in order)
EXPECTED: dict[str, tuple[int, int, tuple[str, ...]]] = {
    "dolma/sample-0000.warc.gz": (48, 22, ()),
    "dolma/sample-0001.warc.gz": (34, 15, ()),
    "jwarc/cc.warc.gz": (1, 1, ()),
    "jwarc/gzip_extra_sl.warc.gz": (1, 0, ()),
    "resiliparse/block-sized-records.warc": (3, 0, ()),
    "resiliparse/block-sized-records.warc.gz": (3, 0, ()),
    "resiliparse/block-sized-records.warc.lz4": (3, 0, ()),
    "resiliparse/clipped.warc.gz": (0, 0, ("ends inside",)),
    "resiliparse/clueweb-quirk.warc.gz": (30, 29, ()),
    "resiliparse/warcfile.warc": (50, 16, ()),
    "resiliparse/warcfile.warc.gz": (50, 16, ()),
    "resiliparse/warcfile.warc.lz4": (50, 16, ()),
    "warcio/bad.arc": (1, 0, ("unusable head", "unusable head", "unusable head")),
    "warcio/example-bad-non-chunked.warc.gz": (6, 2, ("Block-Digest",)),
    "warcio/example-bad.warc.gz.bad": (6, 2, ()),
    "warcio/example-digest.warc": (4, 0, ("Payload-Digest",)),
    "warcio/example-iana.org-chunked.warc": (3, 1, ()),
    "warcio/example-resource.warc.gz": (3, 1, ()),
    "warcio/example-space-in-target-uri.warc.gz": (2, 0, ()),
    "warcio/example-space-in-url.arc": (2, 1, ("1579 are there",)),
    "warcio/example-trunc.warc": (4, 0, ("Block-Digest", "Payload-Digest", "ends early", "neither a WARC")),
    "warcio/example-wget-bad-target-uri.warc.gz": (6, 1, ()),
    "warcio/example-wrong-chunks.warc.gz": (2, 1, ("Block-Digest",)),
    "warcio/example.arc": (2, 1, ()),
    "warcio/example.arc.gz": (2, 1, ()),
    "warcio/example.warc": (6, 2, ()),
    "warcio/example.warc.gz": (6, 2, ()),
    "warcio/post-test.warc.gz": (6, 3, ()),
    "whirlwind/whirlwind.warc": (4, 1, ()),
    "whirlwind/whirlwind.warc.gz": (4, 1, ()),
    "whirlwind/whirlwind.warc.wat": (2, 0, ()),
    "whirlwind/whirlwind.warc.wat.gz": (2, 0, ()),
    "whirlwind/whirlwind.warc.wet": (2, 1, ()),
    "whirlwind/whirlwind.warc.wet.gz": (2, 1, ()),
}


def _ingest(path: Path) -> tuple[list[Capture], list[Fault], RecordCount]:
    count = RecordCount()
    items = list(ingest_captures(path, str(path), count=count))
    return [i for i in items if isinstance(i, Capture)], [i for i in items if isinstance(i, Fault)], count


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_archive(test_data: Path, name: str) -> None:
    """Records, pages and faults are as expected; each page has an address, a date, and can be opened again by its place."""
    path = test_data / "warc" / name
    captures, faults, count = _ingest(path)
    records, pages, words = EXPECTED[name]
    assert (count.records, count.pages, len(captures)) == (records, pages, pages)
    assert len(faults) == len(words)
    for fault, word in zip(faults, words, strict=True):
        assert word in fault.reason
    for capture in captures:
        assert capture.url.startswith("http")
        assert capture.fetched_at > 900_000_000
        assert capture.body or capture.near_original
        if capture.ref.length:
            assert read_at(path, capture.ref.offset, str(path)) == capture


def test_no_archive_is_forgotten(test_data: Path) -> None:
    """The table covers the folder."""
    found = {path.relative_to(test_data / "warc").as_posix() for path in (test_data / "warc").rglob("*") if path.is_file()}
    assert found == set(EXPECTED)


def test_compression_does_not_matter(test_data: Path) -> None:
    """Plain, gzip and lz4 forms of one archive give the same pages."""
    folder = test_data / "warc" / "resiliparse"
    forms = [{(c.url, c.body) for c in _ingest(folder / f"warcfile.warc{end}")[0]} for end in ("", ".gz", ".lz4")]
    assert forms[0] == forms[1] == forms[2]


def test_as_many_records_as_another_reader_finds(test_data: Path) -> None:
    """FastWARC in its lenient mode finds no record that we miss (where it reads the format at all)."""
    warc = pytest.importorskip("fastwarc.warc")
    for name in EXPECTED:
        path = test_data / "warc" / name
        theirs = Counter(
            str(record.record_type)
            for record in warc.ArchiveIterator(str(path), parse_http=False, quirks_mode=True, fsspec_args=False)
        )
        with open_source(path) as source:
            ours = Counter(record.kind for record in read_records(source) if isinstance(record, RawRecord))
        if name != "resiliparse/clipped.warc.gz":  # it hands out the part of the record that is there
            assert not theirs - ours, name


def test_one_member_for_a_whole_archive(test_data: Path, tmp_path: Path) -> None:
    """A file gzipped as one stream is read too; its pages have no place of their own, and say so by a length of 0."""
    plain = test_data / "warc/resiliparse/warcfile.warc"
    path = tmp_path / "one.warc.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    captures, faults, _ = _ingest(path)
    assert (len(captures), faults) == (16, [])
    assert {capture.ref.length for capture in captures} == {0}


def test_what_is_no_archive_says_so(tmp_path: Path) -> None:
    """Empty files, text, zeros and stray compressed data: one fault at least, no page, no exception."""
    for data in (
        b"",
        b"hello\nworld\n",
        bytes(100_000),
        gzip.compress(b"hello"),
        b"\x1f\x8b\x08",
        b"\x04\x22\x4d\x18junk",
        b"\x28\xb5\x2f\xfdjunk",
        b"WARC/1.0\r\n",
    ):
        path = tmp_path / "x"
        path.write_bytes(data)
        captures, faults, _ = _ingest(path)
        assert not captures
        assert faults, data[:20]
