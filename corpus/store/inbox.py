"""The inbox between partition files on one machine: create-only batches under `inbox/<dst>/<src>.<epoch>.<seqs>`.

A batch is applied by its owner together with its high-water mark, so a batch that is published twice, or cut
differently after a crash, changes nothing. Files that were applied are removed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from corpus.crawl.ports import OutboxRow
from corpus.errors import AlreadyExists, StoreError
from corpus.model import Kind, Sighting
from corpus.store.objects import ObjectStore


class ObjectInbox:
    """Over any object store."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def publish(self, dst: int, src: int, epoch: int, rows: Sequence[OutboxRow]) -> None:
        name = f"inbox/{dst:03d}/{src:03d}.{epoch:06d}.{rows[0].seq:012d}-{rows[-1].seq:012d}"
        try:
            self._objects.put_new(name, lines_of(rows))
        except AlreadyExists:
            return  # the same rows, published before a crash took the note of it

    def waiting(self, dst: int) -> list[str]:
        return sorted(self._objects.list(f"inbox/{dst:03d}/"), key=lambda name: name.rpartition("/")[2].split(".")[::2])

    def read(self, name: str) -> tuple[int, list[tuple[int, Sighting]]]:
        src = int(name.rpartition("/")[2].split(".")[0])
        return src, sightings_of(self._objects.get(name), name)

    def drop(self, name: str) -> None:
        self._objects.delete(name)


def lines_of(rows: Sequence[OutboxRow]) -> bytes:
    """A batch as it travels: one JSON line a row."""
    return "\n".join(json.dumps([row.seq, *_flat(row.sighting)], ensure_ascii=True) for row in rows).encode()


def sightings_of(batch: bytes, name: str) -> list[tuple[int, Sighting]]:
    """[(seq, sighting)] of a batch. Raises StoreError for one that is damaged."""
    try:
        rows = [json.loads(line) for line in batch.decode().splitlines()]
        return [(int(row[0]), _sighting(row[1:])) for row in rows]
    except (ValueError, TypeError, IndexError) as error:
        raise StoreError(f"not an inbox batch: {error}", name, "corpus verify") from None


def _flat(s: Sighting) -> list[object]:
    return [s.url, s.found, s.depth, s.kind.value, s.hops, s.via, s.priority]


def _sighting(row: list[object]) -> Sighting:
    url, found, depth, kind, hops, via, priority = row
    return Sighting(str(url), str(found), int(str(depth)), Kind(str(kind)), int(str(hops)), str(via), float(str(priority)))
