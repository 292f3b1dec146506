"""The status server as its readers see it: every page, every refusal, what strangers cannot do, and numbers for Prometheus."""

from __future__ import annotations

import asyncio
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from prometheus_client.parser import text_string_to_metric_families

from corpus.app.project import Project
from corpus.app.status_look import Kept, Look
from corpus.app.status_pages import in_figures
from corpus.app.status_server import StatusServer
from corpus.model import FunnelStep
from corpus.observe.live import Live
from corpus.observe.metrics import METRICS, FleetNumbers, exposition
from corpus.reasons import REASONS
from tests.demo_corpus import DemoCorpus, corpus_cli
from tests.hostile_corpus import ADDRESS, HostileCorpus, make_hostile

Page = tuple[int, dict[str, str], str]
PATHS = (
    "/", "/?part=1", "/hosts", "/hosts?q=127&state=active&sort=gap&page=0", "/reason?code=robots", "/urls?reason=robots", "/urls?q=html", "/refusals",
    "/errors", "/samples", "/status.json", "/metrics", "/look.css", "/status.js",
)  # fmt: skip


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> HostileCorpus:
    return make_hostile(tmp_path_factory.mktemp("hostile") / "corpus")


def asked(project: Project, *paths: str, method: str = "GET", headers: dict[str, str] | None = None) -> list[Page]:
    """Serve the folder and ask for each path."""

    async def ask() -> list[Page]:
        server = StatusServer(project, 0)
        await server.start()
        try:
            async with ClientSession(f"http://127.0.0.1:{server.port}") as session:
                found = []
                for path in paths:
                    async with session.request(method, path, headers=headers) as answer:
                        found.append((answer.status, dict(answer.headers), await answer.text()))
                return found
        finally:
            await server.close()

    return asyncio.run(ask())


def test_every_page_is_there_and_locked_down(demo_corpus: DemoCorpus) -> None:
    """Each path answers 200 with a policy that loads nothing from elsewhere; no page names another server's address in a link."""
    for path, (status, headers, text) in zip(PATHS, asked(demo_corpus.project(), *PATHS), strict=True):
        assert status == 200, path
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'"), path
        assert "unsafe" not in policy, path
        assert headers["X-Content-Type-Options"] == "nosniff", path
        assert headers["Cache-Control"] == "no-store", path
        if headers["Content-Type"].startswith("text/html"):
            assert not re.findall(r'(?:href|src|action)="(?!/(?!/)|#|\?)', text), path
            assert " style=" not in text, path
            assert " on" not in "".join(re.findall(r"<[^>]*>", text)), path


def test_the_overview_has_the_folders_numbers(demo_corpus: DemoCorpus) -> None:
    """The funnel of the page is the folder's own: each count and each reason of the summary stands there, with a link."""
    ((_, _, text),) = asked(demo_corpus.project(), "/")
    for step in demo_corpus.summary.funnel:
        assert f">{step.n_in}<" in text
        for code in step.dropped:
            assert f'href="/reason?code={code.partition(":")[0]}"' in text, code
    assert text.count("<svg") > 6


def test_drill_down_reaches_the_evidence(demo_corpus: DemoCorpus) -> None:
    """Reason → host → URL → why: each page holds the link to the next, and the last one the raw line."""
    origin = demo_corpus.origins["bakery"]
    host = origin[len("http://") :].partition(":")[0]
    paths = ("/reason?code=robots", f"/host?name={host}&reason=robots", f"/why?url={origin}/private/orders.html")
    reason, of_host, why = (text for _, _, text in asked(demo_corpus.project(), *paths))
    assert f"/host?name={host}&amp;reason=robots" in reason
    assert "/why?url=" in of_host
    assert "Disallow: /private/" in why


def test_nothing_a_site_wrote_becomes_markup(hostile: HostileCorpus) -> None:
    """Titles, texts, addresses, robots lines and our own query strings: all text. (A browser test sees that nothing runs.)"""
    attack = "%22%3E%3Cscript%3Ewindow.owned%3D1%3C/script%3E%00"
    paths = (
        "/", "/samples", f"/why?url={hostile.titled}", f"/why?url={hostile.refused}", f"/host?name={ADDRESS}", "/urls?q=script", f"/urls?q={attack}",
        f"/hosts?q={attack}&state={attack}&sort={attack}&page={attack}", f"/host?name={attack}", f"/reason?code={attack}", f"/why?url={attack}",
    )  # fmt: skip
    seen = asked(hostile.project, *paths)
    assert {status for status, _, _ in seen} == {200, 404}
    for path, (_, _, text) in zip(paths, seen, strict=True):
        assert text.count("<script") == 1, path  # our own, in the head
        assert "<img" not in text, path
        assert "\0" not in text, path
    assert "&lt;script&gt;window.owned = 1&lt;/script&gt;" in seen[2][2]
    assert "&lt;script&gt;" in seen[3][2]


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1.evil.test", "127.0.0.1:1@evil.test", "[::2]", "0.0.0.0"])
def test_other_names_are_refused(demo_corpus: DemoCorpus, host: str) -> None:
    """A page of another site that has its name point to this machine reads nothing."""
    ((status, headers, text),) = asked(demo_corpus.project(), "/status.json", headers={"Host": host})
    assert status == 403
    assert "demo" not in text
    assert "Content-Security-Policy" in headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_it_only_reads(demo_corpus: DemoCorpus, method: str) -> None:
    """Whatever would change something is refused, and nothing in the folder has changed after all pages were read."""
    assert asked(demo_corpus.project(), "/", method=method)[0][0] == 405


def test_the_folder_is_untouched(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """Reading every page leaves the same files with the same bytes (what this machine can rebuild aside)."""
    folder = demo_corpus.copy(tmp_path / "copy")

    def files() -> dict[str, bytes]:
        return {
            p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file() and ".local" not in p.parts
        }

    before = files()
    from tests.demo_corpus import project_of

    asked(project_of(folder), *PATHS)
    assert files() == before


def test_it_works_before_anything_was_crawled(tmp_path: Path) -> None:
    """An empty folder has pages too; a folder that is none is an error of the command, not of a page."""
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "new"\n', "utf-8")
    from corpus.app.project import open_project
    from corpus.config.load import load_config

    project = open_project(load_config(tmp_path / "corpus.toml"))
    assert {status for status, _, _ in asked(project, *PATHS)} == {200}
    assert corpus_cli("status", "--serve", "-c", tmp_path / "elsewhere.toml").code == 2


def test_a_port_in_use_is_said(demo_corpus: DemoCorpus) -> None:
    """The second server on a port ends with exit 2 and a hint."""

    async def twice() -> None:
        from corpus.errors import UsageError

        first = StatusServer(demo_corpus.project(), 0)
        await first.start()
        try:
            with pytest.raises(UsageError, match="cannot listen"):
                await StatusServer(demo_corpus.project(), first.port).start()
        finally:
            await first.close()

    asyncio.run(twice())


def test_wildcards_of_a_search_are_text(demo_corpus: DemoCorpus) -> None:
    """`%` and `_` stand for themselves."""
    look = Look(demo_corpus.project())
    assert len(look.hosts(search="127.10").rows) > 3
    assert look.hosts(search="%").rows == []
    assert look.hosts(search="127_10").rows == []
    assert {row[0] for row in look.hosts(sort="host").rows} == {row[0] for row in look.hosts(sort="nonsense").rows}


def test_answers_are_kept_and_what_is_dear_is_asked_seldom() -> None:
    """A second question within a moment costs nothing; what took t seconds is good for a hundred t."""
    kept, calls = Kept(), []

    def dear() -> None:
        calls.append(1)
        time.sleep(0.05)

    for _ in range(5):
        kept.get("q", dear, least_s=0.0)
    time.sleep(0.3)
    kept.get("q", dear, least_s=0.0)
    assert len(calls) == 1


LIVE = Live(
    at=90.0, pages=10, requests=30, statuses={"2xx": 20, "9xx": 1}, refused={"robots": 3, 'x"\n{evil="1"}': 2}, failed={"timeout": 1}, bytes_wire=5_000,
    hosts={"active": 2, "nonsense": 9}, frontier={"queued": 7}, parked={"crawl-delay": 4}, eta_s=60.0, budget=[["crawl.max_pages", 10, 40]], lag_ms=12.5, lag_own_ms=4.5,
)  # fmt: skip


def families(live: Live | None, running: bool = True) -> dict[str, Any]:
    steps = [FunnelStep("known", 10, 8, {"robots": 2})]
    return {f.name: f for f in text_string_to_metric_families(exposition(live, steps, running=running, now=100.0))}


def test_metrics_are_what_prometheus_reads() -> None:
    """Its own parser reads them: names, types, help, values; whatever label a crawl invents is counted under `other`."""
    found = families(LIVE)
    values = {(s.name, tuple(sorted(s.labels.items()))): s.value for f in found.values() for s in f.samples}
    assert values["corpus_pages_total", ()] == 10
    assert values["corpus_denied_total", (("rule", "robots"),)] == 3
    assert values["corpus_denied_total", (("rule", "other"),)] == 2
    assert values["corpus_fetch_total", (("status_class", "other"),)] == 1
    assert values["corpus_hosts", (("state", "parked"),)] == 4
    assert values["corpus_live_age_seconds", ()] == 10.0
    assert values["corpus_budget_used_ratio", (("budget", "crawl.max_pages"),)] == 0.25
    assert values["corpus_docs_total", (("outcome", "dropped"), ("stage", "known"))] == 2
    assert all(f.documentation for f in found.values())


def test_the_number_of_series_is_bounded() -> None:
    """A crawl with ten thousand reasons, states and codes of its own makes not one series more."""
    noise = {f"made-up-{n}": n for n in range(10_000)}
    loud = replace(LIVE, refused=noise, failed=noise, retried=noise, statuses=noise, hosts=noise, frontier=noise)
    quiet, many = (sum(len(f.samples) for f in families(live).values()) for live in (LIVE, loud))
    assert many == quiet < 40 + 3 * len(REASONS)


def test_a_fleet_is_four_numbers() -> None:
    """Where many machines share a run: workers, files without an owner, pages of all, orders not read; nothing of it without one."""
    said = exposition(None, [], running=True, now=1.0, fleet=FleetNumbers(3, 1, 48, 70, 2))
    for line in ("workers 3", "partition_files_unowned 48", "pages_total 70", "orders_behind 2"):
        assert f"\ncorpus_fleet_{line}\n" in said
    assert "corpus_fleet" not in exposition(None, [], running=True, now=1.0)


def test_numbers_that_are_counted_seldom_say_how_old_they_are() -> None:
    """Pages are those of this moment; the frontier and the documents were counted a while ago, and the age stands beside them."""
    live = Live(at=99.0, pages=7, frontier={"fetched": 5}, frontier_at=40.0)
    said = exposition(live, [FunnelStep("known", 10, 8, {"robots": 2})], running=True, now=100.0, steps_age_s=31.5)
    for line in ("live_age_seconds 1", "pages_total 7", "frontier_age_seconds 60", "docs_age_seconds 31.5"):
        assert f"\ncorpus_{line}\n" in said
    kept = Kept()
    assert kept.age_s("x") == 0.0
    kept.get("x", lambda: time.sleep(0.02), least_s=60.0)
    kept.get("x", lambda: None)
    assert 0.02 <= kept.age_s("x") < 30.0


def test_processing_beside_the_crawl_is_in_the_numbers() -> None:
    """Bytes done, bytes that wait, and whether fetch is held for them; held is no word about a crawl that is over."""
    live = Live(processed_bytes=10, waiting_bytes=30, waiting_limit=20, held=True)
    for line in ("processed_bytes_total 10", "process_waiting_bytes 30", "fetch_held 1"):
        assert f"\ncorpus_{line}\n" in exposition(live, [], running=True, now=1.0)
    assert "\ncorpus_fetch_held 0\n" in exposition(live, [], running=False, now=1.0)
    assert "\ncorpus_process_waiting_bytes 0\n" in exposition(live, [], running=False, now=1.0)
    live.waiting_segments = 1
    assert ("processed", "10 B", "in 0 segments; 1 segment (30 B of 20 B) waiting") in in_figures(live, True)
    assert not [name for name, _, _ in in_figures(live, False) if name.startswith("processed")]


def test_no_run_no_numbers() -> None:
    """Before the first run only what is true is said; after the last one gauges of hosts are at rest."""
    assert set(families(None)) == {"corpus_build_info", "corpus_running", "corpus_docs_total", "corpus_docs_age_seconds"}
    assert {s.value for s in families(LIVE, running=False)["corpus_hosts"].samples} == {0}
    assert "corpus_eta_seconds" not in families(LIVE, running=False)


def test_metric_names_are_the_agreed_ones() -> None:
    """Dashboards of others rely on these names."""
    agreed = {
        "corpus_fetch_total",
        "corpus_bytes_total",
        "corpus_hosts",
        "corpus_frontier_urls",
        "corpus_denied_total",
        "corpus_errors_total",
        "corpus_docs_total",
    }
    assert agreed <= set(METRICS)
