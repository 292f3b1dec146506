"""A disk that is really full, under the whole command: the crawl waits and goes on by itself, later stages end and are resumed."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.testing.demo.server import serving
from corpus.testing.demo.settings import demo_config
from tests.demo_corpus import corpus_cli
from tests.small_disk import small_disk

pytestmark = pytest.mark.slow


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk") as where:
        yield where


class Filled:
    """A run that is watched line by line; the disk is filled when a line begins with `at`."""

    def __init__(self, disk: Path, at: str) -> None:
        """`at`: how a line begins; empty where the test fills the disk itself."""
        self.lines: list[str] = []
        self.full = threading.Event()
        self._filler = disk / "filler"
        self._at = at
        self.process = subprocess.Popen(
            [sys.executable, "-m", "corpus", "run", "-c", str(disk / "corpus" / "corpus.toml")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if self._at and line.startswith(self._at) and not self.full.is_set():
                self.fill()

    def fill(self) -> None:
        fd = os.open(self._filler, os.O_WRONLY | os.O_CREAT)
        with contextlib.suppress(OSError):  # this is what full means
            while True:
                os.write(fd, b"x" * 4096)
        os.close(fd)
        self.full.set()

    def said(self, words: str, within_s: float = 60.0) -> bool:
        until = time.monotonic() + within_s
        while time.monotonic() < until and self.process.poll() is None and words not in self.text:
            time.sleep(0.05)
        return words in self.text

    def free(self) -> None:
        self._filler.unlink()

    def end(self) -> int:
        code = self.process.wait(120)
        self._thread.join(10)
        return code

    @property
    def text(self) -> str:
        return "".join(self.lines)


def folder(disk: Path, origins: dict[str, str], delay: str) -> Path:
    (disk / "corpus").mkdir()
    text = demo_config(origins).replace('delay = "50ms"\ndelay_start = "50ms"', f'delay = "{delay}"\ndelay_start = "{delay}"')
    (disk / "corpus" / "corpus.toml").write_text(text, "utf-8")
    return disk / "corpus"


def rows(corpus: Path) -> int:
    said = corpus_cli("verify", "-c", corpus / "corpus.toml", "--json").json
    assert said["ok"], said["faults"][:5]
    return int(said["checked"]["release_rows"])


def test_a_crawl_waits_for_room_and_ends_as_if_nothing_had_been(disk: Path) -> None:
    """Full in the middle of the crawl: it says so, asks nobody, and goes on when there is room."""
    with serving() as served:
        corpus = folder(disk, dict(served.origins), "200ms")
        run = Filled(disk, "")
        until = time.monotonic() + 60
        while not list((corpus / "warc").glob("crawl_id=*/*.open")) and time.monotonic() < until:
            time.sleep(0.02)
        run.fill()
        assert run.said("waiting for the store"), run.text
        time.sleep(2.0)
        assert run.process.poll() is None, run.text
        run.free()
        assert run.end() == 0, run.text
    assert "the store answers again" in run.text
    assert rows(corpus) > 50


@pytest.mark.parametrize("at", ["process ", "snapshot ", "dedup "])
def test_a_later_stage_ends_and_is_resumed(disk: Path, at: str) -> None:
    """Full while measuring, clustering or exporting: exit 1 with a plain sentence; the same command finishes it once there is room."""
    with serving() as served:
        corpus = folder(disk, dict(served.origins), "50ms")
        run = Filled(disk, at)
        assert run.full.wait(90), run.text
        code = run.end()
        assert code == 1, run.text
        assert "Traceback" not in run.text, run.text
        assert "No space left" in run.text or "full" in run.text, run.text
        run.free()
        assert corpus_cli("run", "-c", corpus / "corpus.toml").code == 0
    assert rows(corpus) > 50
