"""Law A as ranks of a batch system: whoever measured which segment, at the same time, twice, or after a kill, the release
has the same bytes as that of one call."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.app.process import map_records
from corpus.app.segments import page_segments
from corpus.config.load import load_config
from corpus.engine.share import Share
from corpus.errors import Locked, UsageError
from corpus.store.locks import holder, stage_lock
from tests.demo_corpus import corpus_cli, crawled_in_segments, project_of

ONE_WORKER = ("--set", "engine.workers=1", "--set", "engine.kind=rank")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo web in many small segments, none of them measured."""
    folder = crawled_in_segments(tmp_path_factory.mktemp("ranks") / "crawled")
    assert len(page_segments(project_of(folder))) >= 6
    return folder


@pytest.fixture(scope="module")
def whole(crawled: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The release that one call of each verb makes."""
    folder = copied(crawled, tmp_path_factory.mktemp("whole") / "c")
    for verb in ("process", "dedup", "export"):
        done(verb, folder)
    return release(folder)


def copied(crawled: Path, to: Path) -> Path:
    shutil.copytree(crawled, to)
    return to


def done(verb: str, folder: Path, *flags: str) -> dict[str, Any]:
    said = corpus_cli(verb, "-c", folder / "corpus.toml", "--json", *flags)
    assert said.code == 0, said.err
    return dict(said.json)


def release(folder: Path) -> dict[str, bytes]:
    root = folder / "releases" / "v1"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def rank(folder: Path, number: int, world: int) -> subprocess.Popen[bytes]:
    """A rank as a batch system starts it: a process of its own."""
    command = [sys.executable, "-m", "corpus", "process", "-c", str(folder / "corpus.toml"), *ONE_WORKER]
    return subprocess.Popen(
        [*command, "--rank", str(number), "--world", str(world)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def killed_half_way(crawled: Path, at: Path) -> tuple[Path, int]:
    """A folder in which a rank of 3 (the one with most to do) was killed after its first segment and before its last, and which."""
    segments = [f"{s.crawl_id}/{s.name}" for s in page_segments(project_of(crawled))]
    own = [sum(Share(number, 3).mine(name) for name in segments) for number in range(3)]
    victim = own.index(max(own))
    for attempt in range(4):  # where the machine let it run to its end first, once more
        folder = copied(crawled, at / f"try-{attempt}")
        records = folder / "commits" / "map"
        process = rank(folder, victim, 3)
        until = time.monotonic() + 60
        while not list(records.glob("*.json")) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if 1 <= len(list(records.glob("*.json"))) < own[victim]:
            return folder, victim
    raise AssertionError("no rank was killed half-way")


def test_ranks_killed_doubled_and_at_once_give_the_release_of_one_call(
    crawled: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    """Three ranks as processes, one killed -9 and run again, one of another world beside them: byte for byte the same release."""
    folder, victim = killed_half_way(crawled, tmp_path)
    together = [*(rank(folder, number, 3) for number in range(3) if number != victim), rank(folder, 1, 2)]
    assert [process.wait(120) for process in together] == [0, 0, 0]
    told = done("process", folder, *ONE_WORKER, "--rank", str(victim), "--world", "3")
    assert told["unmeasured"] == 0
    measured = map_records(project_of(folder))
    assert sorted(measured) == sorted(f"{s.crawl_id}/{s.name}" for s in page_segments(project_of(folder)))
    shared = [done("dedup", folder, "--rank", str(number), "--world", "3") for number in range(3)]
    assert [(told["left"] == 0, told["clusters"]) for told in shared] == [(False, False), (False, False), (True, False)]
    assert sum(told["done"] for told in shared) == shared[0]["tasks"]
    assert done("dedup", folder, "--rank", "0", "--world", "3")["clusters"]
    assert done("export", folder, "--rank", "2", "--world", "3") == {"rank": 2, "world": 3, "left_to": 0}
    assert not (folder / "releases").exists()
    assert corpus_cli("verify", "-c", folder / "corpus.toml").code == 0
    done("export", folder, "--rank", "0", "--world", "3")
    assert not (folder / "joins").exists()
    assert release(folder) == whole
    assert corpus_cli("verify", "-c", folder / "corpus.toml").code == 0


def test_what_ranks_have_left_out_is_not_released(crawled: Path, tmp_path: Path) -> None:
    """Rank 0 goes on only from the records of all: with a share missing dedup and export end with exit 1, and say what to run."""
    folder = copied(crawled, tmp_path / "c")
    told = done("process", folder, "--rank", "0", "--world", "2")
    assert 0 < told["measured"] == told["segments"]
    assert told["segments"] + told["unmeasured"] == len(page_segments(project_of(folder)))
    assert done("process", folder, "--rank", "0", "--world", "2")["measured"] == 0
    for verb in ("dedup", "export"):
        said = corpus_cli(verb, "-c", folder / "corpus.toml", "--rank", "0", "--world", "2")
        assert said.code == 1
        assert f"{told['unmeasured']} segments are not processed yet" in said.err
    assert not (folder / "releases").exists()


@given(st.lists(st.text(min_size=1), unique=True), st.integers(1, 40))
def test_every_task_has_exactly_one_rank(names: list[str], world: int) -> None:
    """Whatever the names and the number of ranks: each name is one rank's, and always the same one's."""
    shares = [Share(number, world) for number in range(world)]
    for name in names:
        assert sum(share.mine(name) for share in shares) == 1


def test_shares_are_about_equal() -> None:
    """16 ranks of 1,600 segments have 100 each, give or take what chance gives."""
    counts = Counter(next(r for r in range(16) if Share(r, 16).mine(f"c/s00-000001-{n:06d}")) for n in range(1_600))
    assert len(counts) == 16
    assert max(counts.values()) < 140
    assert min(counts.values()) > 60


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        (("--rank", "3", "--world", "3"), "--array=0-2"),
        (("--rank", "-1", "--world", "3"), "no rank -1"),
        (("--rank", "0", "--world", "0"), "nobody in it"),
        (("--rank", "0"), "--world"),
        (("--world", "2"), "--rank"),
        (("--set", "engine.kind=rank"), "engine.kind"),
    ],
)
def test_half_a_rank_is_wrong_use(tmp_path: Path, flags: tuple[str, ...], word: str) -> None:
    """A rank outside its world, half of the two flags, or neither where the configuration leaves stages to ranks: exit 2, nothing done."""
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n', "utf-8")
    for verb in ("process", "dedup", "export"):
        said = corpus_cli(verb, "-c", tmp_path / "corpus.toml", *flags)
        assert said.code == 2, said.err
        assert word in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.toml"]


def test_run_is_not_for_ranks(crawled: Path, tmp_path: Path) -> None:
    """`run` does every stage itself, so a configuration that leaves them to ranks stops it before it asks anybody."""
    folder = copied(crawled, tmp_path / "c")
    said = corpus_cli("run", "-c", folder / "corpus.toml", "--set", "engine.kind=rank")
    assert said.code == 2
    assert "engine.kind" in said.err
    assert (
        load_config(folder / "corpus.toml", overrides=["engine.kind=rank"], environment={}).digest()
        == project_of(folder).config.digest()
    )


def test_ranks_share_a_lock_that_a_single_call_does_not(tmp_path: Path) -> None:
    """Ranks hold the stage's lock together; a takedown or a whole `process` beside them is refused, and has it afterwards."""
    shared = stage_lock(tmp_path, "process", shared=True), stage_lock(tmp_path, "process", shared=True)
    with shared[0], shared[1], pytest.raises(Locked), stage_lock(tmp_path, "process"):
        pass
    with stage_lock(tmp_path, "process"):
        assert holder(tmp_path / "process.lock")
        with pytest.raises(Locked), stage_lock(tmp_path, "process", shared=True):
            pass


def test_a_share_names_what_is_wrong() -> None:
    """From Python too: UsageError, not a share that does nothing."""
    for number, world in ((4, 4), (0, 0), (-1, 2)):
        with pytest.raises(UsageError):
            Share(number, world)
