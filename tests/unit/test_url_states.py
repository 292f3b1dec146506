"""One word per idea: the state of a page is the same wherever it is told."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from corpus.app.status import status
from corpus.app.status_look import Look
from corpus.app.url_states import StatesNow
from corpus.app.views import Views
from corpus.app.why import why
from corpus.url.host import host_of
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
    assert StatesNow(project_of(folder)).by_state() == counted
    _the_status_page_says(folder, by_url)
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
    assert _by_status(folder) == again == StatesNow(project_of(folder)).by_state()


def _the_status_page_says(folder: Path, by_url: dict[str, str]) -> None:
    """Its tables of a host, its lists of pages, and either of them by state."""
    look = Look(project_of(folder))
    live = look.live()
    assert live is not None
    assert live.frontier == Counter(by_url.values())  # also when no crawl counts any more
    host = host_of(next(url for url, state in sorted(by_url.items()) if state == "parsed"))
    of_host = {url: state for url, state in by_url.items() if host_of(url) == host}
    row = look.host(host)
    assert row is not None
    told: Counter[str] = Counter()
    for state, _, n in row["counts"].rows:
        told[state] += n
    assert told == Counter(of_host.values())
    for state in told:
        assert {row[0]: row[1] for row in look.urls(host=host, state=state).rows} == {
            url: of for url, of in of_host.items() if of == state
        }
    assert all(by_url[row[0]] == row[1] for row in look.urls().rows)
    assert look.urls(state="fetched").rows == [] or "fetched" in by_url.values()


def test_counting_for_the_live_numbers_is_bounded(demo_corpus: DemoCorpus) -> None:
    """Everything once, then a file at a time, and not before a hundred times what it took; at the end all of it again."""
    ticks = [0.0]

    def clock() -> float:
        ticks[0] += 1.0
        return ticks[0]

    now = StatesNow(demo_corpus.project(), clock)
    first = now.by_state()
    assert first["parsed"] > 40
    read, now._lie = now._lie, {file: [] for file in now._lie}  # whatever is counted again from here on is seen
    assert len(read) == 16
    assert now.by_state().get("parsed", 0) == 0
    ticks[0] += 1_000.0
    now.by_state()
    assert sum(bool(rows) for rows in now._lie.values()) <= 1
    assert now.by_state(anew=True) == first
