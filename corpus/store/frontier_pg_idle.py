"""What the one owner of a partition file in PostgreSQL knows without asking, so that a file where nothing happens costs nothing.

Every group commit asks every file whether links wait to be sent, whether a URL's time has come, and what it counts. The owner is
the only writer, so what it read stays true until it writes. Whatever is not known for sure is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from corpus.crawl.ports import Ack, Tally
from corpus.store.frontier_batch import Changes
from corpus.store.frontier_pg_db import Spoken
from corpus.store.frontier_pg_many import array
from corpus.store.frontier_select import COUNTERS, OUTBOX_SIZE, TALLY, VISITED_STATES, WAITING_STATES, tally_of

_FIRST_DUE = (
    "SELECT min(f.due_at) FROM unnest(%s::smallint[]) AS s(state) CROSS JOIN LATERAL (SELECT u.due_at FROM url u"
    " WHERE u.state = s.state AND u.due_at IS NOT NULL ORDER BY u.due_at LIMIT 1) AS f"
)


@dataclass(slots=True)
class Idle:
    """`sends`: whether the outbox may hold rows. `due_from`: by whether revisits count, a time before which no URL is due (absent:
    not known). `told`: the counts since the last write."""

    sends: bool = True
    due_from: dict[bool, float] = field(default_factory=dict)
    told: Tally | None = None

    def note(self, acks: Sequence[Ack], changes: Changes) -> None:
        """What a batch brings; true whether or not it is written."""
        self.sends = self.sends or any(ack.foreign for ack in acks)
        times = (after.due.set_at + after.due.wait_s for _, after in changes.rows if after.due is not None)
        first = min(times, default=math.inf)
        for revisit, known in self.due_from.items():
            self.due_from[revisit] = min(known, first)

    def nothing_due(self, wall: float, *, revisit: bool) -> bool:
        return wall < self.due_from.get(revisit, -math.inf)

    def look(self, con: Spoken, *, revisit: bool) -> None:
        """Find out when a URL is due next."""
        states = (*WAITING_STATES, *(VISITED_STATES if revisit else ()))
        (first,) = con.ask(_FIRST_DUE, (array("smallint", states),)).fetchone() or (None,)
        self.due_from[revisit] = math.inf if first is None else float(first)


def read_tally(con: Spoken) -> Tally:
    """`frontier_select.tally` in one breath."""
    with con.raw.pipeline():
        asked = [con.ask(sql, ()) for sql in (TALLY, COUNTERS, OUTBOX_SIZE)]
        rows, counts, size = (cursor.fetchall() for cursor in asked)
    return tally_of(rows, dict(counts), size[0][0])
