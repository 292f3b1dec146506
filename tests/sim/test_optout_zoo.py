"""A seeded web of every opt-out, crawled over real sockets: its server's log and the release are the witnesses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from corpus.app.project import Project, open_project
from corpus.app.run import run_all
from corpus.app.views import Views
from corpus.config.check import require
from corpus.config.load import load_config
from corpus.model import UrlState
from corpus.testing.audit import refused_requests
from corpus.testing.web import Contact, Robots, SimHost, SimWeb, Trait, zoo

SLOW = {Robots.SILENT, Robots.DELAY, Robots.REDIRECT_PRIVATE, Robots.RECOVERS, Robots.LONG_DELAY}
SAYING = (Trait.OPTOUT_PAGES, Trait.TDMREP, Trait.AI_TXT, Trait.REDIRECTS)
Seen = tuple[SimWeb, Project, list[Contact]]


def hosts() -> list[SimHost]:
    """One host per kind of robots.txt that ends within seconds, and one per family of pages that state something."""
    kinds = {f"robots-{kind.value}.test" for kind in Robots if kind not in SLOW}
    traits = {f"{trait.value}.test" for trait in SAYING}
    return [replace(host, pages=3, page_bytes=1_500) for host in zoo() if host.name in kinds | traits]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """The web, its crawled and exported project, and every contact the server had."""
    folder = tmp_path_factory.mktemp("zoo")
    web = SimWeb(seed=4, hosts=hosts())
    with web.serve_in_process(folder / "contacts.jsonl") as process:
        seeds = "\n".join(web.seeds())
        (folder / "seeds.txt").write_text(seeds, "utf-8")
        (folder / "corpus.toml").write_text(
            f"""
[corpus]
name = "zoo"
[crawl]
seeds = ["seeds.txt"]
contact = "https://corpus.example/bot"
delay = "10ms"
delay_start = "10ms"
latency_factor = 1.0
park_after = "200ms"
retries = 1
allow_private = ["127.0.0.0/8"]
resolver = ["{process.dns}"]
""",
            "utf-8",
        )
        project = open_project(require(load_config(folder / "corpus.toml", environment={}), fetching=True))
        run_all(project, name="v1", quiet=True)
        yield web, project, process.log()


def test_no_refused_url_was_requested(seen: Seen) -> None:
    """Ground truth of the web against the server's own log: what is refused beforehand never arrives there."""
    web, _, log = seen
    silent = [url for url, end in web.expected().items() if not end.requested]
    assert len(silent) >= 20
    assert refused_requests(log, silent) == []


def test_every_refusal_is_known_by_its_reason(seen: Seen) -> None:
    """Every page that the crawl refused is one that its site refuses, for the reason its site gives, and the other way round."""
    web, project, _ = seen
    truth = {url: end for url, end in web.expected().items() if end.state is UrlState.REFUSED}
    with Views(project) as views:
        found = {
            row["url"]: row["reason"] for row in views.query("SELECT url, reason FROM pages WHERE state = 'refused'").to_pylist()
        }
        states = {row["url"]: row["state"] for row in views.query("SELECT url, state FROM pages").to_pylist()}
        lines = {
            row["url"]
            for row in views.query(
                "SELECT url FROM decisions WHERE verdict = 'no' AND (raw <> '' OR source = 'status')"
            ).to_pylist()
        }
    for url, reason in found.items():
        assert url in truth, url
        assert not truth[url].reasons or reason in truth[url].reasons, (url, reason)
    assert len(found) >= 15
    assert {url: states[url] for url in truth if url in states and states[url] != "refused"} == {}
    assert set(found) <= lines


def test_the_release_holds_no_opted_out_page(seen: Seen) -> None:
    """No URL of the release is refused by its site, and of the sites that refuse nothing some pages are in."""
    web, project, _ = seen
    truth = web.expected()
    with Views(project) as views:
        released = [row["url"] for row in views.query("SELECT url FROM records").to_pylist()]
    assert released
    assert [url for url in released if url in truth and truth[url].state is not UrlState.FETCHED] == []
    with_yes = web.url("robots-signal-yes.test", "/p/0001")
    assert with_yes in released


def test_what_denies_us_hears_only_robots(seen: Seen) -> None:
    """Hosts that refuse everything were asked for robots.txt and nothing else."""
    _, _, log = seen
    for kind in (
        Robots.ALL,
        Robots.NAMED,
        Robots.FORBIDDEN,
        Robots.UNAVAILABLE,
        Robots.CHALLENGE,
        Robots.THROTTLED,
        Robots.REDIRECT_LOOP,
    ):
        asked = {contact.target for contact in log if contact.host == f"robots-{kind.value}.test"}
        assert asked == {"/robots.txt"}, kind
