"""What a batch asks of its partition file in PostgreSQL, read in one breath; what it says of hosts, written at once; a host's line.

The questions and rows are those of `frontier_select` and `frontier_write`; here each is one statement for the whole batch,
made narrow: what a statement costs the server is mostly its start and its columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from corpus.crawl.ports import Due, HostRow
from corpus.store.frontier_pg_db import Fence, Spoken
from corpus.store.frontier_pg_many import array, unnest
from corpus.store.frontier_pg_names import ServerNames
from corpus.store.frontier_rows import Counted, Key, Peek, UrlRow, Validators, later
from corpus.store.frontier_schema import KIND_OF, READY, STATE_OF
from corpus.store.frontier_select import ROW_COLUMNS, URL_ROW, VALIDATORS, VIA, VIA_AT, in_line, short, url_row, validators
from corpus.store.frontier_write import UPDATE_HOST, host_values

_KEYS = "unnest(%s::int[], %s::bytea[]) WITH ORDINALITY AS k(host, uid, n) JOIN url u ON u.host = k.host AND u.uid = k.uid"
_PEEKS = f"SELECT k.n, u.state, u.reason, u.kind, u.depth, u.hops, u.claim FROM {_KEYS}"
_ROW = URL_ROW.replace(VIA, "u.via")
_ROWS = f"SELECT {_ROW}, k.n FROM {_KEYS}"
_HEADS = (
    # the line first: joined at once, all visits of the host would be read
    f"SELECT {_ROW}, {VALIDATORS} FROM (SELECT * FROM url WHERE host = %s::int AND again = %s::smallint AND state = {READY}"
    " ORDER BY front, depth, uid LIMIT %s::bigint) u LEFT JOIN visit v ON v.host = u.host AND v.uid = u.uid"
)
_SUMS = (
    "SELECT h.id, h.domain, h.pages, h.queued, (SELECT max(e.counted) FROM exclusion e WHERE e.host = h.id)"
    " FROM unnest(%s::int[]) AS k(id) JOIN host h ON h.id = k.id"
)
_COUNTED = (
    "SELECT k.n, c.reason FROM unnest(%s::int[], %s::bigint[]) WITH ORDINALITY AS k(host, h, n)"
    " JOIN counted c ON c.host = k.host AND c.h = k.h"
)
_UPDATE_HOST = UPDATE_HOST.replace(" SET ", " SET queued=?, ", 1)
_DOMAIN = ("bigint", "double precision", "double precision", "bigint")
_LATER = "v.due_set + v.due_wait >= d.due_set + d.due_wait"
_UPDATE_DOMAIN = (
    f"UPDATE domain d SET due_set = CASE WHEN {_LATER} THEN v.due_set ELSE d.due_set END,"
    f" due_wait = CASE WHEN {_LATER} THEN v.due_wait ELSE d.due_wait END, pages = d.pages + v.pages"
    f" FROM {unnest(_DOMAIN)} AS v(id, due_set, due_wait, pages) WHERE d.id = v.id"
)


@dataclass(frozen=True, slots=True)
class Sums:
    """Of a stored host. `counted`: whether URLs of it are only counted; None: nothing of it is excluded."""

    domain: int
    pages: int
    queued: int
    counted: int | None


@dataclass(slots=True)
class Ahead:
    """What was read for one batch, as it stands before the batch changes it."""

    rows: dict[Key, UrlRow | None] = field(default_factory=dict)
    sums: dict[int, Sums] = field(default_factory=dict)


def read_ahead(
    con: Spoken, names: ServerNames, keys: Sequence[Key], soon: Sequence[Key], fence: Fence | None
) -> tuple[dict[Key, Peek | Counted], Ahead]:
    """(what is known of `keys`; the rows of `soon` whole and the sums of all their hosts). Checks the fence, which was asked before."""
    names.look_up(host for host, _ in (*keys, *soon))
    asked = [(key, number) for key in keys if (number := names.host(key[0])) is not None]
    whole = [(key, number) for key in soon if (number := names.host(key[0])) is not None]
    hosts = list(dict.fromkeys(number for _, number in (*asked, *whole)))
    peeks = con.ask(_PEEKS, _arrays(asked)) if asked else None
    rows = con.ask(_ROWS, _arrays(whole)) if whole else None
    sums = con.ask(_SUMS, (array("int", hosts),)) if hosts else None
    if fence is not None:
        fence.check()
    found: dict[Key, Peek | Counted] = {}
    for n, state, reason, kind, depth, hops, claim in peeks.fetchall() if peeks else ():
        found[asked[n - 1][0]] = Peek(STATE_OF[state], names.text(reason), KIND_OF[kind], depth, hops, claim / 1000)
    ahead = Ahead(dict.fromkeys(soon))
    for row in _with_via(names, rows.fetchall() if rows else ()):
        key = whole[row[-1] - 1][0]
        ahead.rows[key] = url_row(names, key[0], row)
    for number, *said in sums.fetchall() if sums else ():
        ahead.sums[number] = Sums(*said)
    left = [(key, number) for key, number in asked if key not in found and number in ahead.sums and ahead.sums[number].counted]
    found |= _counted(con, names, left)
    return found, ahead


def _counted(con: Spoken, names: ServerNames, keys: Sequence[tuple[Key, int]]) -> dict[Key, Peek | Counted]:
    """Those of these URLs that are only counted."""
    if not keys:
        return {}
    arrays = (array("int", [number for _, number in keys]), array("bigint", [short(uid) for (_, uid), _ in keys]))
    return {keys[n - 1][0]: Counted(names.text(reason)) for n, reason in con.ask(_COUNTED, arrays).fetchall()}


def _arrays(keys: Sequence[tuple[Key, int]]) -> tuple[str, str]:
    return array("int", [number for _, number in keys]), array("bytea", [uid for (_, uid), _ in keys])


def _with_via(names: ServerNames, rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of `_ROW` as `URL_ROW` has them."""
    texts = names.vias({row[VIA_AT] for row in rows})
    return [(*row[:VIA_AT], texts[row[VIA_AT]], *row[VIA_AT + 1 :]) for row in rows]


def heads(con: Spoken, names: ServerNames, host: str, limit: int, again: bool | None) -> list[tuple[UrlRow, Validators]]:
    """`frontier_select.heads`."""
    number = names.host(host)
    if number is None:
        return []
    kinds = (0, 1) if again is None else (int(again),)
    rows = [row for kind in kinds for row in con.ask(_HEADS, (number, kind, limit), binary=True).fetchall()]
    found = [(url_row(names, host, row), validators(row[ROW_COLUMNS:])) for row in _with_via(names, rows)]
    return in_line(found)[:limit]


def write_hosts(
    con: Spoken, names: ServerNames, rows: Sequence[HostRow], known: Mapping[int, Sums], queued: Mapping[str, int]
) -> None:
    """`frontier_write.write_hosts` for all at once, and how many of their URLs are queued now. `known`: what was read of them in
    this transaction."""
    clocks: dict[str, Due] = {}
    for row in rows:
        clocks[row.domain] = later(clocks.get(row.domain, row.domain_due), row.domain_due)
    last = {names.ensure_host(row.host, row.domain): row for row in rows}
    names.flush()
    unread = [number for number in last if number not in known]
    sums = dict(known)
    if unread:
        sums |= {number: Sums(*said) for number, *said in con.ask(_SUMS, (array("int", unread),)).fetchall()}
    con.executemany(
        _UPDATE_HOST, [(queued.get(row.host, sums[number].queued), *host_values(row), number) for number, row in last.items()]
    )
    domains: dict[int, tuple[Due, int]] = {}
    for number, row in last.items():
        due, pages = domains.get(sums[number].domain, (clocks[row.domain], 0))
        domains[sums[number].domain] = later(due, clocks[row.domain]), pages + row.pages - sums[number].pages
    values: list[tuple[Any, ...]] = [(n, due.set_at, due.wait_s, pages) for n, (due, pages) in sorted(domains.items())]
    if values:
        con.ask(_UPDATE_DOMAIN, [array(kind, column) for kind, column in zip(_DOMAIN, zip(*values, strict=True), strict=True)])
