"""Law B under kill -9, with law D across every restart: the same rows, no short gap, no orphan."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.testing.kill import Victim
from tests.laws.crawl_folder import Folder
from tests.laws.law_web import LawWeb


def kill_and_compare(web: LawWeb, whole: Folder, folder: Path, *, kills: int, each: int, overrides: tuple[str, ...] = ()) -> int:
    """Kill runs over fresh folders until `kills` have hit; every folder must come out as the undisturbed one."""
    hit = seed = crawling = 0
    while hit < kills:
        victim = Victim.TREE if seed % 2 else Victim.SUPERVISOR
        within_s = (0.3, 0.3, 0.6, 0.6)[seed % 4] * whole.run_s()  # most of them in the crawl, some in the stages after it
        one = Folder.make(folder / f"corpus-{seed}", whole.server, web.seeds())
        report = one.killed(seed, min(each, kills - hit), within_s, victim, *overrides)
        assert report.kills, "the run ended before the first kill: the moments are too late"
        crawling += one.killed_crawling()
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


@pytest.mark.slow
def test_two_hundred_kills_over_ten_thousand_pages(tmp_path: Path) -> None:
    """200 kills over a crawl of about 10,000 pages (`make long`)."""
    web = LawWeb(9, pages=650)
    with web.serve_in_process(tmp_path / "contacts.jsonl") as server:
        whole = Folder.make(tmp_path / "whole", server, web.seeds())
        whole.run(timeout_s=1800)
        assert kill_and_compare(web, whole, tmp_path, kills=200, each=100) == 200
