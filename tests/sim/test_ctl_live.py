"""`corpus ctl` on a crawl that is under way: every order is obeyed before the next take, without a restart, and recorded."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus.testing.web import Contact, SimHost, SimWeb, address_of
from corpus.testing.web_process import ServerProcess
from tests.demo_corpus import corpus_cli

GAP_S = 0.1
HOSTS = ("a.one.test", "b.two.test", "c.three.test")
ON_ITS_WAY_S = 0.6
"""A contact that had begun when the order came may still arrive."""
PAGES = 1_000
"""More than any of these crawls gets to: each is ended by an order."""

_TOML = """[corpus]
name = "ctl"
[crawl]
seeds = [{seeds}]
contact = "https://example.org/bot"
delay = "{gap}s"
delay_start = "{gap}s"
latency_factor = 0.1
near_copies = "store"
allow_private = ["127.0.0.0/8"]
resolver = ["{dns}"]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    web = SimWeb(3, tuple(SimHost(name=name, address=address_of(n), pages=PAGES, page_bytes=800) for n, name in enumerate(HOSTS)))
    with ServerProcess(web) as process:
        yield process


class Running:
    """A crawl in a process of its own, and the orders given to it."""

    def __init__(self, folder: Path, server: ServerProcess, verb: str = "crawl") -> None:
        self.folder, self.server = folder, server
        folder.mkdir(exist_ok=True)
        seeds = ", ".join(f'"http://{name}:{server.port}/"' for name in HOSTS)
        (folder / "corpus.toml").write_text(_TOML.format(seeds=seeds, gap=GAP_S, dns=server.dns), "utf-8")
        self.began = time.time()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "corpus", verb, "-c", str(folder / "corpus.toml")],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ctl(self, *order: str) -> dict[str, Any]:
        said = corpus_cli("ctl", *order, "-c", self.folder / "corpus.toml", "--json")
        assert said.code == 0, said.err
        return dict(said.json)

    def contacts(self, since: float = 0.0, host: str = "") -> list[Contact]:
        return [c for c in self.server.log() if c.arrived_wall > max(since, self.began) and (not host or c.host == host)]

    def gaps(self, host: str, since: float) -> list[float]:
        """Seconds between one contact of a host and the next, as its server saw them."""
        times = [c.arrived_wall for c in self.contacts(since=since, host=host)]
        return [b - a for a, b in itertools.pairwise(times)]

    def wait(self, until: Callable[[], bool], seconds: float = 40.0) -> None:
        end = time.monotonic() + seconds
        while not until():
            assert time.monotonic() < end, "it did not happen in time"
            assert self.process.poll() is None, self.process.communicate()[1][-3000:]
            time.sleep(0.05)

    def ended(self) -> tuple[int, str]:
        out, err = self.process.communicate(timeout=40)
        return self.process.returncode, out + err

    def states(self) -> dict[tuple[str, str], int]:
        said = corpus_cli("status", "-c", self.folder / "corpus.toml", "--json")
        return {(row["state"], row["reason"]): row["n"] for row in said.json["urls"]}


@pytest.fixture
def crawl(tmp_path: Path, server: ServerProcess) -> Iterator[Running]:
    """Three hosts, each at its gap of 0.1 s, for as long as the test likes."""
    running = Running(tmp_path / "corpus", server)
    try:
        running.wait(lambda: len(running.contacts()) > 20)
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.communicate()


def test_pause_resume_and_drain(crawl: Running) -> None:
    """Paused, nobody is contacted (what was in flight may end); resumed, it goes on; drained, it ends resumable, and all is recorded."""
    assert crawl.ctl("pause", "--reason", "power")["running"] is True
    paused = time.time()
    time.sleep(ON_ITS_WAY_S + 1.0)
    assert not crawl.contacts(since=paused + ON_ITS_WAY_S)
    crawl.ctl("resume")
    resumed = time.time()
    crawl.wait(lambda: len(crawl.contacts(since=resumed, host=HOSTS[0])) > 5)
    crawl.ctl("drain")
    code, said = crawl.ended()
    assert code == 130, said
    assert "resume" in said
    orders = [json.loads(path.read_text("utf-8")) for path in sorted((crawl.folder / "control").iterdir())]
    assert [order["action"] for order in orders] == ["pause", "resume", "drain"]
    assert orders[0]["reason"] == "power"
    log = next((crawl.folder / "runs").glob("*/log.jsonl")).read_text("utf-8")
    assert [e["action"] for e in map(json.loads, log.splitlines()) if e["event"] == "order"] == ["pause", "resume", "drain"]


def test_a_pause_outlives_the_run_and_a_drain_does_not(crawl: Running, server: ServerProcess) -> None:
    """A run that starts while the pause holds waits, and says so; the drain of an earlier run does not end it."""
    crawl.ctl("pause")
    crawl.ctl("drain")
    assert crawl.ended()[0] == 130
    again = Running(crawl.folder, server)
    try:
        again.wait(lambda: any("order in force" in log.read_text("utf-8") for log in (crawl.folder / "runs").glob("*/log.jsonl")))
        time.sleep(1.5)
        assert again.process.poll() is None
        assert not again.contacts()
        again.ctl("resume")
        again.wait(lambda: len(again.contacts()) > 5)
        again.process.send_signal(signal.SIGINT)
        code, said = again.ended()
        assert (code, "paused by order 1" in said) == (130, True)
    finally:
        again.process.kill()


def test_slow_stretches_the_gaps_of_one_host_or_of_all(crawl: Running) -> None:
    """From the order on, no two contacts of the host are closer than factor × gap; the others keep their pace; 1 lifts it."""
    crawl.ctl("slow", "one.test", "5")  # a domain: covers every host below it
    time.sleep(ON_ITS_WAY_S)
    began = time.time()
    time.sleep(3.0)
    gaps = crawl.gaps(HOSTS[0], began)
    assert gaps
    assert min(gaps) >= 5 * GAP_S
    assert len(crawl.gaps(HOSTS[1], began)) > 2 * len(gaps)
    crawl.ctl("slow", "one.test", "1")
    crawl.ctl("slow", "all", "4")
    time.sleep(ON_ITS_WAY_S)
    began = time.time()
    time.sleep(2.0)
    for host in HOSTS:
        assert crawl.gaps(host, began)
        assert min(crawl.gaps(host, began)) >= 4 * GAP_S, host


def test_block_a_domain_and_a_url(crawl: Running) -> None:
    """A blocked host hears nothing any more and its queue is excluded; lifting the block brings it back."""
    crawl.ctl("block", "two.test")
    blocked = time.time()
    crawl.wait(lambda: crawl.states().get(("excluded", "blocked"), 0) > 3)
    time.sleep(ON_ITS_WAY_S + 0.5)
    assert not crawl.contacts(since=blocked + ON_ITS_WAY_S, host=HOSTS[1])
    assert crawl.contacts(since=blocked + ON_ITS_WAY_S, host=HOSTS[0])
    crawl.ctl("block", "two.test", "--lift")
    crawl.wait(lambda: bool(crawl.contacts(since=time.time() - 0.3, host=HOSTS[1])))
    crawl.wait(lambda: ("excluded", "blocked") not in crawl.states())
    crawl.ctl("block", f"http://{HOSTS[2]}:{crawl.server.port}/")
    assert crawl.ctl("slow", "all", "1")["n"] == 4


def test_budgets_end_the_crawl(crawl: Running) -> None:
    """`budget pages N` is met exactly; the run ends as it does at the configuration's own limit, and the next one honours it too."""
    crawl.ctl("budget", "pages", "90")
    code, said = crawl.ended()
    assert code == 0, said
    assert sum(n for (state, _), n in crawl.states().items() if state == "fetched") == 90
    again = corpus_cli("crawl", "-c", crawl.folder / "corpus.toml", "--json")
    assert again.json["ended"] == "budget"
    assert again.json["fetch"]["pages"] == 0


@pytest.mark.parametrize(("kind", "limit"), [("bytes", "40kB"), ("time", "1s")])
def test_other_budgets(crawl: Running, kind: str, limit: str) -> None:
    """Bytes and time are ordered in the units of the configuration."""
    crawl.ctl("budget", kind, limit)
    code, said = crawl.ended()
    assert code == 0, said
    (summary,) = (crawl.folder / "runs").glob("*/summary.json")
    assert json.loads(summary.read_text("utf-8"))["ended"] == "budget"


def test_wrong_orders_are_refused_and_not_recorded(tmp_path: Path, demo_corpus: Any) -> None:
    """A factor under 1, a host that is none, a budget of nothing, a drain without a run: exit 2, and no order is written."""
    folder = demo_corpus.copy(tmp_path / "copy")
    for order in (
        ["slow", "all", "0.5"],
        ["slow", "a b", "2"],
        ["budget", "pages", "0"],
        ["budget", "bytes", "12 parsecs"],
        ["drain"],
    ):
        said = corpus_cli("ctl", *order, "-c", folder / "corpus.toml")
        assert said.code == 2, order
    assert not (folder / "control").exists()


def test_status_names_the_blocks_that_hold(demo_corpus: Any, tmp_path: Path) -> None:
    """Who wants to lift a block finds it in `status`; a lifted one is gone from there."""
    config = demo_corpus.copy(tmp_path / "copy") / "corpus.toml"
    for value in ("one.example", "two.example"):
        assert corpus_cli("ctl", "block", value, "-c", config).code == 0
    assert corpus_cli("ctl", "block", "--lift", "one.example", "-c", config).code == 0
    said = corpus_cli("status", "-c", config).out
    assert "domain two.example is blocked by order 2" in said
    assert "one.example" not in said
