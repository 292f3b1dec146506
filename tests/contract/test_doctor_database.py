"""A PostgreSQL server before it is used: what would stop a crawl is named with its key, and a command that meets it says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.app.doctor_database import database
from corpus.app.findings import Finding
from corpus.config.check import wrong_frontier
from corpus.config.load import load_config
from tests.demo_corpus import corpus_cli
from tests.postgres_kit import Postgres

pytest.importorskip("psycopg")

import psycopg

from corpus.store.fleet_schema import open_fleet
from corpus.store.frontier_pg_bound import bind
from corpus.store.frontier_postgres import PostgresFrontier

pytestmark = pytest.mark.needs("postgres")


def looked(folder: Path, dsn: str, name: str = "x") -> Finding:
    (folder / "corpus.toml").write_text(f'[corpus]\nname = "{name}"\n[store]\nfrontier = "{dsn}"\n', "utf-8")
    return database(load_config(folder / "corpus.toml", environment={}))


def as_role(dsn: str, role: str) -> str:
    return dsn.replace("corpus@", f"{role}@")


def test_an_empty_database_and_a_used_one_are_fit(postgres_server: Postgres, tmp_path: Path) -> None:
    """Version, rights and schema are told; with the tables of a fleet their schema too; another corpus' database is refused."""
    dsn = postgres_server.dsn()
    found = looked(tmp_path, dsn)
    assert (found.state, found.said.endswith("may make tables; empty")) == ("ok", True), found
    bind(dsn, "x")
    PostgresFrontier(dsn, 0).close(clean=False)
    open_fleet(dsn).close()
    found = looked(tmp_path, dsn)
    assert (found.state, "frontier schema" in found.said, "fleet schema" in found.said) == ("ok", True, True), found
    other = looked(tmp_path, dsn, "y")
    assert (other.state, "corpus 'x'" in other.said) == ("fault", True), other
    with psycopg.connect(dsn, autocommit=True) as con:
        con.execute("UPDATE frontier.fleet SET schema = 99")
    newer = looked(tmp_path, dsn)
    assert (newer.state, "newer version" in newer.said) == ("fault", True), newer


def test_a_role_without_rights_is_named(postgres_server: Postgres, tmp_path: Path) -> None:
    """One that may make no tables, and one to whom the tables there do not belong."""
    dsn = postgres_server.dsn()
    with psycopg.connect(dsn, autocommit=True) as con:
        con.execute("DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
    found = looked(tmp_path, as_role(dsn, "guest"))
    assert (found.state, "guest may not make tables" in found.said) == ("fault", True), found
    PostgresFrontier(dsn, 0).close(clean=False)
    found = looked(tmp_path, as_role(dsn, "guest"))
    assert (found.state, "belong to corpus" in found.said) == ("fault", True), found


@pytest.mark.parametrize("which", ["database", "role"])
def test_a_server_that_does_not_let_us_in(postgres_server: Postgres, tmp_path: Path, which: str) -> None:
    """A missing database or role is no absent server: doctor, check and worker name it, and what to make."""
    dsn = as_role(postgres_server.dsn(), "nobody-such") if which == "role" else postgres_server.dsn() + "nowhere"
    found = looked(tmp_path, dsn)
    assert (found.state, found.key, f"{which} " in found.said) == ("fault", "store.frontier", True), found
    toml = '[corpus]\nname = "x"\n[crawl]\nseeds = ["https://127.0.0.1/"]\ncontact = "a@example.org"\nallow_private = ["127.0.0.0/8"]\n'
    (tmp_path / "corpus.toml").write_text(f'{toml}[store]\nfrontier = "{dsn}"\n', "utf-8")
    for verb, code in (("check", 2), ("worker", 1)):
        said = corpus_cli(verb, "-c", tmp_path / "corpus.toml")
        told = said.out + said.err
        assert (said.code, "createdb" in told, "start the server" in told) == (code, True, False), told


@pytest.mark.parametrize(
    "dsn", ["postgres:/x", "postgresql://h:port/x", "postgresql://h:99999/x", "postgresql://h/x?foo=1", "postgresql://h"]
)
def test_what_is_no_dsn_is_caught_before_a_server_is_asked(dsn: str) -> None:
    """One slash, a port that is none, an unknown parameter, no database; good ones pass."""
    assert wrong_frontier(dsn) is not None
    for good in ("sqlite", "postgresql://u@h/x", "postgres:///x?host=/run/postgresql", "postgresql://u@a:1,b:2/x"):
        assert wrong_frontier(good) is None
