"""Who is left out of a release and who falls with him: refusals, takedowns, pages that are gone."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus.errors import CorpusError, StoreError
from corpus.export.ports import FRONTIER, TOMBSTONES
from tests import release_kit as rk
from tests.make_families import Page


@pytest.fixture
def kit(tmp_path):
    return rk.Kit(tmp_path)


def _day(day: int) -> datetime.datetime:
    return datetime.datetime(2026, 11, day)  # noqa: DTZ001  (UTC without a zone, as in the families)


def _tombstone(kind: str, value: str) -> pa.Table:
    return pa.Table.from_pylist([{"kind": kind, "value": value, "reason": "asked", "requested_at": _day(25)}], schema=TOMBSTONES)


def _family_of_five() -> list[Page]:
    return [Page(f"https://www.{c}.example/", rk.near(1, n)) for n, c in enumerate("abcde")] + [
        Page("https://www.f.example/", rk.text(2))
    ]


def test_copies_verified_against_a_refused_page_fall_with_it(kit):
    """With `drop`, a refusal takes its verified near copies along and says whose it was; others stay."""
    kit.judge = rk.Judge({"www.c.example": "tdmrep"})
    result = kit.release(_family_of_five())
    decided = rk.decisions(result)
    assert rk.urls(result) == ["https://www.f.example/"]
    assert {decided[f"https://www.{c}.example/"]["reason"] for c in "abde"} == {"cluster-refused"}
    assert decided["https://www.a.example/"]["refusing_domain"] == "c.example"
    assert result.manifest["losses"] == [{"domain": "c.example", "rows": 4, "other_domains": 4}]


def test_with_promote_an_allowed_copy_is_kept(kit):
    """With `promote`, the refused page alone is out."""
    kit.judge = rk.Judge({"www.c.example": "tdmrep"})
    kit.options = replace(kit.options, cluster="promote")
    result = kit.release(_family_of_five())
    assert rk.urls(result) == ["https://www.a.example/", "https://www.f.example/"]
    assert result.manifest["losses"] == []


@pytest.mark.parametrize("reason", ["stale", "held", "no-permission"])
def test_being_held_back_is_no_refusal(kit, reason):
    """A page that is stale, held or merely without permission is out alone; its copies stay."""
    kit.judge = rk.Judge({"www.a.example": reason})
    result = kit.release(_family_of_five())
    assert rk.decisions(result)["https://www.a.example/"]["reason"] == reason
    assert rk.urls(result) == ["https://www.b.example/", "https://www.f.example/"]


def test_only_members_alike_to_the_refused_page_itself_fall(kit):
    """Two leaves of a star that are not alike: one refuses, the centre falls, the other leaf stays."""
    words = rk.words(1, 400)
    a, b, c = (" ".join(words[i * 15 : i * 15 + 150]) for i in range(3))
    pages = [Page("https://www.a.example/", a), Page("https://www.b.example/", b), Page("https://www.c.example/", c)]
    kit.judge = rk.Judge({"www.a.example": "robots"})
    result = kit.release(pages)
    decided = rk.decisions(result)
    assert {row["cluster_size"] for row in decided.values()} == {3}
    assert decided["https://www.b.example/"]["reason"] == "cluster-refused"
    assert rk.urls(result) == ["https://www.c.example/"]


def test_a_refused_linked_copy_of_the_same_body_takes_its_original_along(kit):
    """A linked copy has no text; where its body was its original's, its refusal counts like any exact copy's."""
    a = Page("https://www.a.example/", rk.text(1))
    same = Page("https://www.b.example/", None, outcome="near-copy", near_original=a.url, body=a.text)
    kit.judge = rk.Judge({"www.b.example": "tdmrep"})
    assert rk.urls(kit.release([a, same])) == []
    other = replace(same, body="another body")
    assert rk.urls(kit.release([a, other])) == [a.url]


def test_a_mirrors_refusal_is_warned_about(kit):
    """More than a hundred rows of other domains lost to one refusing domain: the card says so, loudly."""
    pages = [Page(f"https://www.site{i}.example/", rk.near(i, 1)) for i in range(101)]
    pages += [Page(f"https://mirror.example/{i}", rk.near(i, 2)) for i in range(101)]
    kit.judge = rk.Judge({"mirror.example": "tdmrep"})
    result = kit.release([*pages, Page("https://www.own.example/", rk.text(999))])
    assert result.manifest["losses"] == [{"domain": "mirror.example", "rows": 101, "other_domains": 101}]
    assert "**Some refusals took more than 100 rows of other domains along.**" in (result.folder / "README.md").read_text()


@pytest.mark.parametrize("kind", ["domain", "subdomain", "url_id", "id"])
def test_a_takedown_promotes_a_copy_that_is_still_allowed(kit, kind):
    """The kept copy's owner asks: the next release has a copy of another owner, and lists the tombstone (scenario 7)."""
    pages = [Page("https://www.a.example/", rk.near(1, 123456)), Page("https://www.b.example/", rk.near(1, 1))]
    first = kit.release(pages)
    assert rk.urls(first) == [pages[0].url]
    value = {"domain": "a.example", "subdomain": "www.a.example", "url_id": pages[0].row()["url_id"], "id": pages[0].row()["id"]}[
        kind
    ]
    kit.inputs = {"tombstones": _tombstone(kind.removeprefix("sub"), value)}
    second = kit.release(pages)
    assert rk.urls(second) == [pages[1].url]
    assert rk.decisions(second)[pages[0].url]["reason"] == "taken-down"
    assert pq.read_table(second.folder / "TOMBSTONES.parquet").to_pylist() == kit.inputs["tombstones"].to_pylist()


def test_a_tombstone_by_id_blocks_later_versions_of_its_url(kit):
    """The page changed since: its new version has another id, and stays out."""
    old, new = Page("https://www.a.example/", rk.text(1), day=1), Page("https://www.a.example/", rk.text(2), day=2)
    kit.inputs = {"tombstones": _tombstone("id", old.row()["id"])}
    assert rk.urls(kit.release([old, new])) == []


def test_a_domain_tombstone_spares_names_that_only_end_alike(kit):
    """`a.example` covers its hosts, not `nota.example`; an unknown kind stops the release."""
    kit.inputs = {"tombstones": _tombstone("domain", "a.example")}
    assert rk.urls(kit.release([Page("https://x.a.example/", rk.text(1)), Page("https://nota.example/", rk.text(2))])) == [
        "https://nota.example/"
    ]
    kit.inputs = {"tombstones": _tombstone("host", "a.example")}
    with pytest.raises(StoreError, match="unknown kind"):
        kit.release([Page("https://x.a.example/", rk.text(1))])


@pytest.mark.parametrize(("gone", "kept"), [("drop", "b"), ("keep", "a")])
def test_pages_that_are_gone_follow_the_setting(kit, gone, kept):
    """Gone by now: dropped, and a living copy elected in its place; or kept."""
    pages = [Page("https://www.a.example/", rk.near(1, 123456)), Page("https://www.b.example/", rk.near(1, 1))]
    kit.inputs = {
        "frontier": pa.Table.from_pylist([{"url": pages[0].url, "gone": True, "visited_at": _day(20)}], schema=FRONTIER)
    }
    kit.options = replace(kit.options, gone=gone)
    assert rk.urls(kit.release(pages)) == [f"https://www.{kept}.example/"]


def test_a_later_304_makes_a_page_the_newest(kit):
    """The latest visit counts for `newest`, also when it brought nothing new."""
    pages = [Page("https://www.a.example/", rk.near(1, 1), day=1), Page("https://www.b.example/", rk.near(1, 2), day=5)]
    kit.options = replace(kit.options, keep="newest")
    assert rk.urls(kit.release(pages)) == [pages[1].url]
    kit.inputs = {
        "frontier": pa.Table.from_pylist([{"url": pages[0].url, "gone": False, "visited_at": _day(20)}], schema=FRONTIER)
    }
    assert rk.urls(kit.release(pages)) == [pages[0].url]


def test_what_the_newest_response_says_governs(kit):
    """The same body fetched again with a refusal in its headers: out, though the first capture said nothing."""
    pages = [Page("https://www.a.example/", rk.text(1), day=1), Page("https://www.a.example/", rk.text(1), day=2, use="no")]
    result = kit.release(pages)
    assert rk.urls(result) == []
    assert kit.judge.asked == [pages[0].url]


def test_a_judge_that_answers_nonsense_stops(kit):
    """An unknown verdict or a missing row is our fault, never a yes."""

    class Strange(rk.Judge):
        def judge(self, urls, use, evidence, fetched_at):
            return super().judge(urls, pa.array(["perhaps"] * len(urls)), evidence, fetched_at)

    class Short(rk.Judge):
        def judge(self, urls, use, evidence, fetched_at):
            return super().judge(urls, use, evidence, fetched_at).slice(1)

    for judge in (Strange(), Short()):
        kit.judge = judge
        with pytest.raises(CorpusError, match="consent judge"):
            kit.release([Page("https://www.a.example/", rk.text(1))])
