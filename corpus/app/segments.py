"""Sealed segments and their commit records: what the map stage has to work on.

A segment exists for the stages when its record does. A seal whose record a crash took is found here and recorded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from corpus.app.project import Project
from corpus.store.commits import CommitRecord
from corpus.store.layout import parse_segment
from corpus.store.warc_recover import describe
from corpus.store.warc_write import SealedSegment

STAGE = "segment"


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """One sealed segment of pages. `file` is relative to the root, `digest` SHA-256 of the file."""

    name: str
    file: str
    digest: str
    crawl_id: str
    origin: str
    pages: int


def record_segment(project: Project, sealed: SealedSegment, *, kind: str, crawl_id: str, origin: str = "crawl") -> CommitRecord:
    """Write the record of a sealed segment. `kind` is `pages`, `policy` or `sealed`."""
    record = CommitRecord(
        STAGE,
        key=segment_key(kind, crawl_id, sealed.name),
        outputs={sealed.name: sealed.sha256},
        rows={"pages": sealed.pages, "records": sealed.records},
        info={"kind": kind, "crawl_id": crawl_id, "origin": origin, "bytes": sealed.bytes},
    )
    project.commits.put(record)
    return record


def segment_key(kind: str, crawl_id: str, file: str) -> str:
    """Key of a segment's commit record."""
    return f"{kind}.{crawl_id}.{segment_of(file)}"


def segment_of(file: str) -> str:
    """`warc/crawl_id=x/s00-000001-000001.warc.gz` is the segment `s00-000001-000001`."""
    return Path(file).name.split(".warc", 1)[0].split(".arc", 1)[0]


def origin_of(file: str) -> str:
    """Segments that a crawl wrote bear a worker's name; ingested ones the digest of their archive."""
    return "crawl" if parse_segment(segment_of(file)) else "ingest"


def page_segments(project: Project) -> list[SegmentInfo]:
    """All segments of pages, sorted by (crawl, name)."""
    found = []
    for record in project.commits.list(STAGE):
        if record.info["kind"] == "pages":
            (file, digest), *_ = record.outputs.items()
            name = str(record.info.get("segment") or segment_of(file))
            found.append(
                SegmentInfo(
                    name, file, digest, str(record.info["crawl_id"]), str(record.info["origin"]), int(record.rows["pages"])
                )
            )
    return sorted(found, key=lambda s: (s.crawl_id, s.name))


def record_unrecorded(project: Project) -> int:
    """Record segments that were sealed just before a crash; returns how many."""
    known = {file for record in project.commits.list(STAGE) for file in record.outputs}
    n = 0
    for kind, file in sealed_files(project):
        name = project.layout.relative(file)
        if name not in known:
            crawl_id = file.parent.name.removeprefix("crawl_id=")
            record_segment(project, describe(file, name), kind=kind, crawl_id=crawl_id, origin=origin_of(name))
            n += 1
    return n


def sealed_files(project: Project) -> Iterator[tuple[str, Path]]:
    """(kind, path) of every segment file that carries its final name."""
    layout = project.layout
    for kind, folder in (("pages", layout.warc), ("policy", layout.warc / "policy"), ("sealed", layout.root / "sealed")):
        for path in sorted(folder.glob("crawl_id=*/*.warc.gz")):
            yield kind, path


def open_files(project: Project) -> Iterator[tuple[str, Path]]:
    """(kind, path) of every segment that a crash left open."""
    layout = project.layout
    for kind, folder in (("pages", layout.warc), ("policy", layout.warc / "policy"), ("sealed", layout.root / "sealed")):
        for path in sorted(folder.glob("crawl_id=*/*.warc.gz.open")):
            yield kind, path
