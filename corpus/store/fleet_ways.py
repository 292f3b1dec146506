"""How far regions are from partition files, as all members know it: medians of connection times, and what follows from them for a run.

Kept in PostgreSQL over runs. The decision is `crawl.regions`'; here it becomes one row that every member reads, so that all of them
compute their shares alike. It changes at most every few minutes, because a change moves files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import psycopg

from corpus.crawl.regions import Way, far_regions
from corpus.store.frontier_pg_schema import PARENT

SETTLED_S = 300.0
"""How long a decision stands at least."""
_NOTE = (
    f"INSERT INTO {PARENT}.way (part, region, n, connect_s) VALUES (%s, %s, %s, %s) ON CONFLICT (part, region)"
    " DO UPDATE SET n = excluded.n, connect_s = excluded.connect_s"
)
_DECIDE = (
    f"UPDATE {PARENT}.run SET far = %s, far_since = clock_timestamp() WHERE id = %s"
    " AND far_since < clock_timestamp() - make_interval(secs => %s)"
)


def note_ways(con: psycopg.Connection[Any], run: int, region: str, ways: Mapping[int, Way]) -> None:
    """Take in what a member of a region measured, and decide anew what is far, if that may change now."""
    with con.transaction(), con.cursor() as cursor:
        cursor.executemany(cast(Any, _NOTE), [(part, region, way.n, way.connect_s) for part, way in sorted(ways.items())])
        known: dict[int, dict[str, Way]] = {}
        for part, name, n, took in cursor.execute(cast(Any, f"SELECT part, region, n, connect_s FROM {PARENT}.way")).fetchall():
            known.setdefault(int(part), {})[str(name)] = Way(int(n), float(took))
        (said,) = cursor.execute(cast(Any, f"SELECT far FROM {PARENT}.run WHERE id = %s"), (run,)).fetchone() or ("{}",)
        before = read_far(said)
        far = far_regions(known, before)
        if far != before:
            cursor.execute(cast(Any, _DECIDE), (json.dumps(far, sort_keys=True), run, SETTLED_S))


def read_far(said: str) -> dict[int, tuple[str, ...]]:
    """The inverse of what a run's row says."""
    return {int(part): tuple(regions) for part, regions in json.loads(said).items()}
