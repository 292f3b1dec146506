"""The order of releases: oldest first, and whatever stands in the place of one right behind it.

So a release that a takedown withdrew long ago does not become the newest by being superseded today.
"""

from __future__ import annotations

from collections.abc import Iterable

from corpus.store.commits import CommitRecord


def in_order(records: Iterable[CommitRecord]) -> list[CommitRecord]:
    """Releases oldest first; one that a takedown put in another's place stands right behind it."""
    found = {record.key: record for record in records}

    def place(record: CommitRecord) -> tuple[int, int]:
        first = record
        while (before := str(first.info.get("supersedes") or "")) in found:
            first = found[before]
        return int(first.info["order"]), int(record.info["order"])

    return sorted(found.values(), key=place)
