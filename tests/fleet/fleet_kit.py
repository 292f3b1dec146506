"""A fleet of real `corpus worker` processes on one machine: one root, one database, a working folder for each worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.app.frontier_files import read_all
from corpus.store.fleet_members import Member, members_there
from corpus.store.layout import Layout
from corpus.testing.web_log import Contact
from corpus.testing.web_process import ServerProcess
from corpus.url.host import registered_domain
from corpus.url.partition import partition_file
from tests.laws.crawl_folder import Folder
from tests.laws.law_web import LawWeb

WAIT_S = 120.0
SKEWED = Path(__file__).parent / "skewed"


@dataclass(slots=True)
class Worker:
    """One `corpus worker`; its log is what it said."""

    process: subprocess.Popen[str]
    log: Path
    began: float

    def kill(self) -> None:
        """kill -9 of the worker and of its fetch process."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def signal(self, number: int, *, group: bool = True) -> None:
        if group:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def said(self) -> str:
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""

    def end(self, timeout_s: float = WAIT_S) -> int:
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(self.said()[-4000:]) from None


@dataclass(slots=True)
class FleetFolder(Folder):
    """A corpus that workers crawl together. Use as a context: whoever still runs at the end is killed."""

    dsn: str = ""
    settings: tuple[str, ...] = ()
    workers: list[Worker] = field(default_factory=list)

    @classmethod
    def at(cls, path: Path, server: ServerProcess, seeds: list[str], dsn: str, *settings: str) -> FleetFolder:
        folder = Folder.make(path, server, seeds)
        text = (path / "corpus.toml").read_text("utf-8")
        lease = 'lease = "2s"\nsegment_age = "1s"\n'
        (path / "corpus.toml").write_text(text.replace("[store]\n", f'[store]\nfrontier = "{dsn}"\n{lease}'), "utf-8")
        return cls(folder.path, server, dsn=dsn, settings=("crawl.total_timeout=1s", *settings))

    def __enter__(self) -> FleetFolder:
        self.windows.append((time.time(), float("inf")))
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.kill()
        self.windows = [(start, min(end, time.time())) for start, end in self.windows]

    def start(
        self,
        *argv: str,
        verb: str = "worker",
        local: Path | None = None,
        dsn: str = "",
        inside: Sequence[str] = (),
        skew_s: float = 0.0,
    ) -> Worker:
        """`local`: its working folder; `dsn`: another way to the database; `inside`: what its command is begun with; `skew_s`: how
        wrong its machine's clock is."""
        n = len(self.workers)
        log = self.path / f"worker-{n}.txt"
        own = [f"store.local={local or self.path / f'.local-{n}'}", *([f"store.frontier={dsn}"] if dsn else [])]
        overrides = [part for one in (*own, *self.settings) for part in ("--set", one)]
        command = [*inside, sys.executable, "-m", "corpus", verb, "-c", str(self.path / "corpus.toml"), *overrides, *argv]
        env = {**os.environ, "CORPUS_TEST_SKEW": str(skew_s), "PYTHONPATH": str(SKEWED)} if skew_s else None
        with log.open("w") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, text=True, start_new_session=True, env=env)
        self.workers.append(Worker(process, log, time.monotonic()))
        return self.workers[-1]

    # ---- what can be seen of it

    @property
    def layout(self) -> Layout:
        return Layout(self.path, self.path / ".local", self.dsn)

    def there(self) -> list[Member]:
        return members_there(self.dsn)

    def pages(self) -> int:
        """Pages acknowledged."""
        return sum(n for (n,) in read_all(self.layout, "SELECT n FROM tally WHERE state = 'fetched' AND page = 1"))

    def urls(self) -> dict[str, tuple[str, str]]:
        found = list(read_all(self.layout, "SELECT url, state, reason FROM urls"))
        assert len({url for url, _, _ in found}) == len(found)
        return {url: (state, reason) for url, state, reason in found}

    def until(self, what: Callable[[], Any], why: str, timeout_s: float = WAIT_S) -> None:
        ends = time.monotonic() + timeout_s
        while not what():
            if time.monotonic() > ends:
                raise AssertionError(why + "\n" + "\n".join(worker.said()[-2500:] for worker in self.workers))
            time.sleep(0.05)

    def owned(self) -> dict[int, int]:
        """Partition files by the member that owns them and is at work."""
        return {file: member.id for member in self.there() for file in member.report.get("files", ())}

    def number_of(self, worker: Worker) -> int:
        """The number by which the fleet knows a worker."""
        return next(member.id for member in self.there() if member.pid == worker.process.pid)

    def asked(self, files: Collection[int], since: float, until: float) -> list[Contact]:
        """Contacts to hosts of these partition files that began in that time (epoch seconds)."""
        return [
            contact for contact in self.server.log()
            if since < contact.arrived_wall < until and partition_file(registered_domain(contact.host), self.layout.spread) in files
        ]  # fmt: skip

    def check_truth(self, web: LawWeb) -> None:
        """Every page has the state that the web's own account gives it, each once (`urls`), and law D holds."""
        urls = self.urls()
        wrong = [(u, urls.get(u), s.state.value) for u, s in web.pages().items() if urls.get(u, ("", ""))[0] != s.state.value]
        assert not [row for row in wrong if "/r/long-" not in row[0]]
        self.check_manners(web.refusals())

    def flags(self) -> list[str]:
        """`--set` for a machine that crawls nothing."""
        return [part for one in (f"store.local={self.path}/.local", *self.settings) for part in ("--set", one)]

    def finish(self) -> None:
        """Measure and release what was crawled; nothing is asked of anybody any more."""
        for verb in ("process", "export"):
            argv = self.argv(verb, f"store.local={self.path}/.local", *self.settings)
            done = subprocess.run(argv, capture_output=True, text=True, timeout=180, check=False)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]

    def check_against(self, whole: Folder, refusals: list[str]) -> None:
        """Laws B and D: the URLs, states and rows of a single machine's crawl; no short gap, nothing refused was asked."""
        assert self.urls() == whole.urls()
        self.check_manners(refusals)
        self.finish()
        assert self.rows() == whole.rows()
