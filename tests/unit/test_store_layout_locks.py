"""Where things lie, and who may write: paths that cannot leave the root, locks that die with their process."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corpus.errors import Locked, NewerSchema, StoreError
from corpus.store.layout import Layout, parse_segment, segment_name
from corpus.store.locks import PartitionLock, holder, stage_lock
from corpus.version import __version__


def test_the_folder_is_the_contracts(tmp_path: Path) -> None:
    """Every place that CONTRACT names, relative to root and local."""
    layout = Layout(tmp_path / "r", tmp_path / "l")
    assert {layout.relative(path) for path in (
        layout.warc_dir("2026-11"), layout.policy_dir("2026-11"), layout.sealed_dir("2026-11"), layout.cdxj, layout.commits, layout.inbox,
        layout.proofs, layout.consent, layout.control, layout.family_file("spans", "2026-11", segment_name(1, 2, 3)),
        layout.snapshot_dir("ab" * 32), layout.run_dir("2026-11-r1"), layout.release_dir("v1"),
    )} == {
        "warc/crawl_id=2026-11", "warc/policy/crawl_id=2026-11", "sealed/crawl_id=2026-11", "cdxj", "commits", "inbox", "proofs", "consent",
        "control", "spans/crawl_id=2026-11/s01-000002-000003.parquet", "snapshots/" + "ab" * 32, "runs/2026-11-r1", "releases/v1",
    }  # fmt: skip
    assert layout.frontier == tmp_path / "l/frontier"
    assert layout.catalog == tmp_path / "l/catalog.sqlite"


@pytest.mark.parametrize("bad", ["", "..", "a/b", "../x", ".hidden", "a\0", "a b", "x" * 101, "é"])
def test_a_name_from_outside_never_leaves_its_folder(tmp_path: Path, bad: str) -> None:
    """Labels with separators, dots or controls are refused wherever they would become a path."""
    layout = Layout(tmp_path, tmp_path)
    for make in (
        layout.warc_dir,
        layout.policy_dir,
        layout.run_dir,
        layout.release_dir,
        layout.snapshot_dir,
        lambda x: layout.families("documents", x),
    ):
        with pytest.raises(StoreError):
            make(bad)
    for file in ("/etc/passwd", "../x", "a/../../x", "", "a\0b"):
        with pytest.raises(StoreError):
            layout.absolute(file)
    assert layout.absolute("warc/x") == tmp_path / "warc/x"
    with pytest.raises(StoreError):
        layout.relative(Path("/elsewhere"))


def test_segment_names_sort_and_parse() -> None:
    """By worker, then epoch, then sequence; names of other making are not ours."""
    names = [segment_name(w, e, s) for w in (0, 1, 15) for e in (1, 20, 300) for s in (0, 9, 10)]
    assert names == sorted(names)
    assert [parse_segment(name) for name in names[:2]] == [(0, 1, 0), (0, 1, 9)]
    assert parse_segment("CC-MAIN-20240517") is None


def test_a_newer_folder_is_refused(tmp_path: Path) -> None:
    """A new folder gets corpus.json, an old one is accepted unchanged, a newer one is refused with its version, a damaged one too."""
    layout = Layout(tmp_path / "root", tmp_path)
    layout.check_schema()
    path = tmp_path / "root/corpus.json"
    assert json.loads(path.read_text()) == {"schema": 1, "created_by": __version__}
    before = path.read_bytes()
    layout.check_schema()
    assert path.read_bytes() == before
    path.write_text('{"schema": 2, "created_by": "9.9"}')
    with pytest.raises(NewerSchema, match=r"9\.9"):
        layout.check_schema()
    for data in ("", "[]", '{"schema": "x"}', "\0"):
        path.write_text(data)
        with pytest.raises(StoreError):
            layout.check_schema()


def test_a_lock_names_its_holder(tmp_path: Path) -> None:
    """A second writer is refused and told pid, host and age; after the first is done it may go on."""
    with stage_lock(tmp_path, "crawl", wall=lambda: 1000.0):
        with (
            pytest.raises(Locked, match=rf"process {os.getpid()} on .*for 42 s") as caught,
            stage_lock(tmp_path, "crawl", wall=lambda: 1042.0),
        ):
            pass
        assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
        assert (holder(tmp_path / "crawl.lock") or {})["pid"] == os.getpid()
        with stage_lock(tmp_path, "export"):
            pass
    assert holder(tmp_path / "crawl.lock") is None
    assert holder(tmp_path / "never.lock") is None
    with stage_lock(tmp_path, "crawl"):
        pass


CHILD = "import sys, time, pathlib, corpus.store.locks as l\nl.PartitionLock(pathlib.Path(sys.argv[1])).acquire(0)\nprint('held', flush=True)\ntime.sleep(60)"


def test_a_lock_dies_with_its_process(tmp_path: Path) -> None:
    """A successor waits for a living holder, and takes over at once from a killed one, whatever its file still says."""
    path = tmp_path / "locks" / "p00.lock"
    child = subprocess.Popen([sys.executable, "-c", CHILD, str(path)], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        lock = PartitionLock(path)
        with pytest.raises(Locked, match=f"process {child.pid} "):
            lock.acquire(0.05)
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert path.read_text(), "the dead process's words are still there"
        begun = time.monotonic()
        lock.acquire(5.0)
        assert time.monotonic() - begun < 2
        lock.release()
    finally:
        child.kill()
        child.wait()
        child.stdout.close() if child.stdout else None


def test_waiting_is_bounded(tmp_path: Path) -> None:
    """acquire waits as long as it was told, by the clock it was given."""
    now = [0.0]
    with PartitionLock(tmp_path / "x.lock"):
        with pytest.raises(Locked):
            PartitionLock(tmp_path / "x.lock").acquire(
                3.0, monotonic=lambda: now[0], sleep=lambda s: now.__setitem__(0, now[0] + s)
            )
        assert 3.0 <= now[0] < 3.1


def test_who_may_only_read_may_look_who_holds_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking at a lock never asks for leave to write: a reader of somebody else's folder sees who works in it."""
    real, asked = os.open, []

    def watched(path: str | os.PathLike[str], flags: int, *more: int) -> int:
        asked.append(flags)
        return real(path, flags, *more)

    with stage_lock(tmp_path, "crawl"):
        monkeypatch.setattr(os, "open", watched)
        found = holder(tmp_path / "crawl.lock")
    assert found is not None
    assert found["pid"] == os.getpid()
    assert not asked[0] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
