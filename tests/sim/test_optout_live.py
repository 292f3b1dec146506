"""`optout check` against a live site, `lookup`, `report consent` and consent from archives: what a person types, on real sockets."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from click.testing import CliRunner

from corpus.app.ingest import ingest
from corpus.app.ingest_robots import ingest_robots
from corpus.app.optout_live import look
from corpus.app.project import Project
from corpus.app.refresh import authorities_of_documents, stale_authorities
from corpus.app.run import run_all
from corpus.app.views import Views
from corpus.cli.main import cli
from corpus.errors import UsageError
from corpus.optout.consent import consent
from tests.optout_web import Web, html, project, serving

HOST, OTHER = "127.30.2.1", "127.30.2.2"


def build() -> Web:
    """One host that says several things, and one that redirects there."""
    web = Web((HOST, OTHER))
    web.robots("User-agent: *\nDisallow: /no/\nCrawl-delay: 0.02\n")
    web.put(
        "/.well-known/tdmrep.json", '[{"location": "/reserved/", "tdm-reservation": 1}]', ("Content-Type", "application/json")
    )
    web.put(
        "/yes.xml",
        '<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license><permits type="usage">ai-train</permits></license></content></rsl>',
    )
    web.index("/plain", "/no/1", "/reserved/1", "/noai", "/licensed")
    for seed, path in enumerate(("/plain", "/no/1", "/reserved/1")):
        web.page(path, seed)
    web.page("/noai", 10, ("X-Robots-Tag", "noai"))
    web.page("/licensed", 11, ("Link", '</yes.xml>; rel="license"; type="application/rsl+xml"'))
    web.index("/to-noai", host=OTHER)
    return web


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serving(build()) as served:
        served.put("/to-noai", "moved", ("Location", served.url("/noai")), status=301, host=OTHER)
        yield served


def check(web: Web, made: Project, path: str, host: str = HOST) -> Any:
    return asyncio.run(look(web.url(path, host), made.config))


def test_live_and_offline_agree(web: Web, tmp_path: Path) -> None:
    """A live check asks for the statement files first, for the page only when nothing says no, and decides as offline."""
    made = project(tmp_path, web)
    found = check(web, made, "/plain")
    paths = [url.removeprefix(web.url("")) for url, _ in found.asked]
    assert paths == ["/robots.txt", "/.well-known/tdmrep.json", "/ai.txt", "/.well-known/ai.txt", "/plain"]
    assert found.consent.export
    assert found.protego is True
    before = web.asked("/no/1"), web.asked("/reserved/1")
    for path, protocol in (("/no/1", "robots"), ("/reserved/1", "tdmrep")):
        refused = check(web, made, path)
        offline = consent(
            web.url(path), robots=web.files[HOST, "/robots.txt"].body, tdmrep=web.files[HOST, "/.well-known/tdmrep.json"].body
        )
        assert (refused.consent.access, refused.consent.use, refused.consent.gate) == (offline.access, offline.use, offline.gate)
        assert [e.protocol for e in refused.consent.evidence if e.verdict == "no"] == [protocol]
    assert (web.asked("/no/1"), web.asked("/reserved/1")) == before
    assert check(web, made, "/no/1").protego is False


def test_live_reads_responses_licences_and_hops(web: Web, tmp_path: Path) -> None:
    """The page's own header, a licence document it advertises, and a hop on another host are all heard."""
    made = project(tmp_path, web)
    assert check(web, made, "/noai").consent.use == "no"
    licensed = check(web, made, "/licensed")
    assert licensed.consent.use == "yes"
    assert [url.removeprefix(web.url("")) for url, _ in licensed.asked][-2:] == ["/licensed", "/yes.xml"]
    hopped = check(web, made, "/to-noai", OTHER)
    assert hopped.consent.use == "no"
    asked = [url for url, _ in hopped.asked]
    assert asked.index(web.url("/robots.txt")) > asked.index(web.url("/to-noai", OTHER))
    assert asked[-1] == web.url("/noai")


def test_live_keeps_the_gap_and_names_itself(web: Web, tmp_path: Path) -> None:
    """Between two contacts lies the gap a crawl starts with; without a contact nobody is asked."""
    made = project(tmp_path, web)
    first = len(web.contacts)
    check(web, made, "/plain")
    mine = web.contacts[first:]
    assert all(b.arrived - a.ended >= 0.01 - 0.002 for a, b in pairwise(mine))
    assert all("corpus.example/bot" in contact.agent for contact in mine)
    nobody = made.config.model_copy(update={"crawl": made.config.crawl.model_copy(update={"contact": ""})})
    with pytest.raises(UsageError, match="nobody is named"):
        asyncio.run(look(web.url("/plain"), nobody))
    assert len(web.contacts) == first + len(mine)


def test_the_verbs(web: Web, tmp_path: Path) -> None:
    """check --json is the Consent object, live and offline; lookup and report consent say what was decided, at which line."""
    made = project(tmp_path, web)
    run_all(made, name="v1", quiet=True)
    config = str(tmp_path / "corpus.toml")
    runner = CliRunner()

    def told(*arguments: str) -> Any:
        result = runner.invoke(cli, [*arguments, "--json"], standalone_mode=False)
        assert result.exception is None, result.output
        return json.loads(result.stdout)

    robots = tmp_path / "robots.txt"
    robots.write_text("User-agent: *\nDisallow: /\n", "utf-8")
    keys = {"access", "use", "gate", "store", "export", "evidence"}
    live = told("optout", "check", web.url("/noai"), "-c", config)
    offline = told("optout", "check", web.url("/noai"), "--robots", str(robots))
    assert set(live) == set(offline) == keys
    assert (live["use"], offline["access"]) == ("no", "no")
    text = runner.invoke(cli, ["optout", "check", web.url("/plain"), "--robots", str(robots)], standalone_mode=False).stdout
    assert "line 2" in text
    assert "protego would refuse" in text
    looked = told("lookup", HOST, "-c", config)
    [host] = looked["hosts"]
    states = {(row["state"], row["reason"]): row["urls"] for row in host["pages"]}
    assert states["refused", "robots"] == 1
    assert states["refused", "tdmrep"] == 1
    assert states["refused", "x-robots-tag"] == 1
    line = next(item for item in looked["statements"] if item["protocol"] == "robots" and item["verdict"] == "no")
    assert (line["line_no"], line["raw"], line["urls"]) == (2, "Disallow: /no/", 1)
    assert "CorpusBot" in looked["object"]["robots_txt"]
    report = told("report", "consent", "-c", config)
    signals = {row["signal"]: row["urls"] for row in report["by_signal"]}
    assert signals == {"robots": 1, "tdmrep": 1, "x-robots-tag": 1}
    assert {row["host"] for row in report["by_host"]} == {HOST}
    assert sum(row["refused"] for row in report["by_day"]) == 3
    for verb in (["lookup", HOST], ["report", "consent"], ["lookup", "nowhere.example"]):
        assert runner.invoke(cli, [*verb, "-c", config], standalone_mode=False).exception is None


def record(url: str, body: bytes, at: float, status: int = 200, headers: str = "Content-Type: text/html\r\n") -> bytes:
    """One response record in a gzip member of its own."""
    block = f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body
    when = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{crc32(url.encode()):012d}>\r\n"
        f"WARC-Target-URI: {url}\r\nWARC-Date: {when}\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n")


def test_ingested_pages_wait_for_their_hosts(tmp_path: Path) -> None:
    """Archives of others are never exported on old consent: hosts are asked now, or a recent robots archive speaks for them."""
    web = Web((HOST, OTHER, "127.30.2.3"))
    web.robots("User-agent: GPTBot\nDisallow: /\n")
    with serving(web):
        asked_now, by_archive, old_archive = (web.url("/page", host) for host in web.hosts)
        now = time.time()
        pages = tmp_path / "pages.warc.gz"
        pages.write_bytes(
            b"".join(
                record(url, html(seed).encode(), now - 900 * 86_400)
                for seed, url in enumerate((asked_now, by_archive, old_archive))
            )
        )
        robots = tmp_path / "robots.warc.gz"
        plain = "Content-Type: text/plain\r\n"
        robots.write_bytes(
            record(web.url("/robots.txt", OTHER), b"", now - 86_400, 301, f"Location: {web.url('/robots.txt', '127.30.2.9')}\r\n")
            + record(web.url("/robots.txt", "127.30.2.9"), b"User-agent: *\nDisallow: /elsewhere/\n", now - 86_400, headers=plain)
            + record(web.url("/robots.txt", "127.30.2.3"), b"User-agent: *\nAllow: /\n", now - 400 * 86_400, headers=plain)
        )
        made = project(tmp_path / "corpus", web, more='[optout]\nstale = "block"')
        ingest(made, [str(pages)], lambda *_a, **_k: None)
        run_all(made, name="v0", quiet=True, stages=("process", "export"))
        with Views(made) as views:
            assert views.query("SELECT url FROM records").num_rows == 0, "nothing leaves before anyone asked"
        [end] = ingest_robots(made, [str(robots)], lambda *_a, **_k: None)
        assert (end.answers, end.authorities, end.unresolved) == (3, 3, 0)
        assert ingest_robots(made, [str(robots)], lambda *_a, **_k: None)[0].known
        stale = stale_authorities(made, authorities_of_documents(made))
        assert [name.partition("//")[2].partition(":")[0] for name in stale] == [HOST, "127.30.2.3"]
        run_all(made, name="v1", quiet=True, stages=("export",))
        with Views(made) as views:
            assert views.query("SELECT url FROM records").to_pylist() == [{"url": by_archive}]
            origins = views.query("SELECT DISTINCT origin FROM consent WHERE file = 'robots'").to_pylist()
        assert origins == [{"origin": "archive"}]
        assert not web.contacts
        live = project(tmp_path / "corpus", web)
        run_all(live, name="v2", quiet=True, stages=("export",))
        with Views(live) as views:
            assert {row["url"] for row in views.query("SELECT url FROM records").to_pylist()} == {by_archive, old_archive}
            [gone] = views.query(f"SELECT reason, origin FROM documents WHERE url = '{asked_now}'").to_pylist()
        assert gone == {"reason": "robots-peer", "origin": "ingest"}
        assert web.asked("/page") == web.asked("/page", "127.30.2.3") == 0
