"""What looking costs: one crawl, in turns looked at and left alone, so that whatever else the machine does falls on both.

`python -m tests.bench.bench_status [--turns N] [--seconds S] [--page-bytes N]`. Prints one JSON line a turn and the medians. Looking is one
open overview (a fragment every two seconds) and a scrape of `/metrics` every five, three times as often as usual.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from corpus.testing.web import SimHost, SimWeb, address_of
from corpus.testing.web_process import ServerProcess

HOSTS, PAGES, GAP_S = 60, 2_000, 1.5
"""About 30 pages a second. Hosts answer after 20 to 600 ms each, or all of them would be due at the same instants for ever."""
LEAD_S = 15.0
"""Before the first turn: processes start, pages are found."""
_TICKS = os.sysconf("SC_CLK_TCK")
_TOML = """[corpus]
name = "looked-at"
[crawl]
seeds = ["seeds.txt"]
contact = "https://example.org/bot"
delay = "{gap}s"
delay_start = "{gap}s"
latency_factor = 0.1
near_copies = "store"
max_time = "{seconds}s"
allow_private = ["127.0.0.0/8"]
resolver = ["{dns}"]
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """CPU seconds of the crawl's processes and of the status server; loop lag is over the minute that ends with it, `lag_own_p99_ms`
    without waits for a core."""

    looked_at: bool
    pages: int
    crawl_cpu_s: float
    look_cpu_s: float
    asked: int
    lag_p99_ms: float
    lag_own_p99_ms: float

    @property
    def cpu_ms_a_page(self) -> float:
        return 1000 * self.crawl_cpu_s / max(self.pages, 1)


class Crawl:
    """A crawl and its status server, in a folder of their own."""

    def __init__(self, folder: Path, server: ServerProcess, seconds: float) -> None:
        folder.mkdir()
        (folder / "seeds.txt").write_text("".join(f"http://h{n}.test:{server.port}/\n" for n in range(HOSTS)), "utf-8")
        (folder / "corpus.toml").write_text(_TOML.format(gap=GAP_S, seconds=int(seconds), dns=server.dns), "utf-8")
        command, where = [sys.executable, "-m", "corpus"], ["-c", str(folder / "corpus.toml")]
        self._folder = folder
        self._crawl = subprocess.Popen([*command, "crawl", *where], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list(folder.glob("runs/*/live.json")):
            time.sleep(0.1)
        self._status = subprocess.Popen([*command, "status", "--serve", "--port", "0", *where], stdout=subprocess.PIPE, text=True)
        assert self._status.stdout is not None
        self._origin = self._status.stdout.readline().split()[3].rstrip("/")
        self._ask("/?part=1")

    def turn(self, seconds: float, *, look: bool) -> Turn:
        """One turn of this many seconds."""
        pages, crawl, status, asked = self._live()["pages"], self._crawl_cpu_s(), _cpu_s(self._status.pid), 0
        end = time.monotonic() + seconds
        second = 0
        while time.monotonic() < end:
            if look and second % 2 == 0:
                self._ask("/?part=1")
                asked += 1
            if look and second % 5 == 0:
                self._ask("/metrics")
                asked += 1
            second += 1
            time.sleep(1.0)
        live = self._live()
        return Turn(
            look,
            live["pages"] - pages,
            round(self._crawl_cpu_s() - crawl, 2),
            round(_cpu_s(self._status.pid) - status, 2),
            asked,
            live["lag_ms"],
            live["lag_own_ms"],
        )

    def end(self) -> None:
        for process in (self._status, self._crawl):
            process.terminate()
            process.wait()

    def _ask(self, path: str) -> None:
        with urllib.request.urlopen(self._origin + path, timeout=30) as answer:
            answer.read()

    def _live(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(next(self._folder.glob("runs/*/live.json")).read_bytes())
        return found

    def _crawl_cpu_s(self) -> float:
        children = Path(f"/proc/{self._crawl.pid}/task/{self._crawl.pid}/children").read_text("ascii").split()
        return sum(_cpu_s(pid) for pid in (self._crawl.pid, *map(int, children)))


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def measure(turns: int, seconds: float, page_bytes: int = 20_000) -> dict[str, float]:
    """Medians over turns, looked at and not."""
    hosts = [
        SimHost(
            name=f"h{n}.test",
            address=address_of(n),
            pages=PAGES,
            page_bytes=page_bytes,
            latency_s=0.02 + 0.58 * (n * 37 % HOSTS) / HOSTS,
        )
        for n in range(HOSTS)
    ]
    found: list[Turn] = []
    with ServerProcess(SimWeb(11, tuple(hosts))) as server, TemporaryDirectory(prefix="bench-status-") as top:
        crawl = Crawl(Path(top, "corpus"), server, 60 + LEAD_S + 2 * turns * (seconds + 5))
        try:
            time.sleep(LEAD_S)
            for n in range(2 * turns):
                found.append(crawl.turn(seconds, look=n % 4 in (1, 2)))
                print(json.dumps({**asdict(found[-1]), "cpu_ms_a_page": round(found[-1].cpu_ms_a_page, 3)}), flush=True)
        finally:
            crawl.end()
    alone, seen = [t for t in found if not t.looked_at], [t for t in found if t.looked_at]

    def cost(of: list[Turn]) -> float:
        return sum(t.crawl_cpu_s for t in of) / sum(t.pages for t in of)

    return {
        "crawl_cpu_ratio": round(cost(seen) / cost(alone), 3),
        "crawl_cpu_ratio_of_medians": round(
            statistics.median(t.cpu_ms_a_page for t in seen) / statistics.median(t.cpu_ms_a_page for t in alone), 3
        ),
        "look_cpus": round(sum(t.look_cpu_s for t in seen) / (len(seen) * seconds), 4),
        "look_cpu_share": round(sum(t.look_cpu_s for t in seen) / sum(t.crawl_cpu_s for t in seen), 3),
        "lag_p99_ms": max(t.lag_p99_ms for t in found[len(found) // 2 :]),
        "lag_own_p99_ms": max(t.lag_own_p99_ms for t in found[len(found) // 2 :]),
        "lag_own_p99_ms_alone": max(t.lag_own_p99_ms for t in found[1:] if not t.looked_at),
    }


def main() -> None:
    """Entry."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--page-bytes", type=int, default=20_000)
    options = parser.parse_args()
    print(json.dumps(measure(options.turns, options.seconds, options.page_bytes)))


if __name__ == "__main__":
    main()
