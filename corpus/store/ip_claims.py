"""Claims on addresses, shared by the fetch processes of one machine: small leases that carry the next contact's time.

Hosts of different partition files may live on one server; the claim makes them take turns. A claim lapses after its
time to live, so a killed process blocks nobody; but then nobody knows what it last sent, and the next holder is told.
Three implementations, one contract suite: memory (one process, simulations), SQLite (one small file, many processes), and
PostgreSQL for a fleet (`fleet_claims`).
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from corpus.crawl.cdn import ip_key
from corpus.crawl.claims import Granted, Held
from corpus.crawl.ports import Due
from corpus.store.frontier_db import BUSY_MS, translated

_NEVER = Due(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Claim:
    """`owner` empty: released. A claim taken at `taken` ends by itself `ttl_s` later; `due` is the next contact."""

    owner: str
    taken: float
    ttl_s: float
    due: Due

    def held(self, wall: float) -> bool:
        return bool(self.owner) and Due(self.taken, self.ttl_s).remaining(wall) > 0


def decide(claim: Claim | None, owner: str, ttl_s: float, wall: float) -> tuple[Granted | Held, Claim | None]:
    """The answer to a claim, and the claim to store (None: nothing changes). Pure."""
    if claim is None:
        return Granted(_NEVER), Claim(owner, wall, ttl_s, _NEVER)
    if claim.owner != owner and claim.held(wall):
        if claim.taken > wall:  # the clock ran backwards: the claim lasts its whole time from now, and no longer
            return Held(wall + claim.ttl_s), replace(claim, taken=wall)
        return Held(claim.taken + claim.ttl_s), None
    clean = claim.owner in ("", owner)
    return Granted(claim.due, clean), Claim(owner, wall, ttl_s, claim.due)


class MemoryIpClaims:
    """Claims inside one process."""

    def __init__(self) -> None:
        self._claims: dict[int, Claim] = {}

    def claim(self, ip: str, owner: str, ttl_s: float, wall: float) -> Granted | Held:
        key = ip_key(ip)
        answer, claim = decide(self._claims.get(key), owner, ttl_s, wall)
        if claim is not None:
            self._claims[key] = claim
        return answer

    def release(self, ip: str, owner: str, due: Due) -> None:
        key = ip_key(ip)
        claim = self._claims.get(key)
        if claim is not None and claim.owner == owner:
            self._claims[key] = Claim("", claim.taken, claim.ttl_s, due)

    def close(self) -> None:
        self._claims.clear()


_TABLE = """CREATE TABLE IF NOT EXISTS claim (ip INTEGER PRIMARY KEY, owner TEXT NOT NULL, taken REAL NOT NULL, ttl_s REAL NOT NULL,
    due_set REAL NOT NULL, due_wait REAL NOT NULL)"""


class SqliteIpClaims:
    """Claims in one SQLite file (WAL, synchronous NORMAL: safe against kill -9; a power cut may lose the last few).

    Addresses whose next contact lies a day back are forgotten when the file is opened. Raises StoreError.
    """

    def __init__(self, path: Path, wall: float = 0.0) -> None:
        self.path = path
        with translated(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._con = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000)
            self._con.execute("PRAGMA journal_mode = WAL")
            self._con.execute("PRAGMA synchronous = NORMAL")
            self._con.execute(_TABLE)
            self._con.execute("DELETE FROM claim WHERE owner = '' AND due_set + due_wait < ?", (wall - 86_400,))

    def claim(self, ip: str, owner: str, ttl_s: float, wall: float) -> Granted | Held:
        key = signed(ip_key(ip))
        with translated(self.path):
            self._con.execute("BEGIN IMMEDIATE")
            try:
                row = self._con.execute(
                    "SELECT owner, taken, ttl_s, due_set, due_wait FROM claim WHERE ip = ?", (key,)
                ).fetchone()
                known = None if row is None else Claim(row[0], row[1], row[2], Due(row[3], row[4]))
                answer, claim = decide(known, owner, ttl_s, wall)
                if claim is not None:
                    values = (key, claim.owner, claim.taken, claim.ttl_s, claim.due.set_at, claim.due.wait_s)
                    self._con.execute("INSERT OR REPLACE INTO claim VALUES (?,?,?,?,?,?)", values)
                self._con.execute("COMMIT")
            except BaseException:
                # after a full disk SQLite has rolled back by itself, and says so with an error of its own
                with suppress(sqlite3.OperationalError):
                    self._con.execute("ROLLBACK")
                raise
        return answer

    def release(self, ip: str, owner: str, due: Due) -> None:
        with translated(self.path):
            self._con.execute(
                "UPDATE claim SET owner = '', due_set = ?, due_wait = ? WHERE ip = ? AND owner = ?",
                (due.set_at, due.wait_s, signed(ip_key(ip)), owner),
            )

    def end_all(self, due: Due, owner: str = "") -> None:
        """End every claim that is held (by one owner, if named), because its process is known to be dead; the next holder waits for `due`."""
        with translated(self.path):
            self._con.execute(
                "UPDATE claim SET owner = '', due_set = ?, due_wait = max(?, due_set + due_wait - ?) WHERE owner <> '' AND ? IN ('', owner)",
                (due.set_at, due.wait_s, due.set_at, owner),
            )

    def close(self) -> None:
        self._con.close()


def signed(key: int) -> int:
    """A 64-bit key as databases take it."""
    return key - (1 << 64) if key >> 63 else key
