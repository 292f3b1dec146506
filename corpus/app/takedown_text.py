"""The side files of a superseding release: what its domains come to, which spans were cut, whom the tombstones name."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from corpus.app.project import Project
from corpus.app.snapshot import tombstone_rows
from corpus.errors import StoreError
from corpus.export.domains import read_domains
from corpus.export.ports import TOMBSTONES
from corpus.export.shard import Written
from corpus.export.summary import DomainRow
from corpus.export.supersede import Change

_CUT = re.compile(r"; cut span kinds: (.*?); near-duplicate clusters at ")
_DOMAINS = """
SELECT domain, count(*), strftime(min(fetched_at), '%Y-%m-%dT%H:%M:%SZ'), strftime(max(fetched_at), '%Y-%m-%dT%H:%M:%SZ'){sizes}
FROM read_parquet($files, hive_partitioning = false) GROUP BY 1
"""
_SIZES = ", sum(strlen(text))"


def cut_kinds(croissant: str) -> tuple[str, ...]:
    """The span kinds a release was cut by, as its Croissant file states them. Raises StoreError when it does not."""
    try:
        stated = _CUT.search(str(json.loads(croissant)["rai:dataPreprocessingProtocol"][0]))
    except (ValueError, KeyError, IndexError, TypeError):
        stated = None
    if stated is None:
        raise StoreError("it does not say which spans were cut", "croissant.json", "run corpus verify")
    return () if stated[1] == "none" else tuple(stated[1].split(", "))


def domains_after(
    con: duckdb.DuckDBPyConnection, before: str | None, shards: Sequence[Written], folder: Path, changes: Sequence[Change]
) -> list[DomainRow]:
    """The rows of `domains.csv`: pages and times from the new shards, bytes of text from the old file and what changed, or from
    the new shards as well where the old file is damaged (`before` is None)."""
    files = [str(folder / shard.path) for shard in shards if shard.rows]
    if before is None:
        counted = con.execute(_DOMAINS.format(sizes=_SIZES), {"files": files}).fetchall() if files else []
        rows = [DomainRow(domain, pages, int(size or 0), first, last) for domain, pages, first, last, size in counted]
        return sorted(rows, key=lambda row: (-row.text_bytes, row.domain))
    sizes = {row.domain: row.text_bytes for row in read_domains(before)}
    for change in changes:
        for domain, size in change.text.items():
            sizes[domain] = sizes.get(domain, 0) + size
    found = con.execute(_DOMAINS.format(sizes=""), {"files": files}).fetchall() if files else []
    rows = [DomainRow(domain, pages, sizes.get(domain, 0), first, last) for domain, pages, first, last in found]
    return sorted(rows, key=lambda row: (-row.text_bytes, row.domain))


def delta(project: Project, version: int) -> pa.Table:
    """What whoever holds an older release must remove: every takedown and purge up to an order."""
    return pa.Table.from_pylist(tombstone_rows(project.control.read(upto=version), purged=True), schema=TOMBSTONES)
