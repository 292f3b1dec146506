"""What the catalog of a corpus holds: the ids of every release, shard by shard; filled at an export, rebuilt by `verify --rebuild`.

Look-ups ask it first and believe it only where the release's manifest is still the one it was read from; everything else is
looked up where it is true, only slower.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpus.app.project import Project
from corpus.app.release import manifest_text, release_records
from corpus.errors import StoreError
from corpus.store.catalog import Catalog, Ids
from corpus.store.commits import CommitRecord


def shards_with(project: Project, name: str, manifest: dict[str, Any], ids: Sequence[str]) -> list[dict[str, Any]] | None:
    """The shards of a release, as its manifest lists them, that hold any of the ids; None when the catalog does not know."""
    record = _record(project, name)
    found = None if record is None else _catalog(project).files_of(name, _digest(project, record), ids)
    if found is None:
        return None
    folder = project.layout.relative(project.layout.release_dir(name))
    return [shard for shard in manifest["shards"] if f"{folder}/{shard['path']}" in found]


def catalogue(project: Project, name: str) -> int:
    """Put a release into the catalog, and forget releases that are gone; returns its rows. Raises StoreError when it cannot be written: no
    reason to fail an export, for it is a cache."""
    record = _record(project, name)
    if record is None:
        return 0
    catalog, digest = _catalog(project), _digest(project, record)
    known, rows = catalog.sets().get(name, ("", 0))
    if digest and known == digest:
        return rows
    try:
        catalog.keep(project.commits.keys(record.stage))
        return catalog.put(name, digest, _ids(project, name))
    except (sqlite3.Error, OSError) as error:
        raise StoreError(
            f"the catalog cannot be written: {error}", str(project.layout.catalog), "free some space; corpus verify --rebuild"
        ) from error


def rebuild(project: Project) -> dict[str, int]:
    """Make the whole catalog again from commit records and manifests; returns the rows of each release."""
    _catalog(project).forget()
    return {record.key: catalogue(project, record.key) for record in release_records(project)}


def stale_releases(project: Project, records: Iterable[CommitRecord]) -> list[str]:
    """Of the releases with these records those that the catalog does not know as they are now, and sets of releases that are gone.
    Empty for a missing catalog."""
    sets = _catalog(project).sets()
    made = {record.key: _digest(project, record) for record in records}
    if not project.layout.catalog.exists():
        return []
    return sorted(name for name in sets.keys() | made.keys() if sets.get(name, ("", 0))[0] != made.get(name))


def contradicts(project: Project, name: str) -> str:
    """What the catalog says of a release that its shards do not; empty when they agree. Reads the id column of every shard."""
    expected = sorted((one, path) for path, ids in _ids(project, name) for one in _split(ids))
    try:
        told = [(one, path) for path, one in _catalog(project).content(name)]
    except sqlite3.Error as error:
        return f"cannot be read: {error}"
    return (
        ""
        if told == expected
        else f"{name}: it has {len(told)} ids, or other places than the {len(expected)} rows of the release"
    )


def _split(ids: Ids) -> Iterator[bytes]:
    raw = ids.tobytes()
    return (raw[at : at + 16] for at in range(0, len(raw), 16))


def _catalog(project: Project) -> Catalog:
    return Catalog(project.layout.catalog)


def _record(project: Project, name: str) -> CommitRecord | None:
    return project.commits.get("release", name)


def _digest(project: Project, record: CommitRecord) -> str:
    """The digest of a release's manifest, which names every shard by digest."""
    return str(record.outputs.get(project.layout.relative(project.layout.release_dir(record.key) / "manifest.json"), ""))


def _ids(project: Project, name: str) -> Iterator[tuple[str, Ids]]:
    """(shard, its ids) of a release, shard by shard."""
    text = manifest_text(project, name)
    manifest: dict[str, Any] = json.loads(text) if text else {"shards": []}
    folder = project.layout.relative(project.layout.release_dir(name))
    for shard in manifest["shards"]:
        if shard["rows"]:
            file = f"{folder}/{shard['path']}"
            yield file, read_ids(project.file(file, str(shard["sha256"])))


def read_ids(path: Path) -> Ids:
    """The id column of a Parquet file as raw bytes. Raises StoreError when it cannot be read."""
    try:
        parts = [
            bytes.fromhex("".join(batch.column("id").to_pylist()))
            for batch in pq.ParquetFile(path).iter_batches(65_536, columns=["id"])
        ]
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise StoreError(f"its ids cannot be read: {error}", str(path), "run corpus verify") from error
    ids: Ids = np.frombuffer(b"".join(parts), dtype="V16")
    return ids
