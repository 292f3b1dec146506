"""A page whose parser hangs or kills its worker costs that page: outcome `stuck`, by a record that decides from then on."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from corpus.app.map_task import STAGE
from corpus.app.process import map_records, process
from corpus.app.stuck import STUCK, record_stuck, stuck_bodies
from corpus.app.verify import verify
from corpus.app.views import Views
from corpus.engine.local import LocalPool
from corpus.model import Outcome
from tests.demo_corpus import DemoCorpus, corpus_cli, project_of

PROFILE = 'extract.profile="precision"'
"""Not the demo's own, so that everything is measured again, and never read by the second extractor."""
PARSER = r'''
"""Stands in for trafilatura in the worker: one title is too much for it."""
import os
import re
import signal
from types import SimpleNamespace


def bare_extraction(html, **_):
    title = html.lower().partition("<title>")[2].partition("</title>")[0]
    if "zufror" in title:
        {fault}
    paragraphs = re.findall(r"<p\b[^>]*>(.*?)</p>", html, re.DOTALL)
    return SimpleNamespace(text="\n".join(" ".join(re.sub(r"<[^>]*>", "", found).split()) for found in paragraphs))
'''


FAULTS = {"hangs": 're.match(r"(a+)+$", "a" * 64 + "b")', "dies": "os.kill(os.getpid(), signal.SIGSEGV)"}
"""The first is in C code that neither ends nor listens to signals of Python's."""


def _outcomes(folder: Path) -> Mapping[str, list[str]]:
    """outcome → urls."""
    found: dict[str, list[str]] = {}
    with Views(project_of(folder)) as views:
        for row in views.query("SELECT outcome, url FROM documents ORDER BY url").to_pylist():
            found.setdefault(row["outcome"], []).append(row["url"])
    return found


def _quiet(*_event: object, **_facts: object) -> None:
    """A reporter that nobody reads."""


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in ("documents", "signals", "spans", "signatures", f"commits/{STAGE}")
        for path in sorted((folder / name).rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("fault", ["hangs", pytest.param("dies", marks=pytest.mark.slow)])
def test_a_hanging_or_dying_parser_costs_the_page(
    fault: str, demo_corpus: DemoCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page is `stuck` by digest, all else is measured, `why` and the funnel say it, and the record alone gives the same bytes
    with a parser that has no such fault."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    parser = tmp_path / "parser"
    parser.mkdir()
    (parser / "trafilatura.py").write_text(PARSER.replace("{fault}", FAULTS[fault]), "utf-8")
    before = _outcomes(folder)
    with monkeypatch.context() as patched:
        patched.syspath_prepend(parser)
        patched.setattr("corpus.app.process.PAGE_CPU_S", 1.0)
        said = corpus_cli("process", "-c", folder / "corpus.toml", "--set", PROFILE)
    assert said.code == 0, said.err
    after = _outcomes(folder)
    (stuck,) = after["stuck"]
    assert "poison" not in after
    assert sum(map(len, after.values())) == sum(map(len, before.values()))
    assert len(after["ok"]) >= 40
    project = project_of(folder)
    assert len(stuck_bodies(project)) == 1
    with Views(project) as views:
        (row,) = views.query("SELECT text, content_sha256 FROM documents WHERE outcome = 'stuck'").to_pylist()
    assert row == {"text": None, "content_sha256": next(iter(stuck_bodies(project)))}
    assert not verify(project, _quiet).faults
    assert not list((project.layout.local / "probe").iterdir())
    # The same parser without the fault: the record decides.
    written = _files(folder)
    (parser / "trafilatura.py").write_text(PARSER.replace("{fault}", "pass"), "utf-8")
    for name in ("documents", "signals", "spans", "signatures", f"commits/{STAGE}"):
        shutil.rmtree(folder / name)
    with monkeypatch.context() as patched:
        patched.syspath_prepend(parser)
        assert corpus_cli("process", "-c", folder / "corpus.toml", "--set", PROFILE).code == 0
    assert _files(folder) == written
    exported = corpus_cli("export", "-c", folder / "corpus.toml", "--set", PROFILE, "--json")
    assert exported.code == 0, exported.err
    assert '"stuck": 1' in json.dumps(exported.json)
    told = corpus_cli("why", stuck, "-c", folder / "corpus.toml", "--set", PROFILE)
    assert "stuck" in told.out
    assert "did not finish within its work limit" in told.out


def test_a_verdict_reaches_every_segment_that_holds_the_body(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """A segment that was measured with the body's text is due again, and done once; without the record the text is back."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    project = project_of(folder)
    with Views(project) as views:
        row = views.query("SELECT url, content_sha256 FROM documents WHERE outcome = 'ok' ORDER BY url LIMIT 1").to_pylist()[0]
    pool = LocalPool(1)
    assert record_stuck(project, map_records(project).values(), row["content_sha256"], "default") == 1
    assert process(project, pool, _quiet).measured == 1
    assert row["url"] in _outcomes(folder)[Outcome.STUCK.value]
    assert record_stuck(project, map_records(project).values(), row["content_sha256"], "default") == 0
    assert process(project, pool, _quiet).measured == 0
    for record in project.commits.list(STUCK):
        project.commits.drop(STUCK, record.key)
    assert process(project_of(folder), pool, _quiet).measured == 1
    assert row["url"] in _outcomes(folder)[Outcome.OK.value]
