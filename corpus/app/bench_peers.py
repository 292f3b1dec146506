"""`corpus bench --peers`: the same jobs done by us, by others and by bare loops, interleaved in one run.

Every contender is a command; its cost is the CPU of its whole process tree, start-up included. The server's CPU is nobody's.
Each round runs every contender on a tenth of the hosts and on all of them, so that the machine's moods hit everybody and
start-up can be told from what one more page costs. Ratios are taken within a round; a row shows medians and spread. Others run
under a Python of their own (`make peers` installs them), because their requirements contradict ours.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from corpus.app.bench import reference_loop_s
from corpus.app.bench_jobs import DELAY_S, JOBS, SIGNATURES, Contender, Place
from corpus.errors import UsageError

NOISY = 0.15
"""Spread of the reference loop (slowest over fastest, less one) past which the run says that the machine was noisy."""
SMALL = 10
"""The small web is one host in so many."""
Cost = tuple[int, int, float, float, int]
"""What one contender did: items, bytes, CPU-seconds, wall seconds, peak bytes of its largest process."""


@dataclass(slots=True)
class Measured:
    """What one contender did in each round; `small`: on the small web, empty where there is none."""

    rows: list[Cost] = field(default_factory=list)
    small: list[Cost] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        """Items per CPU-second in each round, start-up included."""
        return [items / cpu for items, _, cpu, _, _ in self.rows]

    @property
    def further(self) -> list[float]:
        """Items per CPU-second once started: what those cost that the small web has not."""
        pairs = zip(self.rows, self.small, strict=False)
        return [(big[0] - little[0]) / (big[2] - little[2]) for big, little in pairs if big[2] > little[2]]

    @property
    def start_s(self) -> list[float]:
        """CPU-seconds before the first item."""
        return [little[2] - little[0] / rate for little, rate in zip(self.small, self.further, strict=False)]


def bench_peers(
    jobs: Sequence[str], *, data: Path, python: Path, hosts: int, pages: int, rounds: int
) -> Iterator[dict[str, Any]]:
    """One line about the input, one per contender. Raises UsageError for an unknown job or a Python that is not there."""
    from corpus.testing.real_web import RealWeb
    from corpus.testing.web_process import ServerProcess

    unknown = sorted(set(jobs) - set(JOBS))
    if unknown:
        raise UsageError(f"no such job: {', '.join(unknown)}", "bench", f"one of {', '.join(JOBS)}")
    have = installed(python)
    web = RealWeb(data, hosts, pages)
    urls_per_page = sum(web.body(n % hosts, n % pages).count(b"<a ") for n in range(50)) / 50
    loops: list[float] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ServerProcess(web) as server:
        place = Place(Path(folder), python, tuple(web.seeds(server.port)), tuple(web.urls(server.port)))
        little = replace(
            place, folder=Path(folder) / "small", seeds=place.seeds[: hosts // SMALL],
            urls=place.urls[: hosts // SMALL * (pages + 1)], signatures=SIGNATURES // SMALL,
        )  # fmt: skip
        yield {
            "bench": "peers", "hosts": hosts, "pages": len(place.urls),
            "page_bytes": sum(file.stat().st_size for file in web.files) // len(web.files), "links": round(urls_per_page),
            "delay_s": DELAY_S, "rounds": rounds, "peers": have,
        }  # fmt: skip
        for job in jobs or JOBS:
            contenders = [c for c in JOBS[job](place) if not c.needs or c.needs in have]
            smaller = {c.who: c for c in JOBS[job](little)} if little.seeds else {}
            measured = {c.who: Measured() for c in contenders}
            for n in range(rounds):
                loops.append(reference_loop_s())
                for contender in contenders:
                    if smaller:
                        measured[contender.who].small.append(little.measure(smaller[contender.who], n))
                    measured[contender.who].rows.append(place.measure(contender, n))
            yield from lines(job, contenders, measured)
    noise = max(loops) / min(loops) - 1
    yield {"reference_loop_spread": round(noise, 3), "noisy": noise > NOISY}


def lines(job: str, contenders: Sequence[Contender], measured: dict[str, Measured]) -> Iterator[dict[str, Any]]:
    """Medians over the rounds. `ours_over`: how many times as much each of ours did per CPU-second as this contender, per round;
    `further` and `start_cpu_s` tell what one more item costs from what starting does."""
    for contender in contenders:
        done = measured[contender.who]
        row: dict[str, Any] = {
            "job": job, "who": contender.who, "items": int(median(r[0] for r in done.rows)),
            "items_per_cpu_s": round(median(done.rates), 1), "min": round(min(done.rates), 1), "max": round(max(done.rates), 1),
            "cpu_s": round(median(r[2] for r in done.rows), 2), "wall_s": round(median(r[3] for r in done.rows), 2),
            "peak_rss_bytes": max(r[4] for r in done.rows),
        }  # fmt: skip
        if done.further:
            row["further"], row["start_cpu_s"] = round(median(done.further), 1), round(median(done.start_s), 2)
        if not contender.ours:
            row["ours_over"] = {c.who: _times(measured[c.who], done) for c in contenders if c.ours}
        yield row


def _times(ours: Measured, theirs: Measured) -> dict[str, float]:
    ratios = [a / b for a, b in zip(ours.rates, theirs.rates, strict=True)]
    found = {"median": round(median(ratios), 2), "min": round(min(ratios), 2), "max": round(max(ratios), 2)}
    if ours.further and theirs.further:
        found["further"] = round(median(ours.further) / median(theirs.further), 2)
    return found


def installed(python: Path) -> dict[str, str]:
    """Which of the others that Python has, with versions; empty when there is no such Python."""
    if not python.exists():
        return {}
    script = (
        "import importlib.metadata as m, json\n"
        "names = ['scrapy', 'crawlee', 'trafilatura', 'datatrove', 'datasketch', 'rensa']\n"
        "print(json.dumps({d.metadata['Name'].lower(): d.version for d in m.distributions() if d.metadata['Name'].lower() in names}))"
    )
    answer = subprocess.run([python, "-c", script], capture_output=True, text=True, check=False)
    if answer.returncode:
        raise UsageError(f"{python} does not run: {answer.stderr[-300:]}", "bench", "make peers")
    found: dict[str, str] = json.loads(answer.stdout)
    return found
