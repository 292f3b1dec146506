"""One word per idea: the state of a page is the same wherever it is told."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from corpus.app.status import status
from corpus.app.views import Views
from corpus.app.why import why
from tests.demo_corpus import DemoCorpus, project_of


def _by_sql(folder: Path) -> tuple[Counter[str], dict[str, str]]:
    with Views(project_of(folder)) as views:
        rows = views.query("SELECT url, state FROM pages").to_pylist()
    return Counter(row["state"] for row in rows), {row["url"]: row["state"] for row in rows}


def _by_status(folder: Path) -> Counter[str]:
    told: Counter[str] = Counter()
    for row in status(project_of(folder))["urls"]:
        told[row["state"]] += row["n"]
    return told


def test_sql_status_and_why_say_the_same(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """Of every state, measured pages included; and `fetched` again once the measurements are gone."""
    folder = demo_corpus.copy(tmp_path / "corpus")
    counted, by_url = _by_sql(folder)
    assert counted["parsed"] > 40
    assert _by_status(folder) == counted
    for state in counted:
        url = next(url for url, of in sorted(by_url.items()) if of == state)
        assert why(project_of(folder), url)["state"] == state
    for name in (
        "documents",
        "signals",
        "spans",
        "signatures",
        "commits/map",
        "commits/release",
        "commits/clusters",
        "snapshots",
    ):
        shutil.rmtree(folder / name, ignore_errors=True)
    again, _ = _by_sql(folder)
    assert again["fetched"] == counted["parsed"] + counted["fetched"]
    assert _by_status(folder) == again
