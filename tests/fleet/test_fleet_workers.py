"""Workers of a fleet as an operator meets them: they join, are seen, hand over, keep a single machine's run out, and end together."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from corpus.app.ctl import pause, resume
from corpus.app.project import open_project
from corpus.app.status import status
from corpus.config.load import load_config
from corpus.store.frontier_reader import FrontierReader
from corpus.testing.demo.server import serving
from corpus.testing.demo.settings import demo_config
from tests.demo_corpus import DemoCorpus, corpus_cli
from tests.fleet.fleet_kit import FleetFolder
from tests.postgres_kit import Postgres

pytestmark = pytest.mark.needs("postgres")


def states_of(folder: Path, port: str) -> dict[str, tuple[str, str]]:
    """(state, reason) by URL of a finished single-machine crawl, as if it had been served at another port."""
    found: dict[str, tuple[str, str]] = {}
    for file in sorted((folder / ".local" / "frontier").glob("p*.sqlite")):
        with FrontierReader(file) as reader:
            for batch in reader.rows(("url", "state", "reason")):
                found |= {_at(url, port): (state, reason) for url, state, reason in batch}
    return found


def _at(url: str, port: str) -> str:
    scheme, _, rest = url.partition("://")
    place, _, path = rest.partition("/")
    host, colon, _ = place.partition(":")
    return f"{scheme}://{host}{f':{port}' if colon else ''}/{path}"


def test_two_workers_crawl_what_one_machine_crawls(postgres_server: Postgres, demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """The frontier is spread over 32 files. The second one takes half from the first, whose fetch process stays, each what is near to its region; a pause holds both until they have; one is told to go and hands over; the other ends the crawl; every URL is what a single
    machine makes of it, and the archive says where each page was fetched. Meanwhile what needs all files to itself is refused."""
    with serving() as served:
        path = tmp_path / "corpus"
        path.mkdir()
        fleet = FleetFolder(path, None, dsn=postgres_server.dsn())  # type: ignore[arg-type]
        store = f'root = "."\nfrontier = "{fleet.dsn}"\nlease = "4s"\nsegment_age = "1s"\npartition_files = 32\n'
        config = (
            demo_config(served.origins).replace('root = "."\n', store).replace("[crawl]\n", '[crawl]\ntotal_timeout = "2s"\n')
        )
        (path / "corpus.toml").write_text(config, "utf-8")
        for region, far in (("north-1", range(16, 32)), ("south-1", range(16))):
            known_ways(fleet.dsn, region, far)
        with fleet:
            leaver = fleet.start("--region", "north-1")
            fleet.until(lambda: len(fleet.owned()) == 32, "nobody begins")
            project = open_project(load_config(path / "corpus.toml", environment={}))
            pause(project)
            stays = fleet.start("--region", "south-1")
            half = {file: "north-1" if file < 16 else "south-1" for file in range(32)}

            def shared() -> bool:
                region = {member.id: member.region for member in fleet.there()}
                return {file: region[owner] for file, owner in fleet.owned().items()} == half

            fleet.until(shared, "nobody shares")
            assert "moving files" in leaver.said()
            assert "life=2" not in leaver.said(), "files left it, and it went on with the others"
            facts = {fact["name"]: fact["value"] for fact in status(project)["facts"]}
            assert facts["fleet"].startswith("2 workers")
            assert "16 partition files" in facts["worker 100"]
            for verb in (("crawl",), ("takedown", "apply"), ("verify", "--repair")):
                refused = corpus_cli(*verb, "-c", path / "corpus.toml", "--set", f"store.local={path}/.other")
                assert (refused.code, "worker 100 on" in refused.err) == (1, True), verb
            fleet.until(lambda: all(member.report["orders"] == 1 for member in fleet.there()), "nobody heard")
            resume(project)
            leaver.signal(signal.SIGTERM, group=False)
            assert leaver.end() == 130, leaver.said()
            assert stays.end() == 0, stays.said()
            assert "life=2" not in stays.said(), "files came to it, and it went on with what it had"
        port = next(iter(served.origins.values())).rpartition(":")[2]
    assert fleet.urls() == states_of(demo_corpus.folder, port)
    checked = corpus_cli("verify", "-c", path / "corpus.toml", "--json").json
    assert checked["ok"], checked["faults"][:5]
    archived = b"".join(gzip.decompress(file.read_bytes()) for file in sorted((path / "warc").glob("crawl_id=*/*.warc.gz")))
    assert (
        archived.count(b"corpus-region: south-1")
        >= archived.count(b"WARC-Type: response") - archived.count(b"corpus-region: north-1")
        > 0
    )


def known_ways(dsn: str, region: str, far: range) -> None:
    """As if workers of a region had crawled here before: connections to hosts of some files took long."""
    from corpus.store.fleet_schema import open_fleet

    with open_fleet(dsn) as con:
        for file in range(32):
            con.execute("INSERT INTO frontier.way VALUES (%s, %s, 50, %s)", (file, region, 0.4 if file in far else 0.02))


def test_what_no_fleet_can_be_made_of_is_refused(tmp_path: Path) -> None:
    """A frontier in SQLite, several fetch processes in one worker, a region that is no name: exit 2 and the key, nothing begun."""
    toml = '[corpus]\nname = "x"\n[crawl]\nseeds = ["https://example.org/"]\ncontact = "a@example.org"\n'
    (tmp_path / "corpus.toml").write_text(toml, "utf-8")
    server = ("--set", "store.frontier=postgresql://nobody@127.0.0.1:9/x")
    for flags, named in (
        ((), "store.frontier"),
        ((*server, "--set", "crawl.processes=2"), "crawl.processes"),
        ((*server, "--region", "../north"), "--region"),
    ):
        said = corpus_cli("worker", "-c", tmp_path / "corpus.toml", *flags)
        assert (said.code, named in said.err) == (2, True), said.err
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.toml"]


def test_a_fetch_process_without_a_server_loads_nothing_of_one() -> None:
    """PostgreSQL's client is loaded where store.frontier names a server, and nowhere else."""
    code = "import corpus.app.fetch_process, json, sys; print(json.dumps('psycopg' in sys.modules))"
    assert json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) is False
