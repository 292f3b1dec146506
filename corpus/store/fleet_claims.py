"""Claims on addresses for a whole fleet: the rows of `ip_claims` in PostgreSQL, decided by the same rule.

A claim that nobody else holds is one statement. Any other is a transaction, which holds the row (or, where there is none yet, a
lock on its number), so two owners are never both told yes. Times are whatever clock the callers share; in a fleet that is the server's.
"""

from __future__ import annotations

from typing import Any, cast

from corpus.crawl.cdn import ip_key
from corpus.crawl.claims import Granted, Held
from corpus.crawl.ports import Due
from corpus.store.fleet_schema import open_fleet
from corpus.store.frontier_pg_db import shown, translated
from corpus.store.frontier_pg_schema import PARENT
from corpus.store.ip_claims import Claim, decide, signed

_READ = f"SELECT owner, taken, ttl_s, due_set, due_wait FROM {PARENT}.address WHERE ip = %s FOR UPDATE"
_LOCK = 0x636F7273
_WRITE = (
    f"INSERT INTO {PARENT}.address VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (ip) DO UPDATE SET owner = excluded.owner,"
    " taken = excluded.taken, ttl_s = excluded.ttl_s, due_set = excluded.due_set, due_wait = excluded.due_wait"
)
_TAKE = (
    f"INSERT INTO {PARENT}.address AS a VALUES (%s, %s, %s, %s, 0, 0) ON CONFLICT (ip) DO UPDATE SET owner = excluded.owner,"
    " taken = excluded.taken, ttl_s = excluded.ttl_s WHERE a.owner IN ('', excluded.owner) RETURNING due_set, due_wait"
)
"""What `decide` says where there is no claim, or one that was let go, or our own."""
_RELEASE = f"UPDATE {PARENT}.address SET owner = '', due_set = %s, due_wait = %s WHERE ip = %s AND owner = %s"
END = (
    f"UPDATE {PARENT}.address SET owner = '', due_set = %s, due_wait = greatest(%s, due_set + due_wait - %s)"
    " WHERE owner <> '' AND owner = ANY(%s)"
)
"""Ends the claims of owners that are dead; (set at, wait, set at, owners)."""


class PostgresIpClaims:
    """`crawl.claims.IpClaims` over one connection of its own. Raises StoreError."""

    def __init__(self, dsn: str) -> None:
        self._where = f"{shown(dsn)} addresses"
        self._con = open_fleet(dsn)

    def claim(self, ip: str, owner: str, ttl_s: float, wall: float) -> Granted | Held:
        key = signed(ip_key(ip))
        with translated(self._where):
            mine = self._con.execute(cast(Any, _TAKE), (key, owner, wall, ttl_s), prepare=True).fetchone()
        if mine is not None:
            return Granted(Due(mine[0], mine[1]))
        with translated(self._where), self._con.transaction():
            row = self._con.execute(cast(Any, _READ), (key,)).fetchone()
            if row is None:  # whoever comes second waits here, and finds the first one's row
                self._con.execute("SELECT pg_advisory_xact_lock(%s, hashint8(%s))", (_LOCK, key))
                row = self._con.execute(cast(Any, _READ), (key,)).fetchone()
            known = None if row is None else Claim(row[0], row[1], row[2], Due(row[3], row[4]))
            answer, claim = decide(known, owner, ttl_s, wall)
            if claim is not None:
                values = (key, claim.owner, claim.taken, claim.ttl_s, claim.due.set_at, claim.due.wait_s)
                self._con.execute(cast(Any, _WRITE), values)
        return answer

    def release(self, ip: str, owner: str, due: Due) -> None:
        with translated(self._where):
            self._con.execute(cast(Any, _RELEASE), (due.set_at, due.wait_s, signed(ip_key(ip)), owner))

    def close(self) -> None:
        self._con.close()
