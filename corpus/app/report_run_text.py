"""The report of a run as Markdown: the same tables as the HTML, plots in block characters, so that it reads in a terminal too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corpus.app.near_copies import FALSE_LINK, gate_sentence
from corpus.app.report_run import CLUSTERS, HOSTS, SEEDS, RunReport
from corpus.observe.charts import thinned
from corpus.observe.live_file import COLUMNS
from corpus.observe.summary import sentence_of
from corpus.observe.words import count, duration, printable, rate, size

_BLOCKS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
_WIDTH, _BAR = 60, 30
_CELL = 200


def markdown_report(report: RunReport) -> str:
    """The whole text."""
    summary, fetch = report.summary, report.summary["fetch"]
    lines = [
        f"# Run {summary['run_id']}", "", f"{summary['sentence']}.", "",
        f"Crawl {summary['crawl_id']}, {summary['started_at']} to {summary['ended_at']}, ended: {summary['ended']} (exit {summary['exit_code']}).",
        _work(summary), "",
        "## Funnel", "", *_funnel(report), "", "## Over time", "", *_series(report), "",
    ]  # fmt: skip
    lines += ["## Refused", "", *_codes(fetch["refused"]), "", "## Failed or gone", "", *_codes(fetch["failed"]), ""]
    lines += ["## Languages", "", *_table(("language", "documents", "characters"), report.languages), ""]
    lines += ["## Length of texts", "", *_bars((f"{start:>7}", n) for start, n in report.lengths), ""]
    lines += ["## Freshness", "", *_bars((f"{name:>9}", n) for name, n in report.freshness), ""]
    lines += ["## Clusters by size", "", *_bars((f"{name:>9}", n) for name, n in report.cluster_sizes), ""]
    lines += [f"The {CLUSTERS} largest:", "", *_table(("size", "cluster", "its centre"), report.clusters), ""]
    lines += ["## Near copies", "", f"{gate_sentence(report.gate)}.", "", FALSE_LINK, ""]
    heads = ("host", "stored", "refused", "failed", "waiting", "archive")
    hosts = [[*row[:5], size(row[5])] for row in report.hosts]
    lines += [f"## Hosts (the {HOSTS} with most pages)", "", *_table(heads, hosts), ""]
    lines += ["## Response codes", "", *_table(("status", "pages"), report.codes), ""]
    lines += ["## Content types", "", *_table(("type", "pages"), report.types), ""]
    lines += [
        f"## Seeds (at most {SEEDS} of {count(report.seeds_total)})",
        "",
        *_table(("seed", "state", "reason", "status"), report.seeds),
        "",
    ]
    lines += ["## Frontier", "", *_table(("state", "reason", "pages"), report.frontier), ""]
    lines += ["## Runs", "", *_table(("run", "started", "ended", "pages", ""), report.runs), ""]
    return "\n".join(lines)


def _work(summary: dict[str, Any]) -> str:
    fetch = summary["fetch"]
    return (
        f"{count(fetch['pages'])} pages of {count(fetch['requests'])} requests ({count(fetch['policy_requests'])} for statement files), "
        f"{size(fetch['bytes_wire'])} on the wire; {duration(summary['wall_s'])}, {sum(summary['cpu_s'].values()):.1f} CPU seconds, "
        f"largest process {size(summary['peak_rss_bytes'])}."
    )


def spark(values: Sequence[float]) -> str:
    """Values as a line of blocks, as wide as a terminal allows."""
    kept = [y for _, y in thinned([(float(n), value) for n, value in enumerate(values)], _WIDTH)]
    top = max(kept, default=0.0)
    return "".join(_BLOCKS[min(int(value / top * len(_BLOCKS)), len(_BLOCKS) - 1) if top > 0 else 0] for value in kept)


def _series(report: RunReport) -> list[str]:
    if len(report.series) < 2:
        return ["This run left no numbers over time."]
    column = {name: n for n, name in enumerate(COLUMNS)}
    lines = ["```"]
    for name, words in (("pages_s", "pages a second"), ("pages", "pages stored"), ("waiting", "hosts waiting"), ("queued", "pages in line"), ("refused", "refused")):  # fmt: skip
        values = [row[column[name]] for row in report.series]
        lines.append(f"{words:<15} {spark(values)} at most {rate(max(values)) if name == 'pages_s' else count(max(values))}")
    return [*lines, "```"]


def _funnel(report: RunReport) -> list[str]:
    rows: list[list[Any]] = []
    for step in report.funnel:
        rows.append([step.stage, step.n_in, step.n_out, "", ""])
        rows += [
            ["", "", "", n, f"`{code}`: {sentence_of(code)}"]
            for code, n in sorted(step.dropped.items(), key=lambda i: (-i[1], i[0]))
        ]
    return _table(("step", "in", "out", "lost", "to"), rows)


def _codes(counts: dict[str, int]) -> list[str]:
    rows = [[code, sentence_of(code), n] for code, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    return _table(("code", "meaning", "pages"), rows)


def _bars(rows: Iterable[tuple[str, int]]) -> list[str]:
    every = list(rows)
    top = max((n for _, n in every), default=0) or 1
    return ["```", *(f"{label} {_BLOCKS[-1] * round(n / top * _BAR)} {count(n)}" for label, n in every), "```"]


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    body = [f"| {' | '.join(_cell(value) for value in row)} |" for row in rows]
    if not body:
        return ["None."]
    return [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}", *body]


def _cell(value: Any) -> str:
    """A value that cannot leave its cell: crawled text has no line breaks, pipes or markup that would work."""
    if isinstance(value, int | float):
        return str(value)
    text = printable(str(value if value is not None else ""), _CELL)
    return "".join(f"\\{ch}" if ch in "|<>[]*_#\\!" else ch for ch in text) if not text.startswith("`") else text
