"""What an operator hears of a fleet: who is at work, from whichever machine it is asked, and orders that need no server."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from corpus.app.project import open_project
from corpus.app.status_look import Kept, Look
from corpus.config.load import load_config
from corpus.store.locks import PartitionLock
from tests.demo_corpus import corpus_cli
from tests.postgres_kit import Postgres

pytest.importorskip("psycopg")

from corpus.store.fleet_members import Fleet, members_there

TOML = """[corpus]
name = "x"
[crawl]
seeds = ["https://127.0.0.1/"]
contact = "a@example.org"
allow_private = ["127.0.0.0/8"]
resolver = ["127.0.0.1:9"]
[store]
frontier = "{dsn}"
"""


def made(folder: Path, dsn: str) -> tuple[str, ...]:
    """A folder as a crawl has left it; the flags that name it."""
    (folder / "corpus.toml").write_text(TOML.format(dsn="sqlite"), "utf-8")
    assert corpus_cli("ctl", "pause", "-c", folder / "corpus.toml").code == 1, "there is nothing here yet"
    open_project(load_config(folder / "corpus.toml", environment={}))
    (folder / "corpus.toml").write_text(TOML.format(dsn=dsn), "utf-8")
    return ("-c", str(folder / "corpus.toml"))


@pytest.mark.needs("postgres")
def test_who_is_at_work_is_named_everywhere(postgres_server: Postgres, tmp_path: Path) -> None:
    """Beside a living fleet `status` says who crawls, on a machine that holds nothing; `crawl`, `takedown apply` and `verify
    --repair` name the workers too, also from the working folder of one of them, whose lock it shares."""
    dsn = postgres_server.dsn(prepared=True)
    flags = made(tmp_path, dsn)
    idle = corpus_cli("status", *flags)
    assert "no run holds this folder" in idle.out, idle.err
    fleet = Fleet(dsn, 600.0, 1.0, lambda: 0)
    try:
        number, _ = fleet.enter("x", ("far-away", 7, ""), lambda: 0)
        told = corpus_cli("status", *flags)
        assert f"running: crawl by worker {number} on far-away" in told.out, told.err
        assert "no run holds" not in told.out
        look = Look(open_project(load_config(tmp_path / "corpus.toml", environment={})))
        assert (look.running(), look.crawling()) == ("crawl, 1 worker", False)
        mine, _ = fleet.enter("x", (socket.gethostname(), 8, ""), lambda: 0)
        look.kept = Kept()
        assert (look.running(), look.crawling()) == ("crawl, 2 workers", True), "it is `corpus_running` that alerts begin with"
        fleet.leave(mine)
        with PartitionLock(tmp_path / ".local" / "locks" / "crawl.lock", shared=True):
            for verb in (("crawl",), ("takedown", "apply"), ("verify", "--repair")):
                refused = corpus_cli(*verb, *flags)
                assert (refused.code, f"worker {number} on far-away crawls here" in refused.err) == (1, True), refused
    finally:
        fleet.leave(number)
        fleet.close()


@pytest.mark.needs("postgres")
def test_a_worker_without_room_for_a_segment_takes_nothing_from_others(postgres_server: Postgres, tmp_path: Path) -> None:
    """Started again on a disk that is still full it ends before it joins: exit 1, the folder, and how much is missing."""
    dsn = postgres_server.dsn(prepared=True)
    flags = made(tmp_path, dsn)
    said = corpus_cli("worker", *flags, "--set", "store.segment_bytes=1000000GB")
    assert (said.code, "a segment takes up to" in said.err) == (1, True), said
    assert members_there(dsn) == []


def test_an_order_needs_no_server(tmp_path: Path) -> None:
    """With PostgreSQL down an order is recorded, and says that it is, and that nobody knows who is at work: exit 0."""
    flags = made(tmp_path, "postgresql://u@127.0.0.1:9/x")
    for n, verb in enumerate((("pause",), ("slow", "all", "2"), ("resume",), ("drain",)), 1):
        said = corpus_cli("ctl", *verb, *flags)
        assert (said.code, "it is recorded; the database server does not answer" in said.out) == (0, True), said
        assert (tmp_path / "control" / f"{n:08d}.json").exists()
    document = corpus_cli("ctl", "pause", *flags, "--json")
    assert (document.code, document.json["running"]) == (0, None)
