"""Numbers of hosts, domains, interned texts and linking pages in PostgreSQL, given by their one owner, many at a time.

Numbers come from the tables' own sequences in blocks, so a new row needs no answer of the server to be spoken of; the rows
themselves are written at once, before anything that changes them and before the transaction ends. Numbers of a block that
were not used are never given again, which costs nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import cast

from corpus.store.frontier_db import CACHED_NAMES, Names
from corpus.store.frontier_pg_db import Spoken
from corpus.store.frontier_pg_many import array
from corpus.store.frontier_schema import text_in, text_out
from corpus.url.host import registered_domain

_BLOCK = 256
_CACHED_VIAS = 4_096
_RESERVE = "SELECT nextval(pg_get_serial_sequence(%s, 'id')) FROM generate_series(1, %s)"
_INSERTS = {
    "domain": "INSERT INTO domain (id, name) VALUES (?, ?)",
    "host": "INSERT INTO host (id, name, domain) VALUES (?, ?, ?)",
    "word": "INSERT INTO word (id, text) VALUES (?, ?)",
    "via": "INSERT INTO via (id, url) VALUES (?, ?)",
}
_VIAS = "SELECT v.id, v.url FROM unnest(%s::bigint[]) AS k(id) JOIN via v ON v.id = k.id"
_FIND = "SELECT t.name, t.id FROM unnest(%s::text[]) AS k(name) JOIN {table} t ON t.name = k.name"


class ServerNames(Names):
    """See `Names`. What was given a number in a transaction is written by `flush`."""

    def __init__(self, con: Spoken) -> None:
        super().__init__(cast(sqlite3.Connection, con))
        self._server = con
        self._domains: dict[str, int] = {}
        self._absent: set[str] = set()
        self._vias: dict[int, str] = {0: ""}
        self._blocks: dict[str, Iterator[int]] = {}
        self._new: dict[str, list[tuple[int | str | bytes, ...]]] = {table: [] for table in _INSERTS}

    def forget(self) -> None:
        super().forget()
        self._domains, self._absent, self._new = {}, set(), {table: [] for table in _INSERTS}
        self._vias = {0: ""}

    def look_up(self, hosts: Iterable[str]) -> None:
        """Learn the numbers of these hosts in one go; of those that are new, the numbers of their domains."""
        asked = [host for host in dict.fromkeys(hosts) if host not in self._hosts and host not in self._absent]
        if not asked:
            return
        found = self._find("host", asked)
        for host, number in found.items():
            self._remember(host, number)
        new = [host for host in asked if host not in found]
        self._absent.update(new)
        domains = [name for name in dict.fromkeys(map(registered_domain, new)) if name not in self._domains]
        self._domains |= self._find("domain", domains) if domains else {}

    def _find(self, table: str, names: list[str]) -> dict[str, int]:
        rows = self._server.ask(_FIND.format(table=table), (array("text", [text_in(name) for name in names]),)).fetchall()
        return {text_out(name): int(number) for name, number in rows}

    def host(self, host: str) -> int | None:
        return None if host in self._absent else super().host(host)

    def ensure_host(self, host: str, domain: str) -> int:
        known = self.host(host)
        if known is not None:
            return known
        number = self._domain(domain)
        made = self._give("host")
        self._new["host"].append((made, text_in(host), number))
        self._absent.discard(host)
        return self._remember(host, made)

    def _domain(self, domain: str) -> int:
        if (known := self._domains.get(domain)) is None:
            known = self._find("domain", [domain]).get(domain)
        if known is None:
            known = self._give("domain")
            self._new["domain"].append((known, text_in(domain)))
        self._domains[domain] = known
        return known

    def ensure_word(self, text: str) -> int:
        known = self.word(text)
        if known is not None:
            return known
        made = self._give("word")
        self._new["word"].append((made, text_in(text)))
        return self._learn(text, made)

    def ensure_via(self, url: str) -> int:
        if url != self._via[0]:
            made = self._give("via") if url else 0
            if url:
                self._new["via"].append((made, text_in(url)))
                self._vias[made] = url
            self._via = (url, made)
        return self._via[1]

    def vias(self, numbers: Iterable[int]) -> dict[int, str]:
        """The linking pages of these numbers."""
        asked = set(numbers)
        found = {number: self._vias[number] for number in asked if number in self._vias}
        if left := sorted(asked - found.keys()):
            rows = self._server.ask(_VIAS, (array("bigint", left),)).fetchall()
            found |= {int(number): text_out(url) for number, url in rows}
            self._vias |= found
        return found

    def flush(self) -> None:
        """Write the rows whose numbers were given."""
        for table, rows in self._new.items():
            if rows:
                self._server.executemany(_INSERTS[table], rows)
                rows.clear()

    def settle(self) -> None:
        """The transaction has returned: what is remembered may be as much as it may be."""
        if len(self._domains) >= CACHED_NAMES:
            self._domains.clear()
        if len(self._absent) >= CACHED_NAMES:
            self._absent.clear()
        self.tidy()

    def tidy(self) -> None:
        """Forget linking pages when there are many of them."""
        if len(self._vias) > _CACHED_VIAS:
            self._vias = {0: ""}

    def _remember(self, host: str, number: int) -> int:
        if len(self._hosts) + 1 >= CACHED_NAMES:
            self.flush()  # what is forgotten is found again in the table only
        return super()._remember(host, number)

    def _learn(self, text: str, number: int) -> int:
        if len(self._words) + 1 >= CACHED_NAMES:
            self.flush()
        return super()._learn(text, number)

    def _give(self, table: str) -> int:
        """A number nobody has."""
        block = self._blocks.setdefault(table, iter(()))
        for number in block:
            return number
        rows = self._server.ask(_RESERVE, (table, _BLOCK)).fetchall()
        self._blocks[table] = iter([int(number) for (number,) in rows])
        return next(self._blocks[table])
