"""The frontier when it is large, the near-copy index, a soak: shortened here, whole by `make long` and `make soak`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from corpus.crawl.ports import Ack
from corpus.url.partition import PARTITION_FILES, partition_file
from tests.bench.bench_frontier import _judged, bulk, fill, gate, host_of_number, lines, memory, open_files, seen
from tests.bench.soak import grown, soak
from tests.postgres_kit import Postgres


def test_an_acknowledgement_hardly_grows_with_the_frontier(tmp_path: Path) -> None:
    """Ten times the URLs: take and acknowledgement cost at most 1.8 times as much."""
    small, large = lines([5_000, 50_000], tmp_path, rounds=10)
    assert float(str(large["ratio"])) <= 1.8, (small, large)


def test_a_frontier_filled_by_plain_sql_is_the_one_that_commits_make(tmp_path: Path) -> None:
    """The same rows in every table, so that what is measured over the one holds for the other."""
    tables = []
    for way in (fill, bulk):
        place = tmp_path / way.__name__
        place.mkdir()
        files = open_files(place)
        way(files, 60, 3_000)
        names = [name for (name,) in files[0]._con.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
        tables.append(
            [sorted(map(repr, store._con.execute(f"SELECT * FROM {name}"))) for store in files.values() for name in names]
        )
        for store in files.values():
            store.close(clean=False)
    assert tables[0] == tables[1]


@pytest.mark.needs("postgres")
def test_a_server_that_filled_itself_holds_what_commits_make(postgres_server: Postgres) -> None:
    """The same rows in PostgreSQL, whether commits bring them or the server makes them itself."""
    pytest.importorskip("psycopg")
    from corpus.store.frontier_postgres import PostgresFrontier
    from tests.bench import bench_postgres

    found = []
    for bulk_on_server in (False, True):
        store = PostgresFrontier(postgres_server.dsn(prepared=True), 0)
        store.claim("bench")
        if bulk_on_server:
            bench_postgres.bulk({0: store}, 60, 600)
        else:
            mine = [host for host in range(60) if partition_file(host_of_number(host), PARTITION_FILES) == 0]
            assert len(mine) > 1
            store.commit([Ack(own=tuple(_judged(host, n) for host in mine for n in range(10)))])
        rows = store._pg.raw.execute(
            "SELECT url, url_id, host, domain, kind, state, depth, front, priority, attempts FROM urls"
        ).fetchall()
        found.append((sorted(map(repr, rows)), store.tally(), store.hosts(), store.heads(store.hosts()[-1].host, 20)))
        store.close(clean=False)
    assert found[0] == found[1]


def test_the_filter_of_seen_urls_keeps_its_bound(tmp_path: Path) -> None:
    """Fifty thousand keys: errors under the bound, under 30 bits a key in its growing layers."""
    told = seen(50_000, tmp_path)
    assert float(str(told["errors"])) <= 0.001
    assert float(str(told["bits_per_key"])) < 30


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_state_of_a_fetch_process_stays_small(tmp_path: Path) -> None:
    """Six thousand hosts and thirty thousand URLs: far under the budget, and no more than 0.6 kB a host beside its desks."""
    told = memory(6_000, 30_000, tmp_path)
    assert float(str(told["rss_mb"])) < 200, told
    assert float(str(told["hosts_mb"])) * 2**20 < 2_048 * 3_000 + 6_000 * 600 + 2**22, told


def test_the_near_copy_index_finds_what_it_must() -> None:
    """Every fingerprint with one bit flipped is found again."""
    (told,) = gate([20_000])
    assert told["found"] == 1.0


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_short_soak_grows_in_nothing_and_a_leak_would_be_seen(tmp_path: Path) -> None:
    """Eight seconds of an endless crawl; and the judgement itself tells a leak from noise."""
    told = soak(8.0, tmp_path)
    assert told["ended_early"] is None
    assert told["requests"]
    assert "handles" not in told["grew"], told  # eight seconds are too short for the allocator to settle
    assert grown([100 + n for n in range(90)], 4)
    assert not grown([100 + n % 5 for n in range(90)], 4)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_five_million_urls_and_a_hundred_thousand_hosts(tmp_path: Path) -> None:
    """Under 300 MB, and take and acknowledgement at most 1.8 times what they cost at a hundred thousand URLs."""
    (_, large) = lines([100_000, 5_000_000], tmp_path)
    assert float(str(large["ratio"])) <= 1.8, large
    place = tmp_path / "memory"
    place.mkdir()
    told = memory(100_000, 5_000_000, place)
    assert float(str(told["peak_mb"])) < 300, told
