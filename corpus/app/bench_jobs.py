"""What `corpus bench --peers` compares: for each job the commands of everybody who does it, over one web of real pages.

Nothing is measured here but by `Place.measure`: a command in a fresh folder, and the CPU of its whole process tree as the
kernel counts it.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from corpus.errors import StoreError

DELAY_S = 0.05
SLOTS = 256
TIMEOUT_S = 3_600
SIGNATURES = 50_000


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


@dataclass(frozen=True, slots=True)
class Place:
    """Where the contenders work, and on what."""

    folder: Path
    python: Path
    seeds: tuple[str, ...]
    urls: tuple[str, ...]
    signatures: int = SIGNATURES

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
        """A corpus folder with every page stored whole, near copies too, and nothing processed; made once, untimed."""
        folder = self.folder / "crawled"
        if not folder.exists():
            folder.mkdir(parents=True)
            _cost(self.corpus("crawl", folder, 'crawl.near_copies="store"'))
        return folder

    def measure(self, contender: Contender, n: int) -> tuple[int, int, float, float, int]:
        """Run it once in a folder of its own, which is gone afterwards."""
        folder = self.folder / f"{contender.job}-{n}"
        folder.mkdir(parents=True)
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


def _process(place: Place) -> list[Contender]:
    """From one WARC folder to measured documents (ours) or to filtered and deduplicated ones (datatrove's)."""
    crawled = place.crawled()
    counted = _pages(crawled)

    def ours(profile: str) -> Contender:
        def command(folder: Path) -> list[str]:
            shutil.copytree(crawled, folder, dirs_exist_ok=True)
            return place.corpus("process", folder, f'extract.profile="{profile}"')

        return Contender("process", f"corpus process, {profile}", command, ours=True, items=lambda _: counted)

    def trove(extractor: str) -> Contender:
        def command(folder: Path) -> list[str]:
            return place.peer("datatrove_chain", folder, warc=str(crawled / "warc"), extractor=extractor)

        return Contender("process", f"datatrove with {extractor}", command, "datatrove")

    return [ours("fast"), ours("default"), trove("resiliparse"), trove("trafilatura")]


def _chain(place: Place) -> list[Contender]:
    """From URLs to Parquet."""

    def others(folder: Path) -> list[str]:
        texts = str(folder / "texts.jsonl")
        first = place.peer("scrapy_fetch", folder, texts=texts)
        shutil.move(folder / "job.json", folder / "first.json")
        second = place.peer("datatrove_chain", folder, texts=texts)
        script = (
            "import subprocess as s, sys, json; c = json.loads(sys.argv[1]);"
            "a = s.run(c[0], check=True, capture_output=True, text=True).stdout; s.run(c[1], check=True, capture_output=True); print(a)"
        )
        return [sys.executable, "-c", script, json.dumps([[*first[:-1], str(folder / "first.json")], second])]

    def ours(profile: str) -> Contender:
        def command(folder: Path) -> list[str]:
            return place.corpus("run", folder, f'extract.profile="{profile}"')

        return Contender("chain", f"corpus run, {profile}", command, ours=True, items=_pages)

    return [ours("fast"), ours("default"), Contender("chain", "scrapy + trafilatura + datatrove", others, "datatrove")]


def _dedup(place: Place) -> list[Contender]:
    """Neighbours of synthetic signatures, a tenth of them near copies."""
    import numpy as np

    ready = place.folder / "signatures.npy"
    place.folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(1)
    table = rng.integers(0, 2**32, size=(place.signatures, 112), dtype=np.uint32)
    copies = place.signatures // 10
    table[-copies:] = table[:copies]
    table[-copies:, ::8] = rng.integers(0, 2**32, size=(copies, 14), dtype=np.uint32)
    table[-copies:, :8] = table[:copies, :8]
    np.save(ready, table)
    script = (  # started as our commands are
        "import sys, json\nfrom corpus.engine.lean import lean\nwith lean():\n    import numpy as np\n"
        "    from corpus.filter.clusters import cluster\n    t = np.load(sys.argv[1])\n"
        "    c = cluster([f'{n:032x}' for n in range(len(t))], t)\n    print(json.dumps({'items': c.num_rows, 'bytes': t.nbytes}))"
    )
    return [
        Contender("dedup", "corpus clusters", lambda f: [sys.executable, "-c", script, str(ready)], ours=True),
        Contender("dedup", "datasketch LSH", lambda f: place.peer("datasketch_lsh", f, signatures=str(ready)), "datasketch"),
    ]


JOBS: dict[str, Callable[[Place], list[Contender]]] = {"fetch": _fetch, "process": _process, "chain": _chain, "dedup": _dedup}
"""What is compared, in order."""
