"""The fetch stage as real processes: interrupts, a worker that dies alone, files it may open."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corpus.app.fetch_process import _raise_file_limit
from corpus.testing.audit import gap_violations
from corpus.testing.web import SimWeb, plain_hosts
from corpus.testing.web_answer import Answer, Fault
from corpus.testing.web_hosts import Page, SimHost
from corpus.testing.web_process import ServerProcess
from tests.laws.crawl_folder import GAP_S, Folder

SLOW = "127.1.0.90"


class SlowWeb(SimWeb):
    """Plain hosts, and one whose pages never answer."""

    def __init__(self, silent: bool = True) -> None:
        super().__init__(3, (*plain_hosts(6, 25, page_bytes=500, by_address=True), SimHost(SLOW, SLOW, pages=2)))
        self._silent = silent

    def __reduce__(self) -> tuple[type[SlowWeb], tuple[bool], dict[str, int]]:  # type: ignore[override]
        return SlowWeb, (self._silent,), {"port": self.port, "_fixed_port": self._fixed_port}

    def _planned(self, host: SimHost) -> dict[str, Page]:
        plan = super()._planned(host)
        if host.name == SLOW and self._silent:
            plan["/"] = Page(lambda ask: Answer(fault=Fault.SILENT))
        return plan


@contextmanager
def running(folder: Folder, *overrides: str) -> Iterator[subprocess.Popen[str]]:
    """`corpus crawl`, under way."""
    asked = len(folder.server.log())
    began = time.time()
    child = subprocess.Popen(folder.argv("crawl", *overrides), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: len(folder.server.log()) > asked + 70, child)
        yield child
    finally:
        child.kill()
        child.communicate()
        folder.windows.append((began, time.time()))


def wait_for(so: Callable[[], bool], child: subprocess.Popen[str], within_s: float = 60.0) -> None:
    until = time.monotonic() + within_s
    while not so():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SlowWeb, ServerProcess]]:
    web = SlowWeb()
    with web.serve_in_process(tmp_path_factory.mktemp("server") / "contacts.jsonl") as process:
        yield web, process


def fetch_processes(supervisor: int) -> list[int]:
    """Pids of the children that fetch (not multiprocessing's own helper)."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text("ascii").split()
    return [int(pid) for pid in children if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_an_interrupt_drains_within_ten_seconds_and_resumes(server: tuple[SlowWeb, ServerProcess], tmp_path: Path) -> None:
    """SIGINT with a request in flight that never answers: 130 within 10 s, segments whole, nothing asked for twice later."""
    web, process = server
    folder = Folder.make(tmp_path / "corpus", process, web.seeds())
    with running(folder, "crawl.first_byte_timeout=8s") as child:
        at = time.monotonic()
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=20)
        assert child.returncode == 130
        assert time.monotonic() - at < 10
    assert not list(folder.path.rglob("*.open"))
    stored = {url for url, (state, _) in folder.urls().items() if state == "fetched"}
    assert stored
    began = time.time()
    again = subprocess.run(
        folder.argv("crawl", "crawl.first_byte_timeout=500ms", "crawl.retries=1"),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    folder.windows.append((began, time.time()))
    asked = Counter(c.url for c in folder.contacts() if c.arrived_wall > began)
    assert not stored & set(asked)
    assert sum(state == "fetched" for state, _ in folder.urls().values()) == 6 * 26
    assert not gap_violations(folder.contacts(), GAP_S)


def test_a_second_interrupt_stops_at_once(server: tuple[SlowWeb, ServerProcess], tmp_path: Path) -> None:
    """Twice SIGINT: nobody waits for anything, the exit code says interrupted, and the next run loses nothing."""
    web, process = server
    folder = Folder.make(tmp_path / "corpus", process, web.seeds()[:3])
    with running(folder) as child:
        at = time.monotonic()
        child.send_signal(signal.SIGINT)
        time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        child.communicate(timeout=20)
        assert child.returncode == 130
        assert time.monotonic() - at < 4
    folder.run("crawl")
    assert sum(state == "fetched" for state, _ in folder.urls().values()) == 3 * 26


def test_a_fetch_process_that_dies_alone_is_replaced(server: tuple[SlowWeb, ServerProcess], tmp_path: Path) -> None:
    """kill -9 of one worker: its segment is cut, a successor goes on, the run ends as if nothing had been, gaps whole."""
    web, process = server
    folder = Folder.make(tmp_path / "corpus", process, web.seeds()[:6])
    with running(folder, "crawl.processes=2") as child:
        for pid in fetch_processes(child.pid)[:1]:
            os.kill(pid, signal.SIGKILL)
        _, err = child.communicate(timeout=90)
        assert child.returncode == 0, err
        assert "fetch process died" in err
    assert not list(folder.path.rglob("*.open"))
    assert sum(state == "fetched" for state, _ in folder.urls().values()) == 6 * 26
    assert not gap_violations(folder.contacts(), GAP_S)


def test_a_page_budget_is_exact_over_several_processes(server: tuple[SlowWeb, ServerProcess], tmp_path: Path) -> None:
    """max_pages over three processes with unequal work: exactly so many pages, and as many more after it was raised."""
    web, process = server
    folder = Folder.make(tmp_path / "corpus", process, web.seeds()[:6])
    for limit in (50, 90):
        folder.run("crawl", "crawl.processes=3", f"crawl.max_pages={limit}")
        assert sum(state == "fetched" for state, _ in folder.urls().values()) == limit


def test_the_file_limit_is_raised_as_far_as_the_system_lets_us() -> None:
    """min(hard, wanted), and never lowered."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
        _raise_file_limit(700)
        assert (
            resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(700, before[1]) if before[1] != resource.RLIM_INFINITY else 700
        )
        _raise_file_limit(300)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 300
        _raise_file_limit(2**31)
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= before[1] or before[1] == resource.RLIM_INFINITY
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_few_file_handles_are_refused_at_the_start(server: tuple[SlowWeb, ServerProcess], tmp_path: Path) -> None:
    """With 64 open files nobody is asked anything: exit 2 at once, and the hint is about the limit."""
    web, process = server
    folder = Folder.make(tmp_path / "corpus", process, web.seeds())
    asked = len(process.log())
    for verb in ("run", "crawl"):
        few = subprocess.run(
            ["bash", "-c", 'ulimit -n 64; exec "$@"', "-", *folder.argv(verb)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert few.returncode == 2, few.stderr
        assert "64 open files" in few.stderr
        assert "ulimit -Hn" in few.stderr
    assert len(process.log()) == asked
