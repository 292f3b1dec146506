"""Law B under kill -9, with law D across every restart: the same rows, no short gap, no orphan."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.testing.kill import Victim
from tests.laws.crawl_folder import Folder
from tests.laws.law_web import LawWeb

LATE = 3
"""Runs that may be over before their first kill."""


def kill_and_compare(web: LawWeb, whole: Folder, folder: Path, *, kills: int, each: int, overrides: tuple[str, ...] = ()) -> int:
    """Kill runs over fresh folders until `kills` have hit; every folder must come out as the undisturbed one.

    Moments are shares of what the undisturbed run took; where the machine has become faster since, they come sooner."""
    hit = seed = crawling = late = 0
    while hit < kills:
        victim = Victim.TREE if seed % 2 else Victim.SUPERVISOR
        within_s = (0.3, 0.3, 0.6, 0.6)[seed % 4] * whole.run_s() / 2**late  # most in the crawl, some after it
        one = Folder.make(folder / f"corpus-{seed}", whole.server, web.seeds())
        asking = seed % 2 == 0  # a slow machine takes long to ask anybody: half of the folders are killed after that
        report = one.killed(seed, min(each, kills - hit), within_s, victim, *overrides, asking=asking)
        late += not report.kills
        assert late <= LATE, "run after run ended before its first kill: the moments are too late"
        crawling += one.ends_unreached() if asking else one.killed_crawling()
        hit += len(report.kills)
        assert one.urls() == whole.urls(), f"seed {seed}"
        assert one.rows() == whole.rows(), f"seed {seed}"
        one.check_manners(web.refusals())
        seed += 1
    assert crawling, "no kill came between the first and the last contact: the moments are wrong"
    return hit


def test_twenty_kills_lose_nothing_double_nothing_and_break_no_gap(web: LawWeb, whole: Folder, tmp_path: Path) -> None:
    """20 × kill -9, of the supervisor alone or of the whole tree, at seeded moments of crawl, process and export."""
    assert kill_and_compare(web, whole, tmp_path, kills=20, each=5) == 20


def test_kills_with_three_processes(web: LawWeb, whole: Folder, tmp_path: Path) -> None:
    """The same with three fetch processes that share addresses."""
    assert kill_and_compare(web, whole, tmp_path, kills=3, each=3, overrides=("crawl.processes=3",)) == 3


def kill_a_crawl(web: LawWeb, whole: Folder, one: Folder, kills: int, share: float) -> int:
    """One crawl killed again and again, each time soon after the server has heard from it, and compared; how many kills came
    before its crawl was over. All moments together are at most `share` of what the undisturbed crawl took."""
    each_s = max(share * whole.run_s("ending") / kills, 0.8)
    report = one.killed(11, kills, each_s, Victim.EITHER, asking=True, timeout_s=3600)
    assert len(report.kills) == kills, f"the crawl was over after {len(report.kills)} kills"
    assert one.urls() == whole.urls()
    assert one.rows() == whole.rows()
    one.check_manners(web.refusals())
    return one.ends_unreached()


def test_a_crawl_that_is_killed_whenever_it_has_asked_something(web: LawWeb, whole: Folder, tmp_path: Path) -> None:
    """The short form of the next: two kills over one crawl."""
    assert kill_a_crawl(web, whole, Folder.make(tmp_path / "corpus", whole.server, web.seeds()), 2, share=0.5) >= 1


@pytest.mark.slow
def test_two_hundred_kills_over_ten_thousand_pages(tmp_path: Path) -> None:
    """200 kills over one crawl of about 10,000 pages (`make long`): 0 lost, 0 double, 0 gaps violated."""
    web = LawWeb(9, pages=800)
    with web.serve_in_process(tmp_path / "contacts.jsonl") as server:
        whole = Folder.make(tmp_path / "whole", server, web.seeds())
        whole.run(timeout_s=3600)
        assert sum(state == "fetched" for state, _ in whole.urls().values()) > 10_000
        assert kill_a_crawl(web, whole, Folder.make(tmp_path / "corpus", server, web.seeds()), 200, share=1.2) > 190
