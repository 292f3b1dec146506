"""`verify` on damaged folders: every damaged byte is found, and a repair mends what is safe and says what it did."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus.app.process import process
from corpus.app.verify import Verdict, verify
from corpus.engine.local import LocalPool
from corpus.store.locks import stage_lock
from tests.demo_corpus import DemoCorpus, corpus_cli, project_of

NOT_COVERED = {"runs", ".local", "corpus.toml", "corpus.json"}
"""Logs for people, what this machine can rebuild, and what says of itself only which version wrote it."""


def quiet(event: str, **facts: object) -> None:
    """A reporter that keeps it to itself."""
    del event, facts


def look(folder: Path, *, repair: bool = False) -> Verdict:
    return verify(project_of(folder), quiet, repair=repair)


def kinds(verdict: Verdict) -> set[str]:
    return {fault.kind.value for fault in verdict.faults}


def one(folder: Path, pattern: str) -> Path:
    """The one file of a pattern."""
    (found,) = folder.glob(pattern)
    return found


def flip(path: Path, at: int, bit: int = 1) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= bit
    path.write_bytes(data)


@pytest.fixture
def folder(demo_corpus: DemoCorpus, tmp_path: Path) -> Path:
    return demo_corpus.copy(tmp_path / "corpus")


def test_a_whole_folder_has_no_fault(demo_corpus: DemoCorpus) -> None:
    """The demo is clean, and verify has looked at everything there is."""
    verdict = look(demo_corpus.folder)
    assert verdict.faults == []
    assert verdict.ok
    for what in (
        "segments",
        "warc_records",
        "documents",
        "references",
        "release_rows",
        "consent_files",
        "captures_acknowledged",
        "urls",
    ):
        assert verdict.checked[what] > 0, what


def test_every_damaged_byte_is_found(folder: Path) -> None:
    """Law: flip any bit of any covered file, and verify finds a fault; put it back, and it finds none."""
    rng = random.Random(20261130)
    files = [
        path for path in sorted(folder.rglob("*")) if path.is_file() and path.relative_to(folder).parts[0] not in NOT_COVERED
    ]
    assert len(files) > 20
    for path in files:
        whole = path.read_bytes()
        at, bit = rng.randrange(len(whole)), 1 << rng.randrange(8)
        flip(path, at, bit)
        assert not look(folder).ok, f"{path.relative_to(folder)} at {at} ^ {bit}"
        path.write_bytes(whole)
    assert look(folder).faults == []


def test_a_damaged_warc_record_is_named_with_its_offset(folder: Path) -> None:
    """The fault says which file, and where in it reading fails."""
    warc = one(folder, "warc/crawl_id=*/*.warc.gz")
    flip(warc, 40_000)
    faults = look(folder).faults
    assert any(f.kind == "digest" and f.file == warc.relative_to(folder).as_posix() for f in faults)
    (inside,) = [f for f in faults if f.kind == "warc-record"]
    assert inside.offset is not None
    assert 30_000 < inside.offset <= 40_000


def test_a_missing_segment_is_found_once(folder: Path) -> None:
    """A segment that is gone is one fault, not one for each of its pages."""
    one(folder, "warc/crawl_id=*/*.warc.gz").unlink()
    verdict = look(folder)
    assert "missing-file" in kinds(verdict)
    assert len(verdict.faults) < 5


def test_an_acknowledged_capture_that_is_another_page_is_found(folder: Path) -> None:
    """A frontier row that points at another page's record, or between records, is a fault."""
    for change in ("offset = offset + 1", "offset = (SELECT min(offset) FROM visit WHERE offset IS NOT NULL)"):
        for path in sorted((folder / ".local/frontier").glob("*.sqlite")):
            with sqlite3.connect(path) as con:
                many = con.execute("SELECT count(*) FROM visit WHERE offset IS NOT NULL AND http_status = 200").fetchone()[0]
                if many > 2:
                    con.execute(
                        f"UPDATE visit SET {change} WHERE uid = (SELECT max(uid) FROM visit WHERE offset IS NOT NULL AND http_status = 200)"
                    )
                    break
            con.close()
        assert "reference" in kinds(look(folder))


def test_a_wrong_tally_is_found(folder: Path) -> None:
    """The counts that the funnel starts from are checked against the rows."""
    path = next(p for p in sorted((folder / ".local/frontier").glob("*.sqlite")) if _urls(p))
    with sqlite3.connect(path) as con:
        con.execute("UPDATE tally SET n = n + 1 WHERE page = 1 AND state = 'fetched'")
    con.close()
    assert "frontier" in kinds(look(folder))


def _urls(path: Path) -> int:
    with sqlite3.connect(path) as con:
        count: int = con.execute("SELECT count(*) FROM visit WHERE offset IS NOT NULL").fetchone()[0]
    con.close()
    return count


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _manifest_rows(path: Path) -> None:
    facts = json.loads(path.read_text("utf-8"))
    facts["rows"] += 1
    path.write_text(json.dumps(facts, sort_keys=True, indent=1) + "\n", "utf-8")


def _funnel(path: Path) -> None:
    facts = json.loads(path.read_text("utf-8"))
    facts["funnel"][1]["out"] -= 1
    path.write_text(json.dumps(facts, sort_keys=True, indent=1) + "\n", "utf-8")


def _same_url_twice(path: Path) -> None:
    table = pq.read_table(path)
    pq.write_table(pa.concat_tables([table.slice(0, 1), table.slice(0, len(table) - 1)]), path)


LASTING: dict[str, tuple[str, Callable[[Path], object], set[str]]] = {
    "a truncated shard": ("releases/v1/data/*/train-*.parquet", _truncate, {"digest", "release"}),
    "a manifest that says one row more": ("releases/v1/manifest.json", _manifest_rows, {"digest", "release"}),
    "a funnel that loses a page": ("releases/v1/manifest.json", _funnel, {"funnel"}),
    "a shard with a row twice": ("releases/v1/data/*/train-*.parquet", _same_url_twice, {"digest", "release"}),
    "a card that somebody edited": ("releases/v1/README.md", lambda p: p.write_text("nice"), {"digest", "release"}),
    "a release without its record": ("commits/release/v1.json", Path.unlink, {"unrecorded"}),
    "a consent body that is gone": ("consent/files/b40881*", Path.unlink, {"consent-log"}),
    "a consent object that is gone": ("consent/log/*01.jsonl", Path.unlink, {"consent-log"}),
    "a snapshot that is gone": ("snapshots/*/snapshot.json", Path.unlink, {"snapshot", "release"}),
}


@pytest.mark.parametrize("what", sorted(LASTING))
def test_what_no_repair_may_touch(folder: Path, what: str) -> None:
    """Damage to what cannot be made again from here is found, and a repair leaves it alone and says that faults remain."""
    pattern, damage, expected = LASTING[what]
    path = next(iter(sorted(folder.glob(pattern))), None) or next(iter(sorted(folder.glob("consent/files/*"))))
    damage(path)
    after = path.read_bytes() if path.exists() else None
    verdict = look(folder, repair=True)
    assert expected <= kinds(verdict)
    assert not verdict.ok
    assert (path.read_bytes() if path.exists() else None) == after


def test_rows_that_are_not_unique_are_found_behind_right_digests(folder: Path) -> None:
    """A release whose files all match their digests may still break its promise: one row per url and id."""
    shard = one(folder, "releases/v1/data/*/train-*.parquet")
    old = _sha(shard)
    _same_url_twice(shard)
    for path in (folder / "releases/v1/manifest.json", folder / "commits/release/v1.json"):
        manifest = folder / "releases/v1/manifest.json"
        before = _sha(manifest)
        text = path.read_text("utf-8").replace(old, _sha(shard))
        if path == manifest:
            size = json.loads(text)["shards"][0]["bytes"]
            text = text.replace(f'"bytes": {size}', f'"bytes": {shard.stat().st_size}')
            path.write_text(text, "utf-8")
            record = folder / "commits/release/v1.json"
            record.write_text(record.read_text("utf-8").replace(before, _sha(manifest)), "utf-8")
        else:
            path.write_text(text, "utf-8")
    assert kinds(look(folder)) == {"not-unique"}


def _sha(path: Path) -> str:
    from corpus.store.commits import file_sha256

    return file_sha256(path)


def test_repair_seals_what_was_left_open(folder: Path) -> None:
    """A torn tail goes, every acknowledged byte stays, and the segment is recorded as it was."""
    warc = one(folder, "warc/crawl_id=*/*.warc.gz")
    whole = warc.read_bytes()
    record = one(folder, "commits/segment/pages.*.json")
    recorded = record.read_bytes()
    warc.with_name(f"{warc.name}.open").write_bytes(whole + b"torn")
    warc.unlink()
    record.unlink()
    assert "open-segment" in kinds(look(folder))
    verdict = look(folder, repair=True)
    assert verdict.ok
    assert any("cut by 4 bytes" in fault.message for fault in verdict.faults)
    assert (warc.read_bytes(), record.read_bytes()) == (whole, recorded)
    assert look(folder).faults == []


def test_repair_records_a_sealed_segment_again(folder: Path) -> None:
    """A seal whose record a crash took, or whose record is damaged, gets the same record again."""
    record = one(folder, "commits/segment/policy.*.json")
    recorded = record.read_bytes()
    for damage in (Path.unlink, lambda path: path.write_bytes(b"{")):
        damage(record)
        assert not look(folder).ok
        assert look(folder, repair=True).ok
        assert record.read_bytes() == recorded
        assert look(folder).faults == []


@pytest.mark.parametrize("family", ["documents", "signatures"])
def test_repair_lets_process_measure_again(folder: Path, family: str) -> None:
    """A damaged or deleted family file costs its segment's record; `process` then makes every file as it was."""
    files = {
        path: path.read_bytes()
        for name in ("documents", "signals", "spans", "signatures")
        for path in (folder / name).rglob("*.parquet")
    }
    path = one(folder, f"{family}/crawl_id=*/*.parquet")
    path.unlink() if family == "documents" else flip(path, 1000)
    assert not look(folder).ok
    verdict = look(folder, repair=True)
    assert verdict.ok
    assert all(fault.repaired for fault in verdict.faults)
    process(project_of(folder), LocalPool(1), quiet)
    assert {path: path.read_bytes() for path in files} == files
    assert look(folder).faults == []


def test_repair_lets_dedup_cluster_again(folder: Path) -> None:
    """Damaged clusters go, with their record; dedup makes the same ones."""
    clusters = one(folder, "snapshots/*/clusters.parquet")
    whole = clusters.read_bytes()
    flip(clusters, 200)
    assert "digest" in kinds(look(folder))
    assert look(folder, repair=True).ok
    assert corpus_cli("dedup", "-c", folder / "corpus.toml").code == 0
    assert clusters.read_bytes() == whole
    assert look(folder).faults == []


def test_repair_removes_what_crashed_writers_left(folder: Path) -> None:
    """Temporary files and folders go, orphaned family files too; nothing else does."""
    before = {path for path in folder.rglob("*") if path.is_file()}
    left = [
        folder / "commits/map/.part-1-abc", folder / "releases/.v2.part/data/x.parquet", folder / ".local/spill/tmp1/y",
        folder / "documents/crawl_id=2020-01/s00-000009-000009.parquet",
    ]  # fmt: skip
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"left")
    verdict = look(folder)
    assert kinds(verdict) == {"temporary-file", "unrecorded"}
    assert len(verdict.faults) == 4
    assert look(folder, repair=True).ok
    assert {path for path in folder.rglob("*") if path.is_file() and path.parent.name != "locks"} == {
        p for p in before if p.parent.name != "locks"
    }


def test_records_that_contradict_each_other_are_found(folder: Path) -> None:
    """A record under another name, of another order, or with another count is a fault even where its JSON is whole."""
    record = one(folder, "commits/segment/pages.*.json")
    whole = record.read_text("ascii")
    for old, new in (
        ('"pages":61', '"pages":60'),
        ('"origin":"crawl"', '"origin":"found"'),
        ('"kind":"pages"', '"kind":"policy"'),
    ):
        record.write_text(whole.replace(old, new), "ascii")
        assert not look(folder).ok, new
    record.write_text(whole, "ascii")
    shutil.copy(record, record.with_name("pages.2026-11.other.json"))
    assert "commit-record" in kinds(look(folder))


def test_a_running_stage_is_let_be(folder: Path) -> None:
    """While a stage is running, what may be half done is no fault, and a repair is refused with the holder's pid."""
    warc = one(folder, "warc/crawl_id=*/*.warc.gz")
    shutil.copy(warc, warc.with_name("s00-000099-000000.warc.gz.open"))
    (folder / "commits/map/.part-1-abc").write_bytes(b"")
    project = project_of(folder)
    with stage_lock(project.layout.locks, "crawl"):
        verdict = verify(project, quiet)
        assert verdict.faults == []
        assert "crawl by process" in verdict.running
        refused = corpus_cli("verify", "--repair", "-c", folder / "corpus.toml")
    assert refused.code == 1
    assert "crawl is locked by process" in refused.err
    assert kinds(look(folder)) == {"open-segment", "temporary-file"}


def test_the_command_says_what_it_found(folder: Path) -> None:
    """Exit 1 and CONTRACT's document while faults remain, exit 0 once they are repaired."""
    one(folder, "signals/crawl_id=*/*.parquet").unlink()
    said = corpus_cli("verify", "--json", "-c", folder / "corpus.toml")
    assert said.code == 1
    assert set(said.json) == {"ok", "checked", "faults"}
    assert {frozenset(fault) for fault in said.json["faults"]} == {frozenset({"kind", "file", "offset", "message", "repaired"})}
    repaired = corpus_cli("verify", "--repair", "--json", "-c", folder / "corpus.toml")
    assert repaired.code == 0
    assert repaired.json["ok"] is True
    assert all(fault["repaired"] for fault in repaired.json["faults"])
    shown = corpus_cli("verify", "-c", folder / "corpus.toml")
    assert shown.code == 0
    assert "no faults" in shown.out
