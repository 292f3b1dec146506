"""`corpus report run`: one run and the folder it left, as an archive's operator reads it. Facts only; two files write them down.

Every list is cut to a stated length, so a report of ten million pages is as long as one of ten. The numbers of the run are
its own summary's; hosts, codes, types, seeds and documents are the folder's as it stands.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from corpus.app.costs import run_summaries
from corpus.app.frontier_files import read_all
from corpus.app.frontier_view import url_row
from corpus.app.near_copies import CHECKED_IN_REPORT, GateReport, gate_report
from corpus.app.project import Project
from corpus.app.url_states import measured_segments, state_of, states
from corpus.app.views import Views
from corpus.config.check import seed_lines
from corpus.errors import UsageError
from corpus.model import FunnelStep
from corpus.observe.live import Live
from corpus.observe.live_file import read_live, read_series
from corpus.url.canonical import canonical_url

HOSTS, SEEDS, LANGUAGES, TYPES, CLUSTERS, RUNS = 50, 100, 30, 30, 10, 20
LENGTH_BINS = (0, 100, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000)
"""Characters of text; the last bin has no end."""
AGE_BINS = ((1, "today"), (7, "a week"), (30, "a month"), (90, "a quarter"), (365, "a year"), (10**6, "older"))
SIZE_BINS = ((1, "1"), (2, "2"), (5, "3 to 5"), (10, "6 to 10"), (100, "11 to 100"), (10**9, "more"))

_HOSTS = f"""
SELECT host, sum(state IN ('fetched', 'not-modified')), sum(state = 'refused'), sum(state IN ('failed', 'gone')), sum(state IN ('queued', 'parked')),
    sum(coalesce(warc_length, 0)) FROM urls WHERE kind = 'page' GROUP BY host ORDER BY 2 DESC, host LIMIT {HOSTS}
"""
_CODES = "SELECT http_status, count(*) FROM urls WHERE http_status IS NOT NULL GROUP BY 1"
_TYPES = "SELECT content_type, count(*) FROM urls WHERE http_status IS NOT NULL GROUP BY 1"
_LANGUAGES = f"""
SELECT d.language, count(*), coalesce(sum(s.chars), 0)::BIGINT FROM measured_documents d LEFT JOIN measured_signals s ON s.id = d.id
WHERE d.outcome = 'ok' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {LANGUAGES}
"""
_STARTS = " ".join(f"WHEN chars >= {start} THEN {start}" for start in reversed(LENGTH_BINS))
_LENGTHS = f"SELECT CASE {_STARTS} END, count(*) FROM measured_signals GROUP BY 1"
_AGES = """
SELECT date_diff('day', fetched_at, (SELECT max(fetched_at) FROM measured_documents)), count(*) FROM measured_documents
WHERE outcome = 'ok' GROUP BY 1
"""
_SIZES = "SELECT cluster_size, count(DISTINCT cluster_id) FROM cluster_rows GROUP BY 1"
_LARGEST = f"""
SELECT c.cluster_size, c.cluster_id, min(d.url) FROM cluster_rows c LEFT JOIN measured_documents d ON d.id = c.id WHERE c.center AND c.cluster_size > 1
GROUP BY 1, 2 ORDER BY 1 DESC, 2 LIMIT {CLUSTERS}
"""


@dataclass(slots=True)
class RunReport:
    """Rows are lists in the order of their heads; texts of them may be crawled."""

    summary: dict[str, Any]
    series: list[list[float]] = field(default_factory=list)
    live: dict[str, Any] = field(default_factory=dict)
    frontier: list[list[Any]] = field(default_factory=list)
    """[state, reason, pages]"""
    hosts: list[list[Any]] = field(default_factory=list)
    """[host, stored, refused, failed, waiting, bytes in the archive]"""
    codes: list[list[Any]] = field(default_factory=list)
    types: list[list[Any]] = field(default_factory=list)
    seeds: list[list[Any]] = field(default_factory=list)
    """[seed, state, reason, status]"""
    seeds_total: int = 0
    languages: list[list[Any]] = field(default_factory=list)
    """[language, documents, characters]"""
    lengths: list[list[Any]] = field(default_factory=list)
    freshness: list[list[Any]] = field(default_factory=list)
    cluster_sizes: list[list[Any]] = field(default_factory=list)
    clusters: list[list[Any]] = field(default_factory=list)
    """[size, cluster id, address of its centre]"""
    runs: list[list[Any]] = field(default_factory=list)
    """[run, started, ended as, pages, sentence]"""
    gate: GateReport = field(default_factory=GateReport)
    """The near-copy gate over the whole folder."""

    @property
    def funnel(self) -> list[FunnelStep]:
        """The summary's steps."""
        return [FunnelStep(s["stage"], s["in"], s["out"], s["dropped"]) for s in self.summary["funnel"]]

    def document(self) -> dict[str, Any]:
        return asdict(self) | {"gate": self.gate.document()}


def run_report(project: Project, run_id: str = "") -> RunReport:
    """The report of a run (the newest without a name). Raises UsageError when no such run has ended."""
    summaries = run_summaries(project)
    chosen = next((s for s in reversed(summaries) if run_id in ("", s["run_id"])), None)
    if chosen is None:
        known = ", ".join(str(s["run_id"]) for s in summaries[-5:]) or "none has ended yet"
        raise UsageError("no run of this name has ended here", run_id or str(project.layout.runs), f"runs: {known}")
    folder = project.layout.run_dir(str(chosen["run_id"]))
    report = RunReport(chosen, series=read_series(folder), live=(read_live(folder) or Live()).document())
    report.runs = [[s["run_id"], s["started_at"], s["ended"], s["fetch"]["pages"], s["sentence"]] for s in summaries[-RUNS:]]
    _frontier(project, report)
    _documents(project, report)
    report.gate = gate_report(project, checked=CHECKED_IN_REPORT)
    return report


def _frontier(project: Project, report: RunReport) -> None:
    report.frontier = [
        [state, reason, n] for (state, reason), n in sorted(states(project).items(), key=lambda item: (-item[1], item[0])) if n
    ]
    hosts = [list(row) for row in read_all(project.layout, _HOSTS)]
    report.hosts = sorted(hosts, key=lambda row: (-row[1], row[0]))[:HOSTS]
    codes: Counter[str] = Counter()
    for code, n in read_all(project.layout, _CODES):
        codes[str(code)] += n
    types: Counter[str] = Counter()
    for content_type, n in read_all(project.layout, _TYPES):
        types[str(content_type or "").partition(";")[0].strip().lower()[:80] or "none given"] += n
    report.codes = [list(row) for row in codes.most_common()]
    report.types = [list(row) for row in types.most_common(TYPES)]
    seeds, _ = seed_lines(project.config)
    report.seeds_total = len(seeds)
    measured = measured_segments(project)
    for seed in seeds[:SEEDS]:
        url = canonical_url(seed)
        row = url_row(project, url) if url else None
        report.seeds.append(
            [
                seed,
                state_of(row, measured) if row else "not seen yet",
                (row or {}).get("reason") or "",
                (row or {}).get("http_status"),
            ]
        )


def _documents(project: Project, report: RunReport) -> None:
    with Views(project) as views:
        views.make("measured_documents", "measured_signals", "cluster_rows")
        ask = views.connection.execute
        report.languages = [list(row) for row in ask(_LANGUAGES).fetchall()]
        lengths: dict[int, int] = {start: n for start, n in ask(_LENGTHS).fetchall()}  # noqa: C416  (rows, not pairs, for the type checker)
        report.lengths = [[start, lengths.get(start, 0)] for start in LENGTH_BINS]
        report.freshness = _binned(ask(_AGES).fetchall(), AGE_BINS)
        report.cluster_sizes = _binned(ask(_SIZES).fetchall(), SIZE_BINS)
        report.clusters = [list(row) for row in ask(_LARGEST).fetchall()]


def _binned(rows: list[tuple[Any, ...]], bins: tuple[tuple[int, str], ...]) -> list[list[Any]]:
    """Counts by the first bin whose end a value does not pass."""
    counts: Counter[str] = Counter()
    for value, n in rows:
        counts[next(name for end, name in bins if value <= end)] += n
    return [[name, counts[name]] for _, name in bins]


def write_run_report(report: RunReport, form: str, output: str | None) -> str:
    """The report as `markdown`, `html` or `json`; into `output` where it is given, which then appears whole or not at all."""
    from corpus.app.report_run_html import html_report
    from corpus.app.report_run_text import markdown_report
    from corpus.store.local_objects import named_output, sealed

    match form:
        case "html":
            text = html_report(report)
        case "json":
            text = json.dumps(report.document(), ensure_ascii=False, indent=2) + "\n"
        case _:
            text = markdown_report(report)
    if output is None:
        return text
    with sealed(named_output(output)) as draft:
        draft.write_bytes(text.encode("utf-8", "replace"))
    return ""
