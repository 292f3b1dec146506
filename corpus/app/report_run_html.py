"""The report of a run as one HTML file: no script, no address but its own, charts inline. The look is the status page's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corpus.app.near_copies import FALSE_LINK
from corpus.app.report_run import CLUSTERS, HOSTS, SEEDS, RunReport
from corpus.app.status_pages import DOCTYPE, charts
from corpus.observe.charts import bar, histogram, side_by_side
from corpus.observe.markup import Child, Markup, asset, crawled, el
from corpus.observe.summary import sentence_of
from corpus.observe.tables import facts, figures, funnel, ranked, table
from corpus.observe.words import count, duration, size
from corpus.version import __version__

POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def html_report(report: RunReport) -> str:
    """The whole file."""
    summary = report.summary
    title = f"Run {summary['run_id']}"
    head = el(
        "head", el("meta", charset="utf-8"), el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"), el("meta", name="color-scheme", content="light dark"),
        el("title", f"{title} \u00b7 corpus"), el("style", Markup(asset("look.css"))),
    )  # fmt: skip
    contents = [
        ("funnel", "Funnel", funnel(report.funnel)),
        (
            "time",
            "Over time",
            side_by_side(charts(report.series)) if report.series else el("p", "This run left no numbers over time."),
        ),
        ("refusals", "Refusals and failures", _losses(report)),
        ("documents", "Documents", _documents(report)),
        ("copies", "Near copies", _gate(report)),
        ("hosts", "Hosts", _hosts(report)),
        ("answers", "Answers", _answers(report)),
        ("seeds", "Seeds", _seeds(report)),
        ("frontier", "Frontier", _frontier(report)),
        (
            "runs",
            "Runs",
            table("the latest runs of this folder", ("run", "started", "ended", "pages", ""), report.runs, numbers=(3,)),
        ),
    ]
    nav = el(
        "nav", el("ul", *(el("li", el("a", name, href=f"#{key}")) for key, name, _ in contents)), aria_label="parts of the report"
    )
    body = el(
        "body", el("header", el("p", "corpus", class_="name"), nav),
        el(
            "main", el("h1", title), el("p", f"{summary['sentence']}."), _summary(report),
            *(el("section", el("h2", name), inside, id=key) for key, name, inside in contents),
        ),
        el("footer", el("p", f"corpus {__version__}. The numbers of the run are its own; hosts, answers, seeds and documents are the folder's when this was written.")),
    )  # fmt: skip
    return str(DOCTYPE + el("html", head, body, lang="en")) + "\n"


def _summary(report: RunReport) -> Child:
    summary = report.summary
    fetch, cpu = summary["fetch"], sum(summary["cpu_s"].values())
    rows = [
        ("pages", count(fetch["pages"]), f"of {count(fetch['requests'])} requests"),
        ("transfer", size(fetch["bytes_wire"]), f"{size(fetch['bytes_body'])} unpacked"),
        ("statement files", count(fetch["policy_requests"]), "requests"),
        ("took", duration(summary["wall_s"]), f"{cpu:.1f} CPU seconds"),
        ("largest process", size(summary["peak_rss_bytes"]), "memory"),
    ]
    told: list[tuple[str, Child]] = [
        ("crawl", summary["crawl_id"]), ("from", summary["started_at"]), ("to", summary["ended_at"]),
        ("ended", f"{summary['ended']} (exit {summary['exit_code']})"), ("configuration", el("code", summary["config_digest"])),
    ]  # fmt: skip
    return [figures(rows), facts(told)]


def _losses(report: RunReport) -> Child:
    fetch = report.summary["fetch"]
    return el(
        "div",
        el("div", ranked("refused", fetch["refused"])),
        el("div", ranked("failed or gone", fetch["failed"])),
        class_="columns",
    )


def _documents(report: RunReport) -> Child:
    if not report.languages:
        return el("p", "Nothing was measured yet.")
    top = report.languages[0][1]
    languages: list[list[Child]] = [
        [language or "und", count(n), count(chars), bar(n / top)] for language, n, chars in report.languages
    ]
    clusters: list[list[Child]] = [[count(n), el("code", key), crawled(url)] for n, key, url in report.clusters]
    return [
        side_by_side(
            [
                histogram("length of texts, characters", [(_short(start), n) for start, n in report.lengths], "documents"),
                histogram("age when the newest page was fetched", [(name, n) for name, n in report.freshness], "documents"),
                histogram("clusters of near-duplicates, by size", [(name, n) for name, n in report.cluster_sizes], "clusters"),
            ]
        ),
        table("languages", ("language", "documents", "characters", ""), languages, numbers=(1, 2)),
        table(f"the {CLUSTERS} largest clusters", ("size", "cluster", "its centre"), clusters, numbers=(0,)),
    ]


def _gate(report: RunReport) -> Child:
    gate = report.gate
    if gate.false_share is None or gate.false_at_most is None:
        known = ("false links", "not known", gate.unknown)
    else:
        known = ("false links", f"{gate.false_share:.1%}", f"{gate.false} of {gate.checked} compared; at most {gate.false_at_most:.1%} by 95 %")  # fmt: skip
    rows = [
        ("near copies", count(gate.copies), f"of {count(gate.pages)} pages; crawl.near_copies = {gate.setting}"),
        ("saved", size(gate.saved_bytes), f"{count(gate.linked)} copies linked, not stored"),
        known,
    ]
    return [figures(rows), el("p", FALSE_LINK)]


def _hosts(report: RunReport) -> Child:
    rows: list[list[Child]] = [[crawled(host), *map(count, numbers), size(total)] for host, *numbers, total in report.hosts]
    heads = ("host", "stored", "refused", "failed", "waiting", "archive")
    return table(f"the {HOSTS} hosts with most pages", heads, rows, numbers=(1, 2, 3, 4, 5))


def _answers(report: RunReport) -> Child:
    return el(
        "div",
        el("div", _counted("response codes", "status", report.codes)),
        el("div", _counted("content types", "type", report.types)),
        class_="columns",
    )


def _counted(caption: str, head: str, rows: Sequence[Sequence[Any]]) -> Markup:
    top = rows[0][1] if rows else 1
    return table(caption, (head, "pages", ""), [[crawled(name), count(n), bar(n / top)] for name, n in rows], numbers=(1,))


def _seeds(report: RunReport) -> Child:
    rows: list[list[Child]] = [[crawled(seed), state, reason, status or ""] for seed, state, reason, status in report.seeds]
    more = f", the first {SEEDS} of {count(report.seeds_total)}" if report.seeds_total > SEEDS else ""
    return table(f"seeds{more}", ("seed", "state", "reason", "status"), rows, numbers=(3,))


def _frontier(report: RunReport) -> Child:
    rows: list[list[Child]] = [
        [state, el("code", reason, class_="code"), sentence_of(reason) if reason else "", count(n)]
        for state, reason, n in report.frontier
    ]
    return table("known pages by state", ("state", "reason", "meaning", "pages"), rows, numbers=(3,))


def _short(number: int) -> str:
    return f"{number // 1000}k" if number >= 1000 else str(number)
