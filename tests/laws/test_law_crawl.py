"""Laws A and B: any number of fetch processes gives the same rows, any number of workers the same bytes. Real sockets,
the real command, and a server that keeps its own account of who asked what and when."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from corpus.testing.kill import Victim
from corpus.testing.web_process import ServerProcess
from tests.laws.crawl_folder import Folder
from tests.laws.law_web import LawWeb


def test_one_run_reaches_every_page_and_is_polite(web: LawWeb, whole: Folder) -> None:
    """The baseline itself is right: states as the web's ground truth says, laws C and D, a release with rows."""
    urls = whole.urls()
    wrong = [
        (url, urls.get(url), seen)
        for url, seen in web.pages().items()
        if "/r/long-" not in url and urls.get(url, ("", ""))[0] != seen.state.value
    ]
    assert not wrong
    assert len(whole.rows()) > 60
    whole.check_manners(web.refusals())


def test_a_second_run_asks_nothing_and_changes_nothing(server: ServerProcess, whole: Folder) -> None:
    """Nothing is due: no contact, the same release files."""
    asked, before = len(server.log()), whole.files()
    whole.run()
    assert len(server.log()) == asked
    assert whole.files() == before


@pytest.mark.parametrize("processes", [3, 16])
def test_any_number_of_processes_gives_the_same_rows(web: LawWeb, whole: Folder, tmp_path: Path, processes: int) -> None:
    """3 and 16 fetch processes: the same rows and the same states, and no gap of a shared address is short."""
    folder = Folder.make(tmp_path / "corpus", whole.server, web.seeds())
    folder.run("run", f"crawl.processes={processes}")
    assert folder.urls() == whole.urls()
    assert folder.rows() == whole.rows()
    folder.check_manners(web.refusals())


def test_any_number_of_workers_and_a_killed_export_give_the_same_bytes(whole: Folder, tmp_path: Path) -> None:
    """Law A: 1, 3 and 16 process workers, and an export that is killed and run again: byte-identical releases."""
    before = whole.files()
    for workers in (1, 3, 16):
        copy = Folder(tmp_path / f"workers-{workers}", whole.server)
        shutil.copytree(whole.path, copy.path)
        for made in (
            "documents",
            "signals",
            "spans",
            "signatures",
            "snapshots",
            "releases",
            "commits/map",
            "commits/dedup",
            "commits/host-lines",
            "commits/release",
        ):
            shutil.rmtree(copy.path / made)
        copy.run("process", f"engine.workers={workers}")
        if workers == 3:
            copy.killed(workers, 2, 0.5, Victim.TREE, verb="export")
        else:
            copy.run("export")
        assert copy.files() == before
