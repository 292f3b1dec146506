"""When a no is heard: before the request, in the response, on a redirect, in a 304, in a licence document. Real sockets, and
the server's log as the only witness of what was asked."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator, WarcRecordType

from corpus.app.project import Project
from corpus.app.run import run_all
from corpus.app.views import Views
from corpus.app.why import why
from corpus.store.consent_log import Refusal, parse_entry
from tests.optout_web import Web, html, project, prose, serving

HOST, TDM, SUB = "127.30.0.1", "127.30.0.2", "127.30.0.3"
RSL = (("Content-Type", "application/rsl+xml"),)


def rsl(permits: str = "", prohibits: str = "") -> str:
    """A licence for everything on the site."""
    words = (f'<permits type="usage">{permits}</permits>' if permits else "") + (
        f'<prohibits type="usage">{prohibits}</prohibits>' if prohibits else ""
    )
    return f'<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>{words}</license></content></rsl>'


def licence(path: str) -> tuple[str, str]:
    return "Link", f'<{path}>; rel="license"; type="application/rsl+xml"'


REFUSED_BEFORE = ("/no/1", "/no/2", "/peer/1")
DROPPED = {
    "/header": "x-robots-tag",
    "/meta": "meta-robots",
    "/usage": "content-usage",
    "/tdm-header": "tdmrep",
    "/licence-no": "rsl",
    "/licence-missing": "rsl",
    "/licence-hidden": "rsl",
    "/licence-elsewhere": "rsl",
    "/hop-no": "x-robots-tag",
    "/forbidden": "http-403",
    "/legal": "http-451",
}
KEPT = ("/plain", "/licence-yes", "/licence-link", "/licence-too", "/moved-here")


def build() -> Web:
    """One host with every way of saying no, and one whose tdmrep.json does."""
    web = Web((HOST, TDM))
    web.robots(
        "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /peer/\n\nUser-agent: *\nDisallow: /no/\nDisallow: /hidden.xml\n"
    )
    links = [*REFUSED_BEFORE, *DROPPED, *(path for path in KEPT if path != "/moved-here"), "/moved"]
    web.index(*links)
    for seed, path in enumerate([*REFUSED_BEFORE, *KEPT, "/behind-hop"]):
        web.page(path, seed)
    for seed, path in enumerate(DROPPED, 100):
        web.page(path, seed)
    web.page("/header", 201, ("X-Robots-Tag", "noai"))
    web.page("/meta", 202, head='<meta name="robots" content="noai">', links=("/from-refused",))
    web.page("/usage", 203, ("Content-Usage", "train-ai=n"))
    web.page("/tdm-header", 204, ("tdm-reservation", "1"))
    web.page("/licence-no", 205, licence("/no.xml"))
    web.page("/licence-missing", 206, licence("/missing.xml"))
    web.page("/licence-hidden", 207, licence("/hidden.xml"))
    web.page("/licence-elsewhere", 208, licence("http://127.40.0.1/l.xml"))
    web.page("/licence-yes", 209, licence("/yes.xml"))
    web.page("/licence-too", 210, licence("/yes.xml"))
    web.page("/licence-link", 211, head='<link rel="license" type="application/rsl+xml" href="/other.xml">')
    web.put("/hop-no", "moved", ("X-Robots-Tag", "noai"), ("Location", "/behind-hop"), status=301)
    web.put("/moved", "moved", ("Location", "/moved-here"), status=302)
    web.put("/forbidden", html(301), status=403)
    web.put("/legal", html(302), status=451)
    web.put("/no.xml", rsl(prohibits="ai-train"), *RSL)
    web.put("/yes.xml", rsl(permits="ai-train search"), *RSL)
    web.put("/other.xml", rsl(permits="all"), *RSL)
    web.put("/hidden.xml", rsl(permits="all"), *RSL)
    web.index("/open/1", "/closed/1", host=TDM)
    web.page("/open/1", 401, host=TDM)
    web.page("/closed/1", 402, host=TDM)
    web.put(
        "/.well-known/tdmrep.json",
        '[{"location": "/closed/", "tdm-reservation": 1}]',
        ("Content-Type", "application/json"),
        host=TDM,
    )
    return web


@dataclass
class Crawled:
    web: Web
    project: Project

    def sql(self, query: str) -> list[dict[str, Any]]:
        with Views(self.project) as views:
            rows: list[dict[str, Any]] = views.query(query).to_pylist()
            return rows


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    """The web, crawled and exported once."""
    with serving(build()) as web:
        made = project(tmp_path_factory.mktemp("optout"), web)
        assert run_all(made, name="v1", quiet=True).exit_code == 0
        yield Crawled(web, made)


def archived(root: Path, pattern: str = "warc/**/*.warc.gz") -> str:
    """Every response body under a folder, decoded, as one text."""
    found = []
    for path in sorted(root.glob(pattern)):
        data = io.BytesIO(path.read_bytes())
        found += [
            record.reader.read()
            for record in ArchiveIterator(data, record_types=WarcRecordType.response | WarcRecordType.resource)
        ]
    return b"\n".join(found).decode("utf-8", "replace")


def test_known_before_means_not_requested(crawled: Crawled) -> None:
    """What robots.txt (for us or for AI peers) or tdmrep.json refuses never appears in the server's log."""
    for path in REFUSED_BEFORE:
        assert crawled.web.asked(path) == 0, path
    assert crawled.web.asked("/closed/1", TDM) == 0
    assert crawled.web.asked("/hidden.xml") == 0
    assert crawled.web.asked("/behind-hop") == 0
    assert crawled.web.asked("/from-refused") == 0
    reasons = {row["url"]: row["reason"] for row in crawled.sql("SELECT url, reason FROM pages WHERE state = 'refused'")}
    assert [reasons[crawled.web.url(path)] for path in REFUSED_BEFORE] == ["robots", "robots", "robots-peer"]
    assert reasons[crawled.web.url("/closed/1", TDM)] == "tdmrep"


def test_learned_from_the_response_means_dropped(crawled: Crawled) -> None:
    """The body is nowhere in the archive; a tombstone with the raw statement is in the log, and `why` cites it."""
    refusals = {e.url: e for v in crawled.project.consent_log().read() if isinstance(e := parse_entry(v), Refusal)}
    bodies = archived(crawled.project.layout.root)
    reasons = {row["url"]: row["reason"] for row in crawled.sql("SELECT url, reason FROM pages WHERE state = 'refused'")}
    for path, signal in DROPPED.items():
        url = crawled.web.url(path)
        assert crawled.web.asked(path) == 1, path
        assert reasons[url] == signal, path
        assert refusals[url].protocol == signal
        assert refusals[url].raw
        assert refusals[url].policy
    no_licence = hashlib.sha256(rsl(prohibits="ai-train").encode()).hexdigest()
    assert refusals[crawled.web.url("/licence-no")].file_digest == no_licence
    for seed in (*range(201, 209), 301, 302):
        assert prose(seed)[0] not in bodies, seed
    told = why(crawled.project, crawled.web.url("/header"))
    assert told["verdict"] == "refused"
    assert "noai" in told["sentence"]


def test_advertised_licences_are_read_before_deciding(crawled: Crawled) -> None:
    """A page waits for its RSL document, fetched once per authority: permitted pages are in, with the licence as evidence."""
    assert crawled.web.asked("/yes.xml") == 1
    assert crawled.web.asked("/other.xml") == 1
    assert crawled.web.asked("/no.xml") == 1
    rows = {row["url"]: row for row in crawled.sql("SELECT url, consent FROM records")}
    for path in ("/licence-yes", "/licence-too", "/licence-link"):
        assert rows[crawled.web.url(path)]["consent"]["use"] == "yes", path
    assert rows[crawled.web.url("/plain")]["consent"]["use"] == "unknown"


def test_the_release_holds_what_nobody_refused(crawled: Crawled) -> None:
    """Exactly the kept pages, and no word of a refused one."""
    urls = {row["url"] for row in crawled.sql("SELECT url FROM records")}
    assert urls == {*(crawled.web.url(path) for path in KEPT), crawled.web.url("/open/1", TDM)}


def test_every_released_digest_leads_to_its_statements(crawled: Crawled) -> None:
    """`consent.evidence_digest` of each record is that of the statements the view gives for it."""
    query = "SELECT DISTINCT consent.evidence_digest AS d FROM records"
    for row in crawled.sql(query):
        said = crawled.sql(f"SELECT * FROM statements WHERE evidence_digest = '{row['d']}'")
        assert said
        parts = [
            (
                s["axis"],
                s["verdict"],
                s["protocol"],
                s["source"],
                "" if s["line_no"] is None else str(s["line_no"]),
                s["raw"],
                s["agent"],
                s["file_digest"],
            )
            for s in said
        ]
        text = "\x1e".join(sorted("\x1f".join(part) for part in parts))
        assert hashlib.sha256(text.encode()).hexdigest() == row["d"]


def test_every_decision_names_its_policy(crawled: Crawled) -> None:
    """Per-URL refusals are in `decisions` with raw text, and all rows have a policy version that the log explains."""
    rows = crawled.sql("SELECT * FROM decisions WHERE verdict = 'no'")
    by_url = {row["url"]: row for row in rows}
    assert {crawled.web.url(path) for path in (*DROPPED, *REFUSED_BEFORE)} <= set(by_url)
    assert by_url[crawled.web.url("/no/1")]["line_no"] == 6
    assert by_url[crawled.web.url("/no/1")]["file_digest"]
    known = crawled.project.consent_log().policies()
    assert {row["policy_version"] for row in rows} <= set(known)


def test_sealed_pages_never_become_documents(tmp_path: Path) -> None:
    """With on_use_no = "seal" the refused page lies whole under sealed/, apart from every stage after."""
    web = Web((SUB,))
    web.index("/plain", "/header")
    web.page("/plain", 1)
    web.page("/header", 2, ("X-Robots-Tag", "noai"))
    with serving(web):
        made = project(tmp_path, web, more='[optout]\non_use_no = "seal"')
        run_all(made, name="v1", quiet=True)
    assert prose(2)[0] in archived(made.layout.root, "sealed/**/*.warc.gz")
    assert prose(2)[0] not in archived(made.layout.root)
    with Views(made) as views:
        assert {row["url"] for row in views.query("SELECT url FROM documents").to_pylist()} == {web.url("/"), web.url("/plain")}
        assert views.query("SELECT url FROM records").to_pylist() == [{"url": web.url("/plain")}]
