"""One demo corpus per test process, made by the real pipeline, and the command line called in this process."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from corpus.app.project import Project, open_project
from corpus.cli.main import main
from corpus.config.load import load_config
from corpus.observe.summary import Summary
from corpus.testing.demo.server import serving
from corpus.testing.demo.settings import demo_config


@dataclass(frozen=True, slots=True)
class DemoCorpus:
    """A finished demo run. `origins`: host key → `http://host:port` of a web that is no longer served."""

    folder: Path
    origins: dict[str, str]
    summary: Summary

    @property
    def config(self) -> Path:
        return self.folder / "corpus.toml"

    def project(self) -> Project:
        return project_of(self.folder)

    def copy(self, to: Path) -> Path:
        """A copy of the folder to damage; returns it."""
        shutil.copytree(self.folder, to)
        return to


def make_demo(folder: Path) -> DemoCorpus:
    """Run the demo, about five seconds."""
    from corpus.app.demo import demo
    from corpus.testing.demo.pages import sites

    end = demo(folder, quiet=True)
    port = (
        next(line for line in end.config.read_text("utf-8").splitlines() if "http://" in line)
        .rpartition(":")[2]
        .partition("/")[0]
    )
    return DemoCorpus(folder, {site.key: f"http://{site.address}:{port}" for site in sites()}, end.summary)


def project_of(folder: Path) -> Project:
    return open_project(load_config(folder / "corpus.toml"), create=False)


@dataclass(frozen=True, slots=True)
class Said:
    """How a command ended, and what it printed where."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout; anything else there fails."""
        return json.loads(self.out)


def corpus_cli(*arguments: str | Path) -> Said:
    """`corpus …` through its entry point, in this process."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    argv: Sequence[str] = ["corpus", *map(str, arguments)]
    with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return Said(code, out.getvalue(), err.getvalue())


def crawled_in_segments(folder: Path) -> Path:
    """The demo web crawled into a new folder in many small segments, none of them measured."""
    folder.mkdir()
    with serving() as web:
        (folder / "corpus.toml").write_text(demo_config(web.origins) + 'segment_bytes = "16kB"\n', "utf-8")
        said = corpus_cli("crawl", "-c", folder / "corpus.toml", "--set", "crawl.processes=2")
    assert said.code == 0, said.err
    return folder
