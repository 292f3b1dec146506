"""What a PostgreSQL server pays for a page that is acknowledged: the work of `bench_frontier lines` over PostgreSQL.

    python -m tests.bench.bench_postgres --urls 100000

Prints one JSON object a line. A page brings twenty links, three of them new. `server`: CPU of the server and all its
processes (vacuum and checkpoints included, initdb not); `client`: CPU of this process.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator

from corpus.crawl.seen import RecentSeen
from corpus.store.frontier_filter import OwnerFilter
from corpus.store.frontier_pg_read import disk_bytes
from corpus.store.frontier_postgres import PostgresFrontier
from corpus.store.frontier_sqlite import SqliteFrontier
from corpus.url.partition import PARTITION_FILES
from tests.bench.bench_frontier import fill, take_and_ack
from tests.postgres_kit import Postgres, postgres

PAGES = 8192


def measured(server: Postgres, urls: int, group: int) -> Iterator[dict[str, object]]:
    """Fill, then take and acknowledge, at one size."""
    import tempfile
    from pathlib import Path

    dsn, recent = server.dsn(), RecentSeen()
    with tempfile.TemporaryDirectory() as folder:
        files: dict[int, SqliteFrontier] = {}
        for number in range(PARTITION_FILES):
            seen = OwnerFilter(Path(folder, f"p{number:02d}.sqlite"), "exact", 0.001)
            files[number] = PostgresFrontier(dsn, number, recent=recent, seen=seen)
            files[number].claim("bench")
        hosts = max(urls // 50, 20)
        at, began = server.cpu_s(), time.process_time()
        fill(files, hosts, urls)
        filled, client = server.cpu_s() - at, time.process_time() - began
        yield {
            "bench": "postgres fill", "urls": urls, "hosts": hosts, "server_us_per_url": round(filled / urls * 1e6, 1),
            "client_us_per_url": round(client / urls * 1e6, 1), "bytes_per_url": round(disk_bytes(dsn) / urls, 1),
        }  # fmt: skip
        at = server.cpu_s()
        rounds = max(PAGES // group, 1)
        cost = take_and_ack(files, hosts, rounds, urls // hosts, group)
        used, pages = server.cpu_s() - at, rounds * group
        for store in files.values():
            store.close(clean=False)
        yield {
            "bench": "postgres take+ack", "urls": urls, "pages": pages, "pages_a_commit": group / PARTITION_FILES, "server_us_per_page": round(used / pages * 1e6, 1),
            "pages_per_server_cpu_s": round(pages / used), "client_us_per_page": round(cost, 1),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--urls", type=int, nargs="+", default=[100_000])
    parser.add_argument("--groups", type=int, nargs="+", default=[64, 1024], help="pages of a round, over all partition files")
    given = parser.parse_args()
    with postgres(("shared_buffers=1GB",)) as server:
        for urls in given.urls:
            for group in given.groups:
                for line in measured(server, urls, group):
                    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
