"""`corpus bench`: every stage over fixed inputs, in CPU-seconds of its whole process tree, peak memory and bytes.

One JSON line per stage. Each stage runs in a process of its own, so that memory is its own and no stage warms another.
Absolute times on a shared machine mean little; ratios of one run do, so lines carry a reference loop's speed as well.
"""

from __future__ import annotations

import platform
import resource
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus.app.bench_stages import STAGES, Pages, measured
from corpus.engine.process import Link, start
from corpus.errors import UsageError
from corpus.version import __version__

if TYPE_CHECKING:
    from corpus.testing.web_hosts import SimHost

PAGES_MAX = 240
FETCH_HOSTS, FETCH_PAGES, FETCH_BYTES, FETCH_LINKS = 200, 30, 24_000, 60


@dataclass(frozen=True, slots=True)
class StageSpec:
    stage: str
    pages: Pages


def bench(stages: Sequence[str], data: Path | None) -> Iterator[dict[str, Any]]:
    """Measure stages in order; the first line says what they were measured on. Raises UsageError for unknown names."""
    known = [*STAGES, "fetch"]
    unknown = [name for name in stages if name not in known]
    if unknown:
        raise UsageError(f"no such stage: {', '.join(unknown)}", "bench", f"one of {', '.join(known)}")
    pages, source = bench_pages(data)
    yield {
        "bench": "corpus",
        "version": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "input": source,
        "pages": len(pages),
        "bytes": sum(len(body) for _, body in pages),
        "reference_loop_s": round(reference_loop_s(), 4),
    }
    for name in stages or known:
        yield fetch_in_process() if name == "fetch" else in_process(name, pages)


def bench_pages(data: Path | None) -> tuple[Pages, str]:
    """Pages of an unpacked documentation tree where there is one (`make bench-data`), else the demo's."""
    folder = data or Path("bench-data") / "tree"
    files = sorted(folder.rglob("*.html")) if folder.is_dir() else []
    if files:
        chosen = files[:: max(len(files) // PAGES_MAX, 1)][:PAGES_MAX]
        return [
            (f"https://bench.example/{file.relative_to(folder).as_posix()}", file.read_bytes()) for file in chosen
        ], "documentation tree"
    from corpus.testing.demo.answers import answers
    from corpus.testing.demo.pages import sites

    origins = {site.key: f"http://{site.address}:1" for site in sites()}
    return [
        (f"{origins[key]}{path}", ready.answer.body)
        for key, table in sorted(answers(origins).items())
        for path, ready in sorted(table.items())
        if path.endswith(".html") and ready.answer.status == 200
    ], "demo pages (make bench-data fetches real ones)"


def reference_loop_s() -> float:
    """How long this machine takes for a fixed pure-Python loop right now: the noise to divide by."""
    at = time.perf_counter()
    total = 0
    for n in range(2_000_000):
        total += n & 7
    assert total
    return time.perf_counter() - at


def in_process(stage: str, pages: Pages) -> dict[str, Any]:
    """One stage in a fresh process."""
    child = start(f"bench-{stage}", "corpus.app.bench:run_stage", StageSpec(stage, pages))
    try:
        items, size, cpu_s, wall_s, peak = child.connection.recv()
    finally:
        child.stop()
    return line(stage, items, size, cpu_s, wall_s, peak)


def run_stage(spec: StageSpec, link: Link) -> None:
    """In the child: prepare, work once, report."""
    with tempfile.TemporaryDirectory() as folder:
        work = STAGES[spec.stage](spec.pages, Path(folder))
        items, size, cpu_s, wall_s = measured(work)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    link.send((items, size, cpu_s, wall_s, peak))


def line(stage: str, items: int, size: int, cpu_s: float, wall_s: float, peak: int) -> dict[str, Any]:
    """One stage's line: what was done, what it cost, and the rates."""
    return {
        "stage": stage,
        "items": items,
        "bytes": size,
        "cpu_s": round(cpu_s, 4),
        "wall_s": round(wall_s, 4),
        "items_per_cpu_s": round(items / cpu_s, 1) if cpu_s > 0 else None,
        "mb_per_cpu_s": round(size / cpu_s / 1e6, 2) if cpu_s > 0 else None,
        "peak_rss_bytes": peak,
    }


def fetch_in_process() -> dict[str, Any]:
    """The fetch stage under a supervisor of its own, so that no other stage's children count."""
    child = start("bench-fetch", "corpus.app.bench:run_fetch", None)
    try:
        told: dict[str, Any] = child.connection.recv()
    finally:
        child.stop()
    return told


def sized(host: SimHost, size: int) -> SimHost:
    """The host with pages of about `size` bytes: letters take one to three, and every link takes some."""
    from corpus.testing.web_pages import Pages as SimPages
    from corpus.testing.web_pages import ordinary_path

    sample = SimPages(1, replace(host, page_bytes=size), 80)
    made = len(sample.text("/", links=[ordinary_path(1)] * host.links).encode())
    return replace(host, page_bytes=size * size // made)


def run_fetch(_: None, link: Link) -> None:
    """In the child: crawl, report."""
    link.send(fetch())


def fetch() -> dict[str, Any]:
    """The fetch stage over loopback hosts: robots, consent, near-copy gate and WARC on. CPU of the fetch process, its start included,
    and of the supervisor's work; the server's is not counted."""
    from corpus.app.crawl import crawl
    from corpus.app.project import open_project
    from corpus.config.load import load_config
    from corpus.testing.web import SimWeb
    from corpus.testing.web_hosts import plain_hosts

    hosts = plain_hosts(FETCH_HOSTS, FETCH_PAGES, links=FETCH_LINKS, by_address=True)
    web = SimWeb(1, [sized(host, FETCH_BYTES) for host in hosts])
    with tempfile.TemporaryDirectory() as folder, web.serve_in_process():
        seeds = ", ".join(f'"{url}"' for url in web.seeds())
        config_file = Path(folder) / "corpus.toml"
        config_file.write_text(
            f'[corpus]\nname = "bench"\n[crawl]\nseeds = [{seeds}]\ncontact = "bench@example.org"\ndelay = "50ms"\ndelay_start = "50ms"\n'
            'latency_factor = 1.0\nallow_private = ["127.0.0.0/8"]\n',
            "utf-8",
        )
        project = open_project(load_config(config_file, environment={}))
        before, at = _tree_cpu_s(), time.perf_counter()
        end = crawl(project, "bench", "bench", lambda *_, **__: None, lambda: 0)
        spent, cpu = _tree_cpu_s() - before, resource.getrusage(resource.RUSAGE_CHILDREN)
        return line(
            "fetch",
            end.pages,
            end.bytes_body,
            spent,
            time.perf_counter() - at,
            cpu.ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        )


def _tree_cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)
