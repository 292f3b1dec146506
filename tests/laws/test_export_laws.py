"""Laws of a release: the funnel adds up, a URL stands once, and nothing but the snapshot decides a byte."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.export.ports import FRONTIER, TOMBSTONES, ReleaseOptions
from tests import release_kit as rk
from tests.make_families import Page

OUTCOMES = ("ok", "ok", "ok", "ok", "no-text", "stuck", "near-copy")


@st.composite
def captures(draw) -> Page:
    """A capture of one of a few URLs with one of a few texts."""
    host = draw(st.sampled_from(["a.x.example", "b.x.example", "c.y.example"]))
    outcome = draw(st.sampled_from(OUTCOMES))
    seed = draw(st.integers(0, 3))
    body = rk.near(seed, draw(st.integers(0, 2))) if draw(st.booleans()) else rk.text(seed, draw(st.sampled_from([3, 120])))
    return Page(
        f"https://{host}/{draw(st.integers(0, 4))}",
        body if outcome == "ok" else None,
        day=draw(st.integers(0, 5)),
        outcome=outcome,
        near_original="https://a.x.example/0" if outcome == "near-copy" else None,
        use=draw(st.sampled_from(["unknown", "unknown", "yes", "no"])),
        extra={"language": draw(st.sampled_from(["en", "en", "de"]))},
    )


def _once(pages: list[Page]) -> list[Page]:
    """Captures of one id at one time are one capture."""
    return list({(page.row()["id"], page.day): page for page in pages}.values())


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(captures(), max_size=25).map(_once),
    st.sampled_from(["longest", "newest", "oldest", "best"]),
    st.sampled_from(["drop", "promote"]),
    st.sampled_from([(), ("en",)]),
    st.sampled_from(["b.x.example", "nothing"]),
)
def test_every_url_has_one_decision_and_the_funnel_adds_up(tmp_path_factory, pages, keep, cluster, languages, refused):
    """Law C, and: one row per documents row, one per URL in the funnel, at most one release row per URL, id and cluster."""
    kit = rk.Kit(tmp_path_factory.mktemp("law"), rk.Judge({refused: "robots-peer"}), rk.Policy(least=5), spread=lambda at: at % 3)
    kit.options = replace(kit.options, keep=keep, cluster=cluster, languages=languages)
    result = kit.release(pages)
    assert result.decisions is not None
    decided = rk.decisions(result)
    steps = result.decisions.funnel
    assert steps[0].n_in == len({page.url for page in pages}) == len(decided)
    assert all(step.adds_up() for step in steps)
    assert all(one.n_out == two.n_in for one, two in itertools.pairwise(steps))
    assert result.decisions.older == len(pages) - len(decided)
    table = rk.rows(result)
    assert sorted(table["url"].to_pylist()) == sorted(url for url, row in decided.items() if row["reason"] == "")
    assert len(set(table["id"].to_pylist())) == len(set(table["minhash_cluster_id"].to_pylist())) == len(table) == steps[-1].n_out
    assert not any(refused in url for url in table["url"].to_pylist())
    assert all(row["language"] in languages for row in table.to_pylist() if languages)
    assert "no" not in table["consent"].combine_chunks().field("use").to_pylist()


PAGES = [
    Page(
        f"https://h{i % 17}.d{i % 5}.example/{i}",
        rk.near(i % 60, i % 7) if i % 3 else rk.text(i % 60),
        day=i % 9,
        extra={"crawl_id": f"2026-{10 + i % 2}"},
    )
    for i in range(400)
]


def _files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """A release of one snapshot, and the kit that made it."""
    kit = rk.Kit(
        tmp_path_factory.mktemp("reference"),
        rk.Judge({"h3.": "tdmrep"}),
        tokens=rk.Lengths(),
        spread=lambda at: at % 4,
        row_group=23,
    )
    kit.options = replace(kit.options, validation=0.2, shard_bytes=6_000)
    kit.inputs = {
        "frontier": pa.Table.from_pylist([{"url": PAGES[5].url, "gone": True, "visited_at": rk.CHECKED}], schema=FRONTIER),
        "tombstones": pa.Table.from_pylist(
            [{"kind": "domain", "value": "h1.d1.example", "reason": "asked", "requested_at": None}], schema=TOMBSTONES
        ),
    }
    inputs = kit.snapshot(PAGES)
    return kit, inputs, kit.build(inputs)


@pytest.mark.parametrize(
    "change",
    [{}, {"threads": 4}, {"batch": 7}, {"memory": 2 * 2**20}, {"threads": 3, "batch": 50, "memory": 3 * 2**20}],
    ids=["again", "threads", "batch", "memory", "all"],
)
def test_a_second_build_is_the_same_byte_for_byte(reference, change):
    """Law A: threads, batches and memory leave no trace, in no file, and not in the decisions."""
    kit, inputs, first = reference
    second = replace(kit, options=replace(kit.options, **change)).build(inputs)
    assert len(_files(first.folder)) > 10
    assert _files(second.folder) == _files(first.folder)
    assert second.decisions.path.read_bytes() == first.decisions.path.read_bytes()


def test_segments_may_come_in_any_order(reference):
    """The snapshot is a set of segments: the order in which they are named decides nothing."""
    kit, inputs, first = reference
    assert _files(kit.build(replace(inputs, segments=inputs.segments[::-1])).folder) == _files(first.folder)


@pytest.mark.parametrize("spread", [lambda at: 0, lambda at: (at * 7) % 16], ids=["one", "sixteen"])
def test_shards_do_not_depend_on_how_pages_were_spread_over_segments(reference, spread):
    """One worker or sixteen: every shard has the same bytes (witness columns equal here)."""
    kit, _, first = reference
    other = replace(kit, spread=spread).release(PAGES)
    assert [shard["sha256"] for shard in other.manifest["shards"]] == [shard["sha256"] for shard in first.manifest["shards"]]


def test_the_reference_release_is_worth_comparing(reference):
    """It has several shards, both splits, both crawls, and lost rows at every step that can lose some here."""
    _, _, first = reference
    shards = first.manifest["shards"]
    assert {shard["split"] for shard in shards} == {"train", "validation"}
    assert {shard["crawl_id"] for shard in shards} == {"2026-10", "2026-11"}
    assert len(shards) > 4
    dropped = {reason for step in first.manifest["funnel"] for reason in step["dropped"]}
    assert dropped >= {"tdmrep", "cluster-refused", "taken-down", "gone", "exact-duplicate", "near-duplicate"}


def test_urls_keep_their_split_in_every_release(reference):
    """The split is a function of the URL: fewer pages, same splits."""
    kit, _, first = reference
    fewer = kit.release(PAGES[: len(PAGES) // 2])

    def splits(result) -> dict[str, str]:
        return {url: shard["split"] for shard in result.manifest["shards"] for url in rk.shard_urls(result, shard)}

    one, two = splits(first), splits(fewer)
    both = one.keys() & two.keys()
    assert len(both) > 20
    assert all(one[url] == two[url] for url in both)


def test_options_that_only_cost_are_not_part_of_the_release():
    """Memory, threads and batch are the last fields, and stand in no manifest; neither do the words for the card, which are in it."""
    from corpus.export.manifest import _CONTENT

    assert set(_CONTENT) | {"memory", "threads", "batch", "previous", "previous_shards", "words"} == set(
        ReleaseOptions.__dataclass_fields__
    )
