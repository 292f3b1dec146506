"""A crawl that never ends, watched from outside: memory, file handles and threads of every process must stop growing.

    python -m tests.bench.soak [--seconds 3600]

The real command crawls a simulated web for ever (`until = "forever"`, every page due again and again, traps and all), and
its processes are looked at twice a second. Prints one JSON object; ends with 1 when something grew after the warm-up.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from corpus.testing.web import SimWeb, zoo

WARM_UP = 0.4
"""Share of the time before anything is compared: caches fill, allocators settle."""
GROWTH = 0.08
"""How much larger the last third may be than the middle one: noise of an allocator, not a leak of hours."""
_MOMENTS = (0.02, 0.1, 0.4, 0.7, 0.99)
"""Shares of the time at which the result quotes every process, from its start to its end."""
SLACK_BYTES, SLACK_HANDLES = 8 * 2**20, 4

_TOML = """[corpus]
name = "soak"
[crawl]
seeds = ["seeds.txt"]
contact = "https://example.org/bot"
delay = "50ms"
delay_start = "50ms"
latency_factor = 0.1
max_pages_per_host = 60
until = "forever"
allow_private = ["127.0.0.0/8"]
resolver = ["{dns}"]
[recrawl]
every = "{every}s"
min_interval = "1s"
[store]
segment_bytes = "1MiB"
segment_age = "5s"
"""


@dataclass(slots=True)
class Watched:
    """Samples of one process: resident bytes, file handles, threads."""

    resident: list[int] = field(default_factory=list)
    handles: list[int] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)


def _children(pid: int) -> list[int]:
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += _children(int(child))
    return found


def look(pid: int, seen: dict[int, Watched]) -> None:
    """One sample of a process and its descendants."""
    try:
        for one in _children(pid):
            pages = int(Path(f"/proc/{one}/statm").read_text().split()[1])
            watched = seen.setdefault(one, Watched())
            watched.resident.append(pages * os.sysconf("SC_PAGE_SIZE"))
            watched.handles.append(len(list(Path(f"/proc/{one}/fd").iterdir())))
            watched.threads.append(len(list(Path(f"/proc/{one}/task").iterdir())))
    except (FileNotFoundError, ProcessLookupError):
        return  # it ended while it was looked at


def grown(values: list[int], slack: int) -> bool:
    """Whether the last third after the warm-up stands above the third before it, by more than noise."""
    settled = values[int(len(values) * WARM_UP) :]
    third = len(settled) // 3
    if not third:
        return False
    middle, last = sorted(settled[third : 2 * third]), sorted(settled[-third:])
    before, after = middle[len(middle) // 2], last[len(last) // 2]
    return after > before * (1 + GROWTH) + slack


def _at(values: list[int]) -> list[int]:
    """Its values at `_MOMENTS`, each the median of the samples around it."""
    return [
        sorted(near)[len(near) // 2]
        for at in _MOMENTS
        for near in [values[max(int(len(values) * at) - 10, 0) : int(len(values) * at) + 11]]
    ]


def soak(seconds: float, folder: Path) -> dict[str, object]:
    """Crawl for so long; what was seen, and what grew."""
    web = SimWeb(5, [host for host in zoo() if not host.name.startswith(("bombs", "broken"))])
    seen: dict[int, Watched] = {}
    with web.serve_in_process(folder / "contacts.jsonl") as server:
        (folder / "seeds.txt").write_text("\n".join(web.seeds()) + "\n", "utf-8")
        every = max(2.0, min(seconds / 20, 60.0))
        (folder / "corpus.toml").write_text(_TOML.format(dns=server.dns, every=every), "utf-8")
        command = [sys.executable, "-m", "corpus", "crawl", "-c", str(folder / "corpus.toml")]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as crawl:
            while not server.log() and crawl.poll() is None:  # a busy machine takes its time to start
                time.sleep(0.2)
            ends = time.monotonic() + seconds
            while time.monotonic() < ends and crawl.poll() is None:
                look(crawl.pid, seen)
                time.sleep(0.5)
            ended_early = crawl.poll()
            crawl.send_signal(signal.SIGINT)
            crawl.wait(60)
        requests = len(server.log())
    lived = [watched for watched in seen.values() if len(watched.resident) >= 0.5 * max(len(w.resident) for w in seen.values())]
    what = {"memory": SLACK_BYTES, "handles": SLACK_HANDLES, "threads": 1}
    columns = {"memory": "resident", "handles": "handles", "threads": "threads"}
    leaks = [name for name, slack in what.items() for watched in lived if grown(getattr(watched, columns[name]), slack)]
    return {
        "seconds": seconds, "requests": requests, "processes": len(lived), "ended_early": ended_early, "grew": leaks,
        "largest_mb": round(max(max(w.resident) for w in lived) / 2**20, 1), "handles": max(max(w.handles) for w in lived),
        "threads": max(max(w.threads) for w in lived), "at": list(_MOMENTS),
        "memory_mb": [[round(value / 2**20, 1) for value in _at(w.resident)] for w in lived],
        "handles_at": [_at(w.handles) for w in lived], "threads_at": [_at(w.threads) for w in lived],
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3600.0)
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        told = soak(chosen.seconds, Path(name))
    print(json.dumps(told))
    return 1 if told["grew"] or told["ended_early"] is not None else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
