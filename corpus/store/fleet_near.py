"""The near-copy gate of a fleet: the index in PostgreSQL, asked in batches at group commit, answered as `gate.NearIndex` does.

A batch is one transaction, and one batch at a time: what two machines see of the same page at the same moment has one
original. The server finds the candidates (by payload, or by one equal band and at most k differing bits; at most 256 a band,
oldest first), and the embedded index over just those decides. Bands are columns, each with an index. The table is a cache: a
run makes it anew from the frontier.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from corpus.crawl.gate import BUCKET_MAX, Fingerprint, NearCopy, NearIndex
from corpus.page.simhash import blocks
from corpus.store.fleet_schema import BANDS_MAX, open_fleet
from corpus.store.frontier_pg_db import sever, shown, translated
from corpus.store.frontier_pg_schema import PARENT
from corpus.store.ip_claims import signed

_LOCK = 0x636F7274
_COLUMNS = ("url", "found", "fetched_at", "digest", "simhash", *(f"b{n}" for n in range(BANDS_MAX)))
_COPY = f"COPY {PARENT}.near ({', '.join(_COLUMNS)}) FROM STDIN"


def candidates(k: int) -> str:
    """The question for whatever a batch may copy: (simhashes, one array for each band, k, digests)."""
    bands = range(k + 1)
    asked = ", ".join(["%s::bigint[]"] * (k + 2))
    each = " UNION ALL ".join(
        f"(SELECT id, simhash FROM {PARENT}.near WHERE b{n} = q.b{n} ORDER BY id LIMIT {BUCKET_MAX})" for n in bands
    )
    names = ", ".join(f"b{n}" for n in bands)
    return (
        f"SELECT url, found, fetched_at, encode(digest, 'hex'), simhash FROM {PARENT}.near WHERE id IN ("
        f"SELECT c.id FROM unnest({asked}) AS q(simhash, {names}) CROSS JOIN LATERAL ({each}) AS c"
        " WHERE bit_count((c.simhash # q.simhash)::bit(64)) <= %s"
        f" UNION SELECT min(id) FROM {PARENT}.near WHERE digest = ANY(%s) GROUP BY digest) ORDER BY id"
    )


class PostgresNearIndex:
    """`gate.Gate` over one connection of its own. Raises StoreError."""

    def __init__(self, dsn: str, k: int) -> None:
        self._k, self._where, self._question = k, f"{shown(dsn)} near copies", candidates(k)
        self._con = open_fleet(dsn)

    def ask(self, pages: Sequence[Fingerprint]) -> list[NearCopy | None]:
        if not pages:
            return []
        with translated(self._where), self._con.transaction():
            self._con.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            known = self._known(pages)
            answers = NearIndex(self._k, known).ask(pages)
            there = {(page.url, page.content_sha256) for page in known}
            fresh = [p for p, copy in zip(pages, answers, strict=True) if copy is None and not p.alias]
            self._write(p for p in fresh if (p.url, p.content_sha256) not in there)
        return answers

    def rebuild(self, pages: Iterable[Fingerprint]) -> int:
        """Forget all, and remember these (in the order in which they came). Returns how many."""
        with translated(self._where), self._con.transaction():
            self._con.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            self._con.execute(cast(Any, f"TRUNCATE {PARENT}.near RESTART IDENTITY"))
            return self._write(pages)

    def sever(self) -> None:
        """From another thread: whoever waits for an answer here gets ServerGone."""
        sever(self._con)

    def close(self) -> None:
        self._con.close()

    def _known(self, pages: Sequence[Fingerprint]) -> list[Fingerprint]:
        hashes = [page.simhash for page in pages if page.simhash is not None]
        bands = [blocks(simhash, self._k) for simhash in hashes]
        columns = [[keys[n] for keys in bands] for n in range(self._k + 1)]
        digests = [bytes.fromhex(page.content_sha256) for page in pages]
        rows = self._con.execute(cast(Any, self._question), ([signed(h) for h in hashes], *columns, self._k, digests))
        return [
            Fingerprint(url, digest, None if simhash is None else simhash & 0xFFFFFFFFFFFFFFFF, found, at)
            for url, found, at, digest, simhash in rows
        ]

    def _write(self, pages: Iterable[Fingerprint]) -> int:
        count = 0
        with self._con.cursor() as cursor, cursor.copy(cast(Any, _COPY)) as copy:
            for page in pages:
                keys = () if page.simhash is None else blocks(page.simhash, self._k)
                simhash = None if page.simhash is None else signed(page.simhash)
                digest = bytes.fromhex(page.content_sha256)
                spare = (None,) * (BANDS_MAX - len(keys))
                copy.write_row((page.url, page.found, page.fetched_at, digest, simhash, *keys, *spare))
                count += 1
        return count
