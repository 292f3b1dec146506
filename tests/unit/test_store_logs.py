"""Commit records, the consent log and the control log: appended once, read back exactly, damage named."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.crawl.ports import AuthorityRow, ConsentSink, ResponseRefusal
from corpus.errors import NonDeterministicStage, StoreError
from corpus.model import Kind, url_id
from corpus.store.commits import CommitRecord, Commits, file_sha256, stage_key
from corpus.store.consent_ledger import ConsentLedger
from corpus.store.consent_log import AuthorityRead, ConsentLog, Refusal, parse_entry
from corpus.store.control_log import ControlLog, Tombstones
from corpus.store.local_objects import LocalObjects
from corpus.testing.disk import MemoryObjects

ROBOTS = b"User-agent: *\nDisallow: /private\n"
DIGEST = hashlib.sha256(ROBOTS).hexdigest()


def _read(authority: str, at: float, outcome: str = "ok", digest: str = DIGEST) -> AuthorityRead:
    return AuthorityRead(authority, "robots", f"{authority}/robots.txt", 200, outcome, digest, at, headers=(("ETag", '"x"'),))


# commits


def test_a_commit_is_made_once(tmp_path: Path) -> None:
    """The same record twice is one; another one for the key stops the run; keys and records list in order."""
    commits = Commits(LocalObjects(tmp_path))
    record = CommitRecord("map", "k2", {"seg": "ab"}, {"documents/x.parquet": "cd"}, {"documents": 3}, {"note": "é\ud800"})
    assert commits.put(record)
    assert not commits.put(
        CommitRecord("map", "k2", {"seg": "ab"}, {"documents/x.parquet": "cd"}, {"documents": 3}, {"note": "é\ud800"})
    )
    with pytest.raises(NonDeterministicStage):
        commits.put(CommitRecord("map", "k2", rows={"documents": 4}))
    commits.put(CommitRecord("map", "k1"))
    assert commits.get("map", "k2") == record
    assert commits.get("map", "absent") is None
    assert commits.keys("map") == ("k1", "k2")
    assert [found.key for found in commits.list("map")] == ["k1", "k2"]
    assert list(commits.list("reduce")) == []
    commits.drop("map", "k1")
    assert commits.keys("map") == ("k2",)


def test_a_commit_knows_its_files(tmp_path: Path) -> None:
    """verify names what is missing and what has changed."""
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "b").write_bytes(b"2")
    record = CommitRecord("s", "k", outputs={"a": file_sha256(tmp_path / "a"), "b": file_sha256(tmp_path / "b"), "c": "00"})
    assert Commits(MemoryObjects()).verify(record, tmp_path) == ("c: missing",)
    (tmp_path / "b").write_bytes(b"3")
    assert len(Commits(MemoryObjects()).verify(record, tmp_path)) == 2


def test_keys_depend_on_every_part_and_on_nothing_else() -> None:
    """Order of parts and of mappings does not matter, each value does; what has no one spelling is refused."""
    key = stage_key(segment="ab", version=3, options={"x": 1, "y": 0.75})
    assert key == stage_key(options={"y": 0.75, "x": 1}, version=3, segment="ab")
    assert len(key) == 32
    assert (
        len(
            {
                key,
                stage_key(segment="ab", version=4, options={"x": 1, "y": 0.75}),
                stage_key(segment="ab", version="3", options={}),
            }
        )
        == 3
    )
    for bad in (float("nan"), b"bytes", {1: 2}, object()):
        with pytest.raises(StoreError):
            stage_key(part=bad)


def test_a_damaged_commit_is_named(tmp_path: Path) -> None:
    """A record that is not one says where it lies."""
    commits = Commits(LocalObjects(tmp_path))
    commits.put(CommitRecord("s", "k"))
    for data in (b"", b"{", b"[]", b'{"stage":"s"}', b'{"x":1}'):
        (tmp_path / "commits/s/k.json").write_bytes(data)
        with pytest.raises(StoreError, match=r"commits/s/k\.json"):
            commits.get("s", "k")


# consent log


def test_what_was_said_is_read_back(tmp_path: Path) -> None:
    """Entries of both kinds, typed or as dicts, come back as written; the body is kept once under its digest."""
    log = ConsentLog(LocalObjects(tmp_path), "w00-000001")
    refusal = Refusal("http://a.test/x", 5.0, "meta-robots", "noai \ud800\0", "meta", 7, 200)
    first = log.append([_read("http://a.test:80", 1.0), refusal], {DIGEST: ROBOTS})
    log.append([_read("http://b.test:80", 2.0).to_json()], {DIGEST: ROBOTS})
    assert first == "consent/log/w00-000001-00000001.jsonl"
    entries = [parse_entry(value) for value in log.read()]
    assert entries == [_read("http://a.test:80", 1.0), refusal, _read("http://b.test:80", 2.0)]
    assert log.body(DIGEST) == ROBOTS
    assert LocalObjects(tmp_path).list("consent/files/") == [f"consent/files/{DIGEST}"]
    assert log.append([]) == ""


def test_a_watermark_is_a_point_in_time() -> None:
    """What is appended later is not behind an earlier watermark, whoever reads; equal logs have equal digests."""
    objects = MemoryObjects()
    log = ConsentLog(objects, "w1")
    log.append([_read("http://a.test:80", 1.0)])
    mark = log.watermark()
    ConsentLog(objects, "w0").append([_read("http://a.test:80", 9.0, "denied", "")])
    reader = ConsentLog(objects, "reader")
    assert [value["read_at"] for value in reader.read(mark)] == [1.0]
    assert reader.latest_authorities(mark)["http://a.test:80", "robots"].outcome == "ok"
    assert reader.latest_authorities()["http://a.test:80", "robots"].outcome == "denied"
    assert reader.watermark() == log.watermark() != mark


def test_the_latest_reading_wins_and_ties_break_by_name() -> None:
    """Order of appending does not matter; on equal times the later object name, then the later line."""
    objects = MemoryObjects()
    ConsentLog(objects, "b").append([_read("http://a.test:80", 5.0, digest="b1"), _read("http://a.test:80", 5.0, digest="b2")])
    ConsentLog(objects, "a").append([_read("http://a.test:80", 5.0, digest="a"), _read("http://a.test:80", 4.0, digest="old")])
    assert ConsentLog(objects, "r").latest_authorities()["http://a.test:80", "robots"].digest == "b2"


def test_a_writer_reborn_never_overwrites() -> None:
    """A second life of a writer goes on behind the first, even when both live at once."""
    objects = MemoryObjects()
    one, two = ConsentLog(objects, "w"), ConsentLog(objects, "w")
    for log in (one, two, one, two):
        log.append([_read("http://a.test:80", 1.0)])
    assert len(objects.list("consent/log/")) == 4


def test_damage_in_the_consent_log_is_an_error(tmp_path: Path) -> None:
    """A changed object, a lying body, an entry of unknown kind: each is refused, none is skipped."""
    log = ConsentLog(LocalObjects(tmp_path), "w")
    name = log.append([_read("http://a.test:80", 1.0)], {DIGEST: ROBOTS})
    mark = log.watermark()
    (tmp_path / name).write_bytes(b"{}\n")
    with pytest.raises(StoreError, match="changed"):
        list(ConsentLog(LocalObjects(tmp_path), "r").read(mark))
    (tmp_path / "consent/files" / DIGEST).write_bytes(b"Allow: /")
    with pytest.raises(StoreError):
        log.body(DIGEST)
    with pytest.raises(StoreError):
        log.append([], {"00" * 32: b"not this"})
    for bad in ({"kind": "gossip"}, {"kind": "refusal", "url": "x"}, {**_read("a", 1.0).to_json(), "outcome": "maybe"}):
        with pytest.raises(StoreError):
            log.append([bad])


def test_the_crawl_writes_its_own_rows() -> None:
    """The crawl's ledger keeps every field of its rows, and hands bodies back."""
    log = ConsentLog(MemoryObjects(), "w")
    ledger: ConsentSink = ConsentLedger(log)
    row = AuthorityRow("https://a.test:443", Kind.AI_TXT, "ok", 200, DIGEST, 7.0, 99.0, "detail", "https://a.test/ai.txt", True)
    ledger.append([row], [ResponseRefusal("https://a.test/x", 8.0, "tdmrep", "1", "header", None, 200)], {DIGEST: ROBOTS})
    assert ledger.body(DIGEST) == ROBOTS
    read, refusal = (parse_entry(value) for value in log.read())
    assert read == AuthorityRead("https://a.test:443", "ai-txt", "https://a.test/ai.txt", 200, "ok", DIGEST, 7.0, "detail", True)
    assert refusal == Refusal("https://a.test/x", 8.0, "tdmrep", "1", "header", None, 200)


# control log


def test_orders_are_numbered_without_gaps() -> None:
    """Each order gets the next number, also when several give orders at once; readers go on where they stopped."""
    objects = MemoryObjects()
    logs = [ControlLog(objects) for _ in range(4)]
    lock_free = [threading.Thread(target=lambda log=log: [log.append("pause", at=1.0) for _ in range(10)]) for log in logs]
    for thread in lock_free:
        thread.start()
    for thread in lock_free:
        thread.join()
    log = ControlLog(objects)
    assert log.version() == 40
    assert [entry.n for entry in log.read()] == list(range(1, 41))
    assert [entry.n for entry in log.read(after=38)] == [39, 40]
    assert [entry.n for entry in log.read(after=3, upto=5)] == [4, 5]
    assert json.loads(objects.get("control/00000001.json"))["action"] == "pause"


def test_takedowns_cover_what_they_name() -> None:
    """A domain covers its hosts, a URL its id, an id also its URL; a takedown outlives an unblock, a block does not."""
    log = ControlLog(MemoryObjects())
    log.append("takedown", at=1.0, kind="domain", value="Example.ORG", reason="asked")
    log.append("takedown", at=2.0, kind="url", value="http://b.test/page")
    log.append("takedown", at=3.0, kind="id", value="cd" * 16, url_id=url_id("http://c.test/v"))
    log.append("block", at=4.0, kind="domain", value="d.test")
    log.append("block", at=4.0, kind="url", value="http://e.test/")
    stones = log.tombstones()
    for found in (
        stones.blocks(url="https://www.example.org:8443/x"), stones.blocks(domain="example.org"), stones.blocks(url="http://b.test/page"),
        stones.blocks(url_id=url_id("http://b.test/page")), stones.blocks(id="cd" * 16), stones.blocks(url="http://c.test/v"),
        stones.blocks(url="http://u:p@sub.d.test/"), stones.blocks(url="http://e.test/"),
    ):  # fmt: skip
        assert found is not None
    for free in (
        stones.blocks(url="http://badexample.org/"),
        stones.blocks(url="http://b.test/"),
        stones.blocks(id="00" * 16),
        stones.blocks(domain="org"),
    ):
        assert free is None
    asked = stones.blocks(url="http://www.example.org/")
    assert asked is not None
    assert asked.reason == "asked"
    for value, kind in (("d.test", "domain"), ("http://e.test/", "url"), ("example.org", "domain")):
        log.append("unblock", at=5.0, kind=kind, value=value)
    assert stones.apply(log.read(after=stones.version))
    assert stones.version == log.version() == 8
    assert stones.blocks(domain="d.test") is None
    assert stones.blocks(url="http://e.test/") is None
    assert stones.blocks(domain="example.org") is not None
    assert log.tombstones(upto=4).blocks(domain="d.test") is not None
    assert b"b.test" not in b"".join(str(entry).encode() for entry in log.read() if entry.action == "takedown")


def test_an_order_must_make_sense() -> None:
    """Unknown actions, missing targets and ids that are none are refused before anything is written."""
    log = ControlLog(MemoryObjects())
    orders: list[dict[str, Any]] = [
        {"action": "dance"},
        {"action": "takedown"},
        {"action": "block", "kind": "planet", "value": "x"},
        {"action": "takedown", "kind": "id", "value": "x"},
    ]
    for order in orders:
        with pytest.raises(StoreError):
            log.append(at=1.0, **order)
    assert log.version() == 0


@given(
    st.lists(
        st.tuples(st.sampled_from(["takedown", "block", "unblock"]), st.sampled_from(["a.test", "x.a.test", "b.test"])),
        max_size=12,
    ),
    st.integers(0, 12),
)
def test_tombstones_are_the_same_however_they_are_fed(orders: list[tuple[str, str]], split: int) -> None:
    """Applying the log at once or in two helpings gives the same answers."""
    log = ControlLog(MemoryObjects())
    for action, domain in orders:
        log.append(action, at=0.0, kind="domain", value=domain)
    whole, parts = log.tombstones(), Tombstones()
    parts.apply(log.read(upto=split))
    parts.apply(log.read(after=split))
    for domain in ("a.test", "x.a.test", "y.x.a.test", "b.test", "c.test"):
        assert whole.blocks(domain=domain) == parts.blocks(domain=domain)
        if any(order == ("takedown", domain) for order in orders):
            assert whole.blocks(domain=domain)
