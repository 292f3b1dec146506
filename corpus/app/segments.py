"""Sealed segments and their commit records: what the map stage has to work on.

A segment exists for the stages when its record does. A seal whose record a crash took is found here and recorded.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from corpus.store.commits import CommitRecord
from corpus.store.layout import OPEN_SUFFIX, parse_segment

if TYPE_CHECKING:  # a worker needs neither, and pays for what it loads
    from corpus.app.project import Project
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


def record_unrecorded(project: Project, writers: Container[int] | None = None) -> int:
    """Record segments that were sealed just before a crash (by these writers; None: anybody); returns how many. (What no bucket
    has recorded is fetched again.)"""
    if project.remote:
        return 0
    from corpus.store.warc_recover import describe

    known = {file for record in project.commits.list(STAGE) for file in record.outputs}
    n = 0
    for kind, file in sealed_files(project):
        name = project.layout.relative(file)
        if name not in known and (writers is None or (parse_segment(segment_of(name)) or (-1,))[0] in writers):
            crawl_id = file.parent.name.removeprefix("crawl_id=")
            record_segment(project, describe(file, name), kind=kind, crawl_id=crawl_id, origin=origin_of(name))
            n += 1
    return n


def forget_unpublished(project: Project, worker: int | None = None) -> None:
    """Remove what was made for a bucket (by one worker, or any) and never recorded in it: nothing of it was acknowledged."""
    known = {file for record in project.commits.list(STAGE) for file in record.outputs}
    for _, path in [*sealed_files(project), *open_files(project)]:
        name = project.layout.relative(path)
        parsed = parse_segment(segment_of(name))
        if name in known or parsed is None or worker not in (None, parsed[0]):
            continue
        if not name.endswith(OPEN_SUFFIX):
            project.files.remove([name])  # its upload may have ended, and its record not
        path.unlink(missing_ok=True)


def newest_epoch(project: Project) -> int:
    """The largest epoch in the name of any recorded segment; 0 for none. Names of a frontier that was lost are not given again."""
    names = (parse_segment(segment_of(key.split(".")[-1])) for key in project.commits.keys(STAGE))
    return max((name[1] for name in names if name is not None), default=0)


def sealed_names(project: Project) -> Iterator[tuple[str, str]]:
    """(kind, name) of every durable segment file that carries its final name."""
    for kind, folder in (("pages", "warc"), ("policy", "warc/policy"), ("sealed", "sealed")):
        for name in project.files.names(folder):
            if name.endswith(".warc.gz") and name.count("/") == folder.count("/") + 2 and f"{folder}/crawl_id=" in name:
                yield kind, name


def unfinished(project: Project, known: Container[str]) -> Iterator[tuple[str, Path]]:
    """(kind, path) of what a crash left under work: open segments, and (for a bucket) sealed ones that it does not record."""
    yield from open_files(project)
    for kind, path in sealed_files(project) if project.remote else ():
        if project.layout.relative(path) not in known:
            yield kind, path


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
