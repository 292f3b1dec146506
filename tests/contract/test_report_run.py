"""`corpus report run`: the same facts as Markdown and as one HTML file, bounded, and safe to open."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from corpus.app.report_run import AGE_BINS, HOSTS, LENGTH_BINS, SIZE_BINS, RunReport, run_report
from corpus.app.report_run_html import html_report
from corpus.app.report_run_text import markdown_report, spark
from corpus.errors import UsageError
from corpus.observe.live_file import COLUMNS
from tests.demo_corpus import DemoCorpus, corpus_cli
from tests.hostile_corpus import ATTACK, TITLE


@pytest.fixture(scope="module")
def report(demo_corpus: DemoCorpus) -> RunReport:
    return run_report(demo_corpus.project())


def test_the_tables_add_up(report: RunReport, demo_corpus: DemoCorpus) -> None:
    """Hosts, codes, types, seeds, languages, lengths, ages and clusters are those of the folder: their sums are its counts."""
    steps = {step.stage: step for step in demo_corpus.summary.funnel}
    measured = steps["extracted"].n_out
    assert sum(row[2] for row in report.frontier) == steps["known"].n_in
    assert sum(row[1] for row in report.hosts) == steps["known"].n_out
    assert dict(report.codes) == demo_corpus.summary.fetch.by_status
    assert sum(n for _, n in report.types) == sum(n for _, n in report.codes)
    assert len(report.seeds) == report.seeds_total == 8
    assert {row[1] for row in report.seeds} == {"parsed"}
    assert (
        sum(row[1] for row in report.languages)
        == sum(n for _, n in report.lengths)
        == sum(n for _, n in report.freshness)
        == measured
    )
    singles, pairs = (dict(report.cluster_sizes)[size] for size in ("1", "2"))
    assert (
        singles + 2 * pairs == measured + steps["extracted"].dropped["near-copy"]
    )  # linked copies count in their cluster's size
    assert len(report.clusters) == pairs > 0
    assert [row[0] for row in report.runs] == [demo_corpus.summary.run_id]
    assert len(report.series) >= 2


def test_both_forms_hold_the_same_facts(report: RunReport) -> None:
    """Every part of the report is in both; the HTML has plots, loads nothing and runs nothing."""
    text, html = markdown_report(report), html_report(report)
    for word in ("Funnel", "Languages", "Hosts", "Seeds", "Frontier", "robots.txt refuses it", "Runs"):
        assert word.lower() in text.lower()
        assert word.lower() in html.lower()
    assert html.count("<svg") > 8
    assert "script-src" not in html
    assert "<script" not in html
    assert "default-src &#x27;none&#x27;" in html
    assert not re.findall(r'(?:href|src)="(?!#)', html)
    assert "\u2588" in text


def test_the_gate_is_reported_in_all_three_forms(report: RunReport) -> None:
    """Saving and false links as text, HTML and JSON; where no link was compared, null and the reason instead of a zero."""
    assert report.gate.copies > 0
    assert report.gate.saved_bytes > 0
    unknown = replace(report, gate=replace(report.gate, checked=0, false=0))
    known = replace(report, gate=replace(report.gate, checked=40, false=3))
    for form in (markdown_report, html_report):
        assert "not known" in form(unknown)
        assert unknown.gate.unknown in form(unknown)
        assert "40" in form(known)
        assert "not known" not in form(known)
    assert unknown.document()["gate"]["false_share"] is None
    assert unknown.document()["gate"]["unknown"]
    told = known.document()["gate"]
    assert (told["false_share"], told["compared"], told["false"]) == (3 / 40, 40, 3)
    assert told["saved_bytes"] == report.gate.saved_bytes


def test_the_command_writes_a_whole_file_or_none(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """`-o` writes the file; an unknown run, and a folder that is not there, are errors that leave nothing behind."""
    target = tmp_path / "run.html"
    said = corpus_cli("report", "run", "--format", "html", "-o", target, "-c", demo_corpus.config)
    assert said.code == 0, said.err
    assert target.read_text("utf-8").startswith("<!doctype html>")
    assert corpus_cli("report", "run", "-o", tmp_path / "no" / "run.md", "-c", demo_corpus.config).code == 2
    assert corpus_cli("report", "run", "--run", "nope", "-c", demo_corpus.config).code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["run.html"]
    document = corpus_cli("report", "run", "--json", "-c", demo_corpus.config).json
    assert document["summary"]["run_id"] == demo_corpus.summary.run_id
    assert document["gate"]["copies"] > 0


def test_no_run_no_report(tmp_path: Path) -> None:
    """A folder in which no run has ended says so."""
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n', "utf-8")
    from corpus.app.project import open_project
    from corpus.config.load import load_config

    with pytest.raises(UsageError, match="no run"):
        run_report(open_project(load_config(tmp_path / "corpus.toml")))


def hostile(report: RunReport) -> RunReport:
    rows = [[ATTACK, 1, 2, 3, 4, 5], [TITLE + "|x\n# head\x1b[31m", 1, 2, 3, 4, 5]]
    return replace(
        report,
        hosts=rows,
        seeds=[[ATTACK, "fetched", "", 200]],
        clusters=[[2, "c", ATTACK]],
        types=[[ATTACK, 3]],
        languages=[[TITLE, 1, 1]],
    )


def test_crawled_text_is_text_in_both(report: RunReport) -> None:
    """Hosts, seeds, types and addresses that are markup stay in their cell: no element, no new row, no escape sequence."""
    html, text = html_report(hostile(report)), markdown_report(hostile(report))
    assert "<script" not in html
    assert "<img" not in html
    assert "\x1b" not in text
    assert "\n# head" not in text
    rows = [line for line in text.splitlines() if "window.owned" in line]
    assert rows
    assert all(re.sub(r"\\.", "", line).count("<") == 0 for line in rows)
    assert len({re.sub(r"\\\|", "", line).count("|") for line in rows if line.endswith("| 5 B |")}) == 1


def test_the_size_is_bounded(report: RunReport) -> None:
    """A run of a year on ten thousand hosts makes a report no longer than its stated lists."""
    point = [float(n) for n in range(len(COLUMNS))]
    big = replace(
        report, series=[[float(n), *point[1:]] for n in range(1_300)], hosts=[["h" * 253, 1, 1, 1, 1, 1]] * HOSTS,
        seeds=[["u" * 2_000, "fetched", "", 200]] * 100, clusters=[[9, "c" * 32, "u" * 2_000]] * 10,
    )  # fmt: skip
    assert len(html_report(big)) < 400_000
    assert len(markdown_report(big)) < 80_000
    assert len(spark([float(n) for n in range(10_000)])) <= 62


def test_bins_cover_everything() -> None:
    """No length, age or cluster size falls beside its table."""
    assert LENGTH_BINS[0] == 0
    assert list(LENGTH_BINS) == sorted(LENGTH_BINS)
    for bins in (AGE_BINS, SIZE_BINS):
        assert [end for end, _ in bins] == sorted(end for end, _ in bins)
        assert bins[-1][0] >= 10**6
