"""What a page costs in a fleet: CPU of whole worker trees, one worker against two on the same web, the server apart.

    python -m tests.bench.bench_fleet --hosts 300 --pages 8 24

Prints one JSON object a line, and at last the cost of one page more: the difference between a small and a large web, so that
starting and stopping do not count. Real workers, real PostgreSQL, the simulated web in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from corpus.testing.web import SimWeb
from corpus.testing.web_hosts import plain_hosts
from tests.fleet.fleet_kit import FleetFolder
from tests.postgres_kit import Postgres, postgres


def crawled(database: Postgres, workers: int, hosts: int, pages: int, files: int) -> dict[str, Any]:
    """One crawl from nothing to its end by so many workers."""
    web = SimWeb(5, plain_hosts(hosts, pages, page_bytes=8_000, links=40))
    with tempfile.TemporaryDirectory() as folder, web.serve_in_process(Path(folder, "contacts.jsonl")) as server:
        at = database.cpu_s()
        settings = (
            "crawl.slots=64",
            "store.segment_age=30s",
            "store.segment_bytes=32MiB",
            "store.lease=60s",
            "crawl.total_timeout=20s",
            f"store.partition_files={files}",
        )
        fleet = FleetFolder.at(Path(folder, "corpus"), server, web.seeds(), database.dsn(), *settings)
        used = 0.0
        with fleet:
            started = [fleet.start() for _ in range(workers)]
            for worker in started:
                _, status, usage = os.wait4(worker.process.pid, 0)
                worker.process.returncode = os.waitstatus_to_exitcode(status)
                assert worker.process.returncode == 0, worker.said()
                used += usage.ru_utime + usage.ru_stime
        stored = fleet.pages()
        return {
            "bench": "fleet", "workers": workers, "files": files, "pages": stored, "cpu_s": round(used, 2), "server_cpu_s": round(database.cpu_s() - at, 2),
            "moves": sum(worker.said().count("moving files") for worker in started),
        }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=300)
    parser.add_argument("--pages", type=int, nargs=2, default=[8, 24], help="of a host, in the small web and the large one")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--files", type=int, default=16, help="partition files")
    given = parser.parse_args()
    best: dict[int, dict[str, float]] = {}
    with postgres(("shared_buffers=512MB",)) as database:
        for _ in range(given.rounds):
            for workers in (1, 2):
                small, large = (crawled(database, workers, given.hosts, pages, given.files) for pages in given.pages)
                more = large["pages"] - small["pages"]
                cost = {name: (large[name] - small[name]) / more * 1e3 for name in ("cpu_s", "server_cpu_s")}
                for line in (small, large):
                    print(json.dumps(line), flush=True)
                known = best.setdefault(workers, cost)
                best[workers] = {name: min(known[name], cost[name]) for name in cost}
    for workers, cost in best.items():
        print(
            json.dumps(
                {
                    "bench": "fleet, one page more",
                    "workers": workers,
                    "files": given.files,
                    **{f"{k[:-2]}_ms": round(v, 3) for k, v in cost.items()},
                }
            )
        )


if __name__ == "__main__":
    main()
