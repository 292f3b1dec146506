"""Processing beside the crawl: fetch waits for a slow parser, outlives a dying one, and the release is that of the stages in turn.

The short form of these is `tests/unit/test_overlap.py`; and the runs under `tests/laws` process while they crawl, killed or not.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from corpus.app.process import process
from corpus.engine.local import InlineEngine
from corpus.testing.kill import Victim
from corpus.testing.web import SimWeb, plain_hosts
from corpus.testing.web_process import ServerProcess
from tests.demo_corpus import project_of
from tests.laws.crawl_folder import Folder

SEGMENT, BACKLOG = 40 * 2**10, 60 * 2**10
PAGES = 3 * 25
FAMILIES = ("documents", "signals", "spans", "signatures", "commits/map")
SLOW = """import time
from corpus.filter.user_signals import signals

@signals(slow="int64")
def slow(texts, languages):
    time.sleep({seconds})
    return {{"slow": [1 for _ in texts]}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SimWeb, ServerProcess]]:
    web = SimWeb(3, plain_hosts(3, 24, page_bytes=6_000, by_address=True))
    with web.serve_in_process(tmp_path_factory.mktemp("server") / "contacts.jsonl") as process:
        yield web, process


def make(path: Path, server: tuple[SimWeb, ServerProcess], *, sleeps_s: float) -> Folder:
    """A corpus in small segments, whose parser sleeps for every one of them."""
    web, process = server
    folder = Folder.make(path, process, web.seeds())
    (path / "slow.py").write_text(SLOW.format(seconds=sleeps_s), "utf-8")
    toml = (path / "corpus.toml").read_text("utf-8")
    toml = toml.replace('segment_bytes = "96KiB"', f'segment_bytes = "{SEGMENT}B"').replace("workers = 2", "workers = 1")
    toml = toml.replace("[filter]", '[filter]\nrules = ["slow:slow"]') + f'backlog = "{BACKLOG}B"\n'
    toml = toml.replace('delay = "0.05s"', 'delay = "0.2s"').replace('delay_start = "0.05s"', 'delay_start = "0.2s"')
    (path / "corpus.toml").write_text(toml, "utf-8")
    return folder


def summary(folder: Folder) -> dict[str, Any]:
    path = max((folder.path / "runs").glob("*/summary.json"))
    return json.loads(path.read_text("utf-8"))  # type: ignore[no-any-return]


def events(folder: Folder) -> list[str]:
    path = max((folder.path / "runs").glob("*/log.jsonl"))
    return [json.loads(line)["event"] for line in path.read_text("utf-8").splitlines()]


def unmeasured(folder: Folder) -> int:
    """Bytes of pages that are on the disk and not processed, open segments included."""
    measured = {json.loads(path.read_bytes())["info"]["segment"] for path in (folder.path / "commits" / "map").glob("*.json")}
    total = 0
    for path in (folder.path / "warc").glob("crawl_id=*/*.warc.gz*"):
        if path.name.partition(".")[0] not in measured:
            with suppress(FileNotFoundError):
                total += path.stat().st_size
    return total


def processing(supervisor: int) -> list[int]:
    """Pids of its children that gave way to others."""
    found = []
    with suppress(FileNotFoundError):
        for pid in Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text("ascii").split():
            with suppress(FileNotFoundError, ProcessLookupError):
                if os.getpriority(os.PRIO_PROCESS, int(pid)) > os.getpriority(os.PRIO_PROCESS, supervisor):
                    found.append(int(pid))
    return found


def held(folder: Folder) -> bool:
    """Whether a run says that fetch waits."""
    return any('"held": true' in path.read_text("utf-8") for path in (folder.path / "runs").glob("*/live.json"))


def start(folder: Folder, *overrides: str) -> subprocess.Popen[str]:
    return subprocess.Popen(folder.argv("run", *overrides), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_slow_parser_slows_fetch_and_changes_nothing(server: tuple[SimWeb, ServerProcess], tmp_path: Path) -> None:
    """What waits never exceeds the backlog and one segment; everything is fetched; the same bytes as one stage after the other."""
    folder = make(tmp_path / "corpus", server, sleeps_s=0.7)
    run, most = start(folder), 0
    while run.poll() is None:
        if "ending" not in (events(folder) if folder.logs() else ()):
            most = max(most, unmeasured(folder))
        time.sleep(0.05)
    out, err = run.communicate()
    assert run.returncode == 0, out + err
    assert most <= BACKLOG + SEGMENT
    told = summary(folder)["overlap"]
    assert told["held_s"] > 1
    assert told["segments"] >= 3
    assert told["bytes"] > told["segments"] * SEGMENT * 0.9
    assert sum(state == "fetched" for state, _ in folder.urls().values()) == PAGES
    live = json.loads(max((folder.path / "runs").glob("*/live.json")).read_text("utf-8"))
    assert live["processed_bytes"] > 0
    assert live["waiting_limit"] == BACKLOG

    beside = {name: folder.files(name) for name in FAMILIES}
    for name in FAMILIES:
        shutil.rmtree(folder.path / name)
    process(project_of(folder.path), InlineEngine(), lambda *_, **__: None)
    assert {name: folder.files(name) for name in FAMILIES} == beside


@pytest.mark.slow
def test_an_interrupt_ends_both_within_ten_seconds(server: tuple[SimWeb, ServerProcess], tmp_path: Path) -> None:
    """SIGINT while fetch is held and a segment is being processed: 130 in time, nobody lives on, and the next run loses nothing."""
    folder = make(tmp_path / "corpus", server, sleeps_s=1.0)
    run = start(folder)
    until = time.monotonic() + 120
    while not (held(folder) and processing(run.pid)):
        assert run.poll() is None, run.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    (child,) = processing(run.pid)
    at = time.monotonic()
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)
    assert run.returncode == 130
    assert time.monotonic() - at < 10
    assert not Path(f"/proc/{child}").exists()
    assert summary(folder)["overlap"]["waiting_bytes"] > 0
    folder.run("run", "filter.rules=[]")
    assert sum(state == "fetched" for state, _ in folder.urls().values()) == PAGES


@pytest.mark.slow
def test_a_processing_that_dies_does_not_end_the_crawl(server: tuple[SimWeb, ServerProcess], tmp_path: Path) -> None:
    """Killed again and again it is given up and said so; the crawl goes on unhindered, and the stage after it does the work."""
    folder = make(tmp_path / "corpus", server, sleeps_s=0.5)
    run = start(folder)
    while run.poll() is None:
        for pid in processing(run.pid) if "ending" not in (events(folder) if folder.logs() else ()) else ():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    out, err = run.communicate()
    assert run.returncode == 0, out + err
    assert events(folder).count("processing died") == 3
    assert "processing stopped" in events(folder)
    assert summary(folder)["funnel"][-1]["out"] > 0
    assert sum(state == "fetched" for state, _ in folder.urls().values()) == PAGES


@pytest.mark.slow
def test_kills_while_both_are_at_work(server: tuple[SimWeb, ServerProcess], tmp_path: Path) -> None:
    """kill -9 of the supervisor or of everything, while segments are fetched and processed: the same rows as undisturbed, no orphan."""
    whole = make(tmp_path / "whole", server, sleeps_s=0.3)
    whole.run("run")
    one = make(tmp_path / "one", server, sleeps_s=0.3)
    report = one.killed(5, 3, 0.25 * whole.run_s("ending"), Victim.EITHER, asking=True)
    assert report.kills
    assert one.urls() == whole.urls()
    assert one.rows() == whole.rows()
