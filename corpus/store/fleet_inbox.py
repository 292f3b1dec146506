"""The inbox between partition files as a table: what `inbox.ObjectInbox` does with files, for owners on many machines.

A batch is created once and never changed; its name is the same for the same rows, so publishing it twice changes nothing.
Whoever owns the destination applies it together with its high-water mark, in the partition file's own transaction, and
drops it afterwards.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, cast

from corpus.crawl.ports import OutboxRow
from corpus.errors import FenceLost
from corpus.model import Sighting
from corpus.store.fleet_schema import open_fleet
from corpus.store.frontier_pg_db import shown, translated
from corpus.store.frontier_pg_schema import PARENT
from corpus.store.inbox import ObjectInbox, lines_of, sightings_of

_PUT = f"INSERT INTO {PARENT}.inbox (dst, src, first, last, rows) VALUES (%s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
_WAITING = f"SELECT dst, src, first, last FROM {PARENT}.inbox WHERE dst = ANY(%s) ORDER BY dst, src, first, last"
_QUIET_S = 1.0
"""How long a file whose inbox was seen to be empty is not looked at again."""
_KEY = "dst = %s AND src = %s AND first = %s AND last = %s"


class PostgresInbox:
    """`ports.Inbox` over one connection of its own. Raises StoreError, FenceLost."""

    def __init__(self, dsn: str) -> None:
        self._where = f"{shown(dsn)} inbox"
        self._con = open_fleet(dsn)
        self._asked: set[int] = set()
        self._quiet: dict[int, float] = {}
        """Files that nothing waited for at this monotonic time, and nobody has asked for since."""

    def publish(self, dst: int, src: int, epoch: int, rows: Sequence[OutboxRow]) -> None:
        self._quiet.pop(dst, None)
        with translated(self._where):
            self._con.execute(cast(Any, _PUT), (dst, src, rows[0].seq, rows[-1].seq, lines_of(rows)))

    def waiting(self, dst: int) -> list[str]:
        """See `ports.Inbox`. An owner asks for all its files in turn: the first question is answered for all of them."""
        now = time.monotonic()
        if now - self._quiet.pop(dst, -math.inf) < _QUIET_S:
            return []
        self._asked.add(dst)
        with translated(self._where):
            rows = self._con.execute(cast(Any, _WAITING), (sorted(self._asked),), prepare=True).fetchall()
        self._quiet = dict.fromkeys(self._asked - {dst} - {row[0] for row in rows}, now)
        return ["/".join(map(str, row)) for row in rows if row[0] == dst]

    def read(self, name: str) -> tuple[int, list[tuple[int, Sighting]]]:
        key = _key(name)
        with translated(self._where):
            row = self._con.execute(cast(Any, f"SELECT rows FROM {PARENT}.inbox WHERE {_KEY}"), key).fetchone()
        if row is None:
            raise FenceLost("another owner has applied this batch", f"{self._where} {name}", "this process must stop writing")
        return key[1], sightings_of(bytes(row[0]), name)

    def drop(self, name: str) -> None:
        with translated(self._where):
            self._con.execute(cast(Any, f"DELETE FROM {PARENT}.inbox WHERE {_KEY}"), _key(name))

    def take_in(self, old: ObjectInbox, files: Sequence[int]) -> None:
        """For files that become ours: batches that an earlier run left as files of this machine are published here, and only then dropped
        there. What was seen of these inboxes before is void: another owner of their senders may have written to them since."""
        self._asked, self._quiet = set(), {}
        for dst in files:
            for name in old.waiting(dst):
                src, rows = old.read(name)
                if rows:
                    self.publish(dst, src, 0, [OutboxRow(seq, dst, sighting) for seq, sighting in rows])
                old.drop(name)

    def close(self) -> None:
        self._con.close()


def _key(name: str) -> tuple[int, int, int, int]:
    dst, src, first, last = map(int, name.split("/"))
    return dst, src, first, last
