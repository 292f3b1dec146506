"""A Bloom filter in front of a partition file's table of URLs: what it does not know is new, and needs no look-up.

`exact`: what the filter may know is looked up in the table, so nothing is lost; it errs ten times as often as
`crawl.seen_fp`, because an error only costs a look-up. `bloom`: what it may know is passed over without a look-up,
except URLs of the top two front queues (sitemaps and seeds; what these link to) and excluded ones, which are always
looked up; what that loses is estimated, and measured on the URLs that are looked up. Excluded URLs stay outside the
filter then, so that a better sighting still admits them.

Owner only. Kept beside the file by an orderly end, made again from the table after any other.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from corpus.crawl.priority import url_front
from corpus.crawl.seen import SeenFilter
from corpus.model import Kind, UrlState
from corpus.store.frontier_batch import Changes, Link
from corpus.store.frontier_rows import Counted, Key, Peek, UrlRow, tidy
from corpus.store.frontier_schema import STATE_CODE

EXACT_ERROR = 10.0
"""How much more often than `seen_fp` the filter may err where the table is asked."""
FIRST = 16_384
_CONFIRMED_FRONT = max(url_front(0), url_front(1))
"""The last front of the top two queues: what a seed is, and what it links to."""
_KNOWN = "SELECT coalesce(sum(n), 0) FROM tally"
Scan = Callable[[str, str, str], Iterable[Iterable[Any]]]
"""(table, column, condition or nothing) → all values, piece by piece: there may be very many, and whoever gives them out may have
to see to something else between two pieces."""


@dataclass(frozen=True, slots=True)
class Losses:
    """`dropped`: sightings passed over unseen; `looked_up` of those that the filter may have known, `wrong` of which were
    new after all; `lost`: the expected number of URLs lost."""

    dropped: int = 0
    looked_up: int = 0
    wrong: int = 0
    lost: float = 0.0


class OwnerFilter:
    """Belongs to one open partition file. `mode` and `seen_fp` are `crawl.seen` and `crawl.seen_fp`."""

    def __init__(self, path: Path, mode: str, seen_fp: float) -> None:
        self._saved = path.with_suffix(".seen")
        self.drops = mode == "bloom"
        self._p = seen_fp if self.drops else min(EXACT_ERROR * seen_fp, 0.05)
        self._seen = SeenFilter(self._p, FIRST, growth=4)
        self._mode = f"{mode} {seen_fp:g}"
        self.losses = Losses()

    @property
    def nbytes(self) -> int:
        return self._seen.nbytes

    # ---- a life

    def start(self, con: sqlite3.Connection, *, clean: bool, scan: Scan | None = None) -> None:
        """Take what an orderly end left, if it fits the table as it is now; else read the table, by `scan` if there is one."""
        (known,) = con.execute(_KNOWN).fetchone()
        kept = SeenFilter.load(self._saved, f"{self._mode} {known}") if clean else None
        with suppress(FileNotFoundError):  # it is true of this moment only
            self._saved.unlink()
        self._seen = kept or self._read(con, scan or _one_piece(con))
        meta = dict(con.execute("SELECT name, value FROM meta WHERE name LIKE 'seen_%'").fetchall())
        self.losses = Losses(*(meta.get(f"seen_{name}", 0) for name in ("dropped", "looked_up", "wrong", "lost")))

    def keep(self, con: sqlite3.Connection) -> None:
        """Leave the filter for the next owner; the file was closed in order."""
        (known,) = con.execute(_KNOWN).fetchone()
        with suppress(OSError):  # a full disk: whoever comes next reads the table instead
            self._seen.save(self._saved, f"{self._mode} {known}")

    def _read(self, con: sqlite3.Connection, scan: Scan) -> SeenFilter:
        (rows,) = con.execute("SELECT coalesce(sum(n), 0) FROM tally").fetchone()
        seen = SeenFilter(self._p, max(FIRST, rows + rows // 4), growth=2)
        for uids in scan("url", "uid", f"state <> {STATE_CODE[UrlState.EXCLUDED]}" if self.drops else ""):
            seen.update(uids)
        if not self.drops:
            for hashes in scan("counted", "h", ""):
                seen.update(h.to_bytes(8, "big", signed=True) for h in hashes)
        return seen

    # ---- a batch

    def worth_a_look(self, keys: Sequence[Key]) -> Sequence[Key]:
        """Those URLs that the table may know; in `bloom` mode all that were left over."""
        return keys if self.drops else [key for key in keys if key[1] in self._seen]

    def sift(self, links: list[list[Link]]) -> list[list[Link]]:
        """In `bloom` mode the links that are looked up or new; the others are counted and forgotten."""
        if not self.drops:
            return links
        kept = [[link for link in sighted if self._stays(link)] for sighted in links]
        gone = sum(map(len, links)) - sum(map(len, kept))
        self.losses = replace(self.losses, dropped=self.losses.dropped + gone)
        return kept

    def _stays(self, link: Link) -> bool:
        judged, uid = link
        s = judged.sighting
        if judged.excluded or s.kind is not Kind.PAGE or url_front(s.depth, tidy(s.priority), s.kind) <= _CONFIRMED_FRONT:
            return True
        return uid not in self._seen

    def confirm(self, keys: Sequence[Key], found: dict[Key, Peek | Counted]) -> None:
        """Measure the filter on what was looked up all the same."""
        if self.drops:
            maybe = [key for key in keys if key[1] in self._seen]
            wrong = sum(key not in found for key in maybe)
            self.losses = replace(self.losses, looked_up=self.losses.looked_up + len(maybe), wrong=self.losses.wrong + wrong)

    def write(self, con: sqlite3.Connection, changes: Changes) -> None:
        """Inside the transaction: what is lost by expectation, for `status`."""
        if not self.drops:
            return
        new = sum(before is None and after.state is not UrlState.EXCLUDED for before, after in changes.rows)
        rate = self._seen.error_now
        self.losses = replace(self.losses, lost=self.losses.lost + new * rate / (1.0 - rate))
        rows = [(f"seen_{name}", getattr(self.losses, name)) for name in Losses.__slots__]
        con.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    def _admitted(self, row: UrlRow) -> bool:
        return not self.drops or row.state is not UrlState.EXCLUDED

    def learn(self, changes: Changes) -> None:
        """After the transaction: its URLs are known from now on."""
        self._seen.update(
            after.uid
            for before, after in changes.rows
            if self._admitted(after) and (before is None or not self._admitted(before))
        )
        if not self.drops:
            self._seen.update(uid for (_, uid), _ in changes.counted)


def _one_piece(con: sqlite3.Connection) -> Scan:
    """A cursor of SQLite reads as it goes."""

    def scan(table: str, column: str, where: str) -> Iterable[Iterable[Any]]:
        yield (value for (value,) in con.execute(f"SELECT {column} FROM {table}{where and f' WHERE {where}'}"))

    return scan
