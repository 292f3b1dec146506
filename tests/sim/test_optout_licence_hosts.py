"""RSL documents on another host of the same owner: asked for there, by that host's robots.txt and at its pace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from corpus.app.project import Project, open_project
from corpus.app.run import run_all
from corpus.app.views import Views
from corpus.config.check import require
from corpus.config.load import load_config
from corpus.testing.audit import gap_violations
from corpus.testing.web_answer import Name
from corpus.testing.web_log import Contact
from corpus.testing.web_process import ServerProcess
from tests.optout_web import Web

WWW, LAW, OWN = "www.owner.test", "law.owner.test", "plain.other.test"
ADDRESSES = {WWW: "127.30.3.1", LAW: "127.30.3.2", OWN: "127.30.3.3"}
TYPE = ("Content-Type", "application/rsl+xml")


@dataclass
class Named(Web):
    """A web whose hosts have names."""

    law_robots: str = "User-agent: *\nDisallow: /hidden.xml\n"

    def names(self) -> Mapping[str, Name]:
        return {host: Name((ADDRESSES[host],)) for host in self.hosts}

    def at_port(self, port: int) -> None:
        """The port is known: documents on another host can be named."""
        self.port = port
        self.index("/plain", "/yes", "/hidden", host=WWW)
        self.page("/plain", 1, host=WWW)
        self.page("/yes", 2, link(self.url("/l.xml", LAW)), host=WWW)
        self.page("/hidden", 3, link(self.url("/hidden.xml", LAW)), host=WWW)
        self.robots(self.law_robots, host=LAW)
        self.put("/l.xml", rsl("ai-train"), TYPE, host=LAW)
        self.put("/hidden.xml", rsl("ai-train"), TYPE, host=LAW)
        self.index("/foreign", host=OWN)
        self.page("/foreign", 4, link(self.url("/l.xml", LAW)), host=OWN)


def rsl(permits: str) -> str:
    return f'<rsl xmlns="https://rslstandard.org/rsl"><content url="*"><license><permits type="usage">{permits}</permits></license></content></rsl>'


def link(url: str) -> tuple[str, str]:
    return "Link", f'<{url}>; rel="license"; type="application/rsl+xml"'


def crawl(tmp_path: Path, web: Named) -> tuple[Project, list[Contact]]:
    """The web, crawled and exported once, and its server's log."""
    with ServerProcess(web) as process:
        (tmp_path / "corpus.toml").write_text(
            f"""
[corpus]
name = "owners"
[crawl]
seeds = ["http://{WWW}:{process.port}/", "http://{OWN}:{process.port}/"]
contact = "https://corpus.example/bot"
delay = "10ms"
delay_start = "10ms"
latency_factor = 1.0
park_after = "2s"
allow_private = ["127.0.0.0/8"]
resolver = ["{process.dns}"]
""",
            "utf-8",
        )
        project = open_project(require(load_config(tmp_path / "corpus.toml", environment={}), fetching=True))
        run_all(project, name="v1", quiet=True)
        return project, process.log()


def paths(project: Project, view: str, column: str, where: str = "true") -> dict[str, str]:
    with Views(project) as views:
        rows = views.query(
            f"SELECT regexp_extract(url, '[0-9](/.*)$', 1) AS path, {column} AS said FROM {view} WHERE {where}"
        ).to_pylist()
    return {row["path"]: row["said"] for row in rows}


def test_documents_of_another_host(tmp_path: Path) -> None:
    """The other host hears a robots.txt request first; what it allows is read once, what it refuses is not asked, and the pages follow."""
    project, log = crawl(tmp_path, Named((WWW, LAW, OWN)))
    asked = [contact.target for contact in log if contact.host == LAW]
    assert asked == ["/robots.txt", "/l.xml"]
    assert gap_violations(log, 0.01) == []
    released = paths(project, "records", "consent.use")
    assert released["/yes"] == "yes"
    assert released["/plain"] == "unknown"
    assert paths(project, "pages", "reason", "state = 'refused'") == {"/hidden": "rsl", "/foreign": "rsl"}


def test_a_document_that_must_wait_decides_nothing(tmp_path: Path) -> None:
    """The licence host asks for ten minutes between requests: the page is neither stored nor refused now, and the run ends."""
    project, log = crawl(tmp_path, Named((WWW, LAW, OWN), law_robots="User-agent: *\nCrawl-delay: 600\n"))
    assert [contact.target for contact in log if contact.host == LAW] == ["/robots.txt"]
    assert "/yes" not in paths(project, "records", "consent.use")
    assert paths(project, "pages", "state")["/yes"] in ("queued", "parked")
