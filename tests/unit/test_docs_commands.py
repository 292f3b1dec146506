"""Every command that the README and the pages under docs/ show is typed here, and prints what they say it prints."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.config.tree import Config
from tests.demo_corpus import DemoCorpus, corpus_cli
from tests.doc_pages import DOCS, ROOT, Reader, Step, differs, steps

PAGES = sorted(DOCS.glob("*.md"))
README = ROOT / "README.md"


@pytest.fixture
def reader(demo_corpus: DemoCorpus, tmp_path: Path) -> Iterator[Reader]:
    found = Reader(tmp_path, demo_corpus)
    yield found
    found.close()


def _ends_as_shown(reader: Reader, step: Step) -> None:
    said = reader.does(step)
    assert said.code == step.exit, f"{step}: exit {said.code}\n{said.out}\n{said.err}"
    assert not (told := differs(step, said)), f"{step}: {told}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page(reader: Reader, page: Path) -> None:
    """A reader who types a page from top to bottom gets the exit codes and the output that it shows."""
    found = steps(page)
    if page.stem in IN_DEMO:
        reader.does(Step(page.name, 0, "cd demo-corpus"))
    for step in found:
        if not step.not_run:
            _ends_as_shown(reader, step)


IN_DEMO = ("policies", "consent")
"""Pages whose commands have no `cd`: they speak of whatever corpus the reader has."""

STORY = ["demo", "why", "init", "check", "check", "plan", "run", "why", "sample", "sql", "verify"]


def test_the_first_ten_minutes() -> None:
    """The page that a newcomer reads first tells the whole story, in this order; the test above types it, nothing left out."""
    found = steps(DOCS / "first-crawl.md")
    assert [step.command.split()[1] for step in found if step.command.startswith("corpus ")] == STORY
    assert [step.writes for step in found if step.writes] == ["my-corpus/corpus.toml", "my-corpus/seeds.txt"]
    assert not any(step.not_run for step in found)


NOT_RUN = {
    "make demo": "the fixture of this test is the demo, and .ci/run makes it by the command itself",
    "make test": "this is it",
    "corpus run -c my-corpus/corpus.toml": "asks the web; docs/first-crawl.md runs it on the bundled one",
    "pip install 'corpus[s3]'": "needs a package index",
    "corpus status --serve -c my-corpus/corpus.toml": "serves until Ctrl-C; tests/contract/test_status_server.py asks it for every page",
    "corpus process --set engine.kind=ray --set engine.address=10.0.0.7:6379": "needs a cluster; tests/fleet/test_fleet_ray.py starts one",
    "corpus simulate fleet": "minutes of modelling; tests/sim/test_simulate_fleet.py runs small ones",
    "corpus simulate politeness": "half a minute of modelling; tests/sim/test_simulate_politeness.py runs it",
    "corpus audit /var/log/nginx/access.log --gap 2s": "reads a web server's log; docs/operation.md runs it on two lines of one",
    "corpus push --dry-run": "needs a hub; tests/contract/test_push_hub.py pushes to a stand-in",
    "corpus push --purge-history": "needs a hub; tests/contract/test_push_purge.py purges a stand-in",
    "CORPUS_FOLDER=../demo-corpus jupyter lab notebooks/": "opens a browser; tests/interop/test_notebooks.py runs every notebook",
}
"""Commands of the README that are not typed here, and why."""
EXITS = {"corpus check -c my-corpus/corpus.toml": 2}
FIRST = {"corpus diff v1 v2": ("export", "--name", "v2", "--set", "filter.policy=gopher")}
"""What a reader has done before, on another day."""


def test_every_command_of_the_readme(reader: Reader) -> None:
    """The README's commands end as they should. Without `-c` they are typed in a corpus' folder; `my-corpus` has been crawled."""
    reader.demo_is_here()
    typed = []
    for step in steps(README):
        command = step.command.partition("  #")[0].strip()
        typed.append(command)
        if command in NOT_RUN:
            continue
        reader.here = reader.home if "-corpus" in command or "optout" in command else reader.home / "demo-corpus"
        if command in FIRST:
            corpus_cli(*FIRST[command], "-c", reader.home / "demo-corpus/corpus.toml")
        said = reader.does(step)
        assert said.code == EXITS.get(command, 0), f"{step}: exit {said.code}\n{said.out}\n{said.err}"
        if command == "corpus check -c my-corpus/corpus.toml":
            _crawled(reader)
    assert set(NOT_RUN) | set(EXITS) | set(FIRST) <= set(typed), "a command that is no longer there"


def _crawled(reader: Reader) -> None:
    """The reader has filled in `my-corpus` and let it run: it is another demo corpus."""
    for path in (reader.home / "my-corpus").iterdir():
        path.unlink()
    (reader.home / "my-corpus").rmdir()
    reader.demo.copy(reader.home / "my-corpus")


def test_the_sql_of_the_pages(demo_corpus: DemoCorpus) -> None:
    """Queries shown in `sql` blocks are answered."""
    shown = [block for page in PAGES for block in page.read_text("utf-8").split("```sql\n")[1:]]
    assert len(shown) >= 3
    for block in shown:
        said = corpus_cli("sql", block.partition("\n```")[0], "-c", demo_corpus.config)
        assert said.code == 0, f"{block}\n{said.err}"


def test_the_configurations_of_the_pages() -> None:
    """A `toml` block that begins with `[corpus]` is a whole configuration, and every key of it is one."""
    shown = [block.partition("\n```")[0] for page in PAGES for block in page.read_text("utf-8").split("```toml\n")[1:]]
    whole = [block for block in shown if block.startswith("[corpus]")]
    assert len(whole) >= 3
    for block in whole:
        Config.model_validate(tomllib.loads(block))


def test_a_wrong_page_fails(reader: Reader, tmp_path: Path) -> None:
    """Output that is not printed, another exit code, a command that nobody can type: each is noticed."""
    page = tmp_path / "page.md"
    page.write_text("```console\n$ corpus sql \"select 'a' as x\" -c demo-corpus/corpus.toml\nx\n…\nb\n$ rm -r x\n```\n", "utf-8")
    wrong, dangerous = steps(page)
    assert "not printed: 'b'" in differs(wrong, reader.does(wrong))
    with pytest.raises(AssertionError, match="cannot type"):
        reader.does(dangerous)
