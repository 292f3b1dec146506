"""Lines that many pages of a host have: the same for any sharding and budget, and exactly what a plain count says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.errors import StoreError
from corpus.filter.host_lines import LEAST_BYTES, HostLinesSummary, write_host_lines
from corpus.filter.reduce import cluster_snapshot
from corpus.filter.settings import DedupSettings
from tests import make_families as mf
from tests import release_kit as rk
from tests.make_families import Page

NAV = "Start | About this site | Contact us"
FOOT = "All rights reserved by somebody."


def measure(
    folder: Path, parts: list[list[Page]], *, pages: int = 3, memory: int = 10**8, threads: int = 1
) -> tuple[dict[str, dict], bytes, HostLinesSummary]:
    """Rows by URL, the file's bytes, the summary."""
    families = [mf.write_family(folder, f"s{n:02d}", part, row_group=5) for n, part in enumerate(parts)]
    documents = [family.documents for family in families]
    for name in ("c", "l"):
        (folder / name).mkdir(parents=True)
    clusters, out = folder / "clusters.parquet", folder / "lines.parquet"
    cluster_snapshot(
        documents,
        [family.signatures for family in families],
        DedupSettings(),
        clusters,
        scratch=folder / "c",
        shingles=mf.shingles,
    )
    summary = write_host_lines(documents, clusters, pages, out, scratch=folder / "l", memory=memory, threads=threads)
    names = {page.row()["id"]: page.url for part in parts for page in part}
    return {names[row["id"]]: row for row in pq.read_table(out).to_pylist()}, out.read_bytes(), summary


def page(host: str, number: int, *lines: str, seed: int | None = None) -> Page:
    """A page of its own text between lines given."""
    own = rk.text(number if seed is None else seed, 60)
    return Page(f"https://{host}/{number}", "\n".join([*lines, own, FOOT]))


PAGES = [page(f"h{i % 3}.example", i, NAV, *(["", f"Section {i % 4} of the handbook"] if i % 2 else [])) for i in range(60)]


def test_sharding_order_budget_and_threads_change_no_byte(tmp_path: Path) -> None:
    """One file or seven, in any order, one thread or three, in memory or spilled: the same bytes."""
    one = measure(tmp_path / "a", [PAGES])
    seven = measure(tmp_path / "b", [PAGES[i::7][::-1] for i in range(7)], threads=3)
    tight = measure(tmp_path / "c", [PAGES[45:], PAGES[:45]], memory=1, threads=16)
    assert one[1] == seven[1] == tight[1]
    assert one[2] == HostLinesSummary(60, one[2].shared, 60, one[2].chars)
    assert one[2].shared > 6


def test_lines_of_enough_pages_are_spans_and_shares(tmp_path: Path) -> None:
    """Navigation and footer, here in one run with nothing between, there in two; shares are of lines and of characters."""
    rows, _, _ = measure(tmp_path, [[page("a.example", n, NAV, "", "A second line of navigation") for n in range(3)]])
    row, text = rows["https://a.example/0"], PAGES[0].text
    assert text is not None
    text = page("a.example", 0, NAV, "", "A second line of navigation").text or ""
    assert [text[a:b] for a, b in zip(row["starts"], row["ends"], strict=True)] == [f"{NAV}\n\nA second line of navigation", FOOT]
    assert row["host_lines"] == 3
    assert row["host_line_ratio"] == 3 / 4
    assert row["host_line_char_ratio"] == (len(NAV) + len("A second line of navigation") + len(FOOT)) / len(text)


def test_what_is_no_host_line(tmp_path: Path) -> None:
    """Too few pages, another host, near copies of one page, a line too short to mean anything."""
    few = [page("few.example", n) for n in range(2)]
    hosts = [page(f"h{n}.example", n, NAV) for n in range(5)]
    copies = [Page(f"https://copies.example/{n}", f"{rk.near(7, n)}\n{FOOT}") for n in range(6)]
    short = [page("short.example", n, "x" * (LEAST_BYTES - 1)) for n in range(4)]
    rows, _, _ = measure(tmp_path, [[*few, *hosts, *copies, *short]])
    found = {url: row["host_lines"] for url, row in rows.items() if row["host_lines"]}
    assert found == dict.fromkeys((p.url for p in short), 1)  # their footer, but not the short line
    assert [row["starts"] for url, row in rows.items() if url not in found] == [[]] * len([*few, *hosts, *copies])


def test_case_and_white_space_do_not_matter_but_digits_do(tmp_path: Path) -> None:
    """The line "Page  Navigation" is "page navigation"; "10 comments here" is not "11 comments here"."""
    spelled = ["Show the   page navigation", "SHOW THE PAGE NAVIGATION", "\u00a0show the page navigation "]
    rows, _, _ = measure(
        tmp_path, [[page("a.example", n, line, f"{n} comments were left here") for n, line in enumerate(spelled)]]
    )
    assert {row["host_lines"] for row in rows.values()} == {2}


def test_more_pages_later_are_a_rebuild(tmp_path: Path) -> None:
    """A third page makes the line of the first two a host line, whatever was measured before."""
    pages = [page("a.example", n, NAV) for n in range(3)]
    before, _, _ = measure(tmp_path / "two", [pages[:2]])
    after, grown, _ = measure(tmp_path / "grown", [pages[:2], pages[2:]])
    _, rebuilt, _ = measure(tmp_path / "new", [pages])
    assert [row["host_lines"] for row in before.values()] == [0, 0]
    assert {row["host_lines"] for row in after.values()} == {2}
    assert grown == rebuilt


def test_a_text_without_lines_has_no_share(tmp_path: Path) -> None:
    """Nothing of nothing is NULL, never NaN; an empty snapshot is a file of no rows."""
    rows, _, _ = measure(tmp_path / "a", [[Page("https://a.example/", "")]])
    assert [(row["host_lines"], row["host_line_ratio"], row["host_line_char_ratio"]) for row in rows.values()] == [
        (0, None, None)
    ]
    assert measure(tmp_path / "b", [[]])[0] == {}


def test_clusters_of_other_documents_are_refused(tmp_path: Path) -> None:
    """A document that no cluster holds cannot be counted."""
    family = mf.write_family(tmp_path, "s00", PAGES[:3])
    measure(tmp_path / "other", [PAGES[3:6]])
    (tmp_path / "l").mkdir()
    with pytest.raises(StoreError, match="in no cluster"):
        write_host_lines(
            [family.documents], tmp_path / "other" / "clusters.parquet", 2, tmp_path / "x", scratch=tmp_path / "l", memory=10**8
        )


_LINE = st.sampled_from(
    [NAV, NAV.upper(), FOOT, "short", "", "  ", "eine Zeile über Mühlen", "第一行文字在这里", "tail \u2028 of a line here"]
)


@given(st.lists(st.tuples(st.sampled_from(["a.example", "b.example"]), st.lists(_LINE, max_size=5)), max_size=9))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_is_what_a_plain_count_says(tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, list[str]]]) -> None:
    """Line by line: as many pages of the host as asked for have it (each page is a cluster of its own here)."""
    pages = [Page(f"https://{host}/{n}", "\n".join([*lines, rk.text(n, 30)])) for n, (host, lines) in enumerate(texts)]
    rows, _, _ = measure(tmp_path_factory.mktemp("count"), [pages], pages=2)

    def folded(line: str) -> str:
        line = " ".join(line.lower().split())
        return line if len(line.encode()) >= LEAST_BYTES else ""

    counted = Counter(
        (p.url.split("/")[2], line) for p in pages for line in {folded(x) for x in (p.text or "").split("\n")} if line
    )
    for p in pages:
        wanted = [x for x in (p.text or "").split("\n") if counted[p.url.split("/")[2], folded(x)] >= 2]
        cut = [(p.text or "")[a:b] for a, b in zip(rows[p.url]["starts"], rows[p.url]["ends"], strict=True)]
        assert rows[p.url]["host_lines"] == len(wanted)
        assert [x for run in cut for x in run.split("\n") if x.strip()] == wanted
