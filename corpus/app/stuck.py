"""Bodies whose parser did not finish, or ended its worker: one create-only record each, by content digest, for the whole corpus.

How long a parser takes depends on the machine; what a release holds must not. So the limit only ever makes the record, and
the record is what decides: from then on every capture of that body, in every segment, is outcome `stuck` without being looked
at, here and wherever these records go. Segments that were measured with the body's text before are measured again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.model import Outcome
from corpus.store.commits import CommitRecord

if TYPE_CHECKING:  # a worker needs it not, and pays for what it loads
    from corpus.app.project import Project

STUCK = "stuck"
PAGE_CPU_S = 60.0
"""CPU-seconds of one page. The work limits of `filter/extract_limits.py` leave pages of 2 or 3 on a slow machine, so this is met
only where a parser does not end."""


def stuck_bodies(project: Project) -> frozenset[str]:
    """Content digests (hex) that are outcome `stuck` from now on."""
    return frozenset(str(record.info["content_sha256"]) for record in project.commits.list(STUCK))


def stuck_input(digests: Iterable[str]) -> dict[str, str]:
    """What a segment's stuck bodies add to its stage key: nothing where there are none."""
    found = sorted(digests)
    return {"stuck": hashlib.sha256(" ".join(found).encode("ascii")).hexdigest()} if found else {}


def record_stuck(project: Project, records: Iterable[CommitRecord], digest: str, profile: str) -> int:
    """Write the verdict down; returns how many of the measured segments (`records`: of the map stage) hold it and are due again.

    They are forgotten first: an end in between costs work, and never leaves a body with two outcomes.
    """
    due = [record for record in records if _has_text(project, record, digest)]
    for record in due:
        project.commits.drop(record.stage, record.key)
    project.commits.put(CommitRecord(STUCK, digest[:32], info={"content_sha256": digest, "profile": profile}))
    return len(due)


def _has_text(project: Project, record: CommitRecord, digest: str) -> bool:
    """Did this segment give the body another outcome?"""
    if digest in record.info.get("stuck", ()):
        return False
    ((name, sha256),) = ((n, d) for n, d in record.outputs.items() if n.startswith("documents/"))
    table = pq.read_table(project.file(name, sha256), columns=["content_sha256", "outcome"], partitioning=None)
    same = table.filter(pc.equal(table["content_sha256"], digest))
    return any(outcome != Outcome.STUCK.value for outcome in same["outcome"].to_pylist())
