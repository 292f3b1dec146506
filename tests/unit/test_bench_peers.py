"""`corpus bench --peers`: ratios come from one round, medians from all, and whoever is measured did the whole job."""

from __future__ import annotations

from pathlib import Path

import pytest

from corpus.app.bench_jobs import JOBS, Contender
from corpus.app.bench_peers import Measured, bench_peers, installed, lines
from corpus.errors import UsageError
from corpus.testing.real_web import RealWeb
from corpus.testing.web_text import paragraphs


def contender(who: str, *, ours: bool = False) -> Contender:
    """One that is never run."""
    return Contender("fetch", who, lambda folder: [], ours=ours)


def test_ratios_are_taken_within_a_round() -> None:
    """A machine that halves its speed for a whole round moves the rates and leaves the ratio alone."""
    ours = Measured([(100, 1, 1.0, 2.0, 10), (100, 1, 2.0, 4.0, 30), (100, 1, 1.0, 2.0, 20)])
    other = Measured([(100, 1, 4.0, 5.0, 5), (100, 1, 8.0, 9.0, 5), (50, 1, 4.0, 5.0, 5)])
    rows = list(lines("fetch", [contender("us", ours=True), contender("them")], {"us": ours, "them": other}))
    assert [row["items_per_cpu_s"] for row in rows] == [100.0, 25.0 / 2]
    assert (rows[0]["min"], rows[0]["max"], rows[0]["peak_rss_bytes"]) == (50.0, 100.0, 30)
    assert rows[1]["ours_over"] == {"us": {"median": 4.0, "min": 4.0, "max": 8.0}}
    assert "ours_over" not in rows[0]
    assert "further" not in rows[0]


def test_starting_is_told_from_what_one_more_item_costs() -> None:
    """Two sizes give both: 2 s to start and 100 items a second, whatever the rate with the start is."""
    ours = Measured([(1_000, 1, 12.0, 1.0, 1)] * 3, [(100, 1, 3.0, 1.0, 1)] * 3)
    other = Measured([(1_000, 1, 41.0, 1.0, 1)] * 3, [(100, 1, 5.0, 1.0, 1)] * 3)
    us, them = lines("fetch", [contender("us", ours=True), contender("them")], {"us": ours, "them": other})
    assert (us["items_per_cpu_s"], us["further"], us["start_cpu_s"]) == (83.3, 100.0, 2.0)
    assert (them["further"], them["start_cpu_s"], them["ours_over"]["us"]["further"]) == (25.0, 1.0, 4.0)


def test_unknown_job_names_the_known_ones() -> None:
    """A misspelt job is a usage error that lists the jobs, before anything runs."""
    with pytest.raises(UsageError, match="fecth") as error:
        next(bench_peers(["fecth"], data=Path("nowhere"), python=Path("nowhere"), hosts=1, pages=1, rounds=1))
    assert all(job in str(error.value) for job in JOBS)


def documentation(folder: Path, pages: int) -> Path:
    """A `bench-data` folder of made-up pages."""
    place = folder / "tree/usr/share/doc/python3.11/html"
    place.mkdir(parents=True)
    for n in range(pages):
        prose = "".join(f"<p>{text}</p>" for text in paragraphs(n, "page", "en", 7_000))
        (place / f"page{n:02d}.html").write_text(
            f"<title>{n}</title><a href='x.html'>x</a><a class=a href=\"y\">y</a>{prose}", "utf-8"
        )
    return folder


def test_without_the_others_floors_still_run(tmp_path: Path) -> None:
    """No such Python: nobody else is listed; the crawl and both floors fetched the same pages."""
    data, nobody = documentation(tmp_path, 4), Path("no/such/python")
    assert installed(nobody) == {}
    head, *rows, noise = bench_peers(["fetch"], data=data, python=nobody, hosts=2, pages=2, rounds=1)
    assert (head["peers"], head["pages"], head["links"]) == ({}, 6, 2)
    assert [row["who"] for row in rows] == ["corpus crawl", "floor: GET", "floor: GET, links, WARC"]
    assert {row["items"] for row in rows} == {6}
    assert isinstance(noise["noisy"], bool)


def test_real_pages_lead_to_their_neighbours(tmp_path: Path) -> None:
    """Every page stands on one host, every link leads to a page of its host, and too few pages are a clear error."""
    web = RealWeb(documentation(tmp_path, 6), hosts=2, pages=3)
    assert len(set(web.files)) == 6
    assert web.body(1, 2).startswith(b'<title>5</title><a href="/p/0000.html">x</a><a class=a href="/p/0001.html">y</a>')
    with pytest.raises(UsageError, match="6 pages for 3 hosts of 3"):
        _ = RealWeb(tmp_path, hosts=3, pages=3).files
