"""The pieces of a takedown by themselves: tombstones of any length, what orders cover, shards without rows, orders as they are given."""

from __future__ import annotations

import io
import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.app.takedown_targets import Targets, targets_of
from corpus.errors import StoreError, UsageError
from corpus.export.shard import Written, file_sha256
from corpus.export.supersede import rewrite_shard
from corpus.model import url_id
from corpus.store.control_log import ControlEntry
from corpus.store.warc_members import Member, read_members, replaced
from corpus.store.warc_source import open_source
from corpus.store.warc_stream import RawRecord, read_records
from corpus.store.warc_tombstone import is_tombstone, tombstone
from tests.demo_corpus import DemoCorpus, corpus_cli, project_of

ID, DATE = "<urn:uuid:12345678-1234-8234-8234-123456789abc>", "2026-11-30T21:29:33.794808Z"
EDGES = [65_535, 65_553, 65_558, 131_070, 131_111, 1_000, 999, 10_240, 9_999, 3_000_000]


@given(st.one_of(st.integers(260, 400), st.integers(400, 200_000), st.sampled_from(EDGES), st.integers(65_500, 65_900)))
def test_a_tombstone_of_any_length_is_one_whole_record(length: int) -> None:
    """Exactly as long as asked, one gzip member, one record that every reader accepts, with the old id and the order's number."""
    import warcio.archiveiterator

    member = tombstone(length, ID, DATE, 7)
    assert len(member) == length
    stream = zlib.decompressobj(31)
    stream.decompress(member)
    assert stream.eof
    assert not stream.unused_data
    seen = 0
    for record in warcio.archiveiterator.ArchiveIterator(io.BytesIO(member), check_digests="raise"):
        seen += 1
        assert (record.rec_type, record.rec_headers.get_header("WARC-Record-ID")) == ("metadata", ID)
        assert record.content_stream().read().split() == [b"corpus-taken-down:", b"7"]
    assert seen == 1


def test_a_tombstone_that_cannot_be_so_short_says_so() -> None:
    """No member is cut or overwritten: too little room is an error, and hostile ids and dates are not copied."""
    with pytest.raises(StoreError):
        tombstone(60, ID, DATE, 1)
    blank = zlib.decompressobj(31).decompress(tombstone(400, "<urn:x>\r\nEvil: 1", "then\r\n", 1))
    assert b"Evil" not in blank
    assert b"then" not in blank


def test_members_are_those_that_the_reader_sees(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """The quick walk and the careful reader agree about every record; a file with any of them replaced reads on around it."""
    draw = random.Random(7)
    for path in sorted(demo_corpus.folder.glob("warc/**/*.warc.gz")):
        members = [item for item in read_members(path) if isinstance(item, Member)]
        with open_source(path) as source:
            records = [item for item in read_records(source) if isinstance(item, RawRecord)]
        assert [(m.offset, m.length, m.kind, m.target) for m in members] == [
            (r.offset, r.length, r.kind, r.get("WARC-Target-URI")) for r in records
        ]
        gone = {m.offset: m for m in members if m.target and draw.random() < 0.4}
        replaced(path, tmp_path / "new.warc.gz", gone, 3)
        with open_source(tmp_path / "new.warc.gz") as source:
            after = [item for item in read_records(source) if isinstance(item, RawRecord)]
        assert {r.offset for r in after if is_tombstone(r)} == set(gone)
        kept = {r.offset: (r.headers, r.block) for r in records if r.offset not in gone}
        assert kept == {r.offset: (r.headers, r.block) for r in after if r.offset not in gone}


def test_damage_is_a_fault_and_the_walk_goes_on(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """A member that cannot be read is named with its offset, and those behind it are found."""
    path = next(iter(demo_corpus.folder.glob("warc/crawl_id=*/*.warc.gz")))
    members = [item for item in read_members(path) if isinstance(item, Member)]
    data = bytearray(path.read_bytes())
    hit = members[5]
    data[hit.offset + 40 : hit.offset + 60] = bytes(20)
    (tmp_path / "x.warc.gz").write_bytes(data)
    found = list(read_members(tmp_path / "x.warc.gz"))
    assert [item.offset for item in found if not isinstance(item, Member)] == [hit.offset]
    assert {item.offset for item in found if isinstance(item, Member)} == {m.offset for m in members} - {hit.offset}


def _order(n: int, action: str = "takedown", **facts: Any) -> ControlEntry:
    return ControlEntry(n, 1000.0 * n, action, **facts)


def _rows(*rows: tuple[str, str, float]) -> pa.Table:
    """(url, id, fetched_at)"""
    from corpus.url.host import host_of

    return pa.table(
        {
            "id": pa.array([row[1] for row in rows]), "url_id": pa.array([url_id(row[0]) for row in rows]), "host": pa.array([host_of(row[0]) for row in rows]),
            "fetched_at": pa.array([round(row[2] * 1e6) for row in rows], pa.timestamp("us")),
        }
    )  # fmt: skip


def test_what_orders_cover() -> None:
    """A domain with every host below it and no other, a URL, an id with its URL, members; a purge only up to its own time; a
    block covers nothing. Rows of tables and addresses in archives are judged alike."""
    orders = [
        _order(1, kind="domain", value="example.org"), _order(2, kind="url", value=url_id("https://a.test/x")), _order(3, kind="id", value="f" * 32, url_id=url_id("https://a.test/y")),
        _order(4, kind="url", value=url_id("https://a.test/z"), detail={"members": [url_id("http://a.test/z")]}), _order(5, "block", kind="domain", value="b.test"),
        _order(6, "purge", kind="url", value=url_id("https://c.test/1"), detail={"members": [url_id("https://c.test/2")]}),
        _order(7, "purge", kind="domain", value="d.test"),
    ]  # fmt: skip
    targets = targets_of(orders, 7)
    table = [
        ("https://example.org/", True), ("https://www.example.org/a", True), ("https://badexample.org/", False), ("https://example.org.evil.test/", False),
        ("https://a.test/x", True), ("https://a.test/xx", False), ("https://a.test/y", True), ("https://a.test/z", True), ("http://a.test/z", True),
        ("https://b.test/", False), ("https://c.test/1", True), ("https://c.test/2", True), ("https://c.test/3", False), ("https://sub.d.test/", True),
    ]  # fmt: skip
    rows = _rows(*((url, f"{n:032x}", 5.0) for n, (url, _) in enumerate(table)))
    assert targets.rows(rows).tolist() == [hit for _, hit in table]
    assert [targets.covers_found(url, "1970-01-01T00:00:05Z") for url, _ in table] == [hit for _, hit in table]
    late = _rows(*((url, f"{n:032x}", 99_999.0) for n, (url, _) in enumerate(table)))
    final = [hit and "c.test" not in url and "d.test" not in url for url, hit in table]
    assert targets.rows(late).tolist() == final
    assert [targets.covers(url, at=99_999.0) for url, _ in table] == final
    assert targets.rows(_rows(("https://elsewhere.test/", "f" * 32, 1.0))).tolist() == [True]
    assert not Targets(0)


def test_a_shard_without_rows_keeps_the_others(demo_corpus: DemoCorpus, tmp_path: Path) -> None:
    """Without a change the same bytes come out; without some rows the rest is as it was; extra rows stand where they belong."""
    (path,) = demo_corpus.folder.glob("releases/v1/data/*/*.parquet")
    told = next(
        shard for shard in __import__("json").loads((demo_corpus.folder / "releases/v1/manifest.json").read_text())["shards"]
    )
    old, rows = Written(**told), pq.ParquetFile(path).read()
    same = rewrite_shard(path, tmp_path / "same.parquet", old, np.zeros(len(rows), dtype=bool), None)
    assert same.written == old
    assert file_sha256(tmp_path / "same.parquet") == old.sha256
    gone = np.arange(len(rows)) % 3 == 0
    less = rewrite_shard(path, tmp_path / "less.parquet", old, gone, None)
    assert pq.ParquetFile(tmp_path / "less.parquet").read().equals(rows.filter(pa.array(~gone)))
    assert (less.removed, less.written.rows) == (int(gone.sum()), int((~gone).sum()))
    back = rewrite_shard(
        tmp_path / "less.parquet",
        tmp_path / "back.parquet",
        less.written,
        np.zeros(less.written.rows, dtype=bool),
        rows.filter(pa.array(gone)),
    )
    assert pq.ParquetFile(tmp_path / "back.parquet").read().equals(rows)
    assert back.written.text_bytes == old.text_bytes
    none = rewrite_shard(path, tmp_path / "none.parquet", old, np.ones(len(rows), dtype=bool), None)
    assert (none.written.rows, none.written.first_domain) == (0, "")
    assert pq.ParquetFile(tmp_path / "none.parquet").schema_arrow.equals(rows.schema)


@pytest.fixture
def folder(demo_corpus: DemoCorpus, tmp_path: Path) -> Path:
    return demo_corpus.copy(tmp_path / "corpus")


def _add(folder: Path, name: str, *more: str) -> Any:
    said = corpus_cli("takedown", "add", name, "--reason", "r", "--json", "-c", folder / "corpus.toml", *more)
    assert said.code == 0, said.err
    return said.json


def test_orders_are_checked_canonical_and_given_once(demo_corpus: DemoCorpus, folder: Path) -> None:
    """Other spellings of a target are the same order; a second time nothing is written; what is unknown is kept and said so;
    nonsense and names of strangers are refused; the address itself is written nowhere."""
    bakery = demo_corpus.origins["bakery"]
    first = _add(folder, f"{bakery.upper().replace('HTTP', 'http')}/x/../flour.html#part")
    assert first["new"]
    assert first["known"] == 1
    again = _add(folder, f"{bakery}/flour.html")
    assert (again["n"], again["new"]) == (first["n"], False)
    assert not _add(folder, f"{bakery.replace('http', 'https')}/flour.html")["new"]
    assert _add(folder, f"{bakery}/flour.html", "--scope", "cluster")["new"] in (True, False)
    domain = _add(folder, "Never.Seen.Example.ORG.")
    assert (domain["value"], domain["known"], domain["new"]) == ("never.seen.example.org", 0, True)
    assert _add(folder, "e" * 32) | {"n": 0} == {"n": 0, "new": True, "kind": "id", "value": "e" * 32, "known": 0, "members": 0}
    row = project_of(folder)
    assert "flour" not in "".join(path.read_text() for path in (folder / "control").iterdir())
    version = row.control.version()
    for nonsense in ("com", "co.uk", "not a name", "ftp://example.org/", ""):
        said = corpus_cli("takedown", "add", nonsense, "--reason", "r", "-c", folder / "corpus.toml")
        assert said.code == 2, nonsense
    assert (
        corpus_cli("takedown", "add", "example.org", "--reason", " ", "-c", folder / "corpus.toml").code == UsageError.exit_code
    )
    assert row.control.version() == version


def test_an_order_is_in_force_at_once_in_every_view(demo_corpus: DemoCorpus, folder: Path) -> None:
    """No view, no sample, no raw page shows it, before anything is removed; `why`, `lookup` and `list` say so."""
    import corpus

    bakery = demo_corpus.origins["bakery"]
    url = f"{bakery}/flour.html"
    query = f"select (select count(*) from documents where url = '{url}'), (select count(*) from records where url = '{url}')"
    config = folder / "corpus.toml"
    assert corpus_cli("sql", query, "--json", "-c", config).json["rows"] == [[1, 1]]
    (id_,) = corpus_cli("sql", f"select id from records where url = '{url}'", "--json", "-c", config).json["rows"][0]
    _add(folder, url)
    assert corpus_cli("sql", query, "--json", "-c", config).json["rows"] == [[0, 0]]
    state = corpus_cli("sql", f"select state, reason from pages where url = '{url}'", "--json", "-c", config).json["rows"]
    assert state == [["excluded", "taken-down"]]
    assert not [row for row in corpus.open(config).sample(500) if row["url"] == url]
    assert not [b for b in corpus.open(config).documents(f"url = '{url}'") if len(b)]
    with pytest.raises(UsageError, match="taken down"):
        corpus.open(config).page(id_)
    assert corpus_cli("why", url, "--json", "-c", config).json["verdict"] == "taken-down"
    told = corpus_cli("lookup", bakery, "--json", "-c", config).json
    assert [(item["state"], item["proof"]) for item in told["takedowns"]] == [("pending", None)]
    assert told["releases"][0]["rows"] > 0
    assert told["object"]["takedown"]
    (order,) = corpus_cli("takedown", "list", "--json", "-c", config).json["orders"]
    assert (order["state"], order["cause"], order["kind"]) == ("pending", "request", "url")


MALFORMED = ("*", "*.example.org", "exa_mple..org", "nosuch..bad", ".example.org", "example.org..", "a" * 64 + ".org")


def test_takedowns_and_blocks_refuse_what_names_no_domain_of_one_owner(folder: Path) -> None:
    """Wildcards, empty labels and public suffixes are usage errors for both, and nothing is written; real names are taken, and
    a block of before that check can be lifted."""
    control = project_of(folder).control
    for name in (*MALFORMED, "com", "co.uk"):
        for verb in (("takedown", "add", name, "--reason", "r"), ("ctl", "block", name)):
            assert corpus_cli(*verb, "-c", folder / "corpus.toml").code == 2, verb
    assert control.version() == 0
    for name in ("two.test", "127.10.0.2", "exa_mple.test", "[::1]", "münchen.example."):
        assert corpus_cli("ctl", "block", name, "-c", folder / "corpus.toml").code == 0, name
    assert corpus_cli("ctl", "block", "*.example.org", "--lift", "-c", folder / "corpus.toml").code == 0


def test_a_reason_is_one_line_of_the_list(folder: Path) -> None:
    """Line breaks of a reason are spelled out; other letters are not."""
    said = corpus_cli("takedown", "add", "gone.test", "--reason", "für\nmich", "-c", folder / "corpus.toml")
    assert said.code == 0
    (line,) = [row for row in corpus_cli("takedown", "list", "-c", folder / "corpus.toml").out.splitlines() if "gone.test" in row]
    assert r"für\nmich); pending" in line
