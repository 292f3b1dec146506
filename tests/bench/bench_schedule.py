"""How well the real schedule uses its slots over a million hosts, and whether a single gap is ever short.

    python -m tests.bench.bench_schedule [--hosts 1000000] [--contacts 10000000] [--slots 256]

Sizes are Zipf-distributed with one giant that never ends; gaps and durations differ by host. Busy slot-time is compared
with what was possible at every moment: the slots, or fewer where fewer hosts could have been contacted.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import resource
import time
from array import array
from dataclasses import asdict, dataclass

from corpus.crawl.cdn import CdnTable
from corpus.crawl.ports import HostRow
from corpus.crawl.schedule import Begun, Schedule
from corpus.crawl.settings import CrawlSettings

GAPS = (2.0, 2.0, 3.0, 10.0)
GIANT = 1 << 40


@dataclass(slots=True)
class Used:
    hosts: int
    contacts: int = 0
    used: float = 0.0
    """Busy slot-time over what was possible."""
    short_gaps: int = 0
    virtual_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: float = 0.0


def run(hosts: int, contacts: int, slots: int, *, seed: int = 1) -> Used:
    """Contacts over hosts in a group of their own each, until so many were made or nothing is left."""
    drawn = random.Random(seed)
    most = 1.7 * contacts / max(sum(1.0 / n for n in range(1, hosts)), 1.0)
    left = array("q", [GIANT, *(1 + int(most / n) for n in range(1, hosts))])
    gaps = array("d", (drawn.choice(GAPS) for _ in range(hosts)))
    ended, busy = array("d", [-1e9]) * hosts, bytearray(hosts)
    began = time.process_time()
    schedule = Schedule(CrawlSettings(slots=slots), CdnTable([]))
    for i in range(hosts):
        schedule.add(HostRow(f"h{i}.test", f"h{i}.test", front=drawn.randrange(256)), 0.0, 0.0)
    told, now, could = Used(hosts), 0.0, hosts
    ends: list[tuple[float, int]] = []
    resting: list[tuple[float, int]] = []
    busy_s = possible_s = 0.0
    while told.contacts < contacts:
        for name in schedule.ready(now, slots - len(ends)):
            i = int(name[1:-5])
            if not isinstance(
                schedule.begin(name, f"{20 + i // 16777216}.{i // 65536 % 256}.{i // 256 % 256}.{i % 256}", now), Begun
            ):
                raise AssertionError("every host is a group of its own")
            told.short_gaps += busy[i] or now - ended[i] < gaps[i] - 1e-9
            busy[i] = 1
            told.contacts += 1
            could -= 1
            heapq.heappush(ends, (now + drawn.uniform(0.05, 3.0), i))
        due = schedule.next_due(now) if len(ends) < slots else None
        times = [at for at in (ends[0][0] if ends else None, due) if at is not None]
        if not times:
            break
        after = max(min(times), now)
        busy_s += len(ends) * (after - now)
        possible_s += min(slots, len(ends) + could) * (after - now)
        now = after
        while ends and ends[0][0] <= now:
            _, i = heapq.heappop(ends)
            name = f"h{i}.test"
            ended[i], busy[i] = now, 0
            left[i] -= 1
            schedule.end(name, now, gaps[i])
            if left[i]:
                heapq.heappush(resting, (now + gaps[i], i))
            else:
                schedule.remove(name)
        while resting and resting[0][0] <= now:
            heapq.heappop(resting)
            could += 1
    told.used, told.virtual_s = round(busy_s / possible_s, 5), round(now, 1)
    told.cpu_s = round(time.process_time() - began, 1)
    told.peak_mb = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    return told


def main() -> None:
    """Print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=1_000_000)
    parser.add_argument("--contacts", type=int, default=10_000_000)
    parser.add_argument("--slots", type=int, default=256)
    asked = parser.parse_args()
    print(json.dumps(asdict(run(asked.hosts, asked.contacts, asked.slots))))


if __name__ == "__main__":
    main()
