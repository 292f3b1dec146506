"""The watch over one page: a note while it is worked on, and an end where it takes too much CPU; never in a process of its own."""

from __future__ import annotations

import errno
import os
import re
import time
from pathlib import Path

import pytest

from corpus.engine.local import TRIES, LocalPool
from corpus.engine.page_watch import PageWatch, page_of
from corpus.engine.tasks import Crashed, Done, Task
from corpus.errors import TryLater


def test_the_note_names_the_page_and_is_gone_afterwards(tmp_path: Path) -> None:
    """While a page is worked on its digest is in the note; between pages, and after all, nothing is."""
    note = tmp_path / "n"
    with PageWatch(note, 0.001) as watch:
        with watch.page("ab" * 32):
            assert page_of(note) == "ab" * 32
            _spin(0.05)  # far past the limit: this process is nobody's worker
        assert page_of(note) == ""
    assert not note.exists()
    assert page_of(note) == ""


def test_a_full_disk_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No room for the note: an error that says so and what to do, not a defect with a traceback."""

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with PageWatch(tmp_path / "n", 60.0) as watch:
        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(TryLater, match="No space left"), watch.page("ab" * 32):
            raise AssertionError("no page is worked on without its note")


def _spin(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        sum(range(1000))


def work(spec: tuple[str, str]) -> str:
    """In a worker: what `spec` says, under a watch of .2 CPU-seconds a page."""
    note, what = spec
    with Path(f"{note}.tries").open("a") as tries:
        tries.write("x")
    with PageWatch(Path(note), 0.2) as watch:
        for page in range(4):
            with watch.page(f"{page:064x}"):
                _spin(0.08)
        if what == "sleep":
            with watch.page("5" * 64):
                time.sleep(0.6)
        if what == "hang":
            with watch.page("f" * 64):
                re.match(r"(a+)+$", "a" * 64 + "b")  # in C code that neither ends nor listens
    return what


def test_a_page_that_takes_too_much_cpu_ends_its_worker_once(tmp_path: Path) -> None:
    """Many pages, or one that waits, may take longer than the limit; one that computes longer is reported at the first try."""
    tasks = [Task(what, (str(tmp_path / what), what)) for what in ("fine", "sleep", "hang")]
    outcomes = {outcome.key: outcome for outcome in LocalPool(2).run("tests.unit.test_page_watch:work", tasks)}
    assert outcomes["fine"] == Done("fine", "fine")
    assert outcomes["sleep"] == Done("sleep", "sleep")
    hung = outcomes["hang"]
    assert isinstance(hung, Crashed)
    assert hung.overran
    assert hung.tries == 1 < TRIES
    assert (tmp_path / "hang.tries").read_text() == "x"
    assert page_of(tmp_path / "hang") == "f" * 64
