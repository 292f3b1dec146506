"""`corpus bench --peers`: the same jobs done by us, by others and by bare loops, interleaved in one run.

Every contender is a command; its cost is the CPU of its whole process tree, start-up included, as the kernel counts it.
The server's CPU is nobody's. Each round runs every contender once, so that the machine's moods hit all of them; ratios
are taken within a round, and a table shows their medians and their spread. Others run under a Python of their own
(`make peers` installs them), because their requirements contradict ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from corpus.app.bench import reference_loop_s
from corpus.errors import StoreError, UsageError

DELAY_S = 0.05
SLOTS = 256
TIMEOUT_S = 1_800
NOISY = 0.15
"""Spread of the reference loop (slowest over fastest, less one) past which the run says that the machine was noisy."""


@dataclass(frozen=True, slots=True)
class Contender:
    """`who` does `job`. `command` gets a fresh folder and gives the command line; `ours` is what ratios are against."""

    job: str
    who: str
    command: Callable[[Path], list[str]]
    needs: str = ""
    """A module that the other Python must have; empty: it runs under ours."""
    ours: bool = False
    items: Callable[[Path], tuple[int, int]] | None = None
    """Reads (items, bytes) from the folder afterwards; absent: the last line of standard output says."""


@dataclass(slots=True)
class Measured:
    """What one contender did in each round: (items, bytes, CPU-seconds, wall seconds, peak bytes)."""

    rows: list[tuple[int, int, float, float, int]] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        return [items / cpu for items, _, cpu, _, _ in self.rows]


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
        yield {
            "bench": "peers", "hosts": hosts, "pages": len(place.urls),
            "page_bytes": sum(file.stat().st_size for file in web.files) // len(web.files), "links": round(urls_per_page),
            "delay_s": DELAY_S, "rounds": rounds, "peers": have,
        }  # fmt: skip
        for job in jobs or JOBS:
            contenders = [c for c in JOBS[job](place) if not c.needs or c.needs in have]
            measured = {c.who: Measured() for c in contenders}
            for n in range(rounds):
                loops.append(reference_loop_s())
                for contender in contenders:
                    measured[contender.who].rows.append(place.measure(contender, n))
            yield from lines(job, contenders, measured)
    noise = max(loops) / min(loops) - 1
    yield {"reference_loop_spread": round(noise, 3), "noisy": noise > NOISY}


def lines(job: str, contenders: Sequence[Contender], measured: dict[str, Measured]) -> Iterator[dict[str, Any]]:
    """Medians over the rounds. `ours_over`: how many times as much as this contender we did per CPU-second, per round."""
    own = next((c.who for c in contenders if c.ours), None)
    for contender in contenders:
        done = measured[contender.who]
        row: dict[str, Any] = {
            "job": job, "who": contender.who, "items": int(median(r[0] for r in done.rows)),
            "items_per_cpu_s": round(median(done.rates), 1), "min": round(min(done.rates), 1), "max": round(max(done.rates), 1),
            "cpu_s": round(median(r[2] for r in done.rows), 2), "wall_s": round(median(r[3] for r in done.rows), 2),
            "peak_rss_bytes": max(r[4] for r in done.rows),
        }  # fmt: skip
        if own is not None and not contender.ours:
            ratios = [a / b for a, b in zip(measured[own].rates, done.rates, strict=True)]
            row["ours_over"] = {"median": round(median(ratios), 2), "min": round(min(ratios), 2), "max": round(max(ratios), 2)}
        yield row


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


@dataclass(frozen=True, slots=True)
class Place:
    """Where the contenders work, and on what."""

    folder: Path
    python: Path
    seeds: tuple[str, ...]
    urls: tuple[str, ...]

    def peer(self, script: str, folder: Path, **job: Any) -> list[str]:
        """The command of somebody else's tool."""
        return [str(self.python), *self._script(script, folder, job)]

    def floor(self, kind: str, folder: Path) -> list[str]:
        """The command of a bare loop, under our Python."""
        return [sys.executable, *self._script("floors", folder, {"floor": kind, "out": str(folder / "floor.warc.gz")})]

    def _script(self, script: str, folder: Path, job: dict[str, Any]) -> list[str]:
        told = {"seeds": self.seeds, "urls": self.urls, "slots": SLOTS, "delay": DELAY_S, "out": str(folder), **job}
        (folder / "job.json").write_text(json.dumps(told), "utf-8")
        return [str(files("corpus.testing") / "peers" / f"{script}.py"), str(folder / "job.json")]

    def corpus(self, verb: str, folder: Path, *overrides: str) -> list[str]:
        """One of our own verbs over the folder."""
        seeds = ", ".join(f'"{url}"' for url in self.seeds)
        config = (
            f'[corpus]\nname = "bench"\n[crawl]\nseeds = [{seeds}]\ncontact = "bench@example.org"\ndelay = "50ms"\n'
            'delay_start = "50ms"\nlatency_factor = 1.0\nallow_private = ["127.0.0.0/8"]\n'
        )
        (folder / "corpus.toml").write_text(config, "utf-8")
        sets = [part for override in overrides for part in ("--set", override)]
        return [sys.executable, "-m", "corpus", verb, "-c", str(folder / "corpus.toml"), *sets]

    def crawled(self) -> Path:
        """A corpus folder with the pages fetched and nothing processed; made once, untimed."""
        folder = self.folder / "crawled"
        if not folder.exists():
            folder.mkdir()
            _cost(self.corpus("crawl", folder))
        return folder

    def measure(self, contender: Contender, n: int) -> tuple[int, int, float, float, int]:
        """Run it once in a folder of its own, which is gone afterwards."""
        folder = self.folder / f"{contender.job}-{n}"
        folder.mkdir()
        try:
            command = contender.command(folder)
            told, cpu_s, wall_s, peak = _cost(command)
            if contender.items is not None:
                items, size = contender.items(folder)
            else:
                last = json.loads(told.strip().splitlines()[-1])
                items, size = last["items"], last["bytes"]
            return items, size, cpu_s, wall_s, peak
        finally:
            shutil.rmtree(folder)


def _cost(command: Sequence[str]) -> tuple[str, float, float, int]:
    """(standard output, CPU-seconds of the tree, wall seconds, peak bytes of its largest process)."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    at = time.perf_counter()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        timer = threading.Timer(TIMEOUT_S, process.kill)
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.perf_counter() - at
        out.seek(0)
        err.seek(0)
        if process.returncode:
            told = err.read()[-800:].decode("utf-8", "replace")
            raise StoreError(f"ended with {process.returncode}: {told}", " ".join(command)[:200])
        peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return out.read().decode("utf-8", "replace"), usage.ru_utime + usage.ru_stime, wall_s, peak


# ---- the jobs


def _pages(folder: Path) -> tuple[int, int]:
    """What a crawl or run of ours stored."""
    (summary,) = folder.glob("runs/*/summary.json")
    fetch = json.loads(summary.read_text("utf-8"))["fetch"]
    return fetch["pages"], fetch["bytes_body"]


def _fetch(place: Place) -> list[Contender]:
    return [
        Contender("fetch", "corpus crawl", lambda f: place.corpus("crawl", f), ours=True, items=_pages),
        Contender("fetch", "floor: GET", lambda f: place.floor("get", f)),
        Contender("fetch", "floor: GET, links, WARC", lambda f: place.floor("warc", f)),
        Contender("fetch", "scrapy", lambda f: place.peer("scrapy_fetch", f), "scrapy"),
        Contender("fetch", "crawlee", lambda f: place.peer("crawlee_fetch", f), "crawlee"),
    ]


def _process(profile: str) -> Callable[[Place], list[Contender]]:
    def contenders(place: Place) -> list[Contender]:
        crawled = place.crawled()

        def ours(folder: Path) -> list[str]:
            shutil.copytree(crawled, folder, dirs_exist_ok=True)
            return place.corpus("process", folder, f'extract.profile="{profile}"')

        trove = Contender(
            f"process-{profile}",
            "datatrove with trafilatura",
            lambda f: place.peer("datatrove_chain", f, warc=str(crawled / "warc")),
            "datatrove",
        )
        counted = _pages(crawled)
        return [Contender(f"process-{profile}", "corpus process", ours, ours=True, items=lambda _: counted), trove]

    return contenders


def _chain(place: Place) -> list[Contender]:
    """From URLs to Parquet."""

    def others(folder: Path) -> list[str]:
        texts = str(folder / "texts.jsonl")
        first = place.peer("scrapy_fetch", folder, texts=texts)
        shutil.move(folder / "job.json", folder / "first.json")
        second = place.peer("datatrove_chain", folder, texts=texts)
        script = "import subprocess as s, sys, json; c = json.loads(sys.argv[1]); a = s.run(c[0], check=True, capture_output=True, text=True).stdout; s.run(c[1], check=True, capture_output=True); print(a)"
        return [sys.executable, "-c", script, json.dumps([[*first[:-1], str(folder / "first.json")], second])]

    return [
        Contender(
            "chain", "corpus run, fast", lambda f: place.corpus("run", f, 'extract.profile="fast"'), ours=True, items=_pages
        ),
        Contender("chain", "corpus run, default", lambda f: place.corpus("run", f), items=_pages),
        Contender("chain", "scrapy + trafilatura + datatrove", others, "datatrove"),
    ]


def _dedup(place: Place) -> list[Contender]:
    """Neighbours of 50,000 synthetic signatures, a tenth of them near copies."""
    import numpy as np

    ready = place.folder / "signatures.npy"
    rng = np.random.default_rng(1)
    table = rng.integers(0, 2**32, size=(SIGNATURES, 112), dtype=np.uint32)
    copies = SIGNATURES // 10
    table[-copies:] = table[:copies]
    table[-copies:, ::8] = rng.integers(0, 2**32, size=(copies, 14), dtype=np.uint32)
    table[-copies:, :8] = table[:copies, :8]
    np.save(ready, table)
    script = (
        "import sys, json, numpy as np; from corpus.filter.clusters import cluster; t = np.load(sys.argv[1]);"
        "c = cluster([f'{n:032x}' for n in range(len(t))], t); print(json.dumps({'items': c.num_rows, 'bytes': t.nbytes}))"
    )
    return [
        Contender("dedup", "corpus clusters", lambda f: [sys.executable, "-c", script, str(ready)], ours=True),
        Contender("dedup", "datasketch LSH", lambda f: place.peer("datasketch_lsh", f, signatures=str(ready)), "datasketch"),
    ]


SIGNATURES = 50_000
JOBS: dict[str, Callable[[Place], list[Contender]]] = {
    "fetch": _fetch,
    "process-fast": _process("fast"),
    "process-default": _process("default"),
    "chain": _chain,
    "dedup": _dedup,
}
"""What is compared, in order."""
