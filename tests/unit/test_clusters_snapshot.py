"""Clusters of a snapshot: one document per URL, linked copies counted, the same bytes for any sharding and budget."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from corpus.errors import StoreError
from corpus.filter.reduce import ClusterSummary, cluster_snapshot
from corpus.filter.settings import DedupSettings
from tests import make_families as mf
from tests.make_families import Page


def _text(seed: int, change: str = "") -> str:
    words = [f"w{seed}x{i}" for i in range(150)]
    if change:
        words[70] = change
    return " ".join(words)


def _run(folder: Path, parts: list[list[Page]], exact: bool = True, **settings) -> tuple[list[dict], bytes, ClusterSummary]:
    families = [mf.write_family(folder, f"s{n:02d}", pages, row_group=7) for n, pages in enumerate(parts)]
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    out = folder / "clusters.parquet"
    summary = cluster_snapshot(
        [f.documents for f in families],
        [f.signatures for f in families],
        DedupSettings(**settings),
        out,
        scratch=scratch,
        shingles=mf.shingles if exact else None,
        pairs_path=folder / "pairs.parquet",
    )
    return pq.read_table(out).to_pylist(), out.read_bytes() + (folder / "pairs.parquet").read_bytes(), summary


def _by_url(pages: list[Page], rows: list[dict]) -> dict[str, dict]:
    names = {page.row()["id"]: page.url for page in pages}
    return {names[row["id"]]: row for row in rows}


PAGES = [Page(f"https://h{i}.example.com/", _text(i % 20, f"c{i}" if i % 3 else "")) for i in range(90)]


@pytest.mark.parametrize("exact", [True, False])
def test_sharding_order_and_budget_change_no_byte(tmp_path, exact):
    """One file or seven, in any order, in memory or spilled: clusters.parquet and pairs.parquet are the same bytes."""
    one = _run(tmp_path / "a", [PAGES], exact)
    seven = _run(tmp_path / "b", [PAGES[i::7][::-1] for i in range(7)], exact)
    tight = _run(tmp_path / "c", [PAGES[45:], PAGES[:45]], exact, memory="8kB")
    assert one[1] == seven[1] == tight[1]
    assert one[2].clusters == 20


def test_incremental_is_a_rebuild_and_a_delete_is_fewer_rows(tmp_path):
    """Three copies added to a snapshot with their original all name its cluster (scenario 3); without them it is alone."""
    a = Page("https://a.example.com/", _text(1))
    new = [Page(f"https://b{i}.example.com/", _text(1)) for i in range(3)]
    rows = _by_url([a, *new], _run(tmp_path / "x", [[a], new])[0])
    assert {row["cluster_size"] for row in rows.values()} == {4}
    assert len({row["cluster_id"] for row in rows.values()}) == 1
    assert _run(tmp_path / "y", [[a]])[0][0]["cluster_size"] == 1


def test_short_exact_copies_are_duplicates(tmp_path):
    """Four copies of a three-word page are one cluster of four, though they have no shingle (scenario 4)."""
    pages = [Page(f"https://h{i}.example.com/", "just three words") for i in range(4)]
    rows = _run(tmp_path, [pages])[0]
    assert [row["cluster_size"] for row in rows] == [4, 4, 4, 4]
    assert sum(row["center"] for row in rows) == 1


def test_the_latest_visit_stands_for_a_url(tmp_path):
    """A URL fetched thrice is one document, its latest version; the row of that version's first capture is meant."""
    url = "https://a.example.com/"
    pages = [
        Page(url, _text(1), day=1),
        Page(url, _text(2), day=2),
        Page(url, _text(2), day=3),
        Page("https://b.example.com/", _text(1)),
    ]
    rows, _, summary = _run(tmp_path, [pages])
    assert summary.documents == 2
    assert {row["id"] for row in rows} == {pages[1].row()["id"], pages[3].row()["id"]}
    assert {row["cluster_size"] for row in rows} == {1}


def test_a_visit_linked_to_the_urls_own_version_brings_nothing(tmp_path):
    """A recrawl that the gate linked to the URL's own earlier page leaves that page standing for it."""
    url = "https://a.example.com/"
    pages = [Page(url, _text(1), day=1), Page(url, None, day=2, outcome="near-copy", near_original=url)]
    rows = _run(tmp_path, [pages])[0]
    assert [row["id"] for row in rows] == [pages[0].row()["id"]]


def test_a_page_that_lost_its_text_is_in_no_cluster(tmp_path):
    """The latest visit decides, also when it has no text."""
    url = "https://a.example.com/"
    rows = _run(tmp_path, [[Page(url, _text(1), day=1), Page(url, None, day=2, outcome="no-text")]])[0]
    assert rows == []


def test_linked_copies_count_and_bear_their_originals_cluster(tmp_path):
    """Copies linked by the gate, through each other too, add to the size and have no similarity unless the body is the same."""
    a, twin = Page("https://a.example.com/", _text(1)), Page("https://b.example.com/", _text(1, "x"))
    near = Page("https://c.example.com/", None, outcome="near-copy", near_original=a.url)
    far = Page("https://d.example.com/", None, outcome="near-copy", near_original=near.url)
    same = Page("https://e.example.com/", None, outcome="near-copy", near_original=a.url, body=a.text)
    lost = [
        Page(f"https://f{i}.example.com/", None, outcome="near-copy", near_original="https://gone.example.com/") for i in range(2)
    ]
    pages = [a, twin, near, far, same, *lost]
    rows = _by_url(pages, _run(tmp_path, [pages])[0])
    assert len(rows) == 7
    joined = [rows[page.url] for page in (a, twin, near, far, same)]
    assert {row["cluster_size"] for row in joined} == {5}
    assert {row["cluster_id"] for row in joined} == {min(a.row()["id"], twin.row()["id"])}
    assert rows[near.url]["similarity"] is None
    assert rows[same.url]["similarity"] == rows[a.url]["similarity"]
    assert {rows[page.url]["cluster_size"] for page in lost} == {2}
    assert sum(rows[page.url]["center"] for page in lost) == 1


def test_one_crawl_can_be_clustered_by_itself(tmp_path):
    """With scope crawl, equal texts of two crawls stay apart; with scope run or all they join."""
    pages = [Page(f"https://h{i}.example.com/", _text(1), extra={"crawl_id": f"2026-{10 + i}"}) for i in range(2)]
    assert [row["cluster_size"] for row in _run(tmp_path / "a", [pages], scope="crawl")[0]] == [1, 1]
    for scope in ("all", "run"):
        assert [row["cluster_size"] for row in _run(tmp_path / scope, [pages], scope=scope)[0]] == [2, 2]


def test_pairs_between_members_are_kept_for_the_release(tmp_path):
    """Verified pairs of one cluster that do not touch its centre are written, with their similarity."""
    pages = [Page(f"https://h{i}.example.com/", _text(1, f"c{i}")) for i in range(5)]
    _run(tmp_path, [pages])
    pairs = pq.read_table(tmp_path / "pairs.parquet").to_pylist()
    assert len(pairs) == 6
    assert all(pair["a"] < pair["b"] and pair["similarity"] >= 0.75 for pair in pairs)


def test_an_empty_snapshot_gives_an_empty_file(tmp_path):
    """No segments, and a segment without rows: a file with its schema."""
    assert _run(tmp_path / "a", [])[0] == []
    assert _run(tmp_path / "b", [[]])[0] == []


def test_families_that_do_not_belong_together_are_refused(tmp_path):
    """Signatures of other rows, too few of them, or of another scheme stop the stage and name the file."""
    one = mf.write_family(tmp_path / "a", "s", PAGES[:4])
    two = mf.write_family(tmp_path / "b", "s", PAGES[4:8])
    less = mf.write_family(tmp_path / "c", "s", PAGES[:3])
    other = pq.read_table(two.signatures)
    pq.write_table(other.set_column(1, "scheme", [["a64-1"] * 4]), two.signatures)
    (tmp_path / "scratch").mkdir()

    def run(documents, signatures):
        cluster_snapshot(documents, signatures, DedupSettings(), tmp_path / "out.parquet", scratch=tmp_path / "scratch")

    for documents, signatures in ([one.documents], [two.signatures]), ([one.documents], [less.signatures]), ([one.documents], []):
        with pytest.raises(StoreError):
            run(documents, signatures)
    with pytest.raises(StoreError, match="scheme"):
        run([one.documents, two.documents], [one.signatures, two.signatures])


def test_identities_that_are_none_are_refused(tmp_path):
    """An id that is not hex stops the stage instead of merging documents."""
    family = mf.write_family(tmp_path, "s", [Page("https://a.example.com/", _text(1), extra={"id": "z" * 32})])
    (tmp_path / "scratch").mkdir()
    with pytest.raises(StoreError, match="hex"):
        cluster_snapshot([family.documents], [family.signatures], DedupSettings(), tmp_path / "o", scratch=tmp_path / "scratch")


def test_a_mapped_signature_table_is_read_like_one_in_memory(tmp_path):
    """With a budget below the table's size the signatures lie in a file, and the answer is the same."""
    assert _run(tmp_path / "a", [PAGES], False)[0] == _run(tmp_path / "b", [PAGES], False, memory="20kB")[0]
    assert (tmp_path / "b" / "scratch" / "signatures.u32").stat().st_size == len(np.unique([p.text for p in PAGES])) * 448
