"""`corpus demo`: the whole job on the bundled little web, offline, into a folder that can be looked at afterwards."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

from corpus.app.project import open_project
from corpus.app.run import run_all
from corpus.config.check import require
from corpus.config.load import load_config
from corpus.errors import UsageError
from corpus.observe.summary import Summary
from corpus.testing.demo.server import serving
from corpus.testing.demo.settings import demo_config
from corpus.testing.demo.shows import SHOWS


@dataclass(frozen=True, slots=True)
class DemoEnd:
    """How the demo ended, and what to try next. `config` is the file it wrote."""

    summary: Summary
    config: Path
    next: tuple[tuple[str, str], ...]
    """(command, what it shows)"""


def demo(folder: Path, *, fresh: bool = False, quiet: bool = False, log: Path | None = None) -> DemoEnd:
    """Crawl the demo web into `folder`. A folder that holds something else is refused."""
    config_file = folder / "corpus.toml"
    if folder.exists() and any(folder.iterdir()):
        if not config_file.is_file() or "`corpus demo`" not in config_file.read_text("utf-8"):
            raise UsageError("holds something that the demo did not make", str(folder), "choose another --dir")
        if fresh:
            shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with serving(log=log) as served:
        config_file.write_text(demo_config(served.origins), "utf-8")
        config = require(load_config(config_file, environment={}), fetching=True)
        summary = run_all(open_project(config), quiet=quiet)
        shows = {show.name: show.url(served.origins) for show in SHOWS}
    run = f"corpus {{verb}} -c {shlex.quote(str(config_file))}"
    next_three = (
        (f"{run.format(verb='why')} {shows['robots refusal']}", "the line of robots.txt that refused it"),
        (f"{run.format(verb='sample')} --dropped -n 3", "what the policy dropped, with the measured value"),
        (f'{run.format(verb="sql")} "select domain, count(*) n from documents group by 1 order by 2 desc"', "query everything"),
    )
    return DemoEnd(summary, config_file, next_three)
