"""`corpus worker` from start to summary: checks what a fleet needs, then one member's life (`fleet_worker`)."""

from __future__ import annotations

import re
import shutil
import socket
from contextlib import suppress

from corpus.app.project import Project, open_project
from corpus.app.run import INTERRUPTED, RESUME, Run
from corpus.config.tree import Config
from corpus.errors import CorpusError, NoRoom, UsageError
from corpus.observe.summary import Summary
from corpus.store.locks import stage_lock

_REGION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}\Z")


def check_worker(config: Config, region: str) -> None:
    """Raises UsageError for what no fleet can be made of, before anything is opened."""
    if config.store.frontier == "sqlite":
        hint = 'set store.frontier = "postgresql://user@host/database"; on one machine corpus crawl needs no server'
        raise UsageError("a fleet's frontier lies in PostgreSQL", "store.frontier", hint)
    if config.crawl.processes != 1:
        raise UsageError("a worker is one fetch process", "crawl.processes", "start as many workers as there are cores for them")
    if region and not _REGION.match(region):
        raise UsageError(f"not a name of a region: {region[:60]!r}", "--region", "letters, digits, '.', '_' and '-', at most 40")


def check_room(project: Project) -> None:
    """Raises NoRoom where not one segment would fit: who joins takes files from others, and should be able to work on them."""
    needed = project.config.store.segment_bytes
    for folder in (project.layout.root, project.layout.local):
        free = shutil.disk_usage(folder).free
        if free < needed:
            said = f"{free / 1e6:.0f} MB are free, and a segment takes up to {needed / 1e6:.0f} MB"
            raise NoRoom(said, str(folder), "free some space, or name another folder")


def run_worker(config: Config, *, region: str = "", quiet: bool = False) -> Summary:
    """Join the fleet and crawl until the run ends, or until told to go. Writes this worker's log and summary."""
    check_worker(config, region)
    from corpus.app.fleet_worker import FleetWorker

    project = open_project(config)
    check_room(project)
    with stage_lock(project.layout.locks, "crawl", shared=True):
        project.clean()
        run = Run(project, quiet=quiet, suffix=re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:40])
        try:
            with run.interrupts.installed(run.terminal):
                worker = FleetWorker(project, run.crawl_id, run.run_id, region, run.log)
                try:
                    run.fetch_end = worker.run(run.interrupts)
                finally:
                    worker.close()
                run.terminal.close()
                if (
                    run.fetch_end.ended == "interrupted"
                ):  # what is impatient is told the same: it ends, and its summary is written
                    return run.finish(ended="interrupted", exit_code=INTERRUPTED, words=RESUME)
            return run.finish(ended=run.fetch_end.ended)
        except CorpusError as error:
            with suppress(CorpusError):  # a frontier too far away to be counted: the error that is raised again says so
                run.finish(ended="failed", exit_code=error.exit_code, words=str(error.what))
            raise
