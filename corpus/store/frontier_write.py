"""How a worked-out batch becomes rows of a partition file: one statement per table, many rows each.

Runs inside the caller's transaction; decides nothing, and checks nothing that the batch has not checked.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from corpus.crawl.ports import Ack, AuthorityRow, Due, HostRow, Settled, Whole
from corpus.crawl.recrawl import rate_bin
from corpus.model import UrlState
from corpus.store.frontier_batch import Changes
from corpus.store.frontier_db import Names
from corpus.store.frontier_rows import UrlRow, later, next_version
from corpus.store.frontier_schema import KIND_CODE, STATE_CODE, URL_COLUMNS, VISIT_COLUMNS, WAITING, text_in, to_tail
from corpus.store.frontier_select import short
from corpus.store.frontier_view import host_key
from corpus.url.host import registered_domain

_INSERT_URL = f"INSERT INTO url ({URL_COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
_UPDATE_URL = "UPDATE url SET state=?, front=?, depth=?, hops=?, kind=?, attempts=?, reason=?, claim=?, due_at=?, due_wait=?, again=? WHERE host=? AND uid=?"
_VISIT_NAMES = VISIT_COLUMNS.split(", ")
_HISTORY_NAMES = ("seen", "changed", "watched_s", "checked_at", "rate")
_INSERT_VISIT = f"INTO visit ({VISIT_COLUMNS}) VALUES ({','.join('?' * len(_VISIT_NAMES))})"
_REPLACE_VISIT = f"INSERT {_INSERT_VISIT} ON CONFLICT DO UPDATE SET " + ", ".join(
    # a settlement without a history leaves the stored one as it is
    f"{name} = coalesce(excluded.{name}, visit.{name})" if name in _HISTORY_NAMES else f"{name} = excluded.{name}"
    for name in _VISIT_NAMES[2:]
)
UPDATE_HOST = (
    "UPDATE host SET state=?, reason=?, pace_s=?, latency_s=?, latency_median_s=?, due_set=?, due_wait=?, crawl_delay_s=?, "
    "strikes=?, ips=?, pages=?, cache_hits=?, cache_misses=?, failures=?, failing_since=? WHERE id=?"
)


def write(con: sqlite3.Connection, names: Names, changes: Changes) -> None:
    """All changes of a batch, except what acks say of hosts, authorities and the outbox."""
    new, changed, moved = [], [], []
    for before, after in changes.rows:
        number = names.ensure_host(after.host, registered_domain(after.host)) if before is None else names.host(after.host)
        if before is None:
            new.append(_insert(names, number, after))
        else:
            changed.append(_update(names, number, after))
            if (before.found, before.via) != (after.found, after.via):
                moved.append((_found(after), names.ensure_via(after.via), number, after.uid))
    new.sort(key=lambda row: row[:2])  # in key order, so that neighbours share a page of the tree
    con.executemany(_INSERT_URL, new)
    con.executemany(_UPDATE_URL, changed)
    con.executemany("UPDATE url SET found=?, via=? WHERE host=? AND uid=?", moved)
    dropped = [(names.host(row.host), row.uid) for row in changes.dropped]
    con.executemany("DELETE FROM url WHERE host=? AND uid=?", dropped)
    con.executemany("DELETE FROM visit WHERE host=? AND uid=?", dropped)
    con.executemany("DELETE FROM version WHERE host=? AND uid=?", dropped)
    con.executemany(
        "DELETE FROM counted WHERE host=? AND h=?", [(names.host(host), short(uid)) for (host, uid), _ in changes.uncounted]
    )
    counted = [
        (names.ensure_host(host, registered_domain(host)), short(uid), names.ensure_word(why))
        for (host, uid), why in changes.counted
    ]
    con.executemany("INSERT OR IGNORE INTO counted VALUES (?,?,?)", counted)
    exclusions = [
        (names.ensure_host(host, registered_domain(host)), names.ensure_word(why), kept, only)
        for (host, why), (kept, only) in changes.exclusions.items()
    ]
    con.executemany("INSERT OR REPLACE INTO exclusion VALUES (?,?,?,?)", exclusions)
    _write_visits(con, names, changes)
    con.executemany("UPDATE host SET queued=? WHERE id=?", [(n, names.host(host)) for host, n in changes.queued.items()])
    con.executemany(
        "INSERT INTO tally VALUES (?,?,?,?) ON CONFLICT DO UPDATE SET n = tally.n + excluded.n",
        [(page, state.value, reason, n) for (page, state, reason), n in changes.tally.items()],
    )


def _state(row: UrlRow) -> int:
    return WAITING if row.waits else STATE_CODE[row.state]


def _times(row: UrlRow) -> tuple[float | None, float | None]:
    return (None, None) if row.due is None else (row.due.set_at + row.due.wait_s, row.due.wait_s)


def _found(row: UrlRow) -> str | bytes | None:
    return None if row.found == row.url else text_in(to_tail(row.found, row.host))


def _insert(names: Names, number: int | None, row: UrlRow) -> tuple[Any, ...]:
    return (
        number,
        row.uid,
        _state(row),
        row.front,
        row.depth,
        row.hops,
        KIND_CODE[row.kind],
        row.attempts,
        names.ensure_word(row.reason),
        round(row.claim * 1000),
        *_times(row),
        names.ensure_via(row.via),
        text_in(to_tail(row.url, row.host)),
        _found(row),
        int(row.again),
    )


def _update(names: Names, number: int | None, row: UrlRow) -> tuple[Any, ...]:
    claim = round(row.claim * 1000)
    head = (_state(row), row.front, row.depth, row.hops, KIND_CODE[row.kind], row.attempts, names.ensure_word(row.reason), claim)
    return (*head, *_times(row), int(row.again), number, row.uid)


def _write_visits(con: sqlite3.Connection, names: Names, changes: Changes) -> None:
    whole: list[tuple[Any, ...]] = []
    tries: list[tuple[Any, ...]] = []
    for (host, uid), settled in changes.visits.items():
        row = _visit(names, names.host(host), uid, settled)
        # a try that is to be repeated does not erase what the last visit brought
        (tries if settled.state in (UrlState.QUEUED, UrlState.PARKED) else whole).append(row)
        if settled.change is not None:
            _link(con, names.host(host), uid, settled)
    con.executemany(_REPLACE_VISIT, whole)
    con.executemany(f"INSERT OR IGNORE {_INSERT_VISIT}", tries)


def _visit(names: Names, number: int | None, uid: bytes, s: Settled) -> tuple[Any, ...]:
    simhash = None if s.simhash is None else s.simhash - (1 << 64) if s.simhash >> 63 else s.simhash
    word = names.ensure_word
    capture = (word(s.capture.file), s.capture.offset, s.capture.length) if s.capture else (0, None, None)
    content = bytes.fromhex(s.content_sha256) if s.content_sha256 else None
    texts = tuple(text_in(text) if text else None for text in (s.near_original, s.etag, s.last_modified, s.target))
    head = (number, uid, s.http_status, word(s.content_type), s.fetched_at, *capture, content, simhash)
    tail = (word(s.rule), s.rule_line, word(s.authority_digest), word(s.protocol))
    return (*head, *texts, *tail, *_history(s), word(s.cache), s.age_s, *_whole(s.whole))


def _whole(whole: Whole | None) -> tuple[float | None, int | None]:
    return (None, None) if whole is None else (whole.at, whole.payload)


def _history(s: Settled) -> tuple[float | None, ...]:
    """(seen, changed, watched_s, checked_at, rate), without what the visit itself says: most pages are visited once."""
    known = s.history
    if known is None or (known.seen <= 0.0 and known.checked_at == s.fetched_at):
        return None, None, None, None, None
    if known.seen <= 0.0:
        return None, None, None, known.checked_at, None
    return known.seen, known.changed, known.watched_s, known.checked_at, rate_bin(known)


def _link(con: sqlite3.Connection, number: int | None, uid: bytes, settled: Settled) -> None:
    """Carry a page's chain of versions on, before the visit that began it is overwritten."""
    key = (number, uid)
    (last,) = con.execute("SELECT max(n) FROM version WHERE host=? AND uid=?", key).fetchone()
    if last is None:
        con.execute(
            "INSERT INTO version SELECT host, uid, 0, fetched_at, fetched_at, '', content_sha256 FROM visit"
            " WHERE host=? AND uid=? AND content_sha256 IS NOT NULL AND fetched_at IS NOT NULL",
            key,
        )
    link = next_version(settled)
    if link is None:
        sql = "UPDATE version SET last_at = max(last_at, ?) WHERE host=? AND uid=? AND n = (SELECT max(n) FROM version WHERE host=? AND uid=?)"
        con.execute(sql, (settled.fetched_at, *key, *key))
    else:
        content = bytes.fromhex(link.content_sha256) if link.content_sha256 else None
        at = 1 if last is None else last + 1
        con.execute("INSERT INTO version VALUES (?,?,?,?,?,?,?)", (*key, at, link.first_at, link.last_at, link.change, content))


def write_acks(con: sqlite3.Connection, names: Names, acks: Sequence[Ack]) -> None:
    """What acks say beside URLs and clocks: hosts that are new, authority files, segment ends, the outbox."""
    for ack in acks:
        for judged in ack.own:
            names.ensure_host(judged.host, judged.domain)
    write_authorities(con, names, [row for ack in acks for row in ack.authorities])
    ends: dict[str, int] = {}
    for ack in acks:
        for settled in ack.settled:
            if settled.capture is not None:
                ends[settled.capture.file] = max(ends.get(settled.capture.file, 0), settled.segment_end)
    con.executemany(
        "INSERT INTO segment VALUES (?,?) ON CONFLICT DO UPDATE SET acked_end = max(segment.acked_end, excluded.acked_end)",
        [(names.ensure_word(file), end) for file, end in ends.items()],
    )
    foreign = [pair for ack in acks for pair in ack.foreign]
    if foreign:
        (sent,) = con.execute("SELECT value FROM meta WHERE name = 'sent'").fetchone()
        rows = [
            (sent + n, dst, text_in(s.url), text_in(s.found), s.depth, KIND_CODE[s.kind], s.hops, text_in(s.via), s.priority)
            for n, (dst, s) in enumerate(foreign, 1)
        ]
        con.executemany("INSERT INTO outbox VALUES (?,?,?,?,?,?,?,?,?)", rows)
        con.execute("UPDATE meta SET value = ? WHERE name = 'sent'", (sent + len(foreign),))


def write_hosts(con: sqlite3.Connection, names: Names, rows: Sequence[HostRow]) -> None:
    """Host rows (the last of each host counts) and their domains' clocks (the latest counts)."""
    clocks: dict[str, Due] = {}
    for row in rows:
        clocks[row.domain] = later(clocks.get(row.domain, row.domain_due), row.domain_due)
    for row in {row.host: row for row in rows}.values():
        number = names.ensure_host(row.host, row.domain)
        domain, pages, due_set, due_wait = con.execute(
            "SELECT h.domain, h.pages, d.due_set, d.due_wait FROM host h JOIN domain d ON d.id = h.domain WHERE h.id = ?",
            (number,),
        ).fetchone()
        con.execute(UPDATE_HOST, (*host_values(row), number))
        due = later(Due(due_set, due_wait), clocks[row.domain])
        con.execute(
            "UPDATE domain SET due_set = ?, due_wait = ?, pages = pages + ? WHERE id = ?",
            (due.set_at, due.wait_s, row.pages - pages, domain),
        )


def host_values(row: HostRow) -> tuple[Any, ...]:
    """What `UPDATE_HOST` sets, in its order."""
    head = (row.state, row.reason, row.pace_s, row.latency_s, row.latency_median_s, row.due.set_at, row.due.wait_s)
    tail = (row.crawl_delay_s, row.strikes, " ".join(row.ips), row.pages, row.cache_hits, row.cache_misses)
    return (*head, *tail, row.failures, row.failing_since)


def write_authorities(con: sqlite3.Connection, names: Names, rows: Iterable[AuthorityRow]) -> None:
    """The latest reading replaces the one before, per host, authority and kind."""
    latest: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows:
        host = host_key(row)
        key = (names.ensure_host(host, registered_domain(host)), text_in(row.authority), KIND_CODE[row.kind])
        said = (row.outcome, row.status, row.digest, row.read_at, row.expires_at)
        latest[key] = (*key, *said, text_in(row.detail), text_in(row.url), row.truncated, row.unreachable_since)
    con.executemany("INSERT OR REPLACE INTO authority VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", latest.values())
