"""What `status` says of the crawl's own judgement, over folders that were crawled for real."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from corpus.app.crawl_facts import facts
from corpus.app.frontier_files import open_file
from corpus.app.near_copies import GateReport, gate_report, gate_sentence
from corpus.app.project import Project, open_project
from corpus.config.load import load_config
from corpus.crawl import memory
from corpus.crawl.nouns import Ack, ClosedPattern, Due, HostRow
from corpus.url.partition import PARTITION_FILES, partition_file
from tests.demo_corpus import DemoCorpus


def _project(folder: Path) -> Project:
    return open_project(load_config(str(folder / "corpus.toml")))


def test_the_budget_of_a_fetch_process_is_under_300_mb() -> None:
    """Its parts are those of the design, and their sum is what `status` prints."""
    assert [part.megabytes for part in memory.BUDGET] == [120, 60, 16, 10, 32, 50]
    assert memory.total_mb() < 300
    assert "288 MB" in memory.sentence()


def test_facts_name_retired_hosts_traps_and_losses(tmp_path: Path) -> None:
    """A retired host with the day of its next chance, closed patterns, and what a bloom filter lost."""
    (tmp_path / "corpus.toml").write_text(
        '[corpus]\nname = "x"\n[crawl]\nseeds = ["https://a.test/"]\ncontact = "bot@a.test"\nseen = "bloom"\n'
    )
    project = _project(tmp_path)
    store = open_file(project.layout, partition_file("a.test", PARTITION_FILES), settings=project.config.crawl)
    store.claim("test")
    row = HostRow("a.test", "a.test", state="retired", reason="host-retired", due=Due(1.8e9, 86_400.0))
    store.commit([Ack(row, closed=(ClosedPattern("a.test", "a.test/calendar/*", 1.0),))])
    store.close(clean=True)
    told = dict(facts(project))
    assert told["retired"] == "a.test: no answer for days; a run after 2027-01-16 tries it once more"
    assert "a.test/calendar/*" in told["traps"]
    assert told["seen"].startswith("bloom: 0 sightings")
    assert told["memory budget"] == memory.sentence()


def test_the_gates_saving_and_its_false_links_are_measured(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """On the demo's folder: copies and what they saved; a pair that is no copy counts as false once it is audited."""
    corpus = demo_corpus.copy(tmp_path / "copy")
    project = _project(corpus)
    report = gate_report(project)
    assert report.pages > report.copies >= 0
    changed = 0
    for number in range(16):
        store = open_file(project.layout, number)
        rows = store._con.execute(
            "SELECT host, uid FROM visit WHERE simhash IS NOT NULL AND near_original IS NULL AND offset IS NOT NULL ORDER BY fetched_at LIMIT 2"
        ).fetchall()
        if len(rows) == 2 and not changed:
            (url,) = store._con.execute("SELECT url FROM urls WHERE url_id = lower(hex(?))", (rows[0][1],)).fetchone()
            store._con.execute("UPDATE visit SET near_original = ?, whole_at = 1.0 WHERE host = ? AND uid = ?", (url, *rows[1]))
            changed = 1
        store.close(clean=False)
    assert changed
    audited = gate_report(project)
    assert audited.checked >= 1
    assert audited.false >= 1
    assert "false" in gate_sentence(audited)
    assert "not known" in gate_sentence(replace(audited, checked=0))
    assert (audited.copies, audited.linked) == (report.copies + 1, report.linked), "what is stored whole saves nothing"


def test_what_cannot_be_known_is_none_with_its_reason() -> None:
    """No comparison, no share; and a share comes with how much it may err."""
    report = GateReport(pages=100, copies=30, linked=28, saved_bytes=5, checked=0, false=0)
    told = report.document()
    assert (told["false_share"], told["false_share_at_most"], told["false"]) == (None, None, None)
    assert "one in 64" in str(told["unknown"])
    assert "skip" in replace(report, setting="skip").unknown
    assert replace(report, copies=0).unknown == "no copy was found"
    told = replace(report, checked=50, false=0).document()
    assert (told["false_share"], told["unknown"]) == (0.0, "")
    assert 0.05 < float(str(told["false_share_at_most"])) < 0.08
    assert float(str(replace(report, checked=50, false=25).document()["false_share_at_most"])) < 0.65
