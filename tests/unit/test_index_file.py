"""The index that a fetch process writes with its segments, and the one that the index stage makes of them: the same bytes and records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from corpus.app.index import IndexTask, index_segment, index_segments
from corpus.app.index_file import STAGE, record_index
from corpus.app.project import Project, open_project
from corpus.app.segments import record_segment
from corpus.config.load import load_config
from corpus.crawl.ports import Request
from corpus.engine.local import InlineEngine
from corpus.model import Response
from corpus.store.layout import segment_name
from corpus.store.warc_write import SealedSegment, SegmentWriter


def _project(folder: Path) -> Project:
    (folder / "corpus.toml").write_text(
        '[corpus]\nname = "t"\n[crawl]\nseeds = ["https://a.test/"]\ncontact = "a@b.test"\n', "utf-8"
    )
    return open_project(load_config(folder / "corpus.toml", environment={}))


def _sealed(project: Project, pages: int) -> SealedSegment:
    layout = project.layout
    writer = SegmentWriter(
        layout, layout.warc_dir("c"), lambda seq: segment_name(0, pages, seq), clock=lambda: 1.8e9, warcinfo={}
    )
    for n in range(pages):
        url, body = f"https://a.test/{n}", b"<p>x"
        response = Response(
            status=200, headers=(("Content-Type", "text/html"),), body=body, decoded=body, raw_status="HTTP/1.1 200 OK", raw_request=b"",
            ip="", started_at=1.8e9 + n, ended_at=1.8e9 + n, latency_s=0.1, bytes_wire=9,
        )  # fmt: skip
        writer.append(url, Request(url, "a.test", ""), response, depth=0, via="", metadata={})
    writer.rotate(force=True)
    (segment,) = writer.take_sealed()
    return segment


def _nothing_to_tell(event: str, **facts: Any) -> None:
    """A reporter without a listener."""


def test_both_ways_to_an_index_give_the_same_file_and_record(tmp_path: Path) -> None:
    """Written with the segment, then by the stage over it: the record may be put again, and the stage finds nothing to do."""
    project = _project(tmp_path)
    segment = _sealed(project, 5)
    record = record_segment(project, segment, kind="pages", crawl_id="c")
    record_index(project, record.key, segment)
    (made,) = project.commits.list(STAGE)
    (file,) = made.outputs
    written = (project.layout.root / file).read_bytes()
    assert written.count(b"\n") == 5
    assert index_segments(project, InlineEngine(), _nothing_to_tell) == 0
    again = index_segment(IndexTask(project.files, record.key, segment.name, segment.sha256))
    assert again == made
    assert not project.commits.put(again)
    assert (project.layout.root / file).read_bytes() == written


def test_what_a_kill_left_without_an_index_gets_one(tmp_path: Path) -> None:
    """Killed after the segment's record, or between the index and its own: the stage makes the same file and the record."""
    project = _project(tmp_path)
    left, half = _sealed(project, 2), _sealed(project, 3)
    key = record_segment(project, left, kind="pages", crawl_id="c").key
    half_key = record_segment(project, half, kind="pages", crawl_id="c").key
    record_index(project, half_key, half)
    whole = project.commits.get(STAGE, half_key)
    project.commits.drop(STAGE, half_key)
    assert index_segments(project, InlineEngine(), _nothing_to_tell) == 2
    assert project.commits.get(STAGE, half_key) == whole
    assert project.commits.get(STAGE, key) is not None
