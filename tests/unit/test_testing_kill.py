"""The kill harness: it kills at the seeded moment, notices who lives on, and lets the command run again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corpus.testing.kill import Victim, run_until_killed
from tests.unit.alive import alive

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kill harness reads /proc")

# The supervisor starts one worker that waits on its pipe (or does not), and takes long the first time only.
_COMMAND = """
import pathlib, subprocess, sys, time
folder, obedient = pathlib.Path(sys.argv[1]), sys.argv[2] == "obedient"
worker = "import sys; sys.stdin.read()" if obedient else "import time; time.sleep(60)"
child = subprocess.Popen([sys.executable, "-S", "-c", worker], stdin=subprocess.PIPE, start_new_session=not obedient)
with (folder / "pids").open("a") as file:
    file.write(f"{child.pid}\\n")
starts = len((folder / "pids").read_text().split())
time.sleep(0.05 if starts > int(sys.argv[3]) else 60)
child.stdin.close()
if not obedient:
    child.kill()
child.wait()
print("whole", starts)
"""


def _argv(folder: Path, kind: str, kills: int = 1) -> list[str]:
    return [sys.executable, "-S", "-c", _COMMAND, str(folder), kind, str(kills)]


def _pids(folder: Path) -> list[int]:
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def _each_worker(folder: Path) -> Callable[[], bool]:
    """True once per run, when that run's worker has started: the moments count from then, however slow the machine."""
    runs = 1

    def under_way() -> bool:
        nonlocal runs
        started = (folder / "pids").exists() and len(_pids(folder)) >= runs
        runs += started
        return started

    return under_way


def test_killed_and_run_again(tmp_path: Path) -> None:
    """The supervisor is killed twice, its worker notices each time, and the third run ends in order."""
    report = run_until_killed(
        _argv(tmp_path, "obedient", 2), seed=3, after_s=(0.1, 0.3), kills=2, under_way=_each_worker(tmp_path)
    )
    assert [len(kill.orphans) for kill in report.kills] == [1, 1]
    assert [kill.orphans[0].pid for kill in report.kills] == _pids(tmp_path)[:2]
    assert all(0.1 <= kill.after_s <= 0.3 and kill.orphans_gone_s < 2 for kill in report.kills)
    assert (report.exit_code, report.stdout) == (0, "whole 3\n")
    assert not any(alive(pid) for pid in _pids(tmp_path))


def test_an_orphan_is_a_failure(tmp_path: Path) -> None:
    """A worker in a session of its own that outlives its supervisor is found, named, and killed."""
    with pytest.raises(AssertionError, match=r"seed 1, killed supervisor .*\n.*time\.sleep\(60\)"):
        run_until_killed(_argv(tmp_path, "stubborn"), seed=1, after_s=(0.1, 0.2), under_way=_each_worker(tmp_path))
    assert not any(alive(pid) for pid in _pids(tmp_path))


def test_the_whole_tree_at_once(tmp_path: Path) -> None:
    """With the tree as victim even a stubborn worker is gone at once, and the command runs to its end."""
    report = run_until_killed(
        _argv(tmp_path, "stubborn"), seed=2, after_s=(0.1, 0.2), victim=Victim.TREE, under_way=_each_worker(tmp_path)
    )
    assert (len(report.kills), report.exit_code, report.stdout) == (1, 0, "whole 2\n")
    assert not any(alive(pid) for pid in _pids(tmp_path))


def test_a_command_that_ends_before_its_moment() -> None:
    """Nothing is killed and nothing is run twice; the report says so."""
    report = run_until_killed([sys.executable, "-S", "-c", "print('done')"], seed=1, after_s=(20, 21))
    assert (report.kills, report.exit_code, report.stdout) == ((), 0, "done\n")


def test_a_second_run_without_end(tmp_path: Path) -> None:
    """A run that hangs after the kill is a TimeoutError, and is ended."""
    with pytest.raises(TimeoutError, match="seed 5"):
        run_until_killed(_argv(tmp_path, "obedient", 9), seed=5, after_s=(0.3, 0.4), timeout_s=0.4)
    assert not any(alive(pid) for pid in _pids(tmp_path))


def test_moments_come_from_the_seed(tmp_path: Path) -> None:
    """The same seed kills at the same moments."""
    moments = [
        run_until_killed(_argv(tmp_path / name, "obedient"), seed=8, after_s=(0.3, 0.6)).kills[0].after_s
        for name in _made(tmp_path, "a", "b")
    ]
    assert moments[0] == moments[1]


def _made(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).mkdir()
    return list(names)
