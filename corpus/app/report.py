"""`runs/<run>/report.md`: the summary for a person who was not there."""

from __future__ import annotations

from pathlib import Path

from corpus.app.freshness import Freshness, sentence
from corpus.observe.summary import Summary, sentence_of
from corpus.store.local_objects import sealed


def write_report(path: Path, summary: Summary) -> None:
    """Write the report; everything in it is derived from the summary."""
    with sealed(path) as part:
        part.write_text(render_report(summary), "utf-8")


def render_report(summary: Summary) -> str:
    """The report as Markdown."""
    lines = [
        f"# Run {summary.run_id}",
        "",
        summary.sentence + ".",
        "",
        f"Crawl {summary.crawl_id}, {summary.started_at} to {summary.ended_at}, ended: {summary.ended} (exit {summary.exit_code}).",
        "",
        "## Funnel",
        "",
        "| step | in | out | dropped | reason |",
        "|---|--:|--:|--:|---|",
    ]
    for step in summary.funnel:
        lines.append(f"| {step.stage} | {step.n_in} | {step.n_out} | {step.n_in - step.n_out} | |")
        lines += [
            f"| | | | {n} | `{code}`: {sentence_of(code)} |"
            for code, n in sorted(step.dropped.items(), key=lambda i: (-i[1], i[0]))
        ]
    if summary.freshness:
        known = summary.freshness
        lines += ["", "## Freshness", "", sentence(Freshness(**known)) + ".", "", f"Changes found: {known['versions']}."]
    fetch = summary.fetch
    lines += [
        "",
        "## Fetch",
        "",
        f"{fetch.requests} requests in this run ({fetch.policy_requests} for policy files), {fetch.pages} pages, {fetch.bytes_wire} bytes.",
        "",
        "| status | URLs |",
        "|---|--:|",
        *(f"| {status} | {n} |" for status, n in sorted(fetch.by_status.items())),
        "",
        f"CPU {sum(summary.cpu_s.values()):.1f} s, wall {summary.wall_s:.1f} s, largest process {summary.peak_rss_bytes / 2**20:.0f} MiB.",
        "",
    ]
    return "\n".join(lines)
