"""One run: crawl, process, dedup, export in order, each resumable, and one summary at the end.

`corpus run` again is resume: stages find what is done by their commit records. Every verb that works on a folder goes
through `Run`, so that each leaves a log and a summary under `runs/<run>/`. What only one stage needs is imported where that
stage begins: a crawl pays half a CPU-second less.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from types import FrameType
from typing import TYPE_CHECKING

from corpus.app.engines import engine_of
from corpus.app.freshness import freshness_now
from corpus.app.frontier_view import host_states
from corpus.app.funnel import told_funnel, whole_funnel
from corpus.app.host_quality import write_host_quality
from corpus.app.index import index_segments
from corpus.app.orders import Orders
from corpus.app.period import crawl_label
from corpus.app.project import Project
from corpus.app.report import write_report
from corpus.app.segments import page_segments
from corpus.errors import CorpusError, NothingDone, StoreError, TryLater
from corpus.model import FUNNEL_STAGES
from corpus.observe.live_file import LiveFile
from corpus.observe.runlog import RunLog, Terminal, told_to_all
from corpus.observe.summary import FetchTotals, Summary, sentence
from corpus.observe.usage import cpu_seconds, peak_rss_bytes
from corpus.store.commits import file_sha256
from corpus.store.local_objects import sealed
from corpus.version import __version__

if TYPE_CHECKING:
    from corpus.app.crawl import CrawlEnd
    from corpus.app.overlap import Overlap

INTERRUPTED = 130
RESUME = "interrupted; run the same command again to resume"


PARKED_NAMED = 10


class Interrupts:
    """Counts SIGINT and SIGTERM: the first drains, the second stops at once. Installed only in the main thread."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> int:
        return self.count

    @contextmanager
    def installed(self, terminal: Terminal) -> Iterator[None]:
        """Listen for SIGINT and SIGTERM inside the block."""

        def hear(_signal: int, _frame: FrameType | None) -> None:
            self.count += 1
            terminal("interrupt", what="draining; once more stops at once" if self.count == 1 else "stopping")

        before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Run:
    """One invocation of a verb on a folder."""

    def __init__(self, project: Project, *, quiet: bool = False, suffix: str = "") -> None:
        """`suffix`: what else names the run, where several machines write into one store."""
        self.project = project
        self._started, self._t0 = time.time(), time.monotonic()
        self.crawl_id = crawl_label(project.config, self._started)
        self.run_id = f"{datetime.fromtimestamp(self._started, UTC):%Y%m%dT%H%M%SZ}-{os.getpid()}" + (
            f"-{suffix}" if suffix else ""
        )
        self.terminal = Terminal(quiet=quiet)
        self.folder = project.layout.run_dir(self.run_id)
        self.live = LiveFile(self.folder)
        self.log = RunLog(self.folder / "log.jsonl", told_to_all(self.terminal, self.live))
        self.interrupts = Interrupts()
        self.fetch_end: CrawlEnd | None = None
        self.overlap: Overlap | None = None
        self._ordered = project.control.version()

    def crawl(self, *, processing: bool = False) -> CrawlEnd:
        """`processing`: sealed segments are measured meanwhile; what is left of them is for `process`."""
        from corpus.app.overlap import Overlap, wanted

        self.overlap = Overlap(self.project, self.crawl_id, self.log) if processing and wanted(self.project) else None
        with self.interrupts.installed(self.terminal):
            self.fetch_end = self._crawl_beside(self.overlap)
        if self.fetch_end.ended != "interrupted":  # whoever wants to stop is not kept waiting: the next run indexes
            index_segments(self.project, engine_of(self.project.config), self.log)
        return self.fetch_end

    def _crawl_beside(self, overlap: Overlap | None) -> CrawlEnd:
        from corpus.app.crawl import crawl

        try:
            end = crawl(self.project, self.crawl_id, self.run_id, self.log, self.interrupts, beside=overlap)
            self.terminal.close()
            if overlap is not None and end.ended != "interrupted" and not overlap.finish(self.stopped):
                end.ended = "interrupted"
            return end
        finally:
            if overlap is not None:
                overlap.close()

    def stopped(self) -> bool:
        """Whether an interrupt, or an order to drain given since this run began, asks it to end."""
        return bool(self.interrupts()) or Orders(self.project).standing.drain > self._ordered

    def process(self) -> None:
        from corpus.app.process import process

        process(self.project, engine_of(self.project.config), self.log)
        write_host_quality(self.project)

    def export(self, name: str, *, fixed: bool) -> int:
        """Consent, snapshot, clusters, release. Returns the number of rows. `fixed`: a taken name is an error."""
        from corpus.app.catalog import catalogue
        from corpus.app.refresh import refresh
        from corpus.app.release import RELEASE_STAGE, release
        from corpus.app.removals import report_release
        from corpus.app.snapshot import take_snapshot

        with self.interrupts.installed(self.terminal):
            stale = refresh(self.project, self.log, self.interrupts)
        snapshot = take_snapshot(self.project, stale=stale)
        self.log("snapshot", digest=snapshot.digest, segments=len(snapshot.segments), stale_authorities=len(stale))
        result = release(self.project, snapshot, name, self.log, fixed=fixed)
        name = result.folder.name
        rows = int(result.manifest["rows"])
        self.log("release", name=name, rows=rows, shards=len(result.manifest["shards"]), built=result.built)
        try:
            catalogue(self.project, name)
        except StoreError as error:
            self.log("warning", what=str(error.what), hint=error.hint)
        record = self.project.commits.get(RELEASE_STAGE, name)
        previous = str(record.info.get("previous") or "") if record is not None else ""
        report_release(self.project, snapshot, result.manifest, previous, self.folder, self.log)
        write_host_quality(self.project)
        return rows

    def finish(self, *, ended: str = "done", exit_code: int = 0, words: str = "") -> Summary:
        """Write `summary.json` and `report.md`; returns the summary."""
        steps, fresh = told_funnel(self.project), freshness_now(self.project, time.time())
        summary = Summary(
            self.run_id, self.crawl_id, self.project.config.digest(), __version__, _iso(self._started), _iso(time.time()),
            ended=ended, exit_code=exit_code, sentence=words or sentence(steps[: len(FUNNEL_STAGES)]), funnel=steps, fetch=fetch_totals(self.project, self.fetch_end),
            freshness=fresh.document() if fresh.fresh is not None else {},
            overlap=self.overlap.totals.document() if self.overlap is not None else {},
            cpu_s=cpu_seconds(), wall_s=round(time.monotonic() - self._t0, 3), peak_rss_bytes=peak_rss_bytes(),
        )  # fmt: skip
        with sealed(self.folder / "summary.json") as part:
            part.write_text(json.dumps(summary.document(), indent=2, ensure_ascii=False), "utf-8")
        write_report(self.folder / "report.md", summary)
        self.log.close()
        self.live.close()
        self.terminal.close()
        self._keep()
        return summary

    def _keep(self) -> None:
        """What a run says of itself goes where the corpus is; a store that does not answer keeps nobody from ending."""
        files = (path for path in sorted(self.folder.iterdir()) if path.is_file() and not path.name.startswith("."))
        with suppress(TryLater):
            self.project.files.publish({self.project.layout.relative(path): file_sha256(path) for path in files})


def run_all(
    project: Project, *, name: str | None = None, quiet: bool = False, stages: tuple[str, ...] = ("crawl", "process", "export")
) -> Summary:
    """Run the stages in order and write the summary, also when one of them stops on an error (which is raised again)."""
    run = Run(project, quiet=quiet)
    try:
        ended = "done"
        if "crawl" in stages:
            end = run.crawl(processing="process" in stages)
            ended = end.ended
            if ended == "interrupted":
                return run.finish(ended=ended, exit_code=INTERRUPTED, words=RESUME)
            if stages == ("crawl",) and ended == "done" and not end.parked and not page_segments(project):
                raise NothingDone("no page was stored")
        if "process" in stages:
            run.process()
        if run.stopped():
            return run.finish(ended="interrupted", exit_code=INTERRUPTED, words=RESUME)
        if "export" in stages:
            rows = run.export(name or project.config.export.name, fixed=name is not None)
            if not rows:
                return run.finish(ended=ended, exit_code=NothingDone.exit_code)
        return run.finish(ended=ended, words=_with_parked(project, run.fetch_end))
    except NothingDone as error:
        parked = run.fetch_end.parked if run.fetch_end is not None else {}
        if parked:  # nothing yet is not nothing: these hosts asked us to come back later
            return run.finish(words=f"nothing is stored yet: {_parked(parked)}; run the same command again later")
        return run.finish(ended="done", exit_code=error.exit_code, words=why_nothing(project, error))
    except KeyboardInterrupt:
        return run.finish(ended="interrupted", exit_code=INTERRUPTED, words=RESUME)
    except CorpusError as error:
        with suppress(CorpusError):  # a folder too broken to be counted: the error that is raised again says so
            run.finish(ended="failed", exit_code=error.exit_code, words=str(error.what))
        raise


def _with_parked(project: Project, end: CrawlEnd | None) -> str:
    """The usual sentence, and which hosts asked us to come back later; empty (the usual sentence alone) when none did."""
    if end is None or not end.parked:
        return ""
    names = sorted(host for host, state, _, _ in host_states(project) if state == "parked")
    listed = ", ".join(names[:PARKED_NAMED]) + (" \u2026" if len(names) > PARKED_NAMED else "")
    return f"{sentence(whole_funnel(project))}; {_parked(end.parked)}: {listed}"


def _parked(hosts: dict[str, int]) -> str:
    return ", ".join(f"{n} host{'s are' if n > 1 else ' is'} parked ({reason})" for reason, n in sorted(hosts.items()))


def why_nothing(project: Project, error: NothingDone) -> str:
    """Zero pages: the reason with most URLs behind it, in one sentence."""
    steps = whole_funnel(project)
    return sentence(steps) if steps[0].n_in else f"{error.what}"


def fetch_totals(project: Project, end: CrawlEnd | None) -> FetchTotals:
    """What the fetch stage did in this run, and what the folder holds by status and reason."""
    from corpus.app.frontier_files import read_all
    from corpus.app.frontier_view import tally

    totals = FetchTotals(
        requests=end.requests if end else 0, policy_requests=end.policy_requests if end else 0, pages=end.pages if end else 0
    )
    if end is not None:
        totals.bytes_wire, totals.bytes_body = end.bytes_wire, end.bytes_body
    for (state, reason), n in tally(project).items():
        if state == "refused":
            totals.refused[reason] = totals.refused.get(reason, 0) + n
        elif state in ("failed", "gone"):
            totals.failed[reason] = totals.failed.get(reason, 0) + n
        elif state == "not-modified":
            totals.not_modified += n
    for status, n in read_all(project.layout, "SELECT http_status, count(*) FROM visit WHERE http_status IS NOT NULL GROUP BY 1"):
        totals.by_status[str(status)] = totals.by_status.get(str(status), 0) + n
    return totals


def _iso(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
