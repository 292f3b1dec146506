"""What holds fetch and what lets it go on, decided by the supervisor of a crawl: with a clock and a processing process of our own."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest

from corpus.app import overlap as overlap_module
from corpus.app.overlap import DEATHS, GIVE_UP_S, Overlap, wanted
from corpus.app.project import Project, open_project
from corpus.config.load import load_config
from corpus.errors import StoreError, TryLater
from corpus.observe.live import Live, why_stalled
from corpus.observe.terminal import plain_line
from corpus.store.commits import CommitRecord

LIMIT = 1000
KEY = "pages.c.s00-000001-00000{}"


class StandIn:
    """A processing process that says what the test puts into `says` (None: it dies)."""

    def __init__(self, exit_code: int = -9) -> None:
        self.says: deque[Any] = deque()
        self.told: list[Any] = []
        self.stopped = False
        self._exit_code = exit_code
        self.connection = self

    def send(self, message: Any) -> bool:
        self.told.append(message)
        return True

    def poll(self, _timeout_s: float) -> bool:
        return bool(self.says)

    def recv(self) -> Any:
        message = self.says.popleft()
        if message is None:
            raise EOFError
        return message

    def stop(self, grace_s: float = 0.0) -> None:
        self.stopped = True

    def exit_code(self) -> int:
        return self._exit_code


class Bench:
    """One `Overlap` over an empty folder."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.events: list[str] = []
        self.children: list[StandIn] = []
        self.project = project(folder)
        monkeypatch.setattr(overlap_module, "start", self._start)
        self.overlap = Overlap(self.project, "c", lambda event, **_: self.events.append(event), monotonic=lambda: self.now)

    def _start(self, *_: Any) -> StandIn:
        self.children.append(StandIn())
        return self.children[-1]

    def seal(self, number: int, size: int) -> str:
        key = KEY.format(number)
        info = {"kind": "pages", "crawl_id": "c", "origin": "crawl", "bytes": size}
        record = CommitRecord(
            "segment", key, outputs={f"warc/crawl_id=c/{key[8:]}.warc.gz": "0" * 64}, rows={"pages": 1}, info=info
        )
        self.project.commits.put(record)
        return key

    def open(self, size: int) -> None:
        folder = self.project.layout.warc_dir("c")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "s00-000001-000009.warc.gz.open").write_bytes(bytes(size))

    def later(self, seconds: float = 1.0) -> bool:
        self.now += seconds
        self.overlap.look()
        return self.overlap.held


def project(folder: Path, *more: str) -> Project:
    folder.mkdir(exist_ok=True)
    (folder / "corpus.toml").write_text(f'[corpus]\nname = "x"\n[engine]\nbacklog = "{LIMIT}B"\n', "utf-8")
    return open_project(load_config(folder / "corpus.toml", overrides=more, environment={}))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path / "corpus", monkeypatch)


def test_nothing_is_started_before_something_is_sealed(bench: Bench) -> None:
    """A small crawl pays nothing, however much lies in open segments: alone they never hold fetch."""
    bench.open(5 * LIMIT)
    assert not bench.later()
    assert not bench.children
    bench.seal(1, 10)
    bench.later()
    assert [child.told for child in bench.children] == [[("more", 1)]]


def test_nobody_is_started_for_what_the_end_of_a_crawl_seals(bench: Bench) -> None:
    """The stage after it measures those segments; a process that is there already hears of them."""
    bench.seal(1, 10)
    bench.now += 1.0
    bench.overlap.look(ending=True)
    assert not bench.children
    bench.later()
    bench.seal(2, 10)
    bench.now += 1.0
    bench.overlap.look(ending=True)
    assert [child.told for child in bench.children] == [[("more", 1), ("more", 2)]]


def test_fetch_waits_at_the_limit_and_goes_on_below_it(bench: Bench) -> None:
    """Sealed and open bytes count together; a measured segment makes room; both changes are told once."""
    first = bench.seal(1, 600)
    assert not bench.later()
    bench.open(400)
    assert bench.later()
    assert not bench.overlap.look()  # nothing new
    live = Live()
    bench.overlap.tell(live)
    assert (live.held, live.waiting_bytes, live.waiting_limit) == (True, 600, LIMIT)
    assert "fetch waits for processing" in why_stalled(live, 0.0)
    assert "1 (600 B of 1.0 kB) wait" in plain_line(live)
    bench.children[0].says.append(("measured", first, 7, 6))
    assert not bench.later()
    totals = bench.overlap.totals
    assert (totals.segments, totals.bytes, totals.documents, totals.texts) == (1, 600, 7, 6)
    bench.overlap.tell(live)
    assert (live.processed_pages, live.processed_texts) == (7, 6)
    assert 1.0 <= totals.held_s <= 2.0


def test_what_somebody_else_measured_waits_no_longer(bench: Bench) -> None:
    """The process' own look decides about what was sealed before it was asked; a later segment stays."""
    bench.seal(1, LIMIT)
    assert bench.later()
    second = bench.seal(2, 30)
    bench.later()
    bench.children[0].says.append(("waiting", 1, []))
    assert not bench.later()
    live = Live()
    bench.overlap.tell(live)
    assert live.waiting_bytes == 30
    bench.children[0].says.append(("waiting", 2, [second]))
    bench.later()
    bench.overlap.tell(live)
    assert live.waiting_segments == 1


def test_what_an_earlier_run_left_is_taken_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments without a measurement at the start are asked about; none are where all have one."""
    left = bench.seal(1, LIMIT)
    again = Overlap(bench.project, "c", lambda *_, **__: None, monotonic=lambda: bench.now)
    bench.now += 1
    again.look()
    (child,) = bench.children
    child.says.append(("waiting", 1, [left]))
    bench.now += 1
    assert again.look()
    assert again.held
    bench.project.commits.put(CommitRecord("map", "k", info={"crawl_id": "c", "segment": left[8:]}))
    Overlap(bench.project, "c", lambda *_, **__: None, monotonic=lambda: bench.now + 1).look()
    assert len(bench.children) == 1


def test_what_must_be_measured_again_takes_no_room(bench: Bench) -> None:
    """Other options ask for everything of earlier runs again: that is done, and fetch does not wait for it."""
    old = bench.seal(1, 5 * LIMIT)
    bench.project.commits.put(CommitRecord("map", "k", info={"crawl_id": "c", "segment": old[8:]}))
    again = Overlap(bench.project, "c", lambda *_, **__: None, monotonic=lambda: bench.now)
    new = bench.seal(2, 10)
    bench.now += 1
    again.look()
    bench.children[0].says.append(("waiting", 1, [old, new]))
    bench.now += 1
    again.look()
    assert not again.held
    live = Live()
    again.tell(live)
    assert live.waiting_bytes == 10


def test_a_store_that_does_not_answer_is_no_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The supervisor looks again later; nothing is raised into the crawl."""

    def gone() -> None:
        raise TryLater("no answer")

    bench.seal(1, 10)
    with monkeypatch.context() as patched:
        patched.setattr(bench.overlap, "_sealed", gone)
        assert not bench.later()
    bench.later()
    assert [child.told for child in bench.children] == [[("more", 1)]]


def test_a_processing_that_stands_still_does_not_hold_fetch_for_good(bench: Bench) -> None:
    """An hour without one segment done: it is ended and said so, and the crawl goes on without it, for the rest of it."""
    bench.seal(1, LIMIT)
    assert bench.later()
    assert bench.later(GIVE_UP_S - 10)
    assert not bench.later(20)
    assert "processing stopped" in bench.events
    assert bench.children[0].stopped
    bench.seal(2, LIMIT)
    assert not bench.later()
    assert len(bench.children) == 1


def test_deaths_are_counted_and_end_it(bench: Bench) -> None:
    """It is started again while there is work, and given up after three deaths."""
    bench.seal(1, LIMIT)
    bench.later()
    for n in range(DEATHS):
        assert len(bench.children) == n + 1
        bench.children[n].says.append(None)
        bench.later()
    assert bench.events.count("processing died") == DEATHS
    assert bench.events[-1] == "processing stopped"
    assert not bench.later()


def test_an_error_of_ours_ends_it_and_not_the_crawl(bench: Bench) -> None:
    """What would stop the stage is said; the stage after the crawl meets it again."""
    bench.seal(1, LIMIT)
    bench.later()
    bench.children[0].says.append(("error", StoreError("no room", "/disk", "")))
    assert not bench.later()
    assert bench.events == ["processing stopped"]


def test_a_locked_stage_is_asked_again(bench: Bench) -> None:
    """Somebody else processes at this moment: it waits, and looks again."""
    bench.seal(1, 10)
    bench.later()
    bench.children[0].says.append(("later", "process is locked by process 7"))
    bench.later(1)
    assert bench.children[0].told == [("more", 1)]
    bench.later(10)
    assert bench.children[0].told == [("more", 1), ("more", 2)]


def test_the_last_round_has_as_long_again_as_it_took(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is half done when the crawl ends is waited for, but not for ever; with nothing half done nobody waits."""
    first = bench.seal(1, 10)
    bench.later()
    child = bench.children[0]
    child.says.append(("waiting", 1, [first]))
    bench.later()
    bench.later(30)
    began = bench.now
    polled = child.poll

    def passing(timeout_s: float) -> bool:
        bench.now += timeout_s
        return polled(timeout_s)

    monkeypatch.setattr(child, "poll", passing)
    assert bench.overlap.finish(lambda: 0)
    assert 30 <= bench.now - began <= 35
    assert child.stopped
    assert bench.overlap.totals.waiting_segments == 1
    assert ("end",) in child.told


def test_a_stop_ends_the_wait(bench: Bench) -> None:
    """Asked to stop while the last round goes on, it is ended at once and the answer says so."""
    bench.seal(1, 10)
    bench.later()
    assert not bench.overlap.finish(lambda: 1)
    assert bench.children[0].stopped


def test_it_is_for_this_machine(tmp_path: Path) -> None:
    """Ranks and a cluster process elsewhere; and it can be told not to."""
    assert wanted(project(tmp_path / "corpus"))
    assert not wanted(project(tmp_path / "corpus", "engine.overlap=false"))
    assert not wanted(project(tmp_path / "corpus", "engine.kind=rank"))
