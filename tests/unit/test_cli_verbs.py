"""Every verb that `corpus --help` lists does its work on a demo corpus, and every wrong use ends with the right exit code."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from corpus.cli.main import VERBS
from corpus.store.locks import stage_lock
from corpus.testing.demo.answers import DemoSite, Ready
from corpus.testing.web_answer import Answer
from corpus.testing.web_process import ServerProcess
from tests.demo_corpus import DemoCorpus, corpus_cli

STARTUP_S = 0.3

Line = Callable[[DemoCorpus, Path, Path], list[list[str]]]
"""(the shared demo, a copy of it that may be changed, an empty folder) → command lines, each to exit 0."""


def _c(folder: Path) -> list[str]:
    return ["-c", str(folder / "corpus.toml")]


def _access_log(folder: Path) -> Path:
    path = folder / "access.log"
    path.write_text(
        '203.0.113.9 - - [10/Oct/2026:13:55:36 +0000] "GET / HTTP/1.1" 200 5 "-" "CorpusBot/1 (+mailto:a@example.org)"\n'
    )
    return path


LINES: dict[str, Line] = {
    "demo": lambda demo, copy, new: [["demo", "--help"]],  # the fixture ran it
    "init": lambda demo, copy, new: [["init", str(new / "fresh")]],
    "check": lambda demo, copy, new: [["check", *_c(demo.folder)]],
    "plan": lambda demo, copy, new: [["plan", *_c(demo.folder)], ["plan", "--pages-per-host", "50", *_c(demo.folder)]],
    "doctor": lambda demo, copy, new: [["doctor", *_c(demo.folder)]],
    "run": lambda demo, copy, new: [["run", *_c(copy)]],
    "crawl": lambda demo, copy, new: [["crawl", *_c(copy)]],
    "ingest": lambda demo, copy, new: [["ingest", str(demo.folder / "warc"), *_c(copy)]],
    "process": lambda demo, copy, new: [["process", *_c(copy)], ["process", "--explain", *_c(copy)]],
    "dedup": lambda demo, copy, new: [["dedup", *_c(copy)]],
    "export": lambda demo, copy, new: [["export", *_c(copy)], ["export", "--name", "v2", *_c(copy)]],
    "sql": lambda demo, copy, new: [["sql", "select domain, count(*) from documents group by 1", *_c(demo.folder)]],
    "why": lambda demo, copy, new: [["why", f"{demo.origins['bakery']}/sourdough.html", *_c(demo.folder)]],
    "sample": lambda demo, copy, new: [["sample", *_c(demo.folder)], ["sample", "--dropped", *_c(demo.folder)]],
    "status": lambda demo, copy, new: [["status", *_c(demo.folder)]],
    "ctl": lambda demo, copy, new: [["ctl", "pause", *_c(copy)], ["ctl", "budget", "pages", "config", *_c(copy)]],
    "verify": lambda demo, copy, new: [["verify", *_c(demo.folder)], ["verify", "--repair", *_c(copy)]],
    "replay": lambda demo, copy, new: [["replay", "v1", *_c(demo.folder)]],
    "optout": lambda demo, copy, new: [["optout", "check", "http://example.org/a", "--header", "X-Robots-Tag: noai"]],
    "config": lambda demo, copy, new: [
        ["config", "show", *_c(demo.folder)],
        ["config", "show", "--origin", *_c(demo.folder)],
        ["config", "schema"],
    ],
    "bench": lambda demo, copy, new: [["bench", "language"]],
    "lookup": lambda demo, copy, new: [["lookup", "127.10.0.1", *_c(demo.folder)]],
    "audit": lambda demo, copy, new: [["audit", str(_access_log(new))]],
    "simulate": lambda demo, copy, new: [
        ["simulate", "--help"],
        ["simulate", "politeness", "--help"],
        ["simulate", "fleet", "--help"],
    ],  # their own tests run them
    "takedown": lambda demo, copy, new: [
        ["takedown", "add", "example.org", "--reason", "a request", *_c(copy)],
        ["takedown", "list", *_c(copy)],
        ["takedown", "apply", *_c(copy)],
    ],
    "diff": lambda demo, copy, new: [["diff", "v1", "v1", *_c(demo.folder)]],
    "worker": lambda demo, copy, new: [["worker", "--help"]],  # its own tests have a server
    "push": lambda demo, copy, new: [["push", "--help"]],  # its own tests have a hub to push to
    "quality": lambda demo, copy, new: [["quality", "train", "--help"]],  # its own tests train
    "report": lambda demo, copy, new: [
        ["report", "consent", *_c(demo.folder)],
        ["report", "eu", *_c(demo.folder)],
        ["report", "run", *_c(demo.folder)],
    ],
}


@pytest.fixture
def copy(demo_corpus: DemoCorpus, tmp_path: Path) -> Path:
    return demo_corpus.copy(tmp_path / "copy")


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_listed_verb_works(demo_corpus: DemoCorpus, copy: Path, tmp_path: Path, verb: str) -> None:
    """A verb that does not work yet is not listed: each exits 0 on the demo corpus and says something on stdout."""
    assert verb in LINES, f"a new verb needs a command line in this table: {verb}"
    for line in LINES[verb](demo_corpus, copy, tmp_path):
        said = corpus_cli(*line)
        assert said.code == 0, (line, said.err)
        assert said.out.strip(), line


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_explains_itself(verb: str) -> None:
    """`corpus VERB --help` says what it does; `-c` and `--set` are on every verb that reads a corpus."""
    said = corpus_cli(verb, "--help")
    assert said.code == 0
    assert len(said.out.splitlines()) > 4
    if verb not in ("demo", "init", "bench") and "Commands:" not in said.out:
        assert "--config" in said.out
        assert "--set" in said.out


JSON_KEYS: dict[str, tuple[list[str], set[str]]] = {
    "why": (["why", "{bakery}/sourdough.html"], {
        "url", "canonical_url", "id", "verdict", "step", "reason", "sentence", "state", "next_at", "attempts", "discovery", "consent",
        "fetches", "document", "rules", "cluster", "releases",
    }),
    "sql": (["sql", "select url, fetched_at, depth from pages limit 3"], {"columns", "types", "rows", "row_count"}),
    "check": (["check"], {"problems"}),
    "verify": (["verify"], {"ok", "checked", "faults"}),
    "run summary": (["process"], {
        "schema", "run_id", "crawl_id", "config_digest", "code_version", "started_at", "ended_at", "ended", "exit_code", "sentence",
        "funnel", "fetch", "cpu_s", "wall_s", "peak_rss_bytes",
    }),
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(JSON_KEYS))
def test_json_is_one_document_with_the_contracts_keys(demo_corpus: DemoCorpus, copy: Path, what: str) -> None:
    """`--json` prints exactly one JSON document to stdout, with every key of the contract; progress goes to stderr."""
    line, keys = JSON_KEYS[what]
    said = corpus_cli(*(part.format(**demo_corpus.origins) for part in line), "--json", *_c(copy))
    assert said.code == 0, said.err
    assert keys <= set(said.json)


def test_the_summary_of_a_run_is_written_beside_its_log(demo_corpus: DemoCorpus) -> None:
    """`runs/<run>/summary.json` is the contract's document: eight steps, sums that close, totals of the fetch."""
    (run,) = (demo_corpus.folder / "runs").iterdir()
    summary = json.loads((run / "summary.json").read_text("utf-8"))
    assert [s["stage"] for s in summary["funnel"]] == [
        "known",
        "fetched",
        "extracted",
        "language",
        "quality",
        "allowed",
        "unique",
        "exported",
    ]
    assert all(s["in"] == s["out"] + sum(s["dropped"].values()) for s in summary["funnel"])
    fetch = {"requests", "policy_requests", "pages", "not_modified", "bytes_wire", "bytes_body", "by_status", "refused", "failed"}
    assert fetch <= set(summary["fetch"])
    assert (run / "report.md").read_text("utf-8").startswith("# Run ")
    assert (run / "log.jsonl").read_text("utf-8").count("\n") > 3


def test_ingest_json(demo_corpus: DemoCorpus, copy: Path) -> None:
    """CONTRACT's document of `ingest`."""
    said = corpus_cli("ingest", demo_corpus.folder / "warc", "--json", *_c(copy))
    assert said.code == 0
    assert set(said.json) == {"files", "pages"}
    assert {"file", "records", "pages", "faults"} <= set(said.json["files"][0])


def test_times_and_bytes_in_json(demo_corpus: DemoCorpus) -> None:
    """Times are ISO-8601 with Z, bytes hex, a NaN is null, an empty result is still a document."""
    query = (
        "select make_timestamp(1700000000000000) as t, '\\xAB\\xCD'::blob as b, 'nan'::double as n, 1::hugeint as h, [1, 2] as l"
    )
    said = corpus_cli("sql", query, "--json", *_c(demo_corpus.folder))
    assert said.json["rows"] == [["2023-11-14T22:13:20Z", "abcd", None, 1, [1, 2]]]
    assert corpus_cli("sql", "select url from pages where false", "--json", *_c(demo_corpus.folder)).json["row_count"] == 0


WRITES = (
    "create table x (a int)", "drop view pages", "delete from pages", "insert into pages select * from pages", "copy documents to '{new}/x'",
    "attach '{new}/x.db'", "set threads = 1", "select 1; select 2", "explain analyze copy (select 1) to '{new}/x'",
    "/* x */ explain analyze copy (select 1) to '{new}/x'", "install httpfs", "load httpfs", "pragma database_list", "export database '{new}/x'",
)  # fmt: skip


@pytest.mark.parametrize("query", WRITES)
def test_sql_never_writes(demo_corpus: DemoCorpus, tmp_path: Path, query: str) -> None:
    """What is no query is refused as a usage error, and nothing is written anywhere."""
    said = corpus_cli("sql", query.format(new=tmp_path), *_c(demo_corpus.folder))
    assert said.code == 2
    assert "only a single query" in said.err or "Error" in said.err
    assert list(tmp_path.iterdir()) == []


def test_wrong_sql_is_a_plain_message(demo_corpus: DemoCorpus) -> None:
    """A typing error and an unknown view are one message each, with the views there are; no traceback."""
    for query in ("selec 1", "select * from nowhere"):
        said = corpus_cli("sql", query, *_c(demo_corpus.folder))
        assert said.code == 2
        assert "Traceback" not in said.err
    assert "documents" in said.err


def test_sql_formats(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """The same rows as a table, CSV, JSON and Parquet."""
    import pyarrow.parquet as pq

    config = _c(demo_corpus.folder)
    query = "select domain, count(*)::bigint as n from documents group by 1 order by 1"
    rows = corpus_cli("sql", query, "--json", *config).json["rows"]
    assert [line.split(",") for line in corpus_cli("sql", query, "--format", "csv", *config).out.splitlines()[1:]] == [
        [d, str(n)] for d, n in rows
    ]
    assert f"({len(rows)} rows)" in corpus_cli("sql", query, *config).out
    assert corpus_cli("sql", query, "--format", "parquet", "-o", tmp_path / "x.parquet", *config).code == 0
    assert pq.read_table(tmp_path / "x.parquet").num_rows == len(rows)
    assert corpus_cli("sql", query, "--format", "parquet", *config).code == 2


USAGE: dict[str, tuple[list[str], str]] = {
    "an unknown verb": (["verfy"], "verify"),
    "an unknown option": (["sample", "--droped"], "--dropped"),
    "no verb at all with an option of one": (["--json"], "No such option"),
    "a configuration that is not there": (["status", "-c", "nowhere.toml"], "nowhere.toml"),
    "an unknown key": (["status", "--set", "crawl.dealy=2s", "-c", "{config}"], "did you mean 'delay'"),
    "a value that cannot be": (["status", "--set", "crawl.delay=0", "-c", "{config}"], "crawl.delay"),
    "a rule that dropped nothing": (["sample", "--rule", "nonsense", "-c", "{config}"], "nonsense"),
    "a URL that is none": (["why", "nonsense", "-c", "{config}"], "nonsense"),
    "an id that nobody has": (["why", "0" * 32, "-c", "{config}"], "no document"),
    "no query": (["sql", "-c", "{config}"], "QUERY"),
}


@pytest.mark.parametrize("what", sorted(USAGE))
def test_wrong_use_is_exit_2_and_says_what_was_meant(demo_corpus: DemoCorpus, what: str) -> None:
    """Exit 2, a message with the place and the likely intention, nothing on stdout."""
    line, word = USAGE[what]
    said = corpus_cli(*(part.replace("{config}", str(demo_corpus.config)) for part in line))
    assert said.code == 2
    assert word in said.err
    assert "Traceback" not in said.err
    assert said.out == ""


def test_all_mistakes_of_a_configuration_at_once(tmp_path: Path) -> None:
    """`check` names every mistake with file, line, key and hint; a verb refuses the same file with the same words."""
    path = tmp_path / "corpus.toml"
    path.write_text('[corpus]\nname = "x"\n[crawl]\nseeds = ["nowhere.txt"]\ndealy = "2s"\nmax_depth = "deep"\n', "utf-8")
    said = corpus_cli("check", "--json", "-c", path)
    assert said.code == 2
    problems: list[dict[str, Any]] = said.json["problems"]
    assert {frozenset(problem) for problem in problems} == {frozenset({"file", "line", "key", "message", "hint"})}
    assert {(problem["key"], problem["line"]) for problem in problems} == {
        ("crawl.dealy", 5),
        ("crawl.max_depth", 6),
        ("crawl.contact", 0),
        ("crawl.seeds", 4),
    }
    assert corpus_cli("run", "-c", path).code == 2


def test_a_newer_folder_is_refused(copy: Path) -> None:
    """A folder made by a newer schema is not touched: exit 2, with both versions."""
    (copy / "corpus.json").write_text('{"schema": 99, "created_by": "9.9"}\n', "utf-8")
    for verb in ("status", "verify", "run"):
        said = corpus_cli(verb, *_c(copy))
        assert said.code == 2
        assert "schema 99" in said.err


def test_a_folder_that_is_no_corpus(tmp_path: Path) -> None:
    """Verbs that only look say that there is nothing yet, and make nothing."""
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n', "utf-8")
    for line in (
        ["status"],
        ["sql", "select 1"],
        ["why", "http://example.org/"],
        ["sample"],
        ["verify"],
        ["replay", "v1"],
        ["dedup"],
    ):
        said = corpus_cli(*line, *_c(tmp_path))
        assert said.code == 1, line
        assert "no corpus" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.toml"]


@pytest.mark.parametrize(("verb", "stage"), [("crawl", "crawl"), ("run", "crawl"), ("ingest", "crawl"), ("process", "process")])
def test_a_second_writer_is_refused_with_the_firsts_pid(copy: Path, verb: str, stage: str) -> None:
    """Two writers on one folder: the second one ends with exit 1 and names the process that holds it."""
    arguments = [str(copy / "warc")] if verb == "ingest" else []
    with stage_lock(copy / ".local/locks", stage):
        said = corpus_cli(verb, *arguments, *_c(copy))
        assert said.code == 1
        assert f"process {os.getpid()}" in said.err
        assert corpus_cli("status", "--json", *_c(copy)).json["running"].startswith(f"{stage} by process {os.getpid()}")


def test_nothing_stored_is_exit_3_with_the_reason(tmp_path: Path) -> None:
    """A crawl of which nothing could be stored ends with exit 3 and one sentence that says why."""
    address = "127.78.0.1"
    site = DemoSite(
        {address: {"/robots.txt": Ready(Answer(200, (("Content-Type", "text/plain"),), b"User-agent: *\nDisallow: /\n"))}}
    )
    with ServerProcess(site) as server:
        (tmp_path / "corpus.toml").write_text(
            f'[corpus]\nname = "x"\n[crawl]\nseeds = ["http://{address}:{server.port}/"]\ncontact = "a@example.org"\n'
            f'delay = "20ms"\ndelay_start = "20ms"\nallow_private = ["{address}/32"]\n',
            "utf-8",
        )
        for verb in ("run", "export"):
            said = corpus_cli(verb, "--json", *_c(tmp_path))
            assert said.code == 3, said.err
            assert said.json["exit_code"] == 3
            assert "robots.txt refuses it" in said.json["sentence"]
            assert "\n" not in said.json["sentence"]


def test_facts_on_stdout_progress_on_stderr(copy: Path) -> None:
    """The end of a run is on stdout, what happens meanwhile on stderr, and none of it in the other."""
    said = corpus_cli("run", *_c(copy))
    assert "exported" in said.out
    assert "crawl_id" in said.err
    assert "progress" not in said.out


@pytest.mark.parametrize(
    "code", ["import corpus", "import sys; sys.argv = ['corpus', '--help']; from corpus.cli.main import main; main()"]
)
def test_start_up_is_quick(code: str) -> None:
    """`import corpus` and `corpus --help` take less than 0.3 s (of processor time, which other work on the machine leaves alone)."""
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert statistics.median(times) < STARTUP_S


def test_both_ways_to_start() -> None:
    """`python -m corpus` is `corpus`."""
    said = subprocess.run([sys.executable, "-m", "corpus", "--version"], check=True, capture_output=True, text=True)
    assert said.stdout.startswith("corpus, version ")
