"""One file of the index and its record: how both are named and written, whoever made the lines.

A fetch process writes the index of a segment with its record, from what it noted while it wrote the segment; what it did not
write (it was killed, or the segment is too large, or was recovered or ingested) the index stage makes from the segment. The bytes are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from corpus.store.cdxj import SUFFIX
from corpus.store.commits import CommitRecord
from corpus.store.local_objects import sealed

if TYPE_CHECKING:
    from corpus.app.project import Project
    from corpus.store.files import Files
    from corpus.store.warc_write import SealedSegment

STAGE = "cdxj"
INDEXED = ("pages", "policy")
"""Kinds of segments; sealed pages of an archive under a refusal are not indexed."""


def index_name(key: str) -> str:
    """`cdxj/pages.<crawl>.<segment>.cdxj`, `cdxj/policy.…`: one folder for all, because that is what replay tools read."""
    return f"cdxj/{key}{SUFFIX}"


def write_index(files: Files, key: str, segment: str, digest: str, lines: Sequence[bytes]) -> CommitRecord:
    """Write the index of the segment with this record key, file and digest. Returns the record, not yet put."""
    out, data = index_name(key), b"".join(lines)
    with sealed(files.root / out) as part:
        part.write_bytes(data)
    return CommitRecord(
        STAGE, key, inputs={segment: digest}, outputs={out: hashlib.sha256(data).hexdigest()}, rows={"captures": len(lines)}
    )


def record_index(project: Project, key: str, segment: SealedSegment) -> None:
    """Write and record the index of a segment that was just recorded, where its lines are at hand."""
    if segment.index is not None:
        project.commits.put(write_index(project.files, key, segment.name, segment.sha256, segment.index))
