"""`export.versions = "major"` from a crawl and a recrawl to every verb that looks at a release; and the index that a crawl leaves."""

from __future__ import annotations

import json
import time

import pytest

from corpus.app.corpus import Corpus
from corpus.app.diff import diff
from corpus.app.index import captures, index_segments
from corpus.app.project import Project
from corpus.app.release import replay
from corpus.app.run import run_all
from corpus.app.takedown_apply import apply
from corpus.app.takedown_orders import add
from corpus.app.verify import verify
from corpus.app.views import Views
from corpus.app.why import why
from corpus.engine.local import InlineEngine
from corpus.observe.runlog import Terminal
from tests.optout_web import Web, project, serving

HOST = "127.30.9.1"
QUIET = Terminal(quiet=True)


@pytest.fixture(scope="module")
def twice(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Web]:
    """Two crawls: `/changes` is another text at the second, `/stays` is not modified. One release after each."""
    web = Web((HOST,))
    web.index("/stays", "/changes")
    web.page("/stays", 1, ("ETag", '"1"'))
    web.page("/changes", 2, ("ETag", '"2"'))
    more = '[recrawl]\nevery = "1s"\n[extract]\nprofile = "fast"\n[export]\nversions = "major"\ntokenizer = "none"'
    with serving(web):
        made = project(tmp_path_factory.mktemp("versions"), web, more=more)
        run_all(made, name="v1", quiet=True)
        web.page("/changes", 77, ("ETag", '"new"'))
        time.sleep(1.3)
        summary = run_all(made, name="v2", quiet=True)
    line = summary.document()["funnel"][-1]
    assert line == {"stage": "versions", "in": 1, "out": 1, "dropped": {}}
    assert summary.sentence.startswith("2 of ")
    return made, web


def _sql(made: Project, query: str) -> list[tuple[object, ...]]:
    with Views(made) as views:
        return [tuple(row.values()) for row in views.query(query).to_pylist()]


def test_every_verb_agrees_on_a_release_with_versions(twice: tuple[Project, Web]) -> None:
    """Two rows of one URL with two ids: SQL, verify, why, replay, page and the funnel say the same."""
    made, web = twice
    changes = web.url("/changes")
    rows = _sql(made, f"SELECT id, url FROM records WHERE url = '{changes}' ORDER BY fetched_at")
    assert len(rows) == 2
    assert len({row[0] for row in rows}) == 2
    assert _sql(made, "SELECT count(*) FROM records") == [(3,)]
    assert _sql(made, "SELECT count(*) FROM documents WHERE reason = ''") == [(3,)]
    assert _sql(made, "SELECT n_in, n_out FROM funnel WHERE stage = 'versions'") == [(1, 1)]
    verdict = verify(made, QUIET)
    assert verdict.ok, [fault.message for fault in verdict.faults]
    assert replay(made, "v2", QUIET) == []
    older, newest = (why(made, str(row[0])) for row in rows)
    assert older["id"] == rows[0][0]
    assert older["verdict"] == newest["verdict"] == "exported"
    assert older["releases"] == ["v1", "v2"]
    assert newest["releases"] == ["v2"]
    bodies = {Corpus(made).page(str(row[0])).body for row in rows}
    assert len(bodies) == 2
    manifest = json.loads((made.layout.release_dir("v2") / "manifest.json").read_text("utf-8"))
    assert manifest["rows"] == 3
    assert manifest["versions"]["out"] == 1


def test_diff_says_changed_where_a_version_came_on_top(twice: tuple[Project, Web]) -> None:
    """From one version to two: the page is changed, with the ids of both sides."""
    made, web = twice
    told = diff(made, "v1", "v2").document()
    assert (told["added"], told["removed"], told["changed"], told["unchanged"]) == (0, 0, 1, 1)
    (change,) = told["changes"]
    assert change["url"] == web.url("/changes")
    assert set(change["ids_a"]) < set(change["ids_b"])


def test_a_crawl_leaves_an_index_of_every_capture(twice: tuple[Project, Web]) -> None:
    """Pages, a revisit and policy files have their lines; a lost or damaged index is named, and mended by making it again."""
    made, web = twice
    assert [entry.status for entry in captures(made, web.url("/stays"))] == ["200", "304"]
    assert [entry.status for entry in captures(made, web.url("/changes"))] == ["200", "200"]
    assert {entry.filename.split("/")[1] for entry in captures(made, web.url("/robots.txt"))} == {"policy"}
    assert list(captures(made, web.url("/never"))) == []
    files = sorted(made.layout.cdxj.iterdir())
    before = {file: file.read_bytes() for file in files}
    files[0].write_bytes(before[files[0]].replace(b'"offset": "', b'"offset": "1', 1))
    files[1].unlink()
    assert {fault.kind.value for fault in verify(made, QUIET).faults} == {"digest", "missing-file"}
    assert verify(made, QUIET, repair=True).ok
    assert index_segments(made, InlineEngine(), QUIET) == 2
    assert {file: file.read_bytes() for file in files} == before
    assert index_segments(made, InlineEngine(), QUIET) == 0


def test_lost_versions_are_compared_again(twice: tuple[Project, Web]) -> None:
    """A damaged file of versions is named and forgotten; the release it made stays, and can be made again."""
    made, _ = twice
    file = max(made.layout.snapshots.glob("*/versions.parquet"), key=lambda path: path.stat().st_mtime_ns)
    file.write_bytes(b"no")
    assert not verify(made, QUIET).ok
    assert verify(made, QUIET, repair=True).ok
    assert not file.exists()
    assert replay(made, "v2", QUIET) == []


def test_a_takedown_takes_every_version_of_a_page(twice: tuple[Project, Web]) -> None:
    """Named by the id of its older version: both rows leave the release, its line of versions and the index; the folder is whole."""
    made, web = twice
    older = str(_sql(made, f"SELECT id FROM records WHERE url = '{web.url('/changes')}' ORDER BY fetched_at")[0][0])
    index_segments(made, InlineEngine(), QUIET)
    add(made, older, "asked by letter")
    apply(made, InlineEngine(), QUIET)
    assert _sql(made, "SELECT url FROM records") == [(web.url("/stays"),)]
    assert {entry.status for entry in captures(made, web.url("/changes"))} <= {"404", "301"}
    verdict = verify(made, QUIET)
    assert verdict.ok, [fault.message for fault in verdict.faults]
    manifest = json.loads((made.layout.release_dir("v2.1") / "manifest.json").read_text("utf-8"))
    assert (manifest["rows"], manifest["funnel"][-1]["out"], manifest["versions"]["out"]) == (1, 1, 0)
