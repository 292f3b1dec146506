"""Laws B and D where the frontier lies in PostgreSQL: the rows of a crawl over SQLite, after kill -9 of the crawl and of the
server; and whatever looks into the frontier sees the same."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from corpus.app.frontier_files import read_all
from corpus.app.prepare import prepare
from corpus.app.project import open_project
from corpus.config.load import load_config
from corpus.errors import StoreError, UsageError
from corpus.store.frontier_postgres import Lease, PostgresFrontier
from corpus.store.layout import Layout
from corpus.testing.demo.server import serving
from corpus.testing.demo.settings import demo_config
from corpus.testing.kill import Victim
from corpus.testing.web_process import ServerProcess
from tests.demo_corpus import corpus_cli
from tests.laws.crawl_folder import Folder
from tests.laws.law_web import LawWeb
from tests.postgres_kit import Postgres, postgres

pytestmark = pytest.mark.needs("postgres")


@dataclass(slots=True)
class Served(Folder):
    """A corpus whose frontier lies in a database of its own."""

    dsn: str = ""

    @classmethod
    def at(cls, path: Path, server: ServerProcess, seeds: list[str], dsn: str) -> Served:
        folder = Folder.make(path, server, seeds)
        text = (path / "corpus.toml").read_text("utf-8")
        (path / "corpus.toml").write_text(text.replace("[store]\n", f'[store]\nfrontier = "{dsn}"\n'), "utf-8")
        return cls(folder.path, server, dsn=dsn)

    def urls(self) -> dict[str, tuple[str, str]]:
        layout = Layout(self.path, self.path / ".local", self.dsn)
        found = list(read_all(layout, "SELECT url, state, reason FROM urls"))
        assert len({url for url, _, _ in found}) == len(found)
        return {url: (state, reason) for url, state, reason in found}


def test_a_killed_crawl_over_postgresql_ends_as_one_over_sqlite(postgres_server: Postgres, tmp_path: Path) -> None:
    """The demo web, once over SQLite and once over PostgreSQL with kill -9 in the crawl: equal rows and states; status, why, sql
    and verify answer the same."""
    with serving() as served:
        text = demo_config(served.origins).replace("[crawl]\n", '[crawl]\nnear_copies = "store"\n')
        local = Folder(tmp_path / "local", None)  # type: ignore[arg-type]
        there = Served(tmp_path / "there", None, dsn=postgres_server.dsn())  # type: ignore[arg-type]
        for one, config in ((local, text), (there, text.replace('root = "."\n', f'root = "."\nfrontier = "{there.dsn}"\n'))):
            one.path.mkdir()
            (one.path / "corpus.toml").write_text(config, "utf-8")
        first = subprocess.Popen(there.argv(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        until, pages = time.monotonic() + 60, 0
        layout = Layout(there.path, there.path / ".local", there.dsn)
        while time.monotonic() < until and pages < 5 and first.poll() is None:
            time.sleep(0.05)
            pages = sum(n for (n,) in read_all(layout, "SELECT n FROM tally WHERE state = 'fetched' AND page = 1"))
        os.killpg(first.pid, signal.SIGKILL)
        assert first.wait(10) == -signal.SIGKILL, "it ended before five pages were there"
        for one in (local, there):
            assert corpus_cli("run", "-c", one.path / "corpus.toml").code == 0
    assert there.urls() == local.urls()
    assert there.rows() == local.rows()
    assert not list((there.path / ".local" / "frontier").glob("p*.sqlite"))
    url = next(url for url, (state, _) in sorted(local.urls().items()) if state == "fetched")
    queries = (
        "SELECT state, reason, count(*) AS n FROM pages GROUP BY ALL ORDER BY ALL",
        "SELECT host, state, queued FROM hosts ORDER BY ALL",
    )
    for argv in (("status",), ("why", url), *(("sql", query) for query in queries), ("report", "run")):
        codes = [corpus_cli(*argv, "-c", one.path / "corpus.toml").code for one in (local, there)]
        assert codes == [0, 0], argv
    for query in queries:
        a, b = (corpus_cli("sql", query, "--json", "-c", one.path / "corpus.toml").out for one in (local, there))
        assert a == b
    checked = corpus_cli("verify", "-c", there.path / "corpus.toml", "--json").json
    assert checked["ok"], checked["faults"][:5]


def test_a_database_belongs_to_one_corpus(postgres_server: Postgres, tmp_path: Path) -> None:
    """A second corpus with another name is refused before it writes anything into the first one's frontier."""
    dsn = postgres_server.dsn()
    for name, code in (("one", 0), ("two", 2)):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "seeds.txt").write_text("", "utf-8")
        config = f'[corpus]\nname = "{name}"\n[crawl]\nseeds = ["http://127.0.0.1:9/"]\ncontact = "https://example.org/bot"\n'
        (folder / "corpus.toml").write_text(config + f'max_pages = 1\n[store]\nfrontier = "{dsn}"\n', "utf-8")
        loaded = load_config(folder / "corpus.toml", environment={})
        if code:
            with pytest.raises(UsageError, match="'one'"):
                open_project(loaded)
        else:
            open_project(loaded)


def test_a_second_machine_touches_nothing_while_the_first_one_crawls(
    postgres_server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own store.local, the same root and database: it is refused by name, and the first one's open segment stays as it is."""
    dsn = postgres_server.dsn(prepared=True)
    (tmp_path / "corpus.toml").write_text(
        f"""
[corpus]
name = "shared"
[crawl]
seeds = ["http://127.0.0.1:9/"]
contact = "https://example.org/bot"
allow_private = ["127.0.0.0/8"]
total_timeout = "1s"
[store]
frontier = "{dsn}"
lease = "1s"
local = "second"
""",
        "utf-8",
    )
    monkeypatch.setattr("corpus.app.frontier_files.NODE_WAIT_S", 0.2)
    second = open_project(load_config(tmp_path / "corpus.toml", environment={}))
    first = PostgresFrontier(dsn, 3, lease=Lease("first", 600.0, 0.0))
    first.claim("fetch-0")
    being_written = second.layout.warc / "crawl_id=2026-11" / "s00-000001-000000.warc.gz.open"
    being_written.parent.mkdir(parents=True)
    being_written.write_bytes(b"a page that is being written")
    with pytest.raises(StoreError, match="fetch-0 on first owns this file"):
        prepare(second)
    assert being_written.read_bytes() == b"a page that is being written"
    first.renew()
    first.close(clean=True)


@pytest.mark.slow
def test_kills_of_the_crawl_over_postgresql(web: LawWeb, whole: Folder, tmp_path: Path) -> None:
    """kill -9 at seeded moments, with one process and with three: the same rows and states, no short gap."""
    with postgres() as server:
        for seed, extra in ((0, ()), (1, ("crawl.processes=3",))):
            one = Served.at(tmp_path / f"corpus-{seed}", whole.server, web.seeds(), server.dsn())
            report = one.killed(seed, 3, 0.5 * whole.run_s(), Victim.TREE, *extra)
            assert report.kills
            assert one.urls() == whole.urls()
            assert one.rows() == whole.rows()
            one.check_manners(web.refusals())


@pytest.mark.slow
def test_a_killed_server_ends_the_run_and_the_next_one_completes_it(web: LawWeb, whole: Folder, tmp_path: Path) -> None:
    """kill -9 of PostgreSQL in the crawl: the run ends with an error that says so; started again, it comes out whole."""
    with postgres() as server:
        one = Served.at(tmp_path / "corpus", whole.server, web.seeds(), server.dsn())
        began = time.time()
        run = subprocess.Popen(one.argv(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        layout = Layout(one.path, one.path / ".local", one.dsn)
        until = time.monotonic() + 60
        while time.monotonic() < until and run.poll() is None:
            if sum(n for (n,) in read_all(layout, "SELECT n FROM tally WHERE state = 'fetched' AND page = 1")) >= 5:
                break
            time.sleep(0.05)
        assert run.poll() is None
        server.kill()
        _, said = run.communicate(timeout=120)
        one.windows.append((began, time.time()))
        assert run.returncode not in (0, None)
        assert "the server does not answer" in said
        server.restart()
        one.run()
        assert one.urls() == whole.urls()
        assert one.rows() == whole.rows()
        one.check_manners(web.refusals())
