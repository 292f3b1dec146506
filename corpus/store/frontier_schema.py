"""The SQLite schema of one partition file, its integer codes and the text forms that save space.

    meta        schema version, epoch, owner, clean flag, counters
    host        one row per host ever seen, with its clock; `domain` the clock its hosts share
    url         one row per known URL, keyed (host, first 16 bytes of SHA-256 of the canonical URL)
    visit       what the last contact (or refusal) brought, for URLs that had one
    authority   the latest state of every robots.txt, tdmrep.json, ai.txt and RSL document
    exclusion   per (host, reason): rows kept and URLs only counted; `counted` tells the latter apart
    outbox      sightings on their way to other files; `mark` the highest seq applied from each
    tally       URLs by (is a page, state, reason), exact at all times
    segment     per WARC file the end of the last acknowledged member
    word, via   texts that many rows share (reasons, rules, digests; linking pages)

The views `urls` and `hosts` spell everything out (states and kinds by name, whole URLs, hex ids) for people with the
plain `sqlite3` shell and for readers beside a running writer. Integers written here never change their meaning.
"""

from __future__ import annotations

from corpus.model import Kind, UrlState

SCHEMA = 2
"""2: revisits in a line of their own, histories, version chains, cache headers, breakers, where a page's body lies (`frontier_migrate` brings older files up)."""

READY, WAITING = 1, 2
"""Both are `queued`; WAITING has a time of its own and is not in line before `wake` has seen it pass."""
STATE_CODE: dict[UrlState, int] = {
    UrlState.QUEUED: READY,
    UrlState.PARKED: 3,
    UrlState.FETCHED: 4,
    UrlState.NOT_MODIFIED: 5,
    UrlState.REDIRECTED: 6,
    UrlState.REFUSED: 7,
    UrlState.FAILED: 8,
    UrlState.GONE: 9,
    UrlState.EXCLUDED: 10,
}
STATE_OF: dict[int, UrlState] = {code: state for state, code in STATE_CODE.items()} | {WAITING: UrlState.QUEUED}
KIND_CODE: dict[Kind, int] = {Kind.PAGE: 0, Kind.SITEMAP: 1, Kind.ROBOTS: 2, Kind.TDMREP: 3, Kind.AI_TXT: 4, Kind.RSL: 5}
KIND_OF: dict[int, Kind] = {code: kind for kind, code in KIND_CODE.items()}
assert set(KIND_CODE) == set(Kind), "every kind needs a code that never changes"

LINE_INDEX = f"CREATE INDEX url_line ON url (host, again, front, depth, uid) WHERE state = {READY}"
RETIRED_INDEX = "CREATE INDEX host_retired ON host (name) WHERE state = 'retired'"
VERSION_TABLE = """CREATE TABLE version (host INTEGER NOT NULL, uid BLOB NOT NULL, n INTEGER NOT NULL, first_at REAL NOT NULL, last_at REAL NOT NULL,
    change TEXT NOT NULL, content_sha256 BLOB, PRIMARY KEY (host, uid, n)) WITHOUT ROWID"""

PRAGMAS = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA wal_autocheckpoint = 1000",
    "PRAGMA journal_size_limit = 16777216",
)

URL_COLUMNS = "host, uid, state, front, depth, hops, kind, attempts, reason, claim, due_at, due_wait, via, tail, found, again"
VISIT_COLUMNS = (
    "host, uid, http_status, content_type, fetched_at, file, offset, length, content_sha256, simhash, "
    "near_original, etag, last_modified, target, rule, rule_line, authority_digest, protocol, "
    "seen, changed, watched_s, checked_at, rate, cache, age_s, whole_at, payload"
)

URLS_VIEW = """CREATE VIEW urls AS SELECT
    CASE WHEN u.tail LIKE '/%' THEN 'https://' || h.name || u.tail WHEN u.tail LIKE 'h/%' THEN 'http://' || h.name || substr(u.tail, 2)
        ELSE u.tail END AS url,
    lower(hex(u.uid)) AS url_id, h.name AS host, d.name AS domain, k.name AS kind, s.name AS state, r.text AS reason, u.depth, u.hops,
    w.url AS via, u.front, u.claim / 1000.0 AS priority, u.attempts, u.due_at AS next_at, v.http_status, c.text AS content_type, v.fetched_at,
    f.text AS warc_file, v.offset AS warc_offset, v.length AS warc_length, lower(hex(v.content_sha256)) AS content_sha256,
    v.near_original, v.target, q.text AS rule, v.rule_line, a.text AS authority_digest, p.text AS protocol, u.again,
    v.seen, v.changed, v.watched_s, coalesce(v.checked_at, CASE WHEN v.content_sha256 IS NOT NULL THEN v.fetched_at END) AS checked_at,
    e.text AS cache, v.age_s
    FROM url u JOIN host h ON h.id = u.host JOIN domain d ON d.id = h.domain JOIN kind_name k ON k.code = u.kind
    JOIN state_name s ON s.code = u.state JOIN word r ON r.id = u.reason JOIN via w ON w.id = u.via
    LEFT JOIN visit v ON v.host = u.host AND v.uid = u.uid LEFT JOIN word c ON c.id = v.content_type LEFT JOIN word f ON f.id = v.file
    LEFT JOIN word q ON q.id = v.rule LEFT JOIN word a ON a.id = v.authority_digest LEFT JOIN word p ON p.id = v.protocol
    LEFT JOIN word e ON e.id = v.cache"""
HOSTS_VIEW = f"""CREATE VIEW hosts AS SELECT h.name AS host, d.name AS domain, h.ips, h.state, h.reason, h.pace_s AS pace,
    h.due_set + h.due_wait AS next_contact, h.crawl_delay_s AS crawl_delay, h.strikes, h.pages, h.queued, d.pages AS domain_pages,
    (SELECT a.digest FROM authority a WHERE a.host = h.id AND a.kind = {KIND_CODE[Kind.ROBOTS]} ORDER BY a.authority DESC LIMIT 1) AS robots_digest,
    (SELECT a.read_at FROM authority a WHERE a.host = h.id AND a.kind = {KIND_CODE[Kind.ROBOTS]} ORDER BY a.authority DESC LIMIT 1) AS robots_read_at,
    h.quality, h.cache_hits, h.cache_misses
    FROM host h JOIN domain d ON d.id = h.domain"""  # `https://…` sorts after `http://…`: of two robots files the view shows the one of https

TABLES = f"""
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE domain (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, due_set REAL NOT NULL DEFAULT 0, due_wait REAL NOT NULL DEFAULT 0,
    pages INTEGER NOT NULL DEFAULT 0);
CREATE TABLE host (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, domain INTEGER NOT NULL, state TEXT NOT NULL DEFAULT 'new',
    reason TEXT NOT NULL DEFAULT '', pace_s REAL NOT NULL DEFAULT 0, latency_s REAL NOT NULL DEFAULT 0,
    latency_median_s REAL NOT NULL DEFAULT 0, due_set REAL NOT NULL DEFAULT 0, due_wait REAL NOT NULL DEFAULT 0, crawl_delay_s REAL,
    strikes INTEGER NOT NULL DEFAULT 0, ips TEXT NOT NULL DEFAULT '', pages INTEGER NOT NULL DEFAULT 0, queued INTEGER NOT NULL DEFAULT 0,
    quality REAL, cache_hits INTEGER NOT NULL DEFAULT 0, cache_misses INTEGER NOT NULL DEFAULT 0,
    failures INTEGER NOT NULL DEFAULT 0, failing_since REAL);
{RETIRED_INDEX};
CREATE INDEX host_pending ON host (name) WHERE queued > 0;
CREATE TABLE url (host INTEGER NOT NULL, uid BLOB NOT NULL, state INTEGER NOT NULL, front INTEGER NOT NULL, depth INTEGER NOT NULL,
    hops INTEGER NOT NULL, kind INTEGER NOT NULL, attempts INTEGER NOT NULL, reason INTEGER NOT NULL, claim INTEGER NOT NULL,
    due_at REAL, due_wait REAL, via INTEGER NOT NULL, tail TEXT NOT NULL, found TEXT, again INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (host, uid)) WITHOUT ROWID;
{LINE_INDEX};
CREATE INDEX url_due ON url (state, due_at) WHERE due_at IS NOT NULL;
CREATE TABLE visit (host INTEGER NOT NULL, uid BLOB NOT NULL, http_status INTEGER, content_type INTEGER NOT NULL,
    fetched_at REAL, file INTEGER NOT NULL, offset INTEGER, length INTEGER, content_sha256 BLOB,
    simhash INTEGER, near_original TEXT, etag TEXT, last_modified TEXT, target TEXT, rule INTEGER NOT NULL, rule_line INTEGER,
    authority_digest INTEGER NOT NULL, protocol INTEGER NOT NULL, seen REAL, changed REAL, watched_s REAL, checked_at REAL, rate INTEGER,
    cache INTEGER NOT NULL DEFAULT 0, age_s INTEGER, whole_at REAL, payload INTEGER, PRIMARY KEY (host, uid)) WITHOUT ROWID;
{VERSION_TABLE};
CREATE INDEX visit_refused ON visit (host, protocol, authority_digest) WHERE protocol > 0;
CREATE TABLE authority (host INTEGER NOT NULL, authority TEXT NOT NULL, kind INTEGER NOT NULL, outcome TEXT NOT NULL, status INTEGER,
    digest TEXT NOT NULL, read_at REAL NOT NULL, expires_at REAL NOT NULL, detail TEXT NOT NULL, url TEXT NOT NULL,
    truncated INTEGER NOT NULL, since REAL, PRIMARY KEY (host, authority, kind)) WITHOUT ROWID;
CREATE TABLE exclusion (host INTEGER NOT NULL, reason INTEGER NOT NULL, kept INTEGER NOT NULL, counted INTEGER NOT NULL,
    PRIMARY KEY (host, reason)) WITHOUT ROWID;
CREATE TABLE counted (host INTEGER NOT NULL, h INTEGER NOT NULL, reason INTEGER NOT NULL, PRIMARY KEY (host, h)) WITHOUT ROWID;
CREATE TABLE outbox (seq INTEGER PRIMARY KEY, dst INTEGER NOT NULL, url TEXT NOT NULL, found TEXT NOT NULL, depth INTEGER NOT NULL,
    kind INTEGER NOT NULL, hops INTEGER NOT NULL, via TEXT NOT NULL, priority REAL NOT NULL);
CREATE TABLE mark (src INTEGER PRIMARY KEY, seq INTEGER NOT NULL);
CREATE TABLE tally (page INTEGER NOT NULL, state TEXT NOT NULL, reason TEXT NOT NULL, n INTEGER NOT NULL,
    PRIMARY KEY (page, state, reason)) WITHOUT ROWID;
CREATE TABLE segment (file INTEGER PRIMARY KEY, acked_end INTEGER NOT NULL);
CREATE TABLE word (id INTEGER PRIMARY KEY, text NOT NULL UNIQUE);
CREATE TABLE via (id INTEGER PRIMARY KEY, url NOT NULL);
CREATE TABLE state_name (code INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE kind_name (code INTEGER PRIMARY KEY, name TEXT NOT NULL);
{URLS_VIEW};
{HOSTS_VIEW};
"""

FIRST_ROWS = (
    ("INSERT INTO word VALUES (?, ?)", [(0, "")]),
    ("INSERT INTO via VALUES (?, ?)", [(0, "")]),
    ("INSERT INTO state_name VALUES (?, ?)", [(code, state.value) for code, state in STATE_OF.items()]),
    ("INSERT INTO kind_name VALUES (?, ?)", [(code, kind.value) for code, kind in KIND_OF.items()]),
    (
        "INSERT INTO meta VALUES (?, ?)",
        [("schema", SCHEMA), ("epoch", 0), ("owner", ""), ("clean", 1), ("sent", 0), ("applied", 0)],
    ),
)


def to_tail(url: str, host: str) -> str:
    """A URL without what its host row says already: `/path` is https, `h/path` http, anything else stands whole."""
    if url.startswith("https://") and url.startswith(host, 8) and url.startswith("/", 8 + len(host)):
        return url[8 + len(host) :]
    if url.startswith("http://") and url.startswith(host, 7) and url.startswith("/", 7 + len(host)):
        return "h" + url[7 + len(host) :]
    return url


def from_tail(tail: str, host: str) -> str:
    """The URL that `to_tail` shortened; the view `urls` does the same in SQL."""
    if tail.startswith("/"):
        return f"https://{host}{tail}"
    if tail.startswith("h/"):
        return f"http://{host}{tail[1:]}"
    return tail


class RawText(bytes):
    """Text with lone surrogates, as bytes; PostgreSQL must tell it from a digest."""


def text_in(text: str) -> str | bytes:
    """Text as SQLite takes it: lone surrogates cannot be bound, so such text is stored as bytes."""
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return RawText(text.encode("utf-8", "surrogatepass"))
    return text


def text_out(stored: str | bytes | None) -> str:
    """What `text_in` stored; NULL is the empty text."""
    if isinstance(stored, bytes):
        return stored.decode("utf-8", "surrogatepass")
    return stored or ""
