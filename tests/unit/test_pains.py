"""What newcomers to other people's crawlers and pipelines stumbled over, and what happens here instead: one row each.

A row names the issue where somebody said it, the pain, our answer, and the tests that show the answer. `here` are tests of
this module; the others are looked up by name, so that none of them can vanish unnoticed.
"""

from __future__ import annotations

import ast
import importlib.metadata
import itertools
import json
import re
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

import corpus
from corpus.app.funnel import _waits
from corpus.cli.main import VERBS
from corpus.config.tree import Config, CorpusSettings
from corpus.testing.demo.answers import NOT_FOUND, DemoSite, Ready
from corpus.testing.web_answer import Answer
from corpus.testing.web_process import ServerProcess
from tests.demo_corpus import DemoCorpus, Said, corpus_cli
from tests.doc_pages import ROOT


@dataclass(frozen=True, slots=True)
class Pain:
    """`shown`: `path::test` below `tests/`, or only `test` where it stands in this module."""

    issue: str
    pain: str
    answer: str
    shown: tuple[str, ...]


PAINS = (
    Pain("scrapy#4273", "a misspelt start_url is silently ignored: crawled 0 pages", "unknown keys are refused; nothing stored is exit 3 with the reason",
         ("unit/test_cli_verbs.py::test_all_mistakes_of_a_configuration_at_once", "unit/test_cli_verbs.py::test_nothing_stored_is_exit_3_with_the_reason")),
    Pain("scrapy#1993", "'Forbidden by robots.txt' is read as a bug", "a refusal is counted, and `why` shows the line",
         ("unit/test_cli_why.py::test_a_refusal_carries_its_raw_line", "unit/test_docs_commands.py::test_the_first_ten_minutes")),
    Pain("scrapy#4479, #4509", "a resumed job ends at once, or fetches again", "the frontier is durable; the same command goes on",
         ("test_an_interrupted_run_says_how_to_go_on", "laws/test_law_kills.py::test_twenty_kills_lose_nothing_double_nothing_and_break_no_gap",
          "laws/test_law_crawl.py::test_a_second_run_asks_nothing_and_changes_nothing")),
    Pain("scrapy#5023", "the crawl hangs at 0 pages a minute", "the stall detector names the hosts and the reason",
         ("unit/test_observe_live.py::test_the_stall_detector_names_the_reason",
          "unit/test_observe_live.py::test_plain_numbers_come_every_twenty_seconds_and_at_once_when_stalled")),
    Pain("alltheplaces#16820", "a robots.txt that is missing behind a redirect blocks the site", "RFC 9309: absent permits, and `why` says so",
         ("test_a_missing_robots_txt_behind_a_redirect_permits",)),
    Pain("datatrove#235", "'completed' without a result; out of memory", "every record counts its rows; memory has a cap",
         ("test_every_record_counts_its_rows", "unit/test_clusters_bands.py::test_spilling_changes_nothing")),
    Pain("datatrove#338", "tasks stay incomplete, and running again does not help", "a page that crashes its parser becomes `poison`, the rest goes on",
         ("sim/test_app_poison.py::test_a_page_that_crashes_the_worker_becomes_poison",)),
    Pain("datatrove#360", "numbers are wrong after a relaunch", "numbers are counted from what is stored, not by the process",
         ("test_numbers_come_from_what_is_stored", "test_statement_files_that_wait_are_no_pages")),
    Pain("datatrove#220", "can an interrupted task be continued?", "the last line says how",
         ("test_an_interrupted_run_says_how_to_go_on",)),
    Pain("datatrove#330, #503", "a first document without a value gives a null schema, and later ones fail", "the schema is frozen",
         ("contract/test_export_release.py::test_empty_and_half_empty_shards_have_the_full_schema",)),
    Pain("dolma#96", "the example in the docs does nothing", "every example is typed by a test",
         ("unit/test_docs_commands.py::test_every_command_of_a_page", "unit/test_docs_commands.py::test_every_command_of_the_readme",
          "unit/test_docs_reference.py::test_every_key_says_what_it_means")),
    Pain("dolma#150, #174", "a stage changes nothing, without a word", "a policy that drops nothing is warned of",
         ("contract/test_filter_sources_run.py::test_a_policy_that_drops_nothing_warns",)),
    Pain("NeMo-Curator#736, #109", "a CPU install fails at a GPU import", "no GPU package, direct or indirect", ("test_what_an_install_brings",)),
    Pain("NeMo-Curator#76", "the install fails", "at most 25 direct dependencies; where POSIX is needed, the package says so", ("test_what_an_install_brings",)),
    Pain("crawl4ai#909, #377, #1549", "the browser is missing after setup", "no browser", ("test_what_an_install_brings",)),
    Pain("crawlee#2275", "the first start asks for another install step", "the demo runs after pip alone, its model is in the package",
         ("test_nothing_is_fetched_after_the_install",)),
    Pain("firecrawl#169, #1469, #1127", "a service is not configured", "no service; those that one may use are named before anything starts",
         ("test_nothing_is_fetched_after_the_install", "unit/test_plan_doctor.py::test_services_are_reached_or_named")),
    Pain("browsertrix-crawler#142", "the first run dies: a folder cannot be made", "doctor and check find it, and say what to do",
         ("unit/test_plan_doctor.py::test_a_folder_that_cannot_be_written_is_a_fault",)),
    Pain("browsertrix-crawler#746", "an output was not asked for, and cannot be made later", "everything after the archive can be made again",
         ("test_everything_after_the_archive_can_be_made_again",)),
    Pain("browsertrix#2035", "the disk is full, and the crawl cannot be resumed", "it waits, and goes on when there is room",
         ("sim/test_disk_full.py::test_a_crawl_waits_for_room_and_ends_as_if_nothing_had_been", "sim/test_disk_full.py::test_a_later_stage_ends_and_is_resumed")),
    Pain("trafilatura#589", "the crawl returns nothing, and the 403 is visible only when debugging", "each class of failure is a line of the funnel",
         ("test_a_403_is_on_the_screen",)),
    Pain("trafilatura#771", "an option makes the output vanish", "options that contradict each other are refused",
         ("test_options_that_contradict_each_other_are_refused", "unit/test_config_load.py::test_recrawl_intervals_that_contradict_each_other_are_a_problem")),
    Pain("datasets#7222, #7092", "columns are cast to null across files", "the schema is frozen, and other people's readers read it",
         ("contract/test_export_release.py::test_empty_and_half_empty_shards_have_the_full_schema", "interop/test_export_readers.py::test_arrow_datasets_read_all_shards")),
    Pain("huggingface_hub#3071, #4362; datasets#6257", "429 for too many commits, and no remedy", "one commit; every refusal is said with what to do; a push goes on",
         ("contract/test_push_hub.py::test_a_push_sends_everything_once_and_reads_it_back", "contract/test_push_hub.py::test_every_refusal_is_said_plainly",
          "contract/test_push_hub.py::test_a_broken_connection_loses_nothing")),
    Pain("ducklake#854, #457", "an upgrade finds a catalog of another version", "no DuckDB file, no extension; a newer folder is refused",
         ("test_no_database_file_of_a_version", "unit/test_cli_verbs.py::test_a_newer_folder_is_refused")),
    Pain("dvc#2804; huggingface_hub#4160", "a stale lock survives a reboot", "a lock ends with its process, and names it",
         ("unit/test_store_layout_locks.py::test_a_lock_dies_with_its_process", "unit/test_store_layout_locks.py::test_a_lock_names_its_holder")),
)  # fmt: skip


@pytest.mark.parametrize("pain", PAINS, ids=lambda pain: re.sub(r"[^\w#-]+", "_", pain.issue))
def test_every_pain_has_its_test(pain: Pain) -> None:
    """Each answer is shown by a test that exists, has a promise in its docstring and is not skipped."""
    for shown in pain.shown:
        path, _, name = shown.rpartition("::")
        tree = ast.parse((ROOT / "tests" / path).read_text("utf-8") if path else Path(__file__).read_text("utf-8"))
        (found,) = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
        assert ast.get_docstring(found), shown
        assert not [mark for mark in found.decorator_list if "skip" in ast.unparse(mark) or "xfail" in ast.unparse(mark)], shown


def test_there_are_twenty_five_and_one() -> None:
    """The list of newcomers' pains is whole."""
    assert len(PAINS) == 26


ADDRESS = "127.78.0.3"
_HTML = (("Content-Type", "text/html; charset=utf-8"),)
_PROSE = "<p>A page about the river, which rises every spring and leaves fine grey mud on the meadows below the mill. Nobody minds. </p>"


def _page(body: str) -> Ready:
    return Ready(Answer(200, _HTML, f"<!DOCTYPE html><html lang=en><title>River</title><body>{body}</body></html>".encode()))


@dataclass(frozen=True, slots=True)
class Small:
    """A crawl of five pages that was interrupted, and run again."""

    folder: Path
    origin: str
    interrupted: tuple[int | None, str, str]
    again: Said

    @property
    def config(self) -> list[str]:
        return ["-c", str(self.folder / "corpus.toml")]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    """One host: robots.txt is moved to where nothing is, one page is forbidden, three are pages."""
    links = "".join(f"<a href={path}>{path}</a> " for path in ("/a.html", "/b.html", "/forbidden.html"))
    moved = Answer(301, (("Location", "/elsewhere/robots.txt"), ("Content-Type", "text/html")), b"moved")
    table = {
        "/robots.txt": Ready(moved),
        "/elsewhere/robots.txt": Ready(NOT_FOUND),
        "/": _page(_PROSE + links),
        "/a.html": _page(_PROSE.replace("river", "mill") * 2),
        "/b.html": _page(
            _PROSE.replace("mud", "sand").replace("spring", "autumn")
            + "<p>The miller keeps a boat there and sells tickets in August.</p>"
        ),
        "/forbidden.html": Ready(Answer(403, _HTML, b"no")),
    }
    folder = tmp_path_factory.mktemp("small")
    with ServerProcess(DemoSite({ADDRESS: table})) as server:
        origin = f"http://{ADDRESS}:{server.port}"
        (folder / "corpus.toml").write_text(
            f'[corpus]\nname = "x"\n[crawl]\nseeds = ["{origin}/"]\ncontact = "a@example.org"\n'
            f'delay = "200ms"\ndelay_start = "200ms"\nallow_private = ["{ADDRESS}/32"]\n',
            "utf-8",
        )
        argv = [sys.executable, "-m", "corpus", "run", "-c", str(folder / "corpus.toml")]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            until = time.monotonic() + 30
            while not list(folder.glob("runs/*/live.json")) and child.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
        yield Small(folder, origin, (child.returncode, out, err), corpus_cli("run", "-c", folder / "corpus.toml"))


def test_an_interrupted_run_says_how_to_go_on(small: Small) -> None:
    """Ctrl-C: exit 130 and the line that resumes; the same command then ends with every page there is."""
    code, out, err = small.interrupted
    assert code == 130, err
    assert "run the same command again to resume" in out + err
    assert small.again.code == 0, small.again.err
    pages = corpus_cli("sql", "select count(*) as n from pages where state in ('parsed', 'fetched')", "--json", *small.config)
    assert pages.json["rows"] == [[3]]


def test_a_missing_robots_txt_behind_a_redirect_permits(small: Small) -> None:
    """robots.txt → 301 → 404: the site has none, so its pages are asked for; the reading and its status are shown."""
    told = corpus_cli("why", f"{small.origin}/a.html", "--json", *small.config).json
    assert told["consent"]["access"] == "yes"
    (access,) = (line for line in told["consent"]["evidence"] if line["protocol"] == "robots")
    assert "404" in access["raw"]


def test_a_403_is_on_the_screen(small: Small) -> None:
    """The funnel that every run ends with has a line for it, and `why` says what the server answered."""
    assert "http-403: the server forbids it" in small.again.out
    assert "HTTP 403" in corpus_cli("why", f"{small.origin}/forbidden.html", *small.config).out


def test_every_record_counts_its_rows(demo_corpus: DemoCorpus) -> None:
    """No stage is done without saying how many rows went in and came out, and `verify` counts them again."""
    records = [json.loads(path.read_text("utf-8")) for path in (demo_corpus.folder / "commits").rglob("*.json")]
    assert len(records) >= 5
    counted = [record for record in records if any(record["rows"].values())]
    assert {record["stage"] for record in records} - {record["stage"] for record in counted} == {"release"}  # its manifest counts
    manifest = json.loads((demo_corpus.folder / "releases/v1/manifest.json").read_text("utf-8"))
    assert sum(shard["rows"] for shard in manifest["shards"]) == demo_corpus.summary.funnel[-1].n_out
    assert corpus_cli("verify", "-c", demo_corpus.config).code == 0


def test_numbers_come_from_what_is_stored(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """Another process, another day, nothing left to do: the summary tells the same funnel."""
    copy = demo_corpus.copy(tmp_path / "copy")
    told = corpus_cli("process", "--json", "-c", copy / "corpus.toml").json
    assert told["funnel"] == demo_corpus.summary.document()["funnel"]
    assert told["fetch"]["pages"] == 0


def test_statement_files_that_wait_are_no_pages() -> None:
    """A parked host whose robots.txt is to be read again takes no page out of the funnel, and no count goes below nothing."""
    hosts = [("a", "parked", "robots-unreachable", 3), ("b", "parked", "", 2), ("c", "active", "", 9)]
    for total, waits in (
        (0, {}),
        (2, {"robots-unreachable": 2}),
        (4, {"robots-unreachable": 3, "backing-off": 1}),
        (7, {"robots-unreachable": 3, "backing-off": 2, "queued": 2}),
    ):
        with mock.patch("corpus.app.funnel.host_states", return_value=iter(hosts)):
            assert _waits(mock.sentinel.project, total) == waits


HEAVY = re.compile(
    r"^(torch|tensorflow|jax|cupy|cudf|nvidia|triton|playwright|selenium|pyppeteer|redis|celery|kafka|pymongo|psycopg|supabase|docker)"
)


def test_what_an_install_brings() -> None:
    """25 direct dependencies at most; nothing for a GPU, no browser, no service's client, however deep."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert len(project["dependencies"]) <= 25
    pinned = {
        line.partition("==")[0].lower() for line in (ROOT / "requirements.txt").read_text("utf-8").splitlines() if "==" in line
    }
    direct = {re.split(r"[<>=!;\[ ]", item, maxsplit=1)[0].lower() for item in project["dependencies"]}
    assert {name.replace("_", "-") for name in direct} <= {name.replace("_", "-") for name in pinned}
    assert [name for name in _all_of(direct) if HEAVY.match(name)] == []
    assert "Operating System :: POSIX" in project["classifiers"]


def _all_of(direct: set[str]) -> set[str]:
    """The packages an install brings, by the metadata of those that are here; extras and other platforms apart."""
    found, ahead = set(direct), list(direct)
    while ahead:
        try:
            needs = importlib.metadata.requires(ahead.pop()) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        plain = {re.split(r"[<>=!;\[ (~]", need, maxsplit=1)[0].lower() for need in needs if "extra ==" not in need}
        ahead += plain - found
        found |= plain
    return found


def test_nothing_is_fetched_after_the_install(demo_corpus: DemoCorpus) -> None:
    """No verb installs or downloads anything; the model is in the package; the defaults need no service. The demo has shown it."""
    assert not {"setup", "install", "download"} & set(VERBS)
    models = Path(corpus.__path__[0], "filter/models")
    assert (models / "lid.176.ftz").stat().st_size > 500_000
    defaults = Config(corpus=CorpusSettings(name="x"))
    assert (defaults.store.frontier, defaults.engine.kind, defaults.in_bucket) == ("sqlite", "local", False)
    assert demo_corpus.summary.exit_code == 0


def test_everything_after_the_archive_can_be_made_again(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """Index, documents, signals, clusters: lost altogether, they are made again, and the release has the same rows."""
    copy = demo_corpus.copy(tmp_path / "copy")
    families = ("documents", "signals", "spans", "signatures", "cdxj")
    lost = [path for path in itertools.chain.from_iterable((copy / name).rglob("*") for name in families) if path.is_file()]
    before = {path: path.read_bytes() for path in lost if path.suffix == ".parquet"}
    for path in lost:
        path.unlink()
    config = ["-c", str(copy / "corpus.toml")]
    assert corpus_cli("verify", *config).code == 1
    corpus_cli("verify", "--repair", *config)
    again = corpus_cli("run", "--name", "again", *config)
    assert again.code == 0, again.err
    assert {path: path.read_bytes() for path in before} == before
    assert corpus_cli("diff", "v1", "again", "--json", *config).json["unchanged"] == demo_corpus.summary.funnel[-1].n_out


CONTRADICTIONS = {
    "a query and --attach": ["sql", "select 1", "--attach", "-c", "{config}"],
    "neither a query nor --attach": ["sql", "-c", "{config}"],
    "ask the site, and take this header": ["optout", "check", "http://example.org/", "--live", "--header", "X-Robots-Tag: noai"],
    "an ingest of nothing": ["ingest", "-c", "{config}"],
    "Parquet on a terminal": ["sql", "select 1", "--format", "parquet", "-c", "{config}"],
    "a bucket's region for a folder": ["check", "--set", "store.s3_region=eu-central-1", "-c", "{config}"],
}


@pytest.mark.parametrize("what", sorted(CONTRADICTIONS))
def test_options_that_contradict_each_other_are_refused(demo_corpus: DemoCorpus, what: str) -> None:
    """Exit 2 with a message, and no output that would be thrown away."""
    said = corpus_cli(*(part.replace("{config}", str(demo_corpus.config)) for part in CONTRADICTIONS[what]))
    assert said.code == 2
    assert said.err or "problem" in said.out


def test_no_database_file_of_a_version(demo_corpus: DemoCorpus) -> None:
    """Nothing in a folder is a DuckDB file, so no upgrade of DuckDB meets one; what is SQLite can be made again or brought up."""
    heads = {path: path.open("rb").read(16) for path in demo_corpus.folder.rglob("*") if path.is_file()}
    assert [path for path, head in heads.items() if head[8:12] == b"DUCK" or path.suffix in (".duckdb", ".db", ".wal")] == []
