"""The fleet simulation keeps every gap through deaths and cut-offs, and can see when somebody does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from corpus.app.simulate_fleet import simulate_fleet
from corpus.app.simulate_fleet_world import FleetModel
from tests.demo_corpus import corpus_cli

SMALL = FleetModel(members=24, partitions=96, hosts=192, seconds=500.0, waves=3, killed=3, cut=4, joined=3)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_fleet_that_loses_members_keeps_every_gap(seed: int) -> None:
    """No gap is violated, no partition stays without an owner, shares end equal, and what was lost is taken over in time."""
    told = simulate_fleet(SMALL, seed=seed)
    assert told["violations"] == 0
    assert told["partitions"]["orphaned"] == 0
    assert told["partitions"]["most"] <= told["partitions"]["quota"]
    assert told["recovery_s"]["partitions"] > 20
    assert told["recovery_s"]["longest"] <= told["recovery_s"]["bound"]
    assert told["members"]["rejoined"] == 6
    assert told["utilisation_before_failures"] > 0.97
    assert told["recovery_s"]["bound"] <= 2 * SMALL.lease_s
    assert told["utilisation"] + told["unowned"] + told["resting"] >= 0.95
    assert told["ok"]


def test_a_fleet_without_quarantine_is_caught() -> None:
    """Files taken over as soon as a lease ends, and their hosts asked at once, violate gaps; the simulation says so and fails."""
    told = simulate_fleet(replace(SMALL, quarantine=False))
    assert told["violations"] > 50
    assert not told["ok"]


def test_members_that_come_and_go_in_order_cost_almost_nothing() -> None:
    """Joins alone move partitions by release and take: no gap is violated, and hosts are as busy as before."""
    told = simulate_fleet(replace(SMALL, killed=0, cut=0, joined=6))
    assert told["violations"] == 0
    assert told["moved"] > 0
    assert told["recovery_s"]["partitions"] == 0
    assert told["utilisation"] > 0.97


def test_a_run_is_the_same_every_time_and_the_verb_prints_it() -> None:
    """One seed, one run; exit 0 where all is well and 1 where a gap was violated."""
    said = corpus_cli("simulate", "fleet", "--members", "12", "--hours", "0.1", "--json")
    assert said.code == 0, said.err
    assert said.json == corpus_cli("simulate", "fleet", "--members", "12", "--hours", "0.1", "--json").json
    text = corpus_cli("simulate", "fleet", "--members", "12", "--hours", "0.1")
    assert "0 violated" in text.out
    assert corpus_cli("simulate", "fleet", "--members", "12", "--hours", "0.1", "--without-quarantine").code == 1
