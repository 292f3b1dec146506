"""What a person sees while a crawl runs: the board, plain lines, the log's bounds, the series, and why nothing moves."""

from __future__ import annotations

import io
import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.observe.board import render
from corpus.observe.live import Live, why_stalled
from corpus.observe.live_file import COLUMNS, POINTS_MAX, LiveFile, read_live, read_series
from corpus.observe.runlog import RunLog, Terminal
from corpus.observe.words import duration, many, printable, size

LIVE = Live(
    at=1_000.0, run_id="r1", seconds=3_720.0, pages=12_345, requests=15_812, policy_requests=12, bytes_wire=10**9, pages_s=98.0, pages_s_mean=92.0,
    bytes_s=3.1e6, in_flight=17, hosts={"active": 211, "waiting": 64, "backing-off": 3}, parked={"crawl-delay": 2},
    frontier={"queued": 190_000, "fetched": 12_345}, refused={"robots": 700, "tdmrep": 112}, failed={"timeout": 45}, retried={"http-503": 5},
    slowest=[["slow.test", 1.2, 6.0]], failing=[["bad.test", 12, "http-503"]], due=[["next.test", 31.0, "Crawl-delay 40 s"]],
    budget=[["crawl.max_pages", 12_345, 20_000]], eta_s=7_800.0, bound="crawl.max_pages",
)  # fmt: skip


def drawn(live: Live, width: int = 110) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False).print(render(live))
    return out.getvalue()


def test_the_board_shows_what_an_operator_asks_for() -> None:
    """Rates now and mean, budget and end with the bound named, hosts by state, depth, refusals by rule, errors, slow and failing hosts, Ctrl-C."""
    shown = drawn(LIVE)
    for words in (
        "98.0/s now", "92.0/s mean", "3.1 MB/s", "62 % of crawl.max_pages", "in 2 h 10 min, held by crawl.max_pages", "211 active", "64 waiting",
        "3 backing-off", "2 parked", "crawl-delay", "queued 190,000", "robots 700", "tdmrep 112", "timeout 45", "http-503 5", "slow.test 1.2 s",
        "bad.test 12", "Ctrl-C drains",
    ):  # fmt: skip
        assert words in shown, words
    assert "PAUSED" in drawn(replace(LIVE, paused=True))
    assert "78 % of 15,800 page requests gave a page " in drawn(LIVE)
    assert "gave a page, 95 % of 1,000 processed documents a text" in drawn(
        replace(LIVE, processed_pages=1_000, processed_texts=950)
    )


@given(st.text(max_size=80))
def test_crawled_names_cannot_steer_the_terminal(name: str) -> None:
    """A host's or reason's text reaches the screen without control characters, whatever it holds."""
    shown = drawn(replace(LIVE, slowest=[[name, 1.0, 1.0]], failing=[[name, 1, name]], stalled=name))
    assert all(ch.isprintable() or ch == "\n" for ch in shown)
    assert all(ch.isprintable() for ch in printable(name))


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_board_and_a_pipe_plain_lines() -> None:
    """On a terminal the board is drawn in place and other lines stand above it; elsewhere there is no escape sequence at all."""
    tty, pipe = _Tty(), io.StringIO()
    for stream in (tty, pipe):
        terminal = Terminal(stream, plain_every_s=0.0)
        terminal("crawl", seeds=3)
        terminal("live", live=LIVE)
        terminal("order", n=1)
        terminal("live", live=replace(LIVE, pages=12_400))
        terminal.close()
    assert "\x1b[" in tty.getvalue()
    assert "Ctrl-C" in tty.getvalue()
    lines = pipe.getvalue().splitlines()
    assert "\x1b" not in pipe.getvalue()
    assert lines[0] == "crawl seeds 3"
    assert "62 % of crawl.max_pages" in lines[1]
    assert len(lines) == 4


def test_plain_numbers_come_every_twenty_seconds_and_at_once_when_stalled() -> None:
    """A log of a service is not flooded; the moment a crawl stands still is said at once, and once."""
    out = io.StringIO()
    terminal = Terminal(out)
    for _ in range(5):
        terminal("live", live=LIVE)
    for second in range(3):
        terminal("live", live=replace(LIVE, stalled=f"nothing was asked for {30 + second} s: only parked hosts are left"))
    assert len(out.getvalue().splitlines()) == 2
    for second in range(40):
        waits = f"this worker waits: hosts of {3 - second // 20} partition files rest for {41 - second} s more"
        terminal("live", live=replace(LIVE, stalled=waits))
    assert len(out.getvalue().splitlines()) == 3


STALLS: list[tuple[dict[str, Any], float, str]] = [
    ({"paused": True}, 0.0, "corpus ctl resume"),
    ({}, 5.0, ""),
    ({"commit_s": 30.0}, 40.0, "disk is slow"),
    ({}, 40.0, "17 requests are under way"),
    ({"in_flight": 0}, 40.0, "next.test in 31 s (Crawl-delay 40 s)"),
    ({"in_flight": 0, "due": [["due.test", 0.0, ""]]}, 40.0, "due.test"),
    ({"in_flight": 0, "due": []}, 40.0, "2 crawl-delay"),
    ({"in_flight": 0, "due": [], "parked": {}}, 40.0, "about to end"),
]


@pytest.mark.parametrize(("changes", "quiet_s", "words"), STALLS)
def test_the_stall_detector_names_the_reason(changes: dict[str, Any], quiet_s: float, words: str) -> None:
    """Whoever looks at a crawl that stands still reads why, with the hosts by name; a crawl that moves says nothing."""
    said = why_stalled(replace(LIVE, **changes), quiet_s)
    assert words in said
    assert bool(said) is bool(words)


def logged(folder: Path, most: int) -> list[Path]:
    """The files of a log after five and a half hours of numbers, two a second."""
    now = [0.0]
    log = RunLog(folder / "log.jsonl", Terminal(io.StringIO(), quiet=True), wall=lambda: now[0], most=most)
    for tick in range(40_000):
        now[0] = tick / 2
        log("live", live=replace(LIVE, at=now[0]))
    log.close()
    return sorted(folder.iterdir())


def test_the_log_is_bounded(tmp_path: Path) -> None:
    """A full file is set aside once, so two at most remain, whatever was written."""
    files = logged(tmp_path, 20_000)
    assert [path.name for path in files] == ["log.1.jsonl", "log.jsonl"]
    assert sum(path.stat().st_size for path in files) < 2 * 21_000


def test_numbers_are_logged_ever_more_rarely(tmp_path: Path) -> None:
    """Every second of the first minute, then every twenty: 60 + 20,000 / 20 lines."""
    (file,) = logged(tmp_path, 10**9)
    assert 900 < len(file.read_bytes().splitlines()) < 1_100


def test_the_series_spans_the_whole_run_and_is_bounded(tmp_path: Path) -> None:
    """However long a run: at most so many points, the first and the last among them, and evenly spread."""
    kept = LiveFile(tmp_path)
    for second in range(10_000):
        kept("live", live=replace(LIVE, at=float(second), pages=second))
    kept.close()
    points = read_series(tmp_path)
    at = [row[0] for row in points]
    assert 2 <= len(points) <= POINTS_MAX + 1
    assert (at[0], at[-1]) == (0.0, 9_999.0)
    assert at == sorted(at)
    gaps = [b - a for a, b in itertools.pairwise(at)]
    assert max(gaps) <= 3 * sorted(gaps)[len(gaps) // 2]
    assert all(len(row) == len(COLUMNS) for row in points)
    assert read_live(tmp_path) == replace(LIVE, at=9_999.0, pages=9_999)


def test_a_cut_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """A run killed in the middle of a write leaves a status page that works."""
    LiveFile(tmp_path)("live", live=LIVE)
    with (tmp_path / "series.jsonl").open("a") as file:
        file.write(json.dumps([1, 2, 3])[:-2])
    (tmp_path / "live.json").write_text('{"at": 1', "ascii")
    assert read_live(tmp_path) is None
    assert len(read_series(tmp_path)) == 1
    assert read_live(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0.4 s"), (45, "45 s"), (60, "1 min"), (7_800, "2 h 10 min"), (273_600, "3 d 4 h")]
)
def test_durations(seconds: float, words: str) -> None:
    """A duration is read in its two largest units."""
    assert duration(seconds) == words


def test_sizes() -> None:
    """Powers of ten."""
    assert [size(n) for n in (999, 1_500, 3_100_000)] == ["999 B", "1.5 kB", "3.1 MB"]
    assert [many(n, "segment") for n in (0, 1, 2_000)] == ["0 segments", "1 segment", "2,000 segments"]


def test_a_folder_at_its_very_beginning_stops_nobody(tmp_path: Path) -> None:
    """A partition file that another process is just making has no tables yet: the watch goes on with what it knew."""
    from corpus.app.crawl_watch import Watch
    from corpus.app.orders import Orders
    from corpus.app.project import open_project
    from corpus.app.spending import Budget
    from corpus.config.load import load_config
    from corpus.crawl.worker import Progress

    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n', "utf-8")
    project = open_project(load_config(tmp_path / "corpus.toml"))
    project.layout.frontier.mkdir(parents=True)
    (project.layout.frontier / "p03.sqlite").touch()
    now = [0.0]
    watch = Watch(project, "r", "crawl", Orders(project), 5, monotonic=lambda: now[0], wall=lambda: 1_000.0 + now[0])
    alive = Progress(
        pages=10, requests=12, bytes_wire=1_000, gauges={"refused": {"robots": 2}, "statuses": {"200": 10, "404": 2}}
    )
    watch.look([alive], [], Budget(100), 0.0)
    now[0] = 5.0
    moved = Progress(
        pages=60, requests=70, bytes_wire=11_000, gauges={"refused": {"robots": 3}, "statuses": {"200": 60, "404": 10}}
    )
    live = watch.look([moved], [alive], Budget(100, 50_000.0, 60.0), 5.0)
    assert (live.pages, live.refused, live.statuses) == (70, {"robots": 5}, {"2xx": 70, "4xx": 12})
    assert live.pages_s == pytest.approx((70 - 10) / 5)
    assert live.budget == [["crawl.max_pages", 75, 100], ["crawl.max_bytes", 12_000, 50_000.0], ["crawl.max_time", 5.0, 60.0]]
    assert live.bound == "crawl.max_pages"
    assert live.eta_s == pytest.approx(25 / 12)
