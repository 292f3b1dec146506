"""What only the SQLite store promises: its errors, its readers, its size, its caches."""

from __future__ import annotations

import sqlite3
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from corpus.crawl.ports import Ack, HostRow, Judged, Settled
from corpus.crawl.seen import RecentSeen, SeenFilter, claim_of, keys_of
from corpus.errors import NewerSchema, StoreError, UsageError
from corpus.model import CaptureRef, Kind, Sighting, UrlState, url_id
from corpus.store.frontier_reader import FrontierReader
from corpus.store.frontier_rows import uid_of
from corpus.store.frontier_schema import from_tail, to_tail
from corpus.store.frontier_sqlite import SqliteFrontier

HOST = "www.site.test"


def _judged(n: int, host: str = HOST, **more: object) -> Judged:
    url = f"https://{host}/a/rather/usual/path-{n}.html"
    return Judged(Sighting(url, url, 1, via=f"https://{host}/", **more), host, ".".join(host.split(".")[-2:]))  # type: ignore[arg-type]


def _owned(path: Path, **more: object) -> SqliteFrontier:
    store = SqliteFrontier(path, **more)  # type: ignore[arg-type]
    store.claim("test")
    return store


def test_a_full_disk_is_a_store_error_and_leaves_nothing_of_the_batch(tmp_path: Path) -> None:
    """The message names the file and what to do; the same owner goes on once there is space."""
    store = _owned(tmp_path / "p.sqlite")
    store.commit([Ack(own=(_judged(0),))])
    (pages,) = store._con.execute("PRAGMA page_count").fetchone()
    store._con.execute(f"PRAGMA max_page_count = {pages + 2}")
    many = Ack(own=tuple(_judged(n, f"h{n % 50}.test") for n in range(5000)))
    with pytest.raises(StoreError, match="disk is full") as caught:
        store.commit([many])
    assert "free some space" in caught.value.hint
    assert store.tally().by_state == {("queued", ""): 1}
    assert store.lookup(_judged(1, "h1.test").sighting.url) is None
    store._con.execute("PRAGMA max_page_count = 1000000")
    assert len(store.commit([many])) == 50
    assert store.tally().by_state == {("queued", ""): 5001}
    store.close(clean=True)


def test_files_that_cannot_be_used_say_why(tmp_path: Path) -> None:
    """A newer schema, a file that is no database, a missing file and a write without a claim each have their own error."""
    path = tmp_path / "p.sqlite"
    store = SqliteFrontier(path)
    with pytest.raises(StoreError, match="claim"):
        store.commit([Ack(own=(_judged(0),))])
    store.close(clean=False)
    with sqlite3.connect(path) as con:
        con.execute("UPDATE meta SET value = 999 WHERE name = 'schema'")
    con.close()
    for opening in (SqliteFrontier, FrontierReader):
        with pytest.raises(NewerSchema):
            opening(path)
    junk = tmp_path / "junk.sqlite"
    junk.write_bytes(b"this is no database at all" * 100)
    with pytest.raises(StoreError, match="not a frontier") as caught:
        SqliteFrontier(junk)
    assert str(junk) in str(caught.value)
    with pytest.raises(StoreError, match="cannot be opened"):
        FrontierReader(tmp_path / "missing.sqlite")


def test_a_reader_sees_one_moment_beside_a_running_writer(tmp_path: Path) -> None:
    """A scan that is under way is not changed by commits, does not stop them, and the next one sees them."""
    path = tmp_path / "p.sqlite"
    store = _owned(path)
    store.commit([Ack(own=tuple(_judged(n) for n in range(300)))])
    with FrontierReader(path) as reader:
        scan = reader.rows(("url", "state"), batch=100)
        first = next(scan)
        store.commit([Ack(own=tuple(_judged(n) for n in range(300, 600)))])
        assert len(first) + sum(map(len, scan)) == 300
        assert sum(map(len, reader.rows(("url",)))) == 600
        assert reader.tally() == store.tally()
        assert reader.meta()["owner"] == "test"
    store.close(clean=True)
    path.chmod(0o444)
    with FrontierReader(path) as reader:
        assert reader.hosts() == [HostRow(HOST, "site.test", queued=600, front=36)]


def test_the_views_spell_everything_out(tmp_path: Path) -> None:
    """Whole URLs, names instead of codes, hex digests; unknown columns are a usage error that names them."""
    path = tmp_path / "p.sqlite"
    store = _owned(path)
    odd = Judged(Sighting("http://www.site.test:8080/x", "http://www.site.test:8080/x", 3, Kind.SITEMAP), HOST, "site.test")
    plain = Judged(Sighting("http://www.site.test/y", "http://www.site.test/y", 2), HOST, "site.test", "too-deep")
    seen = _judged(1)
    store.commit([Ack(own=(odd, plain, seen))])
    capture = CaptureRef("warc/s.warc.gz", 7, 9)
    news = Settled(seen.sighting.url, UrlState.FETCHED, http_status=200, capture=capture, content_sha256="ab" * 32)
    store.commit([Ack(settled=(news,))])
    with FrontierReader(path) as reader:
        names = (
            "url",
            "url_id",
            "host",
            "domain",
            "kind",
            "state",
            "reason",
            "via",
            "warc_file",
            "warc_offset",
            "content_sha256",
        )
        rows = {row[0]: row[1:] for batch in reader.rows(names) for row in batch}
        with pytest.raises(UsageError, match="colour"):
            next(reader.rows(("url", "colour")))
        assert set(reader.columns("hosts")) >= {"host", "pace", "next_contact", "robots_digest"}
        assert [row for batch in reader.rows(("host", "queued"), view="hosts") for row in batch] == [(HOST, 1)]
        found = reader.lookup(seen.sighting.url)
        assert found == store.lookup(seen.sighting.url)
    site = (HOST, "site.test")
    assert rows == {
        odd.sighting.url: (url_id(odd.sighting.url), *site, "sitemap", "queued", "", "", None, None, ""),
        plain.sighting.url: (url_id(plain.sighting.url), *site, "page", "excluded", "too-deep", "", None, None, ""),
        seen.sighting.url: (
            url_id(seen.sighting.url),
            *site,
            "page",
            "fetched",
            "",
            f"https://{HOST}/",
            "warc/s.warc.gz",
            7,
            "ab" * 32,
        ),
    }
    store.close(clean=True)


def test_a_url_costs_little_space(tmp_path: Path) -> None:
    """Under 200 bytes per known URL of a usual length, its place in the line included."""
    path = tmp_path / "p.sqlite"
    store = _owned(path)
    for start in range(0, 20_000, 2_000):
        store.commit([Ack(own=tuple(_judged(n, f"www.h{n % 40}.test") for n in range(start, start + 2_000)))])
    store.close(clean=True)
    assert path.stat().st_size / 20_000 < 200


@pytest.mark.parametrize(
    "url",
    [
        "https://a.test/",
        "https://a.test/x?y",
        "http://a.test/x",
        "https://a.test:8443/x",
        "http://a.test",
        "https://a.testing/x",
        "https://a.test:80/h/x",
    ],
)
def test_tails_are_reversible(url: str) -> None:
    """The short form of a URL gives the URL back."""
    assert from_tail(to_tail(url, "a.test"), "a.test") == url


def test_the_recent_set_forgets_and_never_invents() -> None:
    """Only claims that were remembered are repeats; a better claim is none; the oldest go when it is full."""
    seen = RecentSeen(1 << 14)
    uids = [uid_of(str(n)) for n in range(5000)]
    keys = keys_of(uids)
    far, near = claim_of(Sighting("u", "u", 5)), claim_of(Sighting("u", "u", 2))
    shut = claim_of(Sighting("u", "u", 2), admitted=False)
    ones = np.ones(len(keys), np.uint32)
    assert not seen.repeats(keys, ones * np.uint32(far)).any()
    seen.remember(keys[:500], ones[:500] * np.uint32(far))
    assert seen.repeats(keys[:500], ones[:500] * np.uint32(far)).mean() > 0.9
    assert not seen.repeats(keys[:500], ones[:500] * np.uint32(near)).any()
    assert not seen.repeats(keys[500:], ones[500:] * np.uint32(far)).any()
    seen.remember(keys[:100], ones[:100] * np.uint32(near))
    assert seen.repeats(keys[:100], ones[:100] * np.uint32(far)).mean() > 0.9, "a worse claim after a better one is a repeat"
    assert seen.repeats(keys[:100], ones[:100] * np.uint32(shut)).mean() > 0.9
    for at in range(0, 5000, 500):
        seen.remember(keys[at : at + 500], ones[at : at + 500] * np.uint32(far))
    assert not seen.repeats(keys[:1000], ones[:1000] * np.uint32(far)).all(), "16 kB do not hold 5,000 URLs"
    assert seen.repeats(keys[-500:], ones[-500:] * np.uint32(far)).mean() > 0.9
    assert seen.nbytes == 1 << 14


def test_the_filter_never_forgets_and_errs_within_its_bound() -> None:
    """No URL that was added is called new; of others at most `p` are called known, over all layers."""
    seen = SeenFilter(p=0.01, first=1000)
    uids = [uid_of(f"in{n}") for n in range(8000)]
    seen.update(uids)
    assert len(seen) == 8000
    assert all(uid in seen for uid in uids)
    wrong = sum(uid_of(f"out{n}") in seen for n in range(20_000)) / 20_000
    assert wrong <= 0.013
    assert seen.error_bound <= 0.01


def test_memory_of_a_batch_is_bounded_where_a_whole_host_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`exclude_queued`, `wake` and `readmit` go through a host in steps and still change all of it in one transaction."""
    monkeypatch.setattr("corpus.store.frontier_sqlite._AT_ONCE", 7)
    store = _owned(tmp_path / "p.sqlite")
    store.commit([Ack(own=tuple(_judged(n) for n in range(50)))])
    assert store.exclude_queued(HOST, "host-budget") == 50
    assert store.tally().by_state == {("excluded", "host-budget"): 50}
    assert store.readmit(HOST, "host-budget") == 50
    assert len(list(islice(store.heads(HOST, 100), 100))) == 50
    store.close(clean=True)
