"""What a partition file keeps of patterns that were closed and of what domains have brought (`crawl.yields`).

Tables of their own, made when a file is opened to write, so that files of any age have them. Runs inside the caller's
transaction; decides nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from corpus.crawl.nouns import Ack, ClosedPattern, DomainYield
from corpus.store.frontier_schema import text_in, text_out

TABLES = (
    "CREATE TABLE IF NOT EXISTS closed_pattern (host TEXT NOT NULL, pattern TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (host, pattern)) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS domain_yield (domain TEXT PRIMARY KEY, judged INTEGER NOT NULL DEFAULT 0, novel INTEGER NOT NULL DEFAULT 0,
    recent INTEGER NOT NULL DEFAULT 0, linkers INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID""",
)
_SIGN, _BITS = 1 << 63, (1 << 64) - 1


def _signed(bits: int) -> int:
    """64 bits as SQLite's signed integer."""
    return bits - (1 << 64) if bits & _SIGN else bits


def write_yields(con: sqlite3.Connection, acks: Sequence[Ack]) -> None:
    """Store what acks say of patterns and domains; linkers only gain bits."""
    closed = [(text_in(row.host), text_in(row.pattern), row.at) for ack in acks for row in ack.closed]
    sums = [
        (text_in(row.domain), row.judged, row.novel, _signed(row.recent), _signed(row.linkers))
        for ack in acks
        for row in ack.yields
    ]
    links = [(text_in(domain), _signed(bits)) for ack in acks for domain, bits in ack.linked]
    if closed:
        con.executemany("INSERT OR REPLACE INTO closed_pattern VALUES (?,?,?)", closed)
    if sums:
        con.executemany(
            "INSERT INTO domain_yield VALUES (?,?,?,?,?) ON CONFLICT DO UPDATE SET judged = excluded.judged, novel = excluded.novel, "
            "recent = excluded.recent, linkers = domain_yield.linkers | excluded.linkers",
            sums,
        )
    if links:
        con.executemany(
            "INSERT INTO domain_yield (domain, linkers) VALUES (?,?) ON CONFLICT DO UPDATE SET linkers = domain_yield.linkers | excluded.linkers",
            links,
        )


def read_yields(con: sqlite3.Connection, host: str, domain: str) -> tuple[list[ClosedPattern], DomainYield]:
    """The closed patterns of a host, and the sums of its registered domain."""
    rows = con.execute("SELECT pattern, at FROM closed_pattern WHERE host = ? ORDER BY pattern", (text_in(host),)).fetchall()
    sums = con.execute("SELECT judged, novel, recent, linkers FROM domain_yield WHERE domain = ?", (text_in(domain),)).fetchone()
    closed = [ClosedPattern(host, text_out(pattern), at) for pattern, at in rows]
    if sums is None:
        return closed, DomainYield(domain)
    judged, novel, recent, linkers = sums
    return closed, DomainYield(domain, judged, novel, recent & _BITS, linkers & _BITS)


class MemoryYields:
    """The same for a store in memory."""

    def __init__(self) -> None:
        self.closed: dict[tuple[str, str], ClosedPattern] = {}
        self.sums: dict[str, DomainYield] = {}

    def take(self, ack: Ack) -> None:
        """What one ack says; linkers only gain bits."""
        self.closed.update(((row.host, row.pattern), row) for row in ack.closed)
        for row in ack.yields:
            self.sums[row.domain] = replace(row, linkers=row.linkers | self.of_domain(row.domain).linkers)
        for domain, bits in ack.linked:
            known = self.of_domain(domain)
            self.sums[domain] = replace(known, linkers=known.linkers | bits)

    def of_domain(self, domain: str) -> DomainYield:
        return self.sums.get(domain, DomainYield(domain))

    def of_host(self, host: str) -> list[ClosedPattern]:
        return [row for (name, _), row in sorted(self.closed.items()) if name == host]
