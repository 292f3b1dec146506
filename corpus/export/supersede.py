"""A shard again without some of its rows, or with rows that take their place. Row groups keep their boundaries, so that the
content-defined chunks around a removed row are found again by whoever holds the old file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.errors import CorpusError
from corpus.export.shard import Written, file_sha256, shard_writer

ORDER = ("domain", "url", "id")
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class StatedPolicy:
    """The policy of a release as its own files state it. It decides nothing anew."""

    name: str
    digest: str
    cut: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()

    def sql(self, signals: str) -> str:
        """Never asked for: the rows of a superseding release were decided when the first one was made."""
        raise CorpusError("a superseding release decides nothing anew", self.name)


@dataclass(slots=True)
class Change:
    """What became of a shard: bytes of text that went and came, by domain."""

    written: Written
    removed: int = 0
    added: int = 0
    text: dict[str, int] = field(default_factory=dict)

    def count(self, rows: pa.Table, sign: int) -> None:
        """Take rows in or out of the sums."""
        sizes = pc.fill_null(pc.binary_length(rows["text"]), 0).to_pylist()
        for domain, size in zip(rows["domain"].to_pylist(), sizes, strict=True):
            self.text[domain] = self.text.get(domain, 0) + sign * size
        self.removed += len(rows) if sign < 0 else 0
        self.added += len(rows) if sign > 0 else 0


def first_key(path: Path) -> Key | None:
    """(domain, url, id) of a shard's first row; None for an empty shard."""
    source = pq.ParquetFile(path)
    if not source.metadata.num_rows:
        return None
    row = next(source.iter_batches(batch_size=1, row_groups=[0], columns=list(ORDER))).to_pylist()[0]
    return row["domain"], row["url"], row["id"]


def rewrite_shard(source: Path, target: Path, old: Written, gone: npt.NDArray[np.bool_], extra: pa.Table | None) -> Change:
    """Write `target`: the rows of `source` that are not `gone`, and `extra` rows (of the same schema) where they belong."""
    pages = pq.ParquetFile(source)
    schema = pages.schema_arrow
    change = Change(old)
    sizes = [pages.metadata.row_group(n).num_rows for n in range(pages.num_row_groups)]
    most = max([*sizes, 1]) + (len(extra) if extra is not None else 0)
    rows = groups = text_bytes = 0
    domains: list[str] = []
    target.parent.mkdir(parents=True, exist_ok=True)
    with shard_writer(target, schema, most if extra is not None else max([*sizes, 1])) as writer:
        for group in _groups(pages, gone, extra, change):
            writer.write_table(group, row_group_size=len(group))
            rows, groups = rows + len(group), groups + 1
            text_bytes += pc.sum(pc.binary_length(group["text"])).as_py() or 0
            domains = [domains[0] if domains else group["domain"][0].as_py(), group["domain"][-1].as_py()]
    first, last = domains or ["", ""]
    change.written = Written(
        old.path,
        old.crawl_id,
        old.split,
        old.language,
        file_sha256(target),
        target.stat().st_size,
        rows,
        groups,
        text_bytes,
        first,
        last,
    )
    return change


def _groups(pages: pq.ParquetFile, gone: npt.NDArray[np.bool_], extra: pa.Table | None, change: Change) -> Iterator[pa.Table]:
    """The row groups to write, without the empty ones."""
    waiting = extra.sort_by([(name, "ascending") for name in ORDER]) if extra is not None else None
    at = 0
    for number in range(pages.num_row_groups):
        table = pages.read_row_group(number, use_threads=False)
        mask = gone[at : at + len(table)]
        at += len(table)
        if mask.any():
            change.count(table.filter(pa.array(mask)), -1)
        kept = table.filter(pa.array(~mask)) if mask.any() else table
        if waiting is not None and len(waiting):
            here = len(waiting) if number + 1 == pages.num_row_groups else _upto(waiting, _key(table, -1))
            kept, waiting = _with(kept, waiting.slice(0, here), change), waiting.slice(here)
        if len(kept):
            yield kept
    if waiting is not None and len(waiting):
        yield _with(waiting.slice(0, 0), waiting, change)


def _with(kept: pa.Table, more: pa.Table, change: Change) -> pa.Table:
    if not len(more):
        return kept
    change.count(more, 1)
    return pa.concat_tables([kept, more]).sort_by([(name, "ascending") for name in ORDER]).combine_chunks()


def _upto(rows: pa.Table, last: Key) -> int:
    return sum(_key(rows, n) <= last for n in range(len(rows)))


def _key(rows: pa.Table, at: int) -> Key:
    return rows["domain"][at].as_py(), rows["url"][at].as_py(), rows["id"][at].as_py()
