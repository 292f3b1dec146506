"""`corpus process` while a crawl runs: what it says of archives that are still open is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.app.process import process
from corpus.app.project import Project, open_project
from corpus.app.unsealed import note_unsealed
from corpus.config.load import load_config
from corpus.engine.local import InlineEngine
from corpus.errors import NothingDone
from corpus.store.locks import stage_lock


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n', "utf-8")
    return open_project(load_config(tmp_path / "corpus.toml", environment={}))


def _said(project: Project) -> tuple[str, str]:
    with pytest.raises(NothingDone) as caught:
        process(project, InlineEngine(), lambda *_, **__: None)
    return str(caught.value.what), caught.value.hint


def test_nothing_to_process_is_told_apart(project: Project) -> None:
    """Nothing stored, pages of a running crawl that are not sealed yet, and those that an interrupted one left: three things."""
    assert _said(project)[0] == "no page has been stored yet, so there is nothing to process"
    folder = project.layout.warc_dir("c")
    folder.mkdir(parents=True)
    (folder / "s00-000001-000001.warc.gz.open").touch()
    what, hint = _said(project)
    assert "an interrupted crawl left open" in what
    assert "corpus run" in hint
    with stage_lock(project.layout.locks, "crawl"):
        what, hint = _said(project)
    assert "in 1 archives that the running crawl (process" in what
    assert "corpus run processes them as they come" in hint


def test_what_was_left_out_is_noted_only_while_a_crawl_runs(project: Project) -> None:
    """Measured is what was sealed; the rest is named, and nothing is said of archives of policy files."""
    said: list[str] = []

    def report(event: str, **facts: object) -> None:
        said.append(f"{event} {facts['what']}")

    project.layout.policy_dir("c").mkdir(parents=True)
    (project.layout.policy_dir("c") / "s00-000001-000001.warc.gz.open").touch()
    with stage_lock(project.layout.locks, "crawl"):
        note_unsealed(project, report)
        assert said == []
        project.layout.warc_dir("c").mkdir(parents=True, exist_ok=True)
        (project.layout.warc_dir("c") / "s00-000001-000002.warc.gz.open").touch()
        note_unsealed(project, report)
    note_unsealed(project, report)
    assert len(said) == 1
    assert said[0].startswith("note 1 archives that the running crawl")
