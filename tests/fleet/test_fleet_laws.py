"""Laws B and D for a fleet of real workers: whatever comes, goes, dies or sleeps, the crawl is a single machine's, and polite."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from corpus.testing.web_process import ServerProcess
from tests.demo_corpus import corpus_cli
from tests.fleet.fleet_kit import FleetFolder, Worker
from tests.laws.crawl_folder import Folder
from tests.laws.law_web import LawWeb
from tests.postgres_kit import Postgres, postgres
from tests.s3_kit import BUCKET, KEYS, Server, gateway

pytestmark = [pytest.mark.needs("postgres"), pytest.mark.slow]


def test_three_workers_that_come_one_by_one(
    web: LawWeb, server: ServerProcess, whole: Folder, postgres_server: Postgres, tmp_path: Path
) -> None:
    """Each that joins is given a share, those before it let go of theirs; the end is everybody's; rows as of one machine."""
    with FleetFolder.at(tmp_path / "corpus", server, web.seeds(), postgres_server.dsn()) as fleet:
        first = fleet.start("--region", "north")
        fleet.until(lambda: fleet.pages() >= 3, "nobody crawls")
        others = [fleet.start(), fleet.start()]
        fleet.until(lambda: len(set(fleet.owned().values())) == 3 or first.process.poll() is not None, "nobody shares")
        assert [worker.end() for worker in (first, *others)] == [0, 0, 0], "\n".join(w.said() for w in fleet.workers)
    fleet.check_against(whole, web.refusals())


def test_a_killed_worker_is_taken_over(
    web: LawWeb, server: ServerProcess, whole: Folder, postgres_server: Postgres, tmp_path: Path
) -> None:
    """kill -9 of a worker and its process in mid-crawl: its files have a new owner within two leases, however long a request may
    last; their hosts rest for max(lease, half a lease + the longest request); nothing lost, double or hurried."""
    lease_s, request_s = 8.0, 14.0
    with FleetFolder.at(
        tmp_path / "corpus", server, web.seeds(), postgres_server.dsn(), "store.lease=8s", "crawl.total_timeout=14s"
    ) as fleet:
        heir, files, at = killed_in_mid_crawl(fleet)
        taken_over(fleet, lease_s, at)
        assert heir.end() == 0, heir.said()
        assert "rest for" in heir.said(), heir.said()
    renewed = at - lease_s / 4 - 1.0
    assert not fleet.asked(files, at + 0.5, renewed + lease_s / 2 + request_s)
    assert fleet.asked(files, at + 0.5, time.time())
    fleet.check_against(whole, web.refusals())


def killed_in_mid_crawl(fleet: FleetFolder) -> tuple[Worker, set[int], float]:
    """Two workers share a crawl and the first gets kill -9; returns the other, the first one's files, and when (epoch seconds)."""
    victim, heir = fleet.start(), fleet.start()
    fleet.until(lambda: len(set(fleet.owned().values())) == 2 and fleet.pages() >= 5, "nobody shares")
    number = fleet.number_of(victim)
    files = {file for file, owner in fleet.owned().items() if owner == number}
    victim.kill()
    return heir, files, time.time()


def taken_over(fleet: FleetFolder, lease_s: float, died: float) -> float:
    """Every file has an owner that lives and is at work; how long after the death (seconds)."""
    number = next(member.id for member in fleet.there() if member.pid == fleet.workers[0].process.pid)
    fleet.until(lambda: number not in {member.id for member in fleet.there()}, "nobody notices")
    fleet.until(lambda: len(fleet.owned()) == 16, "nobody takes over")
    took = time.time() - died
    assert took < 2 * lease_s + 10.0, f"{took:.1f} s: two leases, and time for a busy machine"
    return took


def test_failover_with_the_leases_everybody_has(
    web: LawWeb, server: ServerProcess, postgres_server: Postgres, tmp_path: Path
) -> None:
    """As configured by default (a lease of 30 s, requests of up to 120 s): an owner again within two leases, and it asks nobody whom
    the dead one may still be asking."""
    with FleetFolder.at(
        tmp_path / "corpus", server, web.seeds(), postgres_server.dsn(), "store.lease=30s", "crawl.total_timeout=120s"
    ) as fleet:
        heir, files, at = killed_in_mid_crawl(fleet)
        took = taken_over(fleet, 30.0, at)
        print(f"failover took {took:.1f} s")
        time.sleep(5.0)
        assert not fleet.asked(files, at + 1.0, time.time())
        heir.kill()


def test_a_worker_that_is_told_to_go_hands_over_at_once(
    web: LawWeb, server: ServerProcess, whole: Folder, postgres_server: Postgres, tmp_path: Path
) -> None:
    """SIGTERM: what is in flight is acknowledged, the files are free long before any lease would have ended, exit 130."""
    with FleetFolder.at(tmp_path / "corpus", server, web.seeds(), postgres_server.dsn(), "store.lease=300s") as fleet:
        leaver, stays = fleet.start(), fleet.start()
        fleet.until(lambda: len(set(fleet.owned().values())) == 2 and fleet.pages() >= 5, "nobody shares")
        leaver.signal(signal.SIGTERM, group=False)
        assert leaver.end() == 130, leaver.said()
        assert stays.end() == 0, stays.said()
    fleet.check_against(whole, web.refusals())


def test_a_worker_that_sleeps_past_its_lease_is_rejected(
    web: LawWeb, server: ServerProcess, whole: Folder, postgres_server: Postgres, tmp_path: Path
) -> None:
    """SIGSTOP of a worker and its process until another owns its files, then SIGCONT: nothing it still does counts, no gap is
    short, and it joins again under another number."""
    with FleetFolder.at(tmp_path / "corpus", server, web.seeds(), postgres_server.dsn()) as fleet:
        sleeper, other = fleet.start(), fleet.start()
        fleet.until(lambda: len(set(fleet.owned().values())) == 2 and fleet.pages() >= 5, "nobody shares")
        number = next(member.id for member in fleet.there() if member.pid == sleeper.process.pid)
        sleeper.signal(signal.SIGSTOP)
        fleet.until(lambda: number not in {member.id for member in fleet.there()}, "nobody notices")
        fleet.until(lambda: len(fleet.owned()) == 16 or other.process.poll() is not None, "nobody takes over")
        sleeper.signal(signal.SIGCONT)
        assert other.end() == 0, other.said()
        assert sleeper.end() == 0, sleeper.said()
        assert "taken for dead" in sleeper.said() or "superseded" in sleeper.said(), sleeper.said()
    fleet.check_against(whole, web.refusals())


def test_a_page_budget_holds_over_workers(web: LawWeb, server: ServerProcess, postgres_server: Postgres, tmp_path: Path) -> None:
    """`max_pages` with two workers, one of which is killed with pages in hand: never passed, met exactly, and all end with exit 0."""
    with FleetFolder.at(tmp_path / "corpus", server, web.seeds(), postgres_server.dsn(), "crawl.max_pages=60") as fleet:
        victim, heir = fleet.start(), fleet.start()
        fleet.until(lambda: len(set(fleet.owned().values())) == 2 and fleet.pages() >= 5, "nobody shares")
        victim.kill()
        assert heir.end() == 0, heir.said()
        assert "(budget" in heir.said()
        assert fleet.pages() == 60


def test_a_killed_server_is_waited_for(web: LawWeb, server: ServerProcess, whole: Folder, tmp_path: Path) -> None:
    """kill -9 of PostgreSQL in mid-crawl, started again: the workers wait for it, go on, and come out whole."""
    with postgres() as database, FleetFolder.at(tmp_path / "corpus", server, web.seeds(), database.dsn()) as fleet:
        workers = [fleet.start(), fleet.start()]
        fleet.until(lambda: len(set(fleet.owned().values())) == 2 and fleet.pages() >= 5, "nobody shares")
        database.kill()
        fleet.until(lambda: all("waiting for the server" in worker.said() for worker in workers), "nobody notices")
        database.restart()
        assert [worker.end() for worker in workers] == [0, 0], "\n".join(w.said() for w in workers)
        fleet.check_against(whole, web.refusals())


@pytest.mark.needs("s3")
def test_a_fleet_in_a_bucket(
    web: LawWeb, server: ServerProcess, whole: Folder, postgres_server: Postgres, s3_server: Server, tmp_path: Path
) -> None:
    """Two workers that share nothing but the bucket and PostgreSQL, one of them killed: what its disk held is fetched again by the
    other, and a machine that took part in neither measures and releases the rows of a single folder."""
    os.environ.update(KEYS)
    with gateway(s3_server, create_only=True) as gate, FleetFolder.at(
        tmp_path / "corpus", server, web.seeds(), postgres_server.dsn(),
        f"store.root=s3://{BUCKET}/{tmp_path.name}", f"store.s3_endpoint={gate.endpoint}",
    ) as fleet:  # fmt: skip
        victim, heir = fleet.start(), fleet.start()
        fleet.until(lambda: len(set(fleet.owned().values())) == 2 and fleet.pages() >= 5, "nobody shares")
        victim.kill()
        assert heir.end() == 0, heir.said()
        fleet.windows = [(start, time.time()) for start, _ in fleet.windows]
        assert fleet.urls() == whole.urls()
        fleet.check_manners(web.refusals())
        fleet.finish()
        working = fleet.path / ".local" / "working" / BUCKET / tmp_path.name
        assert Folder(working, server).rows() == whole.rows()
        verified = corpus_cli("verify", "-c", fleet.path / "corpus.toml", *fleet.flags(), "--json").json
        assert verified["ok"], verified["faults"][:5]
