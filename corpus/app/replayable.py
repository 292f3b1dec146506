"""Why a release cannot be made again byte for byte, in plain words: a takedown is meant to be irreversible."""

from __future__ import annotations

from corpus.app.project import Project
from corpus.errors import StoreError
from corpus.store.commits import CommitRecord

STEP = "takedown"
"""The stage of the records that name what a takedown rewrote."""


def refuse_taken_down(record: CommitRecord) -> None:
    """Raises StoreError for a release that a takedown withdrew, and for one that a takedown made of another."""
    if into := str(record.info.get("superseded_by") or ""):
        what = "it is withdrawn: pages of it were taken down, so it can never be made again"
        raise StoreError(what, record.key, f"{into} stands in its place; corpus verify checks its digests")
    if before := str(record.info.get("supersedes") or ""):
        what = f"it was made from {before} by a takedown, and what it was made from is gone"
        raise StoreError(what, record.key, "corpus verify checks its digests; corpus export makes a release that can be replayed")


def not_as_measured(project: Project, path: str) -> StoreError:
    """The error for documents that are no longer those a release was made from."""
    steps = [record for record in project.commits.list(STEP) if path in record.outputs]
    if steps:
        number = int(steps[-1].info["number"])
        what = f"takedown {number} removed documents that this release was decided with, so it cannot be made again"
        return StoreError(what, path, f"see proofs/takedown-{number:08d}.json; corpus verify checks the digests of its shards")
    hint = "put the configuration of that release back and run corpus process"
    return StoreError("was measured again with other options, so this release cannot be made again", path, hint)
