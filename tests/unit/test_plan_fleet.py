"""What a fleet would take: the figures that were promised for ten billion pages, and how they move with the target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.app.plan_fleet import PRICES, Target, bloom_bytes, plan_fleet
from corpus.config.load import load_config
from corpus.config.tree import Config, CorpusSettings
from corpus.errors import UsageError
from tests.demo_corpus import DemoCorpus, corpus_cli

CONFIG = Config(corpus=CorpusSettings(name="x"))
TEN_BILLION = Target(10**10, 5)


def test_ten_billion_pages_in_five_days(tmp_path: Path) -> None:
    """10¹⁰ pages of 100 kB in 5 days, through the command line: rate, line, archive, memory of seen URLs and hosts that must be due."""
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n', "utf-8")
    told = corpus_cli(
        "plan", "-c", tmp_path / "corpus.toml", "--pages", "1e10", "--days", "5", "--page-bytes", "100kB", "--json"
    ).json
    assert told["pages_per_s"] == pytest.approx(23_100, rel=0.005)
    assert told["transfer"]["at_most_bytes_per_s"] == pytest.approx(2.3e9, rel=0.01)
    assert told["transfer"]["at_most_gbit_per_s"] == pytest.approx(18.5, rel=0.005)
    assert told["stored_bytes"]["warc"] == pytest.approx(350e12, rel=0.01)
    pages, known = told["seen"]
    assert pages["bloom_0.001"] == pytest.approx(18e9, rel=0.01)
    assert pages["bloom_0.01"] == pytest.approx(12e9, rel=0.01)
    assert pages["strings"] == pytest.approx(770e9)
    assert pages["hashes"] == 80e9
    assert known["urls"] == 8 * pages["urls"]
    assert told["politeness"]["ready_hosts"] == pytest.approx(46_000, rel=0.01)
    # what a server pays for a page in a fleet, as BENCHMARKS.md measured it: 0.6 ms
    assert told["postgresql"]["server_cores"] == pytest.approx(13.9, rel=0.01)
    assert told["cores"]["postgresql"] == pytest.approx(13.9 / 0.7, rel=0.01)
    assert any("2,147,483,647" in note for note in told["notes"])
    # one database carries 3,500 pages a second: seven fleets, whose 149 workers fit 32 partition files each
    assert told["fleets"] == {"fleets": 7, "workers_each": 22, "partition_files": 32}
    assert any("among 7 corpora" in note for note in told["notes"])
    assert told["money"] == {}
    assert [path.name for path in tmp_path.iterdir()] == ["corpus.toml"]


@given(st.integers(1, 10**12), st.floats(0.1, 1_000), st.integers(1_000, 10**7), st.floats(0.5, 60))
def test_a_plan_is_arithmetic(pages: int, days: float, page_bytes: int, gap: float) -> None:
    """Twice the days halve every rate and leave every amount; twice the gap doubles the hosts that must be due and nothing else."""
    one = plan_fleet(CONFIG, None, Target(pages, days, page_bytes, gap))
    slow = plan_fleet(CONFIG, None, Target(pages, days * 2, page_bytes, gap))
    polite = plan_fleet(CONFIG, None, Target(pages, days, page_bytes, gap * 2))
    for name in ("fetch", "process", "postgresql"):
        assert slow["cores"][name] == pytest.approx(one["cores"][name] / 2, rel=1e-4)
    assert slow["pages_per_s"] == pytest.approx(one["pages_per_s"] / 2, rel=1e-4)
    assert slow["stored_bytes"] == one["stored_bytes"]
    assert slow["seen"] == one["seen"]
    assert slow["cores"]["core_hours"] == pytest.approx(one["cores"]["core_hours"], rel=1e-4)
    assert polite["politeness"]["ready_hosts"] == pytest.approx(2 * one["politeness"]["ready_hosts"], rel=1e-4)
    assert polite["machines"] == one["machines"]
    assert one["transfer"]["likely_bytes_per_s"] <= one["transfer"]["at_most_bytes_per_s"]
    assert one["machines"]["fetch"] * one["machines"]["cores_each"] >= one["cores"]["fetch"] * 0.999


@given(st.integers(10**6, 10**12), st.floats(0.1, 1_000))
def test_a_plan_is_divided_into_fleets_that_this_version_can_run(pages: int, days: float) -> None:
    """Each has room for its workers, and all of them together do the whole."""
    told = plan_fleet(CONFIG, None, Target(pages, days))
    fleets = told["fleets"]
    assert fleets["workers_each"] <= fleets["partition_files"] <= 256
    assert fleets["fleets"] * fleets["workers_each"] >= told["machines"]["fetch_processes"]
    assert fleets["fleets"] >= told["postgresql"]["primaries"]
    assert (fleets["fleets"] > 1) == any("corpora" in note for note in told["notes"])


@given(st.integers(1, 10**12), st.integers(1, 60))
def test_regions_divide_the_whole(pages: int, regions: int) -> None:
    """So many equal parts make the whole again; machines are whole ones."""
    told = plan_fleet(CONFIG, None, Target(pages, 5, regions=regions))
    part = told["regions"]
    assert part["pages_per_s_each"] * regions == pytest.approx(told["pages_per_s"], rel=1e-4)
    assert part["ready_hosts_each"] * regions == pytest.approx(told["politeness"]["ready_hosts"], rel=1e-4)
    assert part["fetch_machines_each"] * regions >= told["machines"]["fetch"]


def test_hosts_that_must_be_known() -> None:
    """No host gives more pages than fit into the time at the gap, or than the configuration takes of one."""
    assert plan_fleet(CONFIG, None, TEN_BILLION)["politeness"]["hosts"] == 10**10 / CONFIG.crawl.max_pages_per_host
    slow = plan_fleet(CONFIG, None, replace(TEN_BILLION, gap_s=432.0))["politeness"]
    assert (slow["pages_a_host_at_most"], slow["hosts"]) == (1_000, 10**7)


def test_money_is_counted_where_a_price_is_given() -> None:
    """Each price times its amount, and their sum; an amount without a price is not guessed, a price for nothing is refused."""
    whole = plan_fleet(CONFIG, None, replace(TEN_BILLION, prices=dict.fromkeys(PRICES, 1.0)))["money"]
    assert whole["tb-month"] == pytest.approx(350 + 120 + 24)
    assert whole["tb-in"] == pytest.approx(330)
    assert whole["total"] == pytest.approx(sum(whole[name] for name in PRICES), rel=1e-4)
    some = plan_fleet(CONFIG, None, replace(TEN_BILLION, prices={"core-hour": 0.05}))["money"]
    assert set(some) == {"core-hour", "total"}
    assert some["total"] == pytest.approx(0.05 * whole["core-hour"], rel=1e-4)
    with pytest.raises(UsageError, match="no such price"):
        Target(1, 1, prices={"gpu-hour": 1.0})


def test_bloom_bytes_is_the_best_there_is() -> None:
    """Ten bits a key at the best k (6.93 functions) err once in 122, which is the textbook's .0082."""
    assert bloom_bytes(8e9, 0.00819) == pytest.approx(1e10, rel=0.001)


def test_a_crawled_folder_plans_with_its_own_costs(demo_corpus: DemoCorpus) -> None:
    """What was measured there replaces what is assumed, and is said to be measured."""
    told = corpus_cli("plan", "-c", demo_corpus.config, "--pages", "1e9", "--days", "10", "--json").json
    costs = {row["name"]: row for row in told["assumptions"]}
    fetch = demo_corpus.summary.fetch
    assert costs["archive share of a page"]["source"].startswith(f"measured here, over {fetch.pages}")
    size = sum(path.stat().st_size for path in (demo_corpus.folder / "warc").rglob("*") if path.is_file())
    assert costs["archive share of a page"]["value"] == pytest.approx(size / fetch.bytes_body, rel=1e-4)
    assert "archive bytes around a page" not in costs
    assert told["stored_bytes"]["warc"] == pytest.approx(1e9 * 100_000 * size / fetch.bytes_body, rel=1e-4)
    assert told["target"]["gap_s"] == load_config(demo_corpus.config, environment={}).crawl.delay == 0.05


def test_the_plan_for_a_person(tmp_path: Path) -> None:
    """The same figures in words, with regions and money, and every cost they rest on."""
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n', "utf-8")
    flags = ["--pages", "10_000_000_000", "--days", "5", "--regions", "3", "--price", "core-hour=0.04", "--price", "tb-month=20"]
    said = corpus_cli("plan", "-c", tmp_path / "corpus.toml", *flags, "--machine", "32", "25")
    assert said.code == 0, said.err
    for words in ("23,148 a second", "18.5 Gbit/s", "46,296 hosts", "350.0 TB WARC", "18.0 GB at 0.1 %", "machines of 32 cores and 25 Gbit/s", "each region", "money"):  # fmt: skip
        assert words in said.out
    assert "what this rests on:" in said.out


WRONG: dict[str, tuple[list[Any], str]] = {
    "pages without days": (["--pages", "5"], "belong together"),
    "days without pages": (["--days", "5"], "belong together"),
    "no number of pages": (["--pages", "many", "--days", "5"], "whole number"),
    "half a page": (["--pages", "1.5", "--days", "5"], "whole number"),
    "no size": (["--pages", "5", "--days", "5", "--page-bytes", "big"], "not a size"),
    "no time": (["--pages", "5", "--days", "0"], "--days"),
    "no gap": (["--pages", "5", "--days", "5", "--gap", "soon"], "not a duration"),
    "no price": (["--pages", "5", "--days", "5", "--price", "core-hour"], "core-hour=0.04"),
    "a price of nothing": (["--pages", "5", "--days", "5", "--price", "gpu=1"], "no such price"),
}


@pytest.mark.parametrize("what", sorted(WRONG))
def test_a_target_that_is_none(tmp_path: Path, what: str) -> None:
    """Exit 2, and what was meant."""
    (tmp_path / "corpus.toml").write_text('[corpus]\nname = "x"\n', "utf-8")
    flags, word = WRONG[what]
    said = corpus_cli("plan", "-c", tmp_path / "corpus.toml", *flags)
    assert said.code == 2
    assert word in said.err
