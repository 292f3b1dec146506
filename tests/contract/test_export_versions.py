"""Older versions in a release: one row for each that differs much, governed by what its URL says today, never a near duplicate."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.export.ports import FRONTIER, TOMBSTONES
from corpus.filter.settings import DedupSettings
from corpus.filter.versions import write_versions
from tests import make_families as mf
from tests import release_kit as rk
from tests.make_families import DAY, Page

URL = "https://www.a.example/page"
FIRST, DATED, HALF = rk.text(1), rk.text(1) + " 2026-11-03", " ".join([*rk.words(1)[:60], *rk.words(2)[:60]])
VISITS = [Page(URL, FIRST, day=1), Page(URL, FIRST, day=2), Page(URL, DATED, day=3), Page(URL, HALF, day=4)]
OTHER = Page("https://www.b.example/", rk.text(9), day=1)


@pytest.fixture
def kit(tmp_path: Path) -> rk.Kit:
    made = rk.Kit(tmp_path)
    made.options = replace(made.options, versions="major")
    return made


def _texts(result: rk.ReleaseResult) -> list[str]:
    return [
        text for url, text in zip(*(rk.rows(result)[name].to_pylist() for name in ("url", "text")), strict=True) if url == URL
    ]


def _decided(result: rk.ReleaseResult) -> list[tuple[int, str, bool]]:
    assert result.decisions is not None
    rows = [row for row in pq.read_table(result.decisions.path).to_pylist() if row["url"] == URL]
    return sorted(((row["fetched_at"] - DAY).days, row["reason"], row["latest"]) for row in rows)


def test_a_page_rewritten_once_is_two_rows_with_two_ids(kit: rk.Kit) -> None:
    """Unchanged and minor versions are one with the next; the major one stands beside the newest, and is counted on one line."""
    result = kit.release([*VISITS, OTHER])
    assert sorted(_texts(result)) == sorted([DATED, HALF])
    assert len(set(rk.rows(result)["id"].to_pylist())) == 3
    assert _decided(result) == [(1, "older-version", False), (2, "older-version", False), (3, "", False), (4, "", True)]
    assert result.manifest["rows"] == 3
    assert result.manifest["funnel"][-1]["out"] == 2
    assert result.manifest["versions"] == {"stage": "versions", "in": 1, "out": 1, "dropped": {}}
    card = (result.folder / "README.md").read_text("utf-8")
    assert "1 older versions differ so much" in card
    assert rk.rows(result)["minhash_cluster_size"].to_pylist() == [1, 1, 1]


def test_newest_alone_has_the_same_rows_as_ever(kit: rk.Kit) -> None:
    """Without `major` there is one row a URL, and no line of versions."""
    kit.options = replace(kit.options, versions="newest")
    result = kit.release([*VISITS, OTHER])
    assert _texts(result) == [HALF]
    assert "versions" not in result.manifest


@pytest.mark.parametrize("spread", [lambda at: 0, lambda at: at, lambda at: 7 - at], ids=["one", "each", "reversed"])
def test_any_sharding_gives_the_same_rows(kit: rk.Kit, spread: object) -> None:
    """How captures are spread over segments moves nothing."""
    kit.spread = spread  # type: ignore[assignment]
    assert sorted(_texts(kit.release([*VISITS, OTHER]))) == sorted([DATED, HALF])


def test_what_the_url_says_today_governs_every_version(kit: rk.Kit) -> None:
    """A refusal, a takedown by id of the oldest, and a page gone by now take the whole chain along."""
    gone = pa.Table.from_pylist([{"url": URL, "gone": True, "visited_at": DAY + datetime.timedelta(days=9)}], schema=FRONTIER)
    down = [{"kind": "id", "value": VISITS[0].row()["id"], "reason": "asked", "requested_at": DAY}]
    for inputs, judge, reason in (
        ({}, rk.Judge({"a.example": "tdmrep"}), "tdmrep"),
        ({"tombstones": pa.Table.from_pylist(down, schema=TOMBSTONES)}, rk.Judge(), "taken-down"),
        ({"frontier": gone}, rk.Judge(), "gone"),
    ):
        kit.inputs, kit.judge = dict(inputs), judge
        result = kit.release([*VISITS, OTHER])
        assert _texts(result) == []
        assert result.manifest["versions"]["dropped"] == {reason: 1}
    kit.options = replace(kit.options, gone="keep")
    assert len(_texts(kit.release([*VISITS, OTHER]))) == 2


def test_a_version_enters_by_its_own_text(kit: rk.Kit) -> None:
    """The newest may fail the policy where an older one passes, and the other way round."""
    kit.policy = rk.Policy(least=100)
    long, short = Page(URL, rk.text(3, 120), day=1), Page(URL, rk.text(4, 60), day=2)
    assert _texts(kit.release([long, short, OTHER])) == [long.text]
    assert _texts(kit.release([replace(short, day=1), replace(long, day=2), OTHER])) == [long.text]


def test_older_versions_never_repeat_another_row(kit: rk.Kit) -> None:
    """What moved to another address, came back later, or stands in two histories is one row."""
    moved = [Page(URL, FIRST, day=1), Page(URL, HALF, day=2), Page("https://www.c.example/", rk.near(1, 5), day=3)]
    result = kit.release(moved)
    assert _texts(result) == [HALF]
    assert result.manifest["versions"]["dropped"] == {"near-duplicate": 1}
    back = [Page(URL, FIRST, day=1), Page(URL, HALF, day=2), Page(URL, DATED, day=3)]
    assert sorted(_texts(kit.release(back))) == sorted([HALF, DATED])
    mirrors = [
        Page(f"https://www.{c}.example/", text, day=day)
        for c in "cd"
        for day, text in enumerate((rk.near(1, ord(c)), rk.text(50 + ord(c))))
    ]
    assert kit.release(mirrors).manifest["versions"] == {"stage": "versions", "in": 2, "out": 1, "dropped": {"near-duplicate": 1}}


def test_an_older_version_falls_with_a_refused_copy(kit: rk.Kit) -> None:
    """A page whose author says no is not laundered by the history of a mirror."""
    kit.judge = rk.Judge({"c.example": "tdmrep"})
    pages = [Page(URL, FIRST, day=1), Page(URL, HALF, day=2), Page("https://www.c.example/", rk.near(1, 5), day=3)]
    result = kit.release(pages)
    assert _texts(result) == [HALF]
    assert result.manifest["versions"]["dropped"] == {"cluster-refused": 1}
    kit.options = replace(kit.options, cluster="promote")
    assert sorted(_texts(kit.release(pages))) == sorted([FIRST, HALF])


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.booleans()), min_size=1, max_size=14))
def test_neighbours_of_a_chain_are_never_near_duplicates(
    tmp_path_factory: pytest.TempPathFactory, visits: list[tuple[int, int, bool]]
) -> None:
    """Law: the newest and the major versions, in order of their latest visit, each differ enough from the next; the rest is minor."""
    folder = tmp_path_factory.mktemp("chain")
    pages = [
        Page(f"https://www.{'xy'[second]}.example/", rk.near(text, change) if change else rk.text(text), day=day)
        for day, (text, change, second) in enumerate(visits)
    ]
    family = mf.write_family(folder, "s", pages)
    write_versions([family.documents], [family.signatures], DedupSettings(), folder / "v.parquet", scratch=folder)
    found = pq.read_table(folder / "v.parquet").to_pylist()
    for url_id in {page.row()["url_id"] for page in pages}:
        rows = {page.row()["id"]: page for page in pages if page.row()["url_id"] == url_id}
        newest = max((page for page in pages if page.row()["url_id"] == url_id), key=lambda page: page.day)
        chain = [row for row in found if row["url_id"] == url_id]
        assert {row["id"] for row in chain} == rows.keys() - {newest.row()["id"]}
        against = newest
        for row in chain:
            page = rows[row["id"]]
            alike = float((mf.minhash([str(page.text)]) == mf.minhash([str(against.text)])).mean())
            assert row["similarity"] == pytest.approx(alike)
            assert row["change"] == ("major" if alike < 0.75 else "minor")
            against = page if row["change"] == "major" else against
