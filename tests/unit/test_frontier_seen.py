"""The filter of seen URLs in front of a partition file: exact mode loses nothing, bloom mode counts what it loses."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from corpus.crawl.ports import Ack, Judged
from corpus.crawl.seen import SeenFilter
from corpus.model import Kind, Sighting
from corpus.store.frontier_filter import OwnerFilter
from corpus.store.frontier_rows import uid_of
from corpus.store.frontier_sqlite import SqliteFrontier

HOST = "a.test"


def _open(path: Path, mode: str = "exact", p: float = 0.001) -> tuple[SqliteFrontier, OwnerFilter]:
    seen = OwnerFilter(path, mode, p)
    store = SqliteFrontier(path, seen=seen)
    store.claim("test")
    return store, seen


def _links(first: int, last: int, depth: int = 5, excluded: str = "", **more: object) -> list[Ack]:
    urls = [f"http://{HOST}/{n}" for n in range(first, last)]
    return [Ack(own=tuple(Judged(Sighting(url, url, depth, **more), HOST, HOST, excluded) for url in urls))]  # type: ignore[arg-type]


def _queries(store: SqliteFrontier, acks: list[Ack]) -> int:
    """How many look-ups of URLs a commit made."""
    asked: list[str] = []
    store._con.set_trace_callback(asked.append)
    store.commit(acks)
    store._con.set_trace_callback(None)
    return sum("FROM url WHERE host" in sql for sql in asked)


def test_new_urls_need_no_look_up_and_known_ones_are_found(tmp_path: Path) -> None:
    """Exact: a thousand new URLs ask the table hardly anything; the same again are all found; the tally is exact."""
    store, _ = _open(tmp_path / "p.sqlite")
    store.commit(_links(0, 10))
    assert _queries(store, _links(1_000, 2_000)) <= 1
    assert _queries(store, _links(1_000, 2_000)) >= 4
    assert store.tally().by_state == {("queued", ""): 1_010}
    store.close(clean=True)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("mode", ["exact", "bloom"])
def test_the_filter_survives_an_orderly_end_and_is_made_again_after_any_other(tmp_path: Path, clean: bool, mode: str) -> None:
    """Known before is known after; what an orderly end left is used once, and never for a table that has changed since."""
    path = tmp_path / "p.sqlite"
    store, seen = _open(path, mode)
    store.commit(_links(0, 500) + _links(500, 1_700, excluded="too-deep"))
    store.close(clean=clean)
    assert path.with_suffix(".seen").exists() == clean
    again, seen = _open(path, mode)
    assert not path.with_suffix(".seen").exists()
    assert all(uid_of(f"http://{HOST}/{n}") in seen._seen for n in range(500))
    assert uid_of(f"http://{HOST}/1600") in seen._seen or mode == "bloom"
    again.commit(_links(0, 1_700, excluded="too-deep") + _links(400, 600))
    assert sum(again.tally().by_state.values()) == 1_700
    again.close(clean=True)
    between = SqliteFrontier(path)  # as the supervisor does: without a filter
    between.claim("other")
    between.commit(_links(5_000, 5_001))
    between.close(clean=True)
    last, seen = _open(path, mode)
    assert uid_of(f"http://{HOST}/5000") in seen._seen
    last.commit(_links(5_000, 5_001))
    last.close(clean=False)


def test_bloom_mode_never_asks_the_table_for_deep_links_and_estimates_what_it_lost(tmp_path: Path) -> None:
    """With a filter that errs often: deep links are dropped unseen or taken as new; the estimate fits what is missing."""
    store, seen = _open(tmp_path / "p.sqlite", "bloom", 0.09)
    for first in range(0, 40_000, 500):
        store.commit(_links(first, first + 500))
    known = store.tally().by_state["queued", ""]
    lost = 40_000 - known
    assert lost > 50
    assert lost == seen.losses.dropped
    assert 0.5 * lost < seen.losses.lost < 2.0 * lost
    store.commit(_links(0, 40_000))
    assert store.tally().by_state["queued", ""] == known
    store.close(clean=True)
    _, again = _open(tmp_path / "p.sqlite", "bloom", 0.09)
    assert again.losses == seen.losses


def test_bloom_mode_confirms_the_top_two_queues_and_what_was_excluded(tmp_path: Path) -> None:
    """Seeds, what they link to, sitemaps and excluded URLs are looked up: none is lost, whatever the filter says."""
    store, seen = _open(tmp_path / "p.sqlite", "bloom", 0.09)
    for first in range(0, 20_000, 500):
        store.commit(_links(first, first + 500))
    before = store.tally().by_state["queued", ""]
    store.commit(_links(50_000, 52_000, depth=1))
    store.commit(_links(60_000, 60_500, depth=9, kind=Kind.SITEMAP))
    assert store.tally().by_state["queued", ""] == before + 2_500
    assert seen.losses.wrong > 20
    store.commit(_links(70_000, 70_800, depth=30, excluded="too-deep"))
    store.commit(_links(70_000, 70_800, depth=4))  # a better sighting
    assert store.tally().by_state.get(("excluded", "too-deep"), 0) < 100
    store.close(clean=True)


def test_layers_keep_the_bound_and_the_present_error_is_honest() -> None:
    """Measured over four layers: at most `p`, and about what `error_now` says."""
    seen = SeenFilter(0.02, 1_000, growth=2)
    seen.update(uid_of(f"x{n}") for n in range(12_000))
    wrong = sum(uid_of(f"y{n}") in seen for n in range(30_000)) / 30_000
    assert wrong <= seen.error_bound * 1.2 <= 0.024
    assert 0.6 * wrong <= seen.error_now <= 1.6 * wrong


def test_a_damaged_filter_is_no_filter(tmp_path: Path) -> None:
    """Cut short, of another label, or nonsense: made again from the table."""
    seen = SeenFilter(0.01, 100)
    seen.update(uid_of(str(n)) for n in range(500))
    seen.save(tmp_path / "f", "a")
    whole = SeenFilter.load(tmp_path / "f", "a")
    assert whole is not None
    assert len(whole) == 500
    assert all(uid_of(str(n)) in whole for n in range(500))
    assert SeenFilter.load(tmp_path / "f", "b") is None
    (tmp_path / "f").write_bytes((tmp_path / "f").read_bytes()[:-1])
    assert SeenFilter.load(tmp_path / "f", "a") is None
    (tmp_path / "f").write_bytes(b"\0\1[]")
    assert SeenFilter.load(tmp_path / "f", "a") is None
    assert SeenFilter.load(tmp_path / "none", "a") is None


def test_a_filter_that_finds_no_room_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is closed in order all the same, and nothing half-written is left; the next owner reads the table."""
    store, _ = _open(tmp_path / "p00.sqlite")
    store.commit(_links(0, 20))

    def full(path: Path, data: bytes) -> int:
        with path.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        store.close(clean=True)
    assert [path.name for path in tmp_path.iterdir() if ".seen" in path.name] == []
    store, _ = _open(tmp_path / "p00.sqlite")
    assert store.was_clean()
    assert _queries(store, _links(0, 20)) > 0, "they are known"
    store.close(clean=False)
