"""Temporary files of the dead are removed; those of the living, of other machines and of other making stay."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from corpus.store.writers import PREFIX, dead_parts, lives, part_name, remove_dead_parts

_DIE = "import pathlib, os, signal, sys; from corpus.store.writers import part_name; pathlib.Path(sys.argv[1], part_name('.x')).write_text('half'); os.kill(os.getpid(), signal.SIGKILL)"


def test_only_what_the_dead_left_is_removed(tmp_path: Path) -> None:
    """A writer is killed -9: its file goes, however deep; everybody else's stays."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    writer = subprocess.Popen([sys.executable, "-c", _DIE, str(tmp_path / "a" / "b")])
    assert writer.wait(60) == -9
    assert not lives(writer.pid)
    (left,) = dead_parts(tmp_path)
    assert left.parent == tmp_path / "a" / "b"
    others = [part_name(), left.name.replace(left.name.split("-")[2], "00000000"), f"{PREFIX}takedown-x", "whole.parquet"]
    for name in others:
        (tmp_path / name).write_text("")
    assert remove_dead_parts(tmp_path) == 1
    assert not left.exists()
    assert all((tmp_path / name).exists() for name in others)
    assert remove_dead_parts(tmp_path) == 0
