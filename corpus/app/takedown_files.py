"""Which records of a segment and which rows of its family files orders cover, and those files without them.

A family file without the rows is byte for byte what measuring the segment without the records gives, so a later
`corpus process` finds nothing to do and nothing to contradict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpus.app.takedown_targets import Targets
from corpus.errors import StoreError
from corpus.filter.schema import FAMILIES
from corpus.filter.tables import encode
from corpus.store.warc_members import Member, read_members
from corpus.store.warc_read import read_at
from corpus.store.warc_stream import Fault

KEYS = ("id", "url_id", "host", "fetched_at")
AGAIN = "run corpus verify --repair, then corpus takedown apply again"
"""What helps where a file that can be made from the archive is damaged."""
_PAGE_KINDS = frozenset({"response", "revisit", "resource", "conversion"})


@dataclass(slots=True)
class Records:
    """Records of one segment. `gone`: those that orders cover, by offset; `blank`: offsets of tombstones of earlier
    orders; `kept`: offsets of covered addresses that stay as evidence."""

    gone: dict[int, Member] = field(default_factory=dict)
    blank: set[int] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    total: int = 0

    @property
    def captures(self) -> int:
        """Captures among those to go: each has one metadata record."""
        return sum(member.kind == "metadata" for member in self.gone.values())


def covered_records(path: Path, targets: Targets, evidence: frozenset[str]) -> Records:
    """Look through a segment. A record group that holds a statement file of the ledger (`evidence`: digests) is never covered:
    it shows what a site allowed, and is no page's text."""
    found = Records()
    members: list[Member] = []
    groups: set[str] = set()
    kept: set[str] = set()
    last: tuple[tuple[str, str], bool] = (("", ""), False)
    for item in read_members(path):
        if isinstance(item, Fault):
            found.faults.append(item)
            continue
        found.total += 1
        if item.removed:
            found.blank.add(item.offset)
        elif item.target:
            members.append(item)
            if last[0] != (item.target, item.date):  # the records of a capture stand together
                last = (item.target, item.date), targets.covers_found(item.target, item.date)
            named = item.fields.get("corpus-url", "")
            if last[1] or (named and targets.covers_found(named, item.date)):
                groups.update({item.record_id, item.concurrent_to} - {""})
            if item.fields.get("corpus-content-sha256", "") in evidence:
                kept.update({item.record_id, item.concurrent_to} - {""})
    for member in members:
        names = {member.record_id, member.concurrent_to}
        if names & groups and names & kept:
            found.kept.add(member.offset)
        elif names & groups:
            found.gone[member.offset] = member
    return found


def skipped_among(path: Path, records: Records) -> int:
    """How many of the captures to go are no pages (not 2xx): the map stage counts those apart."""
    pages = {member.record_id: member.offset for member in records.gone.values() if member.kind in _PAGE_KINDS}
    skipped = 0
    for member in records.gone.values():
        if member.kind == "metadata":
            capture = read_at(path, pages.get(member.concurrent_to, member.offset))
            skipped += not capture.fault and not 200 <= capture.status <= 299
    return skipped


def may_hold(path: Path, targets: Targets) -> bool:
    """Whether the statistics in a Parquet file's footer leave room for covered rows: its range of `domain`."""
    if targets.named or targets.ids:
        return True  # a URL is known by its digest alone, and digests have no range
    metadata = pq.read_metadata(path)
    column = next((n for n in range(metadata.num_columns) if metadata.schema.column(n).path == "domain"), None)
    wanted = targets.registered
    if column is None:
        return True
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_min_max:
            return True
        if any(statistics.min <= domain <= statistics.max for domain in wanted):
            return True
    return False


def covered_rows(path: Path, targets: Targets) -> npt.NDArray[np.bool_]:
    """Which rows of a file with documents' or a release's columns orders cover. Reads four columns, never a text."""
    with _readable(path):
        source = pq.ParquetFile(path)
        if not may_hold(path, targets):
            return np.zeros(source.metadata.num_rows, dtype=bool)
        return targets.rows(source.read(columns=list(KEYS)))


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """A table that cannot be read is damage of a file with a name, and not a defect of the program."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"cannot be read: {' '.join(str(error).split())[:200]}", str(path), AGAIN) from None


@dataclass(frozen=True, slots=True)
class Measured:
    """The family files of one segment without some rows: `files` by family, `rows` by family, `removed` documents."""

    files: dict[str, bytes]
    rows: dict[str, int]
    removed: int
    hits: dict[str, int]


def without(paths: dict[str, Path], targets: Targets, offsets: Iterable[int], lists: Iterable[str]) -> Measured:
    """The families of a segment without what orders cover and without captures at `offsets` (records that are gone).

    `lists`: names of URL lists whose hits are counted anew.
    """
    with _readable(paths["documents"]):
        documents = pq.ParquetFile(paths["documents"]).read()
    places = pa.array(sorted(offsets), pa.int64())
    mask = targets.rows(documents) | np.asarray(pc.is_in(documents["warc_offset"], places), dtype=bool)
    kept = {"documents": documents.filter(pa.array(~mask))}
    left = kept["documents"]["id"].combine_chunks()  # not the removed ones: after a kill the documents may be rewritten already
    for family in FAMILIES[1:]:
        with _readable(paths[family]):
            table = pq.ParquetFile(paths[family]).read()
        kept[family] = table.filter(pc.is_in(table["id"], left))
    hits = dict.fromkeys(lists, 0)
    for names in kept["signals"]["url_list_names"].drop_null().to_pylist() if hits else ():
        for name in names.split(","):
            hits[name] += 1
    files = {family: encode(family, table) for family, table in kept.items()}
    return Measured(files, {family: table.num_rows for family, table in kept.items()}, int(mask.sum()), hits)
