"""What a PostgreSQL server pays for a page that is acknowledged: the work of `bench_frontier lines` over PostgreSQL.

    python -m tests.bench.bench_postgres --urls 100000 5000000 --commits 64 4 16

Prints one JSON object a line. A page is of another host than every other page of its round, and brings twenty links, three of
them new. `line`: URLs that are taken out of a host's line at once (a fetch process takes `desk.HEADS`). `server`: CPU of the
server and all its processes (vacuum and checkpoints included, initdb not); `client`: CPU of this process.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from corpus.crawl.desk import HEADS
from corpus.crawl.ports import Ack, Judged
from corpus.crawl.seen import RecentSeen
from corpus.store.frontier_filter import OwnerFilter
from corpus.store.frontier_pg_read import disk_bytes
from corpus.store.frontier_postgres import PostgresFrontier
from corpus.store.frontier_sqlite import SqliteFrontier
from corpus.url.partition import PARTITION_FILES, partition_file
from tests.bench.bench_frontier import _judged, fill, host_of_number, take_and_ack
from tests.postgres_kit import Postgres, postgres

PAGES = 8192
_HOSTS = (
    "INSERT INTO domain (name) SELECT m.name FROM mine m WHERE NOT EXISTS (SELECT 1 FROM domain WHERE name = m.name)",
    (
        "INSERT INTO host (name, domain, queued) SELECT m.name, d.id, h.queued FROM mine m JOIN domain d ON d.name = m.name"
        " CROSS JOIN (SELECT name, queued FROM host LIMIT 1) h WHERE m.name <> h.name"
    ),
)
_URLS = "INSERT INTO url ({columns}) SELECT {values} FROM host o CROSS JOIN url u WHERE o.id <> u.host ORDER BY o.id, 2"
_UID = "substring(sha256(convert_to('https://' || o.name || u.tail, 'UTF8')) FROM 1 FOR 16)"


def opened(dsn: str, folder: Path) -> dict[int, SqliteFrontier]:
    """All partition files, with the recent-set and the filters of one owner."""
    recent, files = RecentSeen(), dict[int, SqliteFrontier]()
    for number in range(PARTITION_FILES):
        seen = OwnerFilter(folder / f"p{number:02d}.sqlite", "exact", 0.001)
        files[number] = PostgresFrontier(dsn, number, recent=recent, seen=seen)
        files[number].claim("bench")
    return files


def bulk(files: dict[int, SqliteFrontier], hosts: int, urls: int) -> None:
    """What `fill` makes, row for row, on the server itself: each file's first host by the real way, and all others after its
    likeness. The files must be opened anew, because their owners know nothing of it."""
    each = max(urls // hosts, 1)
    mine: dict[int, list[str]] = {number: [] for number in files}
    for host in range(hosts):
        if (number := partition_file(host_of_number(host), PARTITION_FILES)) in mine:
            mine[number].append(host_of_number(host))
    for number, store in files.items():
        if not mine[number]:
            continue
        assert isinstance(store, PostgresFrontier)
        first = int(mine[number][0].removeprefix("site-").removesuffix(".test"))
        links: list[Judged] = [_judged(first, n) for n in range(each)]
        store.commit([Ack(own=tuple(links))])
        raw: Any = store._pg.raw
        raw.execute('CREATE TEMP TABLE mine (name text COLLATE "C")')
        with raw.cursor() as cursor, cursor.copy("COPY mine FROM STDIN") as copy:
            for name in mine[number]:
                copy.write_row((name,))
        for statement in ("SET enable_hashjoin = on", "ANALYZE mine", *_HOSTS, "ANALYZE host"):
            raw.execute(statement)
        columns = [name for (name,) in raw.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'url'::regclass AND attnum > 0 AND NOT attisdropped AND attname <> 'part'"
        )]  # fmt: skip
        values = {"host": "o.id", "uid": _UID}
        raw.execute(_URLS.format(columns=", ".join(columns), values=", ".join(values.get(name, f"u.{name}") for name in columns)))
        raw.execute("UPDATE tally SET n = n * %s", (len(mine[number]),))
        raw.execute("DROP TABLE mine")


def filled(
    server: Postgres, dsn: str, folder: Path, urls: int, *, plain: bool
) -> tuple[dict[int, SqliteFrontier], dict[str, object]]:
    """The files, with so many URLs in them, and what that cost."""
    files, hosts = opened(dsn, folder), max(urls // 50, 20)
    at, began = server.cpu_s(), time.process_time()
    (bulk if plain else fill)(files, hosts, urls)
    used, client = server.cpu_s() - at, time.process_time() - began
    if plain:
        for store in files.values():
            store.close(clean=False)
        files = opened(dsn, folder)
    return files, {
        "bench": "postgres fill", "urls": urls, "hosts": hosts, "fill": "bulk" if plain else "commits", "server_us_per_url": round(used / urls * 1e6, 1),
        "client_us_per_url": round(client / urls * 1e6, 1), "bytes_per_url": round(disk_bytes(dsn) / urls, 1),
    }  # fmt: skip


def _log_bytes(files: dict[int, SqliteFrontier]) -> int:
    """How much the server has written to its log since it was made."""
    return int(files[0]._con.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()[0])


def measured(server: Postgres, urls: int, commits: Sequence[int], rounds: int, *, plain: bool) -> Iterator[dict[str, object]]:
    """Fill, then take and acknowledge, at every number of pages a commit in turn, so that a noisy machine is noisy for all."""
    dsn = server.dsn()
    with tempfile.TemporaryDirectory() as folder:
        files, told = filled(server, dsn, Path(folder), urls, plain=plain)
        yield told
        hosts, seed = max(urls // 50, 20), 0
        for _ in range(rounds):
            for commit in commits:
                for line in (1, HEADS):
                    group = min(commit * PARTITION_FILES, hosts)
                    turns, seed = max(PAGES // group, line), seed + 1
                    at, log = server.cpu_s(), _log_bytes(files)
                    cost = take_and_ack(files, hosts, turns, urls // hosts, group, line=line, seed=seed)
                    used, pages = server.cpu_s() - at, turns * group
                    yield {
                        "bench": "postgres take+ack", "urls": urls, "pages": pages, "pages_a_commit": group / PARTITION_FILES, "line": line,
                        "server_us_per_page": round(used / pages * 1e6, 1), "pages_per_server_cpu_s": round(pages / used), "client_us_per_page": round(cost, 1),
                        "log_bytes_per_page": round((_log_bytes(files) - log) / pages),
                    }  # fmt: skip
        for store in files.values():
            store.close(clean=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, nargs="+", default=[100_000])
    parser.add_argument("--bulk", type=int, default=2_000_000, help="from so many URLs on they are made on the server itself")
    parser.add_argument("--commits", type=int, nargs="+", default=[4, 64], help="pages a commit of one partition file")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--server", nargs="+", default=[], help="more settings of the server, name=value")
    given = parser.parse_args()
    with postgres(("shared_buffers=1GB", "max_wal_size=4GB", *given.server)) as server:
        for urls in given.urls:
            for line in measured(server, urls, given.commits, given.rounds, plain=urls >= given.bulk):
                print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
