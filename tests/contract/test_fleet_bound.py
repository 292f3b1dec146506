"""What a database is bound to: one corpus, and the number of partition files over which its frontier is spread."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from corpus.app.frontier_view import host_row
from corpus.app.project import open_project
from corpus.config.load import load_config
from corpus.crawl.discover import Router, seed
from corpus.crawl.ports import Ack
from corpus.crawl.settings import CrawlSettings
from corpus.crawl.traps import UrlRules
from corpus.errors import UsageError
from corpus.url.partition import partition_file
from corpus.url.scope import UrlScope
from tests.demo_corpus import corpus_cli
from tests.postgres_kit import Postgres

pytest.importorskip("psycopg")

from corpus.store.frontier_pg_bound import bind, spread_of
from corpus.store.frontier_pg_db import dial
from corpus.store.frontier_pg_read import files
from corpus.store.frontier_postgres import PostgresFrontier

pytestmark = pytest.mark.needs("postgres")
TOML = '[corpus]\nname = "x"\n[crawl]\nseeds = ["https://example.org/"]\ncontact = "a@example.org"\n[store]\nfrontier = "{}"\npartition_files = {}\n'


def written(folder: Path, dsn: str, spread: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "corpus.toml"
    path.write_text(TOML.format(dsn, spread), "utf-8")
    return path


def settled(dsn: str) -> int | None:
    with closing(dial(dsn, None)) as con:
        return spread_of(con)


def test_a_frontier_is_found_again_where_it_was_spread(postgres_server: Postgres, tmp_path: Path) -> None:
    """A host of a file past the sixteenth is stored and read back through the project that named the number; whoever names another
    is refused with the key and the number, whether it would write or only look."""
    dsn = postgres_server.dsn()
    host = next(name for n in range(1000) if partition_file(name := f"h{n}.example", 64) > 40)
    project = open_project(load_config(written(tmp_path, dsn, 64), environment={}))
    number = partition_file(host, 64)
    store = PostgresFrontier(dsn, number, spread=64)
    store.claim("a")
    sighting = seed(f"https://{host}/")
    assert sighting is not None
    router = Router(UrlRules(CrawlSettings(), UrlScope(any=True)), 64)
    assert router.by_file([sighting]) == {number: [sighting]}
    store.commit([Ack(own=tuple(router.judge([sighting])))])
    store.close(clean=True)
    row = host_row(project, host)
    assert row is not None
    assert row["queued"] == 1
    other = load_config(written(tmp_path / "other", dsn, 16), environment={})
    for call in (lambda: open_project(other), lambda: PostgresFrontier(dsn, 0), lambda: files(dsn, 16)):
        with pytest.raises(UsageError, match="spread over 64 partition files, not 16") as caught:
            call()
        assert (caught.value.where, "set it to 64" in caught.value.hint) == ("store.partition_files", True)
    (tmp_path / "corpus.toml").write_text(TOML.format(dsn, 32), "utf-8")  # the folder's own, changed afterwards
    for verb in (("why", f"https://{host}/"), ("worker",)):
        said = corpus_cli(*verb, "-c", tmp_path / "corpus.toml")
        assert (said.code, "set it to 64" in said.out + said.err) == (2, True), (verb, said)


def test_a_database_that_was_there_before_has_sixteen(postgres_server: Postgres) -> None:
    """Whether an older version bound it without a number, or made tables without binding it: no other number is taken."""
    bound, used = postgres_server.dsn(), postgres_server.dsn()
    with closing(dial(bound, None)) as con:
        con.execute("CREATE SCHEMA frontier")
        con.execute("CREATE TABLE frontier.corpus (one smallint PRIMARY KEY DEFAULT 1 CHECK (one = 1), name text NOT NULL)")
        con.execute("INSERT INTO frontier.corpus (name) VALUES ('x')")
    PostgresFrontier(used, 0).close(clean=False)
    for dsn in (bound, used):
        with pytest.raises(UsageError, match="spread over 16 partition files, not 64"):
            bind(dsn, "x", 64)
        bind(dsn, "x")
        assert settled(dsn) == 16


@pytest.mark.parametrize(
    ("spread", "said"), [(128, "takes 97 connections"), (32, "spread over 64 partition files, not 32"), (64, "empty")]
)
def test_doctor_knows_whether_a_server_can_hold_so_many(
    postgres_server: Postgres, tmp_path: Path, spread: int, said: str
) -> None:
    """Every partition file takes a connection; what was settled before is told too."""
    dsn = postgres_server.dsn()
    if "spread" in said:
        bind(dsn, "x", 64)
    told = corpus_cli("doctor", "-c", written(tmp_path, dsn, spread))
    assert said in told.out + told.err, told


def test_sqlite_has_sixteen(tmp_path: Path) -> None:
    """Another number is refused by check and by whoever opens the folder; a number that is no such power of two is no value at all."""
    for frontier, spread, said in (("sqlite", 64, "SQLite has 16 partition files"), ("sqlite", 17, "partition_files")):
        path = written(tmp_path, frontier, spread)
        for verb in ("check", "run"):
            told = corpus_cli(verb, "-c", path)
            assert (told.code, said in told.out + told.err) == (2, True), (verb, told)
