"""What the status page asks of a folder: numbers of the newest run, hosts, URLs, samples. Read-only, beside a running crawl.

Answers are kept for a moment, so that many pages cost what one does; a look at every URL of the frontier stops after two
seconds and says that it did; what costs more than a moment is looked up the more rarely, the longer it takes.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from corpus.app.fleet_status import numbers
from corpus.app.frontier_files import file_at
from corpus.app.funnel import whole_funnel
from corpus.app.project import Project
from corpus.app.sample import sample
from corpus.app.status import status
from corpus.app.url_states import Measured, state_of
from corpus.app.views import Views
from corpus.app.why import why
from corpus.errors import CorpusError, StoreError
from corpus.model import FunnelStep, UrlState
from corpus.observe.live import Live
from corpus.observe.live_file import read_live, read_series
from corpus.observe.metrics import FleetNumbers
from corpus.observe.words import many
from corpus.store.locks import holder

PAGE_ROWS = 50
LOOK_S = 2.0
MOMENT_S = 1.0
COSTS = 100.0
"""What took t seconds is good for 100 t, at most a minute: looking stays cheap, however often it is done."""
OLDEST_S = 60.0
KEPT_MAX = 500
_CHECK_EVERY = 20_000
SORTS = {
    "queued": "queued DESC, host", "pages": "pages DESC, host", "gap": "pace DESC, host", "next": "next_contact, host", "host": "host",
}  # fmt: skip
_T = TypeVar("_T")
_STORED = (UrlState.FETCHED.value, UrlState.PARSED.value)


@dataclass(frozen=True, slots=True)
class Rows:
    """`whole` False: the look was stopped; these are rows of the part that was seen."""

    rows: list[tuple[Any, ...]]
    whole: bool = True


@dataclass(slots=True)
class Kept:
    """Answers by question, each good for a while."""

    _answers: dict[str, tuple[float, Any, float]] = field(default_factory=dict)
    """(good until, the answer, when it was found)"""
    _locks: dict[str, threading.Lock] = field(default_factory=dict)

    def get(self, question: str, ask: Callable[[], _T], *, least_s: float = MOMENT_S, most_s: float = OLDEST_S) -> _T:
        """The kept answer, or a fresh one. Whoever comes while it is being asked waits for it."""
        if len(self._answers) > KEPT_MAX:
            self._answers.clear()
        with self._locks.setdefault(question, threading.Lock()):
            until, answer, _ = self._answers.get(question, (0.0, None, 0.0))
            began = time.monotonic()
            if began < until:
                return answer  # type: ignore[no-any-return]
            fresh = ask()
            ended = time.monotonic()
            self._answers[question] = (ended + min(max(least_s, COSTS * (ended - began)), most_s), fresh, began)
            return fresh

    def age_s(self, question: str) -> float:
        """How old the kept answer is; 0 without one."""
        found = self._answers.get(question)
        return time.monotonic() - found[2] if found is not None else 0.0


def _legible(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Text with lone surrogates is stored as bytes."""
    return tuple(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in row)


Told = Callable[[tuple[Any, ...]], tuple[Any, ...] | None]


class Look:
    """For one server. Every method may be called from a thread of its own."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.kept = Kept()
        self._measured = Measured(project)

    # ---- the newest run

    def run_folder(self) -> Path | None:
        """The newest run that left numbers; names of runs sort by their time."""
        runs = self.project.layout.runs
        found = sorted((path for path in runs.iterdir() if (path / "live.json").exists()), reverse=True) if runs.is_dir() else []
        return found[0] if found else None

    def live(self) -> Live | None:
        """The newest run's numbers. What is known of pages goes on changing when no crawl is there to count it: then it is counted here."""
        folder = self.run_folder()
        live = read_live(folder) if folder is not None else None
        if live is None or self.crawling():
            return live
        try:
            rows = self.status()["urls"]
        except CorpusError:
            return live  # the folder is being changed this very moment
        states: Counter[str] = Counter()
        for row in rows:
            states[row["state"]] += row["n"]
        return replace(live, frontier=dict(states), frontier_at=time.time() - self.kept.age_s("status"))

    def series(self) -> list[list[float]]:
        folder = self.run_folder()
        return read_series(folder) if folder is not None else []

    def running(self) -> str:
        """The stage that holds the folder now, or workers that crawl it together; or empty."""
        fleet = self.fleet()
        if fleet is not None and fleet.workers:
            return f"crawl, {many(fleet.workers, 'worker')}"
        return next((stage for stage in ("crawl", "process", "export") if self._held(stage)), "")

    def crawling(self) -> bool:
        """Whether the newest run's numbers are those of a crawl of this machine that is under way, alone or as one of a fleet."""
        fleet = self.fleet()
        return self._held("crawl") or (fleet is not None and fleet.here > 0)

    def _held(self, stage: str) -> bool:
        return holder(self.project.layout.locks / f"{stage}.lock") is not None

    def fleet(self) -> FleetNumbers | None:
        """The run that many machines share, some moments old; None without one, or while its server does not answer."""

        def ask() -> FleetNumbers | None:
            try:
                return numbers(self.project)
            except StoreError:
                return None

        return self.kept.get("fleet", ask, least_s=1.0)

    def status(self) -> dict[str, Any]:
        return self.kept.get("status", lambda: status(self.project), least_s=2.0)

    def funnel(self) -> list[FunnelStep]:
        """All steps as the folder stands, some moments old; empty while it cannot be made (a run is at its very beginning)."""

        def ask() -> list[FunnelStep]:
            try:
                return whole_funnel(self.project)
            except CorpusError:
                return []

        return self.kept.get("funnel", ask, least_s=5.0)

    # ---- hosts and URLs

    def hosts(self, *, search: str = "", state: str = "", sort: str = "queued", page: int = 0) -> Rows:
        """(host, state, reason, queued, pages, gap, next contact); `PAGE_ROWS` + 1 rows say that there is a next page."""
        wanted = (page + 1) * PAGE_ROWS + 1
        where, parameters = ["1"], []
        if search:
            where.append("host LIKE ? ESCAPE '\\'")
            parameters.append(f"%{_literal(search)}%")
        if state:
            where.append("state = ?")
            parameters.append(state)
        order = SORTS.get(sort, SORTS["queued"])
        query = f"SELECT host, state, reason, queued, pages, pace, next_contact FROM hosts WHERE {' AND '.join(where)} ORDER BY {order} LIMIT {wanted}"
        found = self._all(query, tuple(parameters))
        keys: dict[str, Callable[[tuple[Any, ...]], Any]] = {
            "queued": lambda r: (-r[3], r[0]), "pages": lambda r: (-r[4], r[0]), "gap": lambda r: (-r[5], r[0]),
            "next": lambda r: (r[6], r[0]), "host": lambda r: r[0],
        }  # fmt: skip
        rows = sorted(found.rows, key=keys.get(sort, keys["queued"]))[page * PAGE_ROWS : wanted]
        return Rows(rows, found.whole)

    def hosts_of(self, reason: str) -> Rows:
        """(host, URLs with this reason), most first."""

        def ask() -> Rows:
            query = "SELECT host, count(*) FROM urls WHERE reason = ? AND kind = 'page' GROUP BY host ORDER BY 2 DESC LIMIT 200"
            found = self._all(query, (reason,))
            return Rows(sorted(found.rows, key=lambda row: (-row[1], row[0]))[:200], found.whole)

        return self.kept.get(f"hosts of {reason}", ask, least_s=2.0)

    def host(self, host: str) -> dict[str, Any] | None:
        """A host's row, its URLs by state and reason, its authority files."""
        from corpus.app.frontier_view import host_row
        from corpus.url.host import registered_domain
        from corpus.url.partition import partition_file

        row = host_row(self.project, host)
        if row is None:
            return None
        file = partition_file(registered_domain(host), self.project.layout.spread)
        found = self._one(
            file, "SELECT state, reason, warc_file, count(*) FROM urls WHERE host = ? AND kind = 'page' GROUP BY 1, 2, 3", (host,)
        )
        sums: Counter[tuple[str, str]] = Counter()
        for state, reason, archive, n in found.rows:
            sums[self._state(state, archive), reason] += n
        counts = Rows([(*key, n) for key, n in sorted(sums.items(), key=lambda item: (-item[1], item[0]))], found.whole)
        files = self._one(
            file, "SELECT a.authority, k.name, a.outcome, a.status, a.read_at, a.detail FROM authority a JOIN host h ON h.id = a.host"
            " JOIN kind_name k ON k.code = a.kind WHERE h.name = ? ORDER BY 1, a.kind LIMIT 40", (host,),
        )  # fmt: skip
        return {**row, "counts": counts, "files": files}

    def urls(self, *, host: str = "", state: str = "", reason: str = "", search: str = "") -> Rows:
        """(url, state, reason, status, fetched at), at most `PAGE_ROWS` and one more."""
        where, parameters = ["kind = 'page'"], []
        stored = state in _STORED  # which of the two a page is does not stand in the frontier
        for column, value in (("host", host), ("state", _STORED[0] if stored else state), ("reason", reason)):
            if value:
                where.append(f"{column} = ?")
                parameters.append(value)
        if search:
            where.append("url LIKE ? ESCAPE '\\'")
            parameters.append(f"%{_literal(search)}%")
        query = f"SELECT url, state, reason, http_status, fetched_at, warc_file FROM urls WHERE {' AND '.join(where)}"

        def told(row: tuple[Any, ...]) -> tuple[Any, ...] | None:
            now = self._state(row[1], row[5])
            return None if stored and now != state else (row[0], now, *row[2:5])

        found = self._all(query if stored else f"{query} LIMIT {PAGE_ROWS + 1}", tuple(parameters), told, PAGE_ROWS + 1)
        return Rows(found.rows[: PAGE_ROWS + 1], found.whole)

    def _state(self, state: str, archive: str | None) -> str:
        measured = self.kept.get("measured", self._measured.names)
        return state_of({"state": state, "warc_file": archive}, measured)

    def why(self, url: str) -> dict[str, Any]:
        """CONTRACT's `why`, and the page's title. Raises UsageError for what is no URL."""
        told = why(self.project, url)
        if told["id"] is not None:
            with Views(self.project) as views:
                views.make("measured_documents")
                row = views.connection.execute(
                    "SELECT any_value(title) FROM measured_documents WHERE id = ?", [told["id"]]
                ).fetchone()
            told["title"] = row[0] if row else None
        return told

    def samples(self, *, dropped: bool) -> list[dict[str, Any]]:
        """Kept or dropped documents of the newest release (or of what was measured)."""

        def ask() -> list[dict[str, Any]]:
            try:
                return sample(self.project, dropped=dropped, rule=None, count=12)
            except CorpusError:
                return []  # nothing was measured yet

        return self.kept.get(f"samples {dropped}", ask, least_s=20.0)

    # ---- the frontier's files

    def _all(self, query: str, parameters: tuple[Any, ...], told: Told = _legible, most: int | None = None) -> Rows:
        deadline = time.monotonic() + LOOK_S
        rows: list[tuple[Any, ...]] = []
        for file in range(self.project.layout.spread):
            found = self._one(file, query, parameters, deadline, told, most)
            rows += found.rows
            if not found.whole:
                return Rows(rows, whole=False)
        return Rows(rows)

    def _one(
        self, file: int, query: str, parameters: tuple[Any, ...], deadline: float | None = None, told: Told = _legible,
        most: int | None = None,
    ) -> Rows:  # fmt: skip
        """Rows as `told` has them, without those it leaves out; no more than `most`."""
        path = file_at(self.project.layout, file)
        if not path.exists():
            return Rows([])
        until = time.monotonic() + LOOK_S if deadline is None else deadline
        rows: list[tuple[Any, ...]] = []
        try:
            if not isinstance(path, Path):
                found = path.rows(query, parameters, seconds=max(until - time.monotonic(), 0.001))
                rows.extend(islice(filter(None, map(told, found)), most))
                return Rows(rows)
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=2.0)) as connection:
                connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
                connection.set_progress_handler(lambda: time.monotonic() > until, _CHECK_EVERY)
                rows.extend(islice(filter(None, map(told, map(_legible, connection.execute(query, parameters)))), most))
        except (sqlite3.OperationalError, TimeoutError):  # stopped at the deadline, or the file is being made this very moment
            return Rows(rows, whole=False)
        return Rows(rows)


def _literal(text: str) -> str:
    """Text whose wildcards stand for themselves."""
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
