"""Questions to a partition file, for its owner and for readers beside it. Reads only; knows the schema, decides nothing."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from corpus.crawl.ports import AuthorityRow, Due, History, HostRow, OutboxRow, Settled, Tally, Whole
from corpus.crawl.states import VISITED
from corpus.model import CaptureRef, Sighting, UrlState
from corpus.store.frontier_db import Names
from corpus.store.frontier_rows import Counted, Key, Peek, UrlRow, Validators
from corpus.store.frontier_schema import KIND_OF, READY, STATE_CODE, STATE_OF, VISIT_COLUMNS, WAITING, from_tail, text_out

_CHUNKS = (4, 16, 64, 256)
"""Sizes of IN lists: few, so that every statement is prepared once; a list is filled up by repeating its last member."""

VIA = "(SELECT url FROM via WHERE id = u.via)"
URL_ROW = f"u.uid, u.state, u.front, u.depth, u.hops, u.kind, u.attempts, u.reason, u.claim, u.due_at, u.due_wait, {VIA}, u.tail, u.found, u.again"
VIA_AT, ROW_COLUMNS = 11, 15
VALIDATORS = "v.etag, v.last_modified, v.content_sha256, v.simhash, v.seen, v.changed, v.watched_s, v.checked_at, v.fetched_at, v.whole_at, v.payload"
_HOST = (
    "h.name, d.name, h.state, h.reason, h.pace_s, h.latency_s, h.latency_median_s, h.due_set, h.due_wait, d.due_set, d.due_wait, "
    "h.crawl_delay_s, h.strikes, h.ips, h.pages, h.queued, d.pages, h.quality, h.cache_hits, h.cache_misses, h.failures, h.failing_since, "
    "(SELECT y.linkers FROM domain_yield y WHERE y.domain = d.name), "
    f"(SELECT u.front FROM url u WHERE u.host = h.id AND u.state = {READY} AND u.again = 0 ORDER BY u.front LIMIT 1), "
    f"(SELECT u.front FROM url u WHERE u.host = h.id AND u.state = {READY} AND u.again = 1 ORDER BY u.front LIMIT 1) "
    "FROM host h JOIN domain d ON d.id = h.domain"
)


def _chunks(uids: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for at in range(0, len(uids), _CHUNKS[-1]):
        part = uids[at : at + _CHUNKS[-1]]
        size = next(size for size in _CHUNKS if size >= len(part))
        yield [*part, *[part[-1]] * (size - len(part))]


def short(uid: bytes) -> int:
    """The first 64 bits of a uid as SQLite's signed integer."""
    return int.from_bytes(uid[:8], "big", signed=True)


def peek(con: sqlite3.Connection, names: Names, keys: Sequence[Key]) -> dict[Key, Peek | Counted]:
    """What is known of these URLs, by host in one go."""
    by_host: dict[str, list[bytes]] = defaultdict(list)
    for host, uid in keys:
        by_host[host].append(uid)
    found: dict[Key, Peek | Counted] = {}
    for host, uids in by_host.items():
        number = names.host(host)
        if number is None:
            continue
        for chunk in _chunks(uids):
            marks = ",".join("?" * len(chunk))
            sql = f"SELECT uid, state, reason, kind, depth, hops, claim FROM url WHERE host = ? AND uid IN ({marks})"
            for uid, state, reason, kind, depth, hops, claim in con.execute(sql, (number, *chunk)):
                found[host, uid] = Peek(STATE_OF[state], names.text(reason), KIND_OF[kind], depth, hops, claim / 1000)
        if con.execute("SELECT 1 FROM exclusion WHERE host = ? AND counted > 0 LIMIT 1", (number,)).fetchone():
            for uid in uids:
                if (host, uid) not in found:
                    row = con.execute("SELECT reason FROM counted WHERE host = ? AND h = ?", (number, short(uid))).fetchone()
                    if row:
                        found[host, uid] = Counted(names.text(row[0]))
    return found


def url_row(names: Names, host: str, row: tuple[Any, ...]) -> UrlRow:
    """A row of `URL_ROW`, and perhaps more columns, as a frontier speaks of it."""
    uid, state, front, depth, hops, kind, attempts, reason, claim, due_at, due_wait, via, tail, found, again = row[:ROW_COLUMNS]
    url = from_tail(text_out(tail), host)
    return UrlRow(
        host=host,
        uid=uid,
        url=url,
        found=url if found is None else from_tail(text_out(found), host),
        kind=KIND_OF[kind],
        depth=depth,
        hops=hops,
        via=text_out(via),
        claim=claim / 1000,
        front=front,
        state=STATE_OF[state],
        reason=names.text(reason),
        attempts=attempts,
        due=None if due_at is None else Due(due_at - due_wait, due_wait),
        again=bool(again),
    )


def load(con: sqlite3.Connection, names: Names, key: Key) -> UrlRow | None:
    """One row whole; None for a URL that is unknown or only counted."""
    number = names.host(key[0])
    row = con.execute(f"SELECT {URL_ROW} FROM url u WHERE u.host = ? AND u.uid = ?", (number, key[1])).fetchone()
    return None if row is None else url_row(names, key[0], row)


def rows_of(con: sqlite3.Connection, names: Names, host: str, where: str, args: tuple[Any, ...], limit: int) -> list[UrlRow]:
    """Rows of a host under a condition over `u`, in key order."""
    sql = f"SELECT {URL_ROW} FROM url u WHERE u.host = ? AND {where} ORDER BY u.uid LIMIT ?"
    return [url_row(names, host, row) for row in con.execute(sql, (names.host(host), *args, limit)).fetchall()]


def due_rows(con: sqlite3.Connection, names: Names, states: Sequence[int], wall: float, limit: int) -> list[UrlRow]:
    """Rows in these states whose own time has passed."""
    rows: list[UrlRow] = []
    for state in states:
        sql = (
            f"SELECT {URL_ROW}, (SELECT name FROM host WHERE id = u.host) FROM url u WHERE u.state = ? AND u.due_at <= ? LIMIT ?"
        )
        found = con.execute(sql, (state, wall, limit - len(rows))).fetchall()
        rows += [url_row(names, text_out(row[ROW_COLUMNS]), row) for row in found]
    return rows


def heads(con: sqlite3.Connection, names: Names, host: str, limit: int, again: bool | None) -> list[tuple[UrlRow, Validators]]:
    """The first URLs of a host's line (of its revisits, or of the others, alone), each with what its last visit brought."""
    sql = (
        f"SELECT {URL_ROW}, {VALIDATORS} FROM url u INDEXED BY url_line LEFT JOIN visit v ON v.host = u.host AND v.uid = u.uid "
        f"WHERE u.host = ? AND u.again = ? AND u.state = {READY} ORDER BY u.front, u.depth, u.uid LIMIT ?"
    )
    kinds = (0, 1) if again is None else (int(again),)
    rows = [row for kind in kinds for row in con.execute(sql, (names.host(host), kind, limit)).fetchall()]
    found = [(url_row(names, host, row), validators(row[ROW_COLUMNS:])) for row in rows]
    return in_line(found)[:limit]


def in_line(found: list[tuple[UrlRow, Validators]]) -> list[tuple[UrlRow, Validators]]:
    """The same as a host's line has them."""
    return sorted(found, key=lambda pair: (pair[0].front, pair[0].depth, pair[0].uid))


def validators(row: tuple[Any, ...]) -> Validators:
    """A row of `VALIDATORS`."""
    etag, modified, sha, simhash, seen, changed, watched, checked, fetched, whole_at, payload = row
    print_ = None if simhash is None else simhash & 0xFFFFFFFFFFFFFFFF
    history = _history(seen, changed, watched, checked, fetched if sha else None)
    return Validators(text_out(etag), text_out(modified), sha.hex() if sha else "", print_, history, _whole(whole_at, payload))


def _whole(at: float | None, payload: int | None) -> Whole | None:
    return None if at is None or payload is None else Whole(at, payload)


def _history(seen: float | None, changed: float, watched: float, checked: float | None, fetched: float | None) -> History:
    """A page visited once has no history in its row: the visit itself says when it was checked."""
    if seen is None:
        return History(checked_at=fetched if checked is None else checked)
    return History(seen, changed, watched, checked)


def rates(con: sqlite3.Connection) -> dict[int, int]:
    """Pages by the bin of their estimated rate of change."""
    return dict(con.execute("SELECT rate, count(*) FROM visit WHERE rate IS NOT NULL GROUP BY rate").fetchall())


def versions(con: sqlite3.Connection, names: Names, key: Key) -> list[tuple[float, float, str, str]]:
    """A page's chain, oldest first."""
    sql = "SELECT first_at, last_at, change, content_sha256 FROM version WHERE host = ? AND uid = ? ORDER BY n"
    rows = con.execute(sql, (names.host(key[0]), key[1])).fetchall()
    return [(first, last, change, sha.hex() if sha else "") for first, last, change, sha in rows]


def visit(con: sqlite3.Connection, names: Names, row: UrlRow) -> Settled | None:
    """What the last contact brought, as the settlement that reported it."""
    sql = f"SELECT {VISIT_COLUMNS} FROM visit WHERE host = ? AND uid = ?"
    found: tuple[Any, ...] | None = con.execute(sql, (names.host(row.host), row.uid)).fetchone()
    if found is None:
        return None
    (
        _,
        _,
        status,
        content_type,
        fetched_at,
        file,
        offset,
        length,
        sha,
        simhash,
        near,
        etag,
        modified,
        target,
        rule,
        line,
        digest,
        protocol,
        seen,
        changed,
        watched,
        checked,
        _,
        cache,
        age_s,
        whole_at,
        payload,
    ) = found
    return Settled(
        url=row.url,
        state=row.state,
        reason=row.reason,
        attempts=row.attempts,
        due=row.due,
        http_status=status,
        content_type=names.text(content_type),
        fetched_at=fetched_at,
        capture=CaptureRef(names.text(file), offset, length) if file else None,
        content_sha256=sha.hex() if sha else "",
        simhash=None if simhash is None else simhash & 0xFFFFFFFFFFFFFFFF,
        near_original=text_out(near),
        etag=text_out(etag),
        last_modified=text_out(modified),
        target=text_out(target),
        rule=names.text(rule),
        rule_line=line,
        authority_digest=names.text(digest),
        protocol=names.text(protocol),
        history=_history(seen, changed, watched, checked, fetched_at if sha else None),
        cache=names.text(cache),
        age_s=age_s,
        whole=_whole(whole_at, payload),
    )


def hosts(con: sqlite3.Connection, where: str, args: tuple[Any, ...] = ()) -> Iterator[HostRow]:
    """Host rows under a condition over `h` and `d`, by name, each with its domain's clock and its best front."""
    for row in con.execute(f"SELECT {_HOST} WHERE {where} ORDER BY h.name", args):
        (
            name,
            domain,
            state,
            reason,
            pace,
            latency,
            median,
            due_set,
            due_wait,
            dom_set,
            dom_wait,
            delay,
            strikes,
            ips,
            pages,
            queued,
            dom_pages,
            quality,
            hits,
            misses,
            failures,
            failing_since,
            linkers,
            front_new,
            front_due,
        ) = row
        yield HostRow(
            host=text_out(name),
            domain=text_out(domain),
            state=state,
            reason=reason,
            pace_s=pace,
            latency_s=latency,
            latency_median_s=median,
            due=Due(due_set, due_wait),
            domain_due=Due(dom_set, dom_wait),
            crawl_delay_s=delay,
            strikes=strikes,
            ips=tuple(ips.split()),
            pages=pages,
            queued=queued,
            domain_pages=dom_pages,
            front=min((front for front in (front_new, front_due) if front is not None), default=128),
            new_waits=front_new is not None or front_due is None,
            due_waits=front_due is not None,
            quality=quality,
            linking=((linkers or 0) & 0xFFFFFFFFFFFFFFFF).bit_count(),
            cache_hits=hits,
            cache_misses=misses,
            failures=failures,
            failing_since=failing_since,
        )


def authorities(con: sqlite3.Connection, names: Names, host: str) -> list[AuthorityRow]:
    """The latest reading of each authority file of a host, by authority and kind."""
    sql = (
        "SELECT authority, kind, outcome, status, digest, read_at, expires_at, detail, url, truncated, since FROM authority "
        "WHERE host = ? ORDER BY authority, kind"
    )
    rows = con.execute(sql, (names.host(host),)).fetchall()
    return [
        AuthorityRow(
            text_out(a), KIND_OF[k], outcome, status, digest, read, expires, text_out(detail), text_out(url), bool(cut), since
        )
        for a, k, outcome, status, digest, read, expires, detail, url, cut, since in rows
    ]


def outbox(con: sqlite3.Connection, limit: int) -> list[OutboxRow]:
    """The oldest sightings that wait to be forwarded, by seq."""
    sql = "SELECT seq, dst, url, found, depth, kind, hops, via, priority FROM outbox ORDER BY seq LIMIT ?"
    return [
        OutboxRow(seq, dst, Sighting(text_out(url), text_out(found), depth, KIND_OF[kind], hops, text_out(via), priority))
        for seq, dst, url, found, depth, kind, hops, via, priority in con.execute(sql, (limit,))
    ]


TALLY = "SELECT page, state, reason, n FROM tally WHERE n > 0 ORDER BY page, state, reason"
COUNTERS = "SELECT name, value FROM meta WHERE name IN ('sent', 'applied')"
OUTBOX_SIZE = "SELECT count(*) FROM outbox"


def tally(con: sqlite3.Connection) -> Tally:
    """The counts as the last commit left them; reads no URL row."""
    rows, counts = con.execute(TALLY).fetchall(), dict(con.execute(COUNTERS).fetchall())
    (waiting,) = con.execute(OUTBOX_SIZE).fetchone()
    return tally_of(rows, counts, waiting)


def tally_of(rows: Sequence[tuple[Any, ...]], counts: Mapping[str, int], waiting: int) -> Tally:
    """Rows of `TALLY`, `COUNTERS`, and how many stand in the outbox."""
    by_state: dict[tuple[str, str], int] = {}
    others: dict[tuple[str, str], int] = {}
    for page, state, reason, n in rows:
        by_state[state, reason] = by_state.get((state, reason), 0) + n
        if not page:
            others[state, reason] = n
    return Tally(by_state, counts["sent"], counts["applied"], waiting, others)


def known(con: sqlite3.Connection, names: Names, key: Key) -> tuple[UrlRow | Counted | None, Settled | None]:
    """A URL as `lookup` wants it."""
    row = load(con, names, key)
    if row is not None:
        return row, visit(con, names, row)
    number = names.host(key[0])
    counted = con.execute("SELECT reason FROM counted WHERE host = ? AND h = ?", (number, short(key[1]))).fetchone()
    return (Counted(names.text(counted[0])) if counted else None), None


def acked_end(con: sqlite3.Connection, names: Names, file: str) -> int:
    """Largest acknowledged end in a segment, 0 when nothing of it was acknowledged."""
    row = con.execute("SELECT acked_end FROM segment WHERE file = ?", (names.word(file),)).fetchone()
    return int(row[0]) if row else 0


WAITING_STATES = (WAITING, STATE_CODE[UrlState.PARKED])
VISITED_STATES = tuple(sorted(STATE_CODE[state] for state in VISITED))
