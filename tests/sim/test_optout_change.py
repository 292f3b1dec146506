"""Sites that change their mind: what was allowed when it was fetched and is refused today leaves the next release."""

from __future__ import annotations

import csv
import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from corpus.app import refresh as refreshing
from corpus.app.project import Project
from corpus.app.run import run_all
from corpus.app.views import Views
from corpus.app.why import why
from corpus.testing.web_answer import Answer
from tests.optout_web import Web, project, serving

HOST, OTHER = "127.30.1.1", "127.30.1.2"
OPEN = "User-agent: *\nDisallow: /never/\n"
CLOSED = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /blog/\n\n" + OPEN
DAY_S = 86_400.0
DOCS = Path(__file__).resolve().parents[2] / "docs" / "consent.md"


class Later:
    """The time module as the first question of a refresh sees it: so many days on; then the truth again."""

    def __init__(self, days: float) -> None:
        self._ahead = [days * DAY_S]

    def time(self) -> float:
        return time.time() + (self._ahead.pop() if self._ahead else 0.0)


def rows(made: Project, query: str) -> list[dict[str, Any]]:
    with Views(made) as views:
        found: list[dict[str, Any]] = views.query(query).to_pylist()
        return found


def digest_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def released(made: Project) -> set[str]:
    return {row["url"] for row in rows(made, "SELECT url FROM records")}


def web_of_two() -> Web:
    """A blog and a wiki on one host, and an indifferent other host."""
    web = Web((HOST, OTHER))
    web.robots(OPEN)
    web.index("/blog/1", "/blog/2", "/wiki/1")
    for seed, path in enumerate(("/blog/1", "/blog/2", "/wiki/1")):
        web.page(path, seed)
    web.index("/a", host=OTHER)
    web.page("/a", 50, host=OTHER)
    return web


def removals(made: Project) -> list[dict[str, str]]:
    [path] = made.layout.root.glob("runs/*/removals.csv")
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@dataclass
class Turned:
    """A crawl, a change of robots.txt, and the next export. Times are epoch seconds; `pages`: requests of pages before and after."""

    web: Web
    project: Project
    before: set[str]
    between: float
    pages: tuple[dict[str, int], dict[str, int]]

    @property
    def blog(self) -> set[str]:
        return {self.web.url("/blog/1"), self.web.url("/blog/2")}


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Turned]:
    """robots.txt turns against AI crawlers between two releases, of which the second is 31 days later."""
    with serving(web_of_two()) as web, pytest.MonkeyPatch.context() as patch:
        made = project(tmp_path_factory.mktemp("turned"), web, more='[optout]\nrobots_ttl = "1s"')
        run_all(made, name="v1", quiet=True)
        before, between = released(made), time.time()
        web.robots(CLOSED)
        asked = {url: sum(c.url == url for c in web.contacts) for url in before}
        time.sleep(1.1)
        patch.setattr(refreshing, "time", Later(31))
        run_all(made, name="v2", quiet=True, stages=("export",))
        yield Turned(web, made, before, between, (asked, {url: sum(c.url == url for c in web.contacts) for url in before}))


def test_robots_that_turns_against_training(turned: Turned) -> None:
    """Stale authorities are asked again before an export; /blog/ leaves with its reason and the new file's digest, the rest stays."""
    made, web = turned.project, turned.web
    assert turned.blog | {web.url("/wiki/1"), web.url("/a", OTHER)} <= turned.before
    assert released(made) == turned.before - turned.blog
    assert turned.pages[0] == turned.pages[1], "a refresh asks for statement files only"
    decisions = {row["url"]: row for row in rows(made, "SELECT * FROM decisions WHERE verdict = 'no'")}
    assert set(decisions) == turned.blog
    for row in decisions.values():
        assert (row["protocol"], row["line_no"], row["agent"]) == ("robots-peer", 3, "CCBot, GPTBot")
        assert row["file_digest"] == digest_of(CLOSED)
    told = why(made, web.url("/blog/1"))
    assert (told["verdict"], told["reason"], told["step"]) == ("refused", "robots-peer", "consent")
    assert any(e["file_digest"] == digest_of(CLOSED) for e in told["consent"]["evidence"])
    listed = removals(made)
    assert {row["url"] for row in listed} == turned.blog
    assert all(row["reason"] == "robots-peer" and row["raw"] == "Disallow: /blog/" and row["line_no"] == "3" for row in listed)
    assert all(row["file_digest"] == digest_of(CLOSED) for row in listed)


def test_what_a_host_said_on_a_day_is_one_query(turned: Turned) -> None:
    """The documented query gives, for a host and an instant, the lines in force and the URLs they bore on; consent gives the files' versions."""
    made = turned.project
    told = DOCS.read_text("utf-8").split("```sql")[1].split("```")[0].replace("example.org", HOST)
    before, now = (
        rows(made, told.replace("2026-11-30", f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S.%f}"))
        for at in (turned.between, time.time())
    )
    assert before == []
    assert {(row["line_no"], row["raw"], row["verdict"], row["state"], row["released"]) for row in now} == {
        (3, "Disallow: /blog/", "no", "parsed", None)
    }
    assert {row["file_digest"] for row in now} == {digest_of(CLOSED)}
    assert {row["url"] for row in now} == turned.blog
    versions = rows(
        made,
        f"SELECT DISTINCT valid_from, valid_to, digest FROM consent WHERE authority LIKE '%{HOST}:%' AND file = 'robots' ORDER BY valid_from",
    )
    assert [version["digest"] for version in versions] == [digest_of(OPEN), digest_of(CLOSED)]
    assert versions[0]["valid_to"] == versions[1]["valid_from"]
    assert versions[1]["valid_to"] is None
    assert [made.consent_log().body(version["digest"]).decode() for version in versions] == [OPEN, CLOSED]


def test_authorities_that_fall_silent_are_held_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host whose robots.txt cannot be read any more keeps its rows out as `stale`; another host's rows stay."""
    with serving(web_of_two()) as web:
        made = project(tmp_path, web, more='park_after = "100ms"\nretries = 1\n[optout]\nrobots_ttl = "1s"')
        run_all(made, name="v1", quiet=True)
        web.put("/robots.txt", "wait", ("Content-Type", "text/plain"), status=503)
        time.sleep(1.1)
        monkeypatch.setattr(refreshing, "time", Later(31))
        run_all(made, name="v2", quiet=True, stages=("export",))
        assert {url for url in released(made) if HOST in url} == set()
        assert web.url("/a", OTHER) in released(made)
    dropped = rows(made, f"SELECT DISTINCT reason FROM documents WHERE host = '{HOST}' AND url NOT LIKE '%/'")
    assert [row["reason"] for row in dropped] == ["stale"]
    assert {row["reason"] for row in removals(made)} == {"stale"}


def test_nothing_is_asked_when_nobody_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With optout.stale = "block" old statements hold their pages back and no request is made."""
    with serving(web_of_two()) as web:
        made = project(tmp_path, web, more='[optout]\nstale = "block"')
        run_all(made, name="v1", quiet=True)
        contacts = len(web.contacts)
        monkeypatch.setattr(refreshing, "time", Later(31))
        run_all(made, name="v2", quiet=True, stages=("export",))
        assert len(web.contacts) == contacts
        assert released(made) == set()


def test_a_visit_that_says_no_takes_back_what_an_earlier_one_gave(tmp_path: Path) -> None:
    """A 304 with a refusal, and a 200 with one, withdraw the stored page; a 304 that adds a permission adds it; others keep theirs."""
    web = Web((HOST,))
    paths = ("/stays", "/later-no", "/quiet-no", "/later-yes", "/quiet")
    web.index(*paths)
    for seed, path in enumerate(paths):
        web.page(path, seed, ("ETag", f'"{seed}"'))
    with serving(web):
        made = project(tmp_path, web, more='[recrawl]\nevery = "1s"')
        run_all(made, name="v1", quiet=True)
        assert {web.url(path) for path in paths} <= released(made)
        web.page("/later-no", 1, ("ETag", '"new"'), ("X-Robots-Tag", "noai"))
        web.files[HOST, "/quiet-no#304"] = Answer(304, (("ETag", '"2"'), ("X-Robots-Tag", "noai")))
        web.files[HOST, "/later-yes#304"] = Answer(304, (("ETag", '"3"'), ("Content-Usage", "train-ai=y")))
        time.sleep(1.3)
        run_all(made, name="v2", quiet=True)
        asked = {path: web.asked(path) for path in paths}
    assert set(asked.values()) == {2}, asked
    after = {row["url"]: row["use"] for row in rows(made, "SELECT url, consent.use AS use FROM records")}
    assert set(after) & {web.url("/later-no"), web.url("/quiet-no")} == set()
    assert after[web.url("/later-yes")] == "yes"
    assert after[web.url("/stays")] == after[web.url("/quiet")] == "unknown"
    assert {row["url"]: row["reason"] for row in removals(made)} == {
        web.url(path): "x-robots-tag" for path in ("/later-no", "/quiet-no")
    }
