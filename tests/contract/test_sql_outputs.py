"""What leaves through `corpus sql`: `attach.sql` for the duckdb shell, and JSON lines that hold every row."""

from __future__ import annotations

import io
import itertools
import json
import re
import shutil
from pathlib import Path

import duckdb
import pytest
import zstandard

from corpus.app.views import PUBLIC, Views
from tests.demo_corpus import DemoCorpus, Said, corpus_cli


def _sql(folder: Path, *arguments: str | Path) -> Said:
    return corpus_cli("sql", "-c", folder / "corpus.toml", *arguments)


@pytest.fixture(scope="module")
def folder(demo_corpus: DemoCorpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy in a folder whose name must be quoted."""
    return demo_corpus.copy(tmp_path_factory.mktemp("sql") / "it's a corpus")


def _lines(path: Path) -> list[dict]:
    with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as unpacked:
        return [json.loads(line) for line in io.TextIOWrapper(unpacked, "utf-8")]


@pytest.mark.parametrize("view", PUBLIC)
def test_attach_gives_the_shell_the_same_views(folder: Path, tmp_path: Path, view: str) -> None:
    """Read by DuckDB alone, every view has the columns and the rows that `corpus sql` shows."""
    said = _sql(folder, "--attach", "-o", tmp_path / "at'tach")
    assert said.code == 0, said
    with duckdb.connect(":memory:") as shell:
        shell.execute((tmp_path / "at'tach" / "attach.sql").read_text("utf-8"))
        shown = shell.execute(f"SELECT * FROM {view}")
        columns = [column[0] for column in shown.description or ()]
        ours = _sql(folder, "--json", f"SELECT * FROM {view}").json
        assert columns == ours["columns"]
        assert len(shown.fetchall()) == ours["row_count"] > 0


QUERIES = (
    "SELECT count(*) FROM documents",
    "SELECT id, signals FROM documents ORDER BY id",
    "SELECT url, state FROM pages ORDER BY url",
    "SELECT id, text FROM records ORDER BY id",
    "SELECT id FROM records WHERE id = 'none'",
    "SELECT stage, n_in FROM funnel ORDER BY stage, reason",
)


def test_one_connection_answers_any_queries_in_any_order(demo_corpus: DemoCorpus) -> None:
    """Whatever was asked before on the same views, a query's answer is the one it gets alone."""

    def asked(*queries: str) -> list[list[dict]]:
        with Views(demo_corpus.project()) as views:
            return [views.query(query).to_pylist() for query in queries]

    alone = {query: asked(query)[0] for query in QUERIES}
    for pair in itertools.permutations(QUERIES, 2):
        assert asked(*pair) == [alone[query] for query in pair], pair


def test_attach_again_refreshes_and_harms_no_corpus(folder: Path) -> None:
    """By default it lies under store.local; a second time replaces it; verify finds nothing strange."""
    for _ in range(2):
        said = _sql(folder, "--attach")
        assert said.code == 0
    script = Path(said.out.strip().removeprefix("wrote "))
    assert script == folder / ".local" / "attach" / "attach.sql"
    with duckdb.connect(":memory:") as shell:
        shell.execute(script.read_text("utf-8"))
        shell.execute(script.read_text("utf-8"))
    assert corpus_cli("verify", "-c", folder / "corpus.toml").code == 0


def test_attach_of_a_corpus_without_a_release(folder: Path, tmp_path: Path) -> None:
    """Views of what is not there yet are empty, with their columns."""
    young = Path(shutil.copytree(folder, tmp_path / "young"))
    for name in ("releases", "snapshots", "commits/release", "commits/dedup"):
        shutil.rmtree(young / name)
    assert _sql(young, "--attach", "-o", tmp_path / "a").code == 0
    with duckdb.connect(":memory:") as shell:
        shell.execute((tmp_path / "a" / "attach.sql").read_text("utf-8"))
        assert shell.execute("SELECT count(*) FROM records").fetchone() == (0,)
        assert shell.execute("SELECT count(*) > 0 FROM documents").fetchone() == (True,)


def test_json_lines_hold_every_row(folder: Path, tmp_path: Path) -> None:
    """One object a row, as `--json` says it; texts arrive as they are."""
    target = tmp_path / "v1.jsonl.zst"
    said = _sql(folder, "--format", "jsonl.zst", "-o", target, "SELECT * FROM records ORDER BY id")
    assert said.code == 0, said
    ours = _sql(folder, "--json", "SELECT * FROM records ORDER BY id").json
    assert _lines(target) == [dict(zip(ours["columns"], row, strict=True)) for row in ours["rows"]]


def test_json_lines_appear_whole_or_not_at_all(folder: Path, tmp_path: Path) -> None:
    """A query that fails leaves no file; without a name there is a hint; nothing that writes is run."""
    target = tmp_path / "x.jsonl.zst"
    assert _sql(folder, "--format", "jsonl.zst", "-o", target, "SELECT nothing FROM records").code == 2
    assert _sql(folder, "--format", "jsonl.zst", "SELECT 1").code == 2
    assert _sql(folder, "--format", "jsonl.zst", "-o", target, "DELETE FROM records").code == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [(), ("SELECT 1", "--attach")])
def test_one_query_or_attach(folder: Path, arguments: tuple[str, ...]) -> None:
    """Neither, or both, is a mistake of usage."""
    assert _sql(folder, *arguments).code == 2


@pytest.mark.parametrize("form", ["csv", "table", "json", "parquet"])
def test_a_file_holds_what_would_be_printed(folder: Path, tmp_path: Path, form: str) -> None:
    """-o writes every format, in the place of what was there; a folder that is not there is refused, and not made."""
    target = tmp_path / "out"
    target.write_text("older and longer than what comes", "utf-8")
    said = _sql(folder, "--format", form, "-o", target, "SELECT 1 AS one")
    assert said.code == 0, said
    assert "wrote" in said.out + said.err
    if form != "parquet":
        assert target.read_text("utf-8") == _sql(folder, "--format", form, "SELECT 1 AS one").out
    assert list(tmp_path.iterdir()) == [target]
    wrong = _sql(folder, "--format", form, "-o", tmp_path / "none" / "out", "SELECT 1")
    assert (wrong.code, "no such folder" in wrong.err) == (2, True)
    assert not (tmp_path / "none").exists()


def test_no_query_and_two_queries_are_told_apart(folder: Path) -> None:
    """An empty text, two statements, and one that is no query: three messages, all of usage."""
    for text, words in (
        ("", "is empty"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("DROP TABLE x", "nothing here is ever written"),
    ):
        said = _sql(folder, text)
        assert (said.code, words in said.err) == (2, True), said


def test_attach_says_which_orders_it_knows(folder: Path, tmp_path: Path) -> None:
    """The script is a copy: at its top stand its time, the last order in it, and what to do after the next."""
    copy = Path(shutil.copytree(folder, tmp_path / "ordered"))
    assert corpus_cli("takedown", "add", "nobody.example", "--reason", "r", "-c", copy / "corpus.toml").code == 0
    assert _sql(copy, "--attach", "-o", tmp_path / "a").code == 0
    head = (tmp_path / "a" / "attach.sql").read_text("utf-8").split("SET ")[0]
    assert re.search(r"Written 20..-..-..T..:..:...*up to number 1 of control/", head), head
    assert "run `corpus sql --attach` again after every order" in head


def test_releases_say_whether_they_are_withdrawn(folder: Path, tmp_path: Path) -> None:
    """What `takedown apply` replaced is marked."""
    copy = Path(shutil.copytree(folder, tmp_path / "taken"))
    url = _sql(copy, "--json", "SELECT url FROM records LIMIT 1").json["rows"][0][0]
    assert corpus_cli("takedown", "add", url, "--reason", "r", "-c", copy / "corpus.toml").code == 0
    assert corpus_cli("takedown", "apply", "-c", copy / "corpus.toml").code == 0
    assert _sql(copy, "--json", "SELECT name, withdrawn FROM releases").json["rows"] == [["v1", True], ["v1.1", False]]


@pytest.mark.parametrize("verb", [("export", "--name"), ("run", "--name"), ("replay",)])
def test_a_name_no_release_can_have_is_refused_at_once(folder: Path, verb: tuple[str, ...]) -> None:
    """Before a run begins, as a mistake of usage."""
    runs = sorted((folder / "runs").iterdir())
    said = corpus_cli(*verb, "../evil", "-c", folder / "corpus.toml")
    assert (said.code, "no name of a release" in said.err) == (2, True), said
    assert sorted((folder / "runs").iterdir()) == runs
