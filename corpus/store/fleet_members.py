"""Who crawls: the members of a fleet and the run they share, in PostgreSQL, by the server's clock alone.

A member is one `corpus worker`. It says that it lives with every beat; one that has said nothing for the time of a lease is
lost: its claims on addresses end, and its number is never given again. A run begins with the first member and has one end,
which one member writes and all of them read. Nothing here owns a URL: ownership is the lease of a partition file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, cast

from corpus.crawl.regions import Way
from corpus.errors import Locked, UsageError
from corpus.store.fleet_claims import END
from corpus.store.fleet_post import FleetPost
from corpus.store.fleet_schema import CONTROL_CHANNEL, generation_of, open_fleet
from corpus.store.fleet_ways import note_ways, read_far
from corpus.store.frontier_pg_db import dial, sever, shown, translated
from corpus.store.frontier_pg_schema import PARENT

ROOT = "store.root"
NODE = "member "
"""What the lease of a member's partition file begins with, before its number."""
_OPENING = 0x636F7275
_ROWS = (
    "id, host, pid, region, state, expires > clock_timestamp() AS alive, report,"
    " extract(epoch FROM joined)::double precision, extract(epoch FROM seen)::double precision"
)


def node_of(member: int) -> str:
    """Who a member is to the leases of partition files."""
    return f"{NODE}{member}"


@dataclass(frozen=True, slots=True)
class RunRow:
    """`dealt`: pages given out to members or stored, of `crawl.max_pages`; `age_s` since it was opened; `ended`: why, or empty."""

    id: int
    crawl_id: str
    ended: str
    dealt: int
    seeded: frozenset[int]
    age_s: float
    far: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """By partition file the regions that are measurably far from it."""


@dataclass(frozen=True, slots=True)
class Member:
    """`state`: live, draining, left or lost; `alive`: not past its time. `report` is its own words."""

    id: int
    host: str
    pid: int
    region: str
    state: str
    alive: bool
    report: Mapping[str, Any]
    joined: float
    seen: float

    @property
    def live(self) -> bool:
        return self.alive and self.state == "live"

    @property
    def there(self) -> bool:
        return self.alive and self.state in ("live", "draining")


@dataclass(frozen=True, slots=True)
class Beat:
    """What a beat brings back: the server's time, the run, its members by number, (node, in force) of every lease, the number of
    the last order that the server was told of, members that were found to be lost."""

    now: float
    run: RunRow
    members: tuple[Member, ...]
    leases: Mapping[int, tuple[str, bool]]
    control: int
    lost: tuple[int, ...]

    def member(self, number: int) -> Member | None:
        return next((member for member in self.members if member.id == number), None)


class Fleet:
    """One member's end of it. Raises StoreError, Locked, and ServerGone (then it is of no more use)."""

    def __init__(self, dsn: str, held_s: float, gap_s: float, generation: Callable[[], int], *, longer_s: float = 0.0) -> None:
        """`held_s`: how long a lease, and so a member, lasts without a word; `gap_s`: how long addresses are left alone whose holder
        died, and `longer_s` how much longer where that was a member whose last contacts may still run; `generation`: the newest
        epoch in any name, asked where the database is new."""
        self._where, self._held_s, self._gap_s, self._longer_s = f"{shown(dsn)} fleet", held_s, gap_s, longer_s
        self._con = open_fleet(dsn)
        with translated(self._where):
            self._con.execute("LISTEN " + CONTROL_CHANNEL)
            if not self._generation():
                self._set_generation(generation() + 1)
        self.generation = self._generation()
        self.post = FleetPost(self._con, self._where)
        self.run = 0

    def _generation(self) -> int:
        with translated(self._where):
            return generation_of(self._con)

    def _set_generation(self, generation: int) -> None:
        self._con.execute(cast(Any, f"UPDATE {PARENT}.fleet SET generation = %s WHERE generation = 0"), (generation,))

    def enter(
        self, crawl_id: str, who: tuple[str, int, str], prepare: Callable[[], int], shape: Mapping[str, str] | None = None
    ) -> tuple[int, RunRow]:
        """Join the run that is on, go on with one that nobody works on, or begin one. Returns (our number, the run).

        `who`: (host, pid, region). `prepare` is called where nobody else is there yet, and gives the number of stored pages.
        `shape`: what all members must agree upon, by key; `ROOT` among it is what a run keeps for good. Raises UsageError naming a
        key that differs, Locked while somebody who is no member (a `corpus run`) owns partition files."""
        ours = json.dumps(dict(shape or {}), sort_keys=True)
        with translated(self._where), self._con.transaction():
            self._con.execute("SELECT pg_advisory_xact_lock(%s)", (_OPENING,))
            self._lapse(self._now())
            alone = not self._count("state IN ('live', 'draining')")
            last = self._con.execute(cast(Any, f"SELECT id, ended, shape FROM {PARENT}.run ORDER BY id DESC LIMIT 1")).fetchone()
            if last is not None:
                _agree(json.loads(last[2]), shape or {}, alone=alone)
            if alone:
                self._refuse_strangers()
                stored = prepare()
                if last is None or last[1]:
                    sql = f"INSERT INTO {PARENT}.run (crawl_id, dealt, shape) VALUES (%s, %s, %s) RETURNING id"
                    (self.run,) = self._one(sql, (crawl_id, stored, ours))
                else:
                    sql = f"UPDATE {PARENT}.run SET dealt = %s, shape = %s WHERE id = %s RETURNING id"
                    (self.run,) = self._one(sql, (stored, ours, last[0]))
            else:
                assert last is not None, "members have a run"
                self.run = int(last[0])
            sql = (
                f"INSERT INTO {PARENT}.member (run, host, pid, region, joined, seen, expires, state) VALUES (%s, %s, %s, %s,"
                " clock_timestamp(), clock_timestamp(), clock_timestamp() + make_interval(secs => %s), 'live') RETURNING id"
            )
            (number,) = self._one(sql, (self.run, *who, self._held_s))
        return int(number), self._run()

    def beat(self, number: int, report: Mapping[str, Any], state: str) -> Beat:
        """Say that we live, and hear of everybody."""
        with translated(self._where), self._con.transaction():
            sql = (
                f"UPDATE {PARENT}.member SET seen = clock_timestamp(), expires = clock_timestamp() + make_interval(secs => %s),"
                " report = %s, state = %s WHERE id = %s AND state IN ('live', 'draining')"
            )
            self._con.execute(cast(Any, sql), (self._held_s, json.dumps(report), state, number))
            now = self._now()
            lost = self._lapse(now)
            members = self._members()
            leases = self._con.execute(
                cast(Any, f"SELECT part, node, expires > clock_timestamp() FROM {PARENT}.lease")
            ).fetchall()
            control = self._con.execute(cast(Any, f"SELECT n FROM {PARENT}.control")).fetchone()
            run = self._run()
        return Beat(
            now,
            run,
            members,
            {int(part): (str(node), bool(on)) for part, node, on in leases},
            int(control[0]) if control else 0,
            lost,
        )

    def leave(self, number: int) -> None:
        """Go in order."""
        with translated(self._where):
            sql = f"UPDATE {PARENT}.member SET state = 'left' WHERE id = %s AND state IN ('live', 'draining')"
            self._con.execute(cast(Any, sql), (number,))

    def end_claims(self, number: int) -> None:
        """A member's fetch process died: nobody holds its addresses any more, and the next holder waits one gap."""
        with translated(self._where), self._con.transaction():
            self._end_claims([number], self._now(), self._gap_s)

    def heard(self) -> int:
        """The number of the newest order that the server told of since the last call; 0 for none. Does not wait."""
        with translated(self._where):
            return max((int(notice.payload) for notice in self._con.notifies(timeout=0)), default=0)

    # the run

    def end(self, why: str) -> None:
        """Give the run its one end; an end that was given before stays."""
        with translated(self._where):
            self._con.execute(cast(Any, f"UPDATE {PARENT}.run SET ended = %s WHERE id = %s AND ended = ''"), (why, self.run))

    def seeded(self, files: Sequence[int]) -> None:
        """The seeds of these partition files are in them."""
        with translated(self._where):
            sql = f"UPDATE {PARENT}.run SET seeded = ARRAY(SELECT DISTINCT unnest(seeded || %s::smallint[]) ORDER BY 1) WHERE id = %s"
            self._con.execute(cast(Any, sql), (list(files), self.run))

    def deal(self, pages: int, limit: int) -> int:
        """Take up to `pages` of what is left of the run's page budget; returns how many."""
        sql = (
            f"WITH before AS (SELECT dealt FROM {PARENT}.run WHERE id = %s FOR UPDATE) UPDATE {PARENT}.run r"
            " SET dealt = r.dealt + greatest(0, least(%s, %s - before.dealt)) FROM before WHERE r.id = %s"
            " RETURNING r.dealt - before.dealt"
        )
        with translated(self._where):
            (got,) = self._one(sql, (self.run, pages, limit, self.run))
        return int(got)

    def give_back(self, pages: int) -> None:
        """Pages that were taken and not stored."""
        with translated(self._where):
            self._con.execute(cast(Any, f"UPDATE {PARENT}.run SET dealt = dealt - %s WHERE id = %s"), (pages, self.run))

    def note_ways(self, region: str, ways: Mapping[int, Way]) -> None:
        """What a member of a region measured of the ways to hosts of its partition files."""
        with translated(self._where):
            note_ways(self._con, self.run, region, ways)

    def recount(self, before: int, now: int) -> None:
        """What is dealt is really so much, unless somebody took or gave back meanwhile."""
        with translated(self._where):
            sql = f"UPDATE {PARENT}.run SET dealt = %s WHERE id = %s AND dealt = %s"
            self._con.execute(cast(Any, sql), (now, self.run, before))

    def sever(self) -> None:
        """From another thread: whoever waits for an answer here gets ServerGone."""
        sever(self._con)

    def close(self) -> None:
        self._con.close()

    # inside

    def _one(self, sql: str, args: Sequence[Any]) -> tuple[Any, ...]:
        row = self._con.execute(cast(Any, sql), args).fetchone()
        assert row is not None, "the run's row is there"
        return tuple(row)

    def _count(self, where: str) -> int:
        return int(self._one(f"SELECT count(*) FROM {PARENT}.member WHERE {where}", ())[0])

    def _now(self) -> float:
        return float(self._one("SELECT extract(epoch FROM clock_timestamp())::double precision", ())[0])

    def _lapse(self, now: float) -> tuple[int, ...]:
        """Members past their time are lost, and their claims on addresses end."""
        sql = f"UPDATE {PARENT}.member SET state = 'lost' WHERE state IN ('live', 'draining') AND expires < clock_timestamp() RETURNING id"
        lost = [int(number) for (number,) in self._con.execute(cast(Any, sql)).fetchall()]
        if lost:
            self._end_claims(lost, now, self._gap_s + self._longer_s)
        return tuple(lost)

    def _end_claims(self, numbers: Sequence[int], now: float, wait_s: float) -> None:
        self._con.execute(cast(Any, END), (now, wait_s, now, [node_of(number) for number in numbers]))

    def _refuse_strangers(self) -> None:
        sql = f"SELECT owner, node FROM {PARENT}.lease WHERE expires > clock_timestamp() AND node NOT LIKE %s LIMIT 1"
        if self._con.execute("SELECT to_regclass(%s)", (f"{PARENT}.lease",)).fetchone() == (None,):
            return
        row = self._con.execute(cast(Any, sql), (f"{NODE}%",)).fetchone()
        if row is not None:
            raise Locked(
                f"{row[0]} on {row[1]} owns partition files", self._where, "end that run, or wait until its leases have ended"
            )

    def _members(self) -> tuple[Member, ...]:
        rows = self._con.execute(cast(Any, f"SELECT {_ROWS} FROM {PARENT}.member WHERE run = %s ORDER BY id"), (self.run,))
        return tuple(_member(row) for row in rows)

    def _run(self) -> RunRow:
        sql = (
            "SELECT id, crawl_id, ended, dealt, seeded, extract(epoch FROM clock_timestamp() - opened)::double precision, far"
            f" FROM {PARENT}.run WHERE id = %s"
        )
        row = self._one(sql, (self.run,))
        return RunRow(row[0], row[1], row[2], int(row[3]), frozenset(map(int, row[4])), float(row[5]), read_far(row[6]))


def _agree(theirs: Mapping[str, str], ours: Mapping[str, str], *, alone: bool) -> None:
    """One crawl has one configuration while anybody works on it, and one root for ever."""
    keys = [ROOT] if alone else sorted({*theirs, *ours})
    for key in keys if theirs and ours else ():
        if theirs.get(key) != ours.get(key):
            said = f"is {ours.get(key)} here and {theirs.get(key)} with the other members"
            raise UsageError(
                "is another place than that of the other members" if key == ROOT else said[:300],
                key,
                "give every worker of a fleet the same configuration, and one root that all reach",
            )


def _member(row: Sequence[Any]) -> Member:
    return Member(
        int(row[0]), str(row[1]), int(row[2]), str(row[3]), str(row[4]), bool(row[5]), json.loads(row[6]), row[7], row[8]
    )


def newest_run(dsn: str) -> tuple[str, list[Member]]:
    """(why the newest run ended, or empty; its members, those that have gone included). Looks only; nobody where no fleet ever
    was. Raises StoreError."""
    with translated(shown(dsn)), closing(dial(dsn, None, readonly=True)) as con:
        if con.execute("SELECT to_regclass(%s)", (f"{PARENT}.run",)).fetchone() == (None,):
            return "", []
        run = con.execute(cast(Any, f"SELECT id, ended FROM {PARENT}.run ORDER BY id DESC LIMIT 1")).fetchone()
        if run is None:
            return "", []
        rows = con.execute(cast(Any, f"SELECT {_ROWS} FROM {PARENT}.member WHERE run = %s ORDER BY id"), (run[0],))
        return str(run[1]), [_member(row) for row in rows]


def members_there(dsn: str) -> list[Member]:
    """Members that are there now. Raises StoreError."""
    return [member for member in newest_run(dsn)[1] if member.there]


def tell_of_order(dsn: str, n: int) -> None:
    """Every member is told that the control log has come to `n`; the log itself is elsewhere. Raises StoreError."""
    con = open_fleet(dsn)
    try:
        with translated(shown(dsn)), con.transaction():
            sql = f"INSERT INTO {PARENT}.control (n) VALUES (%s) ON CONFLICT (one) DO UPDATE SET n = greatest(control.n, excluded.n)"
            con.execute(cast(Any, sql), (n,))
            con.execute("SELECT pg_notify(%s, %s)", (CONTROL_CHANNEL, str(n)))
    finally:
        con.close()
