"""A fleet whose parts fail as parts of real fleets do: a line that swallows packets, a wrong clock, a full disk, an order log that
cannot be read. Nothing is lost or double, no gap is short, and whoever is well goes on."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from corpus.app.ctl import block
from corpus.app.frontier_files import read_all
from corpus.app.project import open_project
from corpus.config.load import load_config
from corpus.testing.web_process import ServerProcess
from tests.demo_corpus import corpus_cli
from tests.fleet.fleet_kit import FleetFolder, Worker
from tests.fleet.lines import Namespace, line
from tests.laws.crawl_folder import Folder
from tests.laws.law_web import LawWeb
from tests.postgres_kit import Postgres
from tests.s3_kit import BUCKET, KEYS, Refuse, Seen, Server, gateway
from tests.small_disk import small_disk

pytestmark = pytest.mark.needs("postgres")
LEASE_S, REQUEST_S = 8.0, 1.0
SLOWLY = (f"store.lease={LEASE_S:.0f}s", "crawl.delay=0.25s", "crawl.delay_start=0.25s", f"crawl.total_timeout={REQUEST_S:.0f}s")
"""A crawl that lasts longer than a lease."""
ROUND_S = 2.0
"""How long a request may take from the guard to the server's log on a busy machine."""


@pytest.fixture(scope="module")
def web() -> LawWeb:
    """Fewer pages than other laws have, because they are asked for slowly, and no host that is waited for longer than all others."""
    return LawWeb(pages=6, without=("again.test",))


def share(fleet: FleetFolder, worker: Worker) -> set[int]:
    number = fleet.number_of(worker)
    return {file for file, owner in fleet.owned().items() if owner == number}


def cut_and_taken_over(fleet: FleetFolder, victim: Worker, other: Worker, cut: object) -> None:
    """Cut a worker off; it asks nobody past half a lease, and the other has all files when the lease has ended."""
    fleet.until(lambda: len(set(fleet.owned().values())) == 2 and fleet.pages() >= 5, "nobody shares")
    number, files = fleet.number_of(victim), share(fleet, victim)
    assert callable(cut)
    cut()
    at = time.time()
    fleet.until(lambda: number not in {member.id for member in fleet.there()}, "nobody notices")
    noticed = time.time()
    assert noticed - at > LEASE_S / 2, "lost only by the server's account"
    fleet.until(lambda: len(fleet.owned()) == 16 or other.process.poll() is not None, "nobody takes over")
    late = fleet.asked(files, at + LEASE_S / 2 + ROUND_S, at + LEASE_S * 0.75 + ROUND_S / 2)
    assert not late, f"asked by a worker in doubt: {late[0]}"


def test_a_worker_whose_packets_to_the_server_vanish(
    web: LawWeb, server: ServerProcess, postgres_server: Postgres, tmp_path: Path
) -> None:
    """Cut off from PostgreSQL without a sign, on a machine whose clock is an hour fast, beside one whose clock is an hour slow: it
    stops asking within half a lease, the other takes over; when the line is mended what it still sends counts for nothing, and it
    joins again under another number. Every stored time is the server's."""
    began = time.time()
    with (
        FleetFolder.at(tmp_path / "corpus", server, web.seeds(), postgres_server.dsn(), *SLOWLY) as fleet,
        line(postgres_server.port) as wire,
    ):
        victim = fleet.start(dsn=fleet.dsn.replace(str(postgres_server.port), str(wire.port)), skew_s=3600.0)
        other = fleet.start(skew_s=-3600.0)
        cut_and_taken_over(fleet, victim, other, wire.cut)
        fleet.until(lambda: "waiting for the server" in victim.said(), "it waits for an answer for ever")
        wire.mend()
        assert [other.end(), victim.end()] == [0, 0], other.said() + victim.said()
        assert "taken for dead" in victim.said(), victim.said()
    fleet.check_truth(web)
    times = [at for (at,) in read_all(fleet.layout, "SELECT fetched_at FROM urls WHERE fetched_at IS NOT NULL")]
    assert began - 5 < min(times) <= max(times) < time.time() + 5


@pytest.mark.slow
def test_a_machine_whose_cable_is_pulled(
    web: LawWeb, server: ServerProcess, whole: Folder, postgres_server: Postgres, tmp_path: Path
) -> None:
    """A worker in a network of its own loses everything at once, web and server: as above, and the rows are a single machine's."""
    network = Namespace(7)
    try:
        if why := network.make():
            pytest.skip(f"no network namespaces here: {why}")
        with (
            FleetFolder.at(tmp_path / "corpus", server, web.seeds(), postgres_server.dsn(), *SLOWLY) as fleet,
            line(postgres_server.port) as wire,
        ):  # the server lets only this machine's addresses in
            dsn = fleet.dsn.replace(str(postgres_server.port), str(wire.port))
            victim, other = fleet.start(dsn=dsn, inside=network.inside), fleet.start()
            cut_and_taken_over(fleet, victim, other, network.cut)
            network.mend()
            assert [other.end(), victim.end()] == [0, 0], other.said() + victim.said()
        fleet.check_against(whole, web.refusals())
    finally:
        network.remove()


def fill(disk: Path) -> None:
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:  # this is what full means
        while True:
            filler.write(b"x" * 4096)


@pytest.mark.slow
@pytest.mark.needs("s3")
def test_a_worker_without_room_and_one_that_cannot_read_orders(
    web: LawWeb, server: ServerProcess, postgres_server: Postgres, s3_server: Server, tmp_path: Path
) -> None:
    """In a bucket: a worker whose disk fills up gives its files back, says why and ends with 1; one that was told of an order which
    it cannot read asks nobody until it can, and goes on. The third has gone on all the while; nothing is lost or double."""
    os.environ.update(KEYS)
    deaf = False

    def rule(seen: Seen) -> Refuse | None:
        return Refuse(503, "SlowDown") if deaf and "/control/" in seen.path else None

    root = f"store.root=s3://{BUCKET}/{tmp_path.name}"
    with (
        small_disk(tmp_path / "disk") as disk,
        gateway(s3_server, create_only=True) as gate,
        gateway(s3_server, create_only=True) as own,
        FleetFolder.at(tmp_path / "corpus", server, web.seeds(), postgres_server.dsn(), *SLOWLY, root, f"store.s3_endpoint={gate.endpoint}")
        as fleet,
    ):  # fmt: skip
        own.rule = rule
        full, lags, well = (
            fleet.start(local=disk / "local"),
            fleet.start("--set", f"store.s3_endpoint={own.endpoint}"),
            fleet.start(),
        )
        fleet.until(lambda: len(set(fleet.owned().values())) == 3 and fleet.pages() >= 3, "nobody shares")
        deaf = True
        files = share(fleet, lags)
        project = open_project(load_config(fleet.path / "corpus.toml", overrides=[*fleet.flags()[1::2]], environment={}))
        block(project, "elsewhere.test")
        told = time.time()
        number = fleet.number_of(lags)
        fleet.until(lambda: all(m.report.get("orders") == 1 for m in fleet.there() if m.id != number), "nobody heard")
        fill(disk)
        time.sleep(4.0)
        assert not fleet.asked(files, told + 2.0, time.time()), "it lags, and asks all the same"
        assert any(
            "1 orders behind" in row
            for row in corpus_cli("status", "-c", fleet.path / "corpus.toml", *fleet.flags()).out.split("\n")
        )
        deaf = False
        assert full.end() == 1, full.said()
        assert "giving up" in full.said()
        assert "No space left" in full.said(), full.said()
        assert [lags.end(), well.end()] == [0, 0], lags.said() + well.said()
    fleet.check_truth(web)
