"""Copies that take the place of what goes, whole clusters that go, and removals that sites and the operator's list ask for by themselves."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpus.app.frontier_files import open_file
from corpus.app.map_task import STAGE as MAP
from corpus.app.segments import record_segment
from corpus.crawl.ports import Ack, Settled
from corpus.model import UrlState, url_id
from corpus.store.commits import CommitRecord, file_sha256
from corpus.store.warc_members import Member, read_members
from corpus.store.warc_recover import describe
from corpus.url.host import host_of, registered_domain
from corpus.url.partition import partition_file
from tests.byte_scan import found_in, held
from tests.demo_corpus import DemoCorpus, corpus_cli, project_of
from tests.takedown_kit import apply, manifest, prey, run, verified


@pytest.fixture
def folder(demo_corpus: DemoCorpus, tmp_path: Path) -> Path:
    return demo_corpus.copy(tmp_path / "corpus")


def _sql(folder: Path, query: str) -> list[list[Any]]:
    rows: list[list[Any]] = run(folder, "sql", query, "--json").json["rows"]
    return rows


def _pair(folder: Path) -> tuple[str, str]:
    """The kept page of a cluster of two texts, and the copy that lost to it."""
    ((kept, lost),) = _sql(
        folder,
        "select k.url, c.url from clusters k join clusters c using (cluster_id) join documents d on d.id = c.id"
        " where k.keep and not c.keep and d.reason = 'exact-duplicate' order by all limit 1",
    )
    return kept, lost


def test_an_allowed_copy_takes_the_place_of_what_goes(folder: Path) -> None:
    """`--scope copy`: the next member of the cluster by the release's own rule enters the superseding release as a whole row, in
    order, counted everywhere; when it is taken down too, nobody is left."""
    kept, lost = _pair(folder)
    before = _sql(folder, "select url from records order by url")
    assert run(folder, "takedown", "add", kept, "--reason", "r").code == 0
    told = apply(folder)
    assert told["rows_before"] == told["rows_after"]
    assert _sql(folder, "select url from records order by url") == sorted([row for row in before if row != [kept]] + [[lost]])
    (path,) = folder.glob("releases/v1.1/data/*/*.parquet")
    rows = pq.ParquetFile(path).read()
    keys = list(zip(rows["domain"].to_pylist(), rows["url"].to_pylist(), strict=True))
    assert keys == sorted(keys)
    row = rows.filter(pa.array([url == lost for url in rows["url"].to_pylist()])).to_pylist()[0]
    like = rows.slice(0, 1).to_pylist()[0]
    assert row["text"] == _sql(folder, f"select text from documents where url = '{lost}'")[0][0]
    assert {name for name, value in like.items() if value is not None} - {"published", "author", "license_url", "title"} <= {
        name for name, value in row.items() if value is not None
    }
    facts = manifest(folder, "v1.1")
    assert facts["promoted"] == [row["id"]]
    assert facts["funnel"][-1]["out"] == facts["rows"] == len(rows)
    assert run(folder, "why", lost, "--json").json["verdict"] == "exported"
    assert verified(folder) == []
    assert run(folder, "takedown", "add", lost, "--reason", "r").code == 0
    assert apply(folder)["superseded"] == {"v1.1": "v1.2"}
    assert manifest(folder, "v1.2")["promoted"] == []
    assert _sql(folder, f"select count(*) from records where url in ('{kept}', '{lost}')") == [[0]]
    assert verified(folder) == []


def test_a_whole_cluster_goes_where_that_is_asked_for(folder: Path) -> None:
    """`--scope cluster`: every near-duplicate is covered by the one order, at once and in the files."""
    kept, lost = _pair(folder)
    said = run(folder, "takedown", "add", lost, "--reason", "r", "--scope", "cluster", "--json")
    assert said.json["members"] >= 2
    assert _sql(folder, f"select count(*) from documents where url in ('{kept}', '{lost}')") == [[0]]
    told = apply(folder)
    assert told["rows_after"] == told["rows_before"] - 1
    assert told["removed"]["documents"] >= 2
    assert verified(folder) == []


def _settle(folder: Path, url: str, state: UrlState, reason: str) -> None:
    """What a later visit made of a URL."""
    layout = project_of(folder).layout
    store = open_file(layout, partition_file(registered_domain(host_of(url)), layout.spread))
    store.claim("test")
    store.commit([Ack(settled=(Settled(url, UrlState.QUEUED),))])
    store.commit(
        [
            Ack(
                settled=(
                    Settled(
                        url,
                        state,
                        reason,
                        http_status=int(reason[-3:]) if reason[-3:].isdigit() else None,
                        fetched_at=time.time(),
                    ),
                )
            )
        ]
    )
    store.close(clean=True)


def _say(folder: Path, url: str, raw: str) -> None:
    """Let a stored page have said something of itself, in its documents row."""
    project = project_of(folder)
    (record,) = project.commits.list(MAP)
    name = next(path for path in record.outputs if path.startswith("documents/"))
    table = pq.ParquetFile(folder / name).read()
    item = {
        "protocol": "meta-robots", "source": "meta", "line_no": None, "raw": raw, "agent": "", "file_digest": "", "axis": "use", "verdict": "unknown",
    }  # fmt: skip
    said = [
        [item] if one == url else old for one, old in zip(table["url"].to_pylist(), table["evidence"].to_pylist(), strict=True)
    ]
    at = table.schema.get_field_index("evidence")
    from corpus.filter.tables import encode

    (folder / name).write_bytes(
        encode("documents", table.set_column(at, table.schema.field(at), pa.array(said, table.schema.field(at).type)))
    )
    project.commits.drop(MAP, record.key)
    outputs = {**record.outputs, name: file_sha256(folder / name)}
    project.commits.put(CommitRecord(record.stage, record.key, record.inputs, outputs, record.rows, record.info))


def test_what_sites_and_the_list_say_is_removed_and_shown_with_its_cause(demo_corpus: DemoCorpus, folder: Path) -> None:
    """451, 410, a date that has passed and the operator's list become orders with their cause and are removed from files; a later
    robots refusal is shown, and takes the page out of the next release only."""
    bakery, wheels, diwan = (demo_corpus.origins[name] for name in ("bakery", "wheels", "diwan"))
    gone = {f"{bakery}/flour.html": "http-451", f"{bakery}/oven.html": "http-410", f"{diwan}/chai.html": "unavailable-after"}
    _settle(folder, f"{bakery}/flour.html", UrlState.REFUSED, "http-451")
    _settle(folder, f"{bakery}/oven.html", UrlState.GONE, "http-410")
    _settle(folder, f"{diwan}/kilim.html", UrlState.REFUSED, "robots")
    _say(folder, f"{diwan}/chai.html", "<meta robots> unavailable_after: 2020-01-01")
    (folder / "list.txt").write_text(f"{wheels}/ asked by letter\n", "utf-8")
    listed = ("optout.domains_file=list.txt",)
    shown = run(folder, "takedown", "list", "--json", settings=listed).json
    assert shown["orders"] == []
    removal = {(item["cause"], item["urls"]) for item in shown["automatic"] if item["effect"] == "removal"}
    wheels_host = wheels.split("//")[1].split(":")[0]
    n_wheels = _sql(folder, f"select count(distinct url_id) from documents where host = '{wheels_host}'")[0][0]
    assert removal == {("http-451", 1), ("http-410", 1), ("unavailable-after", 1), ("operator-list", n_wheels)}
    assert [(item["cause"], item["urls"]) for item in shown["automatic"] if item["effect"] == "exclusion"] == [("robots", 1)]
    told = apply(folder, listed)
    assert told["removed"]["documents"] == 3 + n_wheels
    orders = run(folder, "takedown", "list", "--json", settings=listed).json
    assert {item["cause"] for item in orders["orders"]} == {"http-451", "http-410", "unavailable-after", "operator-list"}
    assert {(item["action"], item["state"]) for item in orders["orders"]} == {("purge", "applied")}
    assert [item["cause"] for item in orders["automatic"]] == ["robots"]
    files = [str(path) for path in folder.glob("documents/*/*.parquet")]
    left = {
        row[0] for row in duckdb.execute("SELECT url FROM read_parquet($f, hive_partitioning = false)", {"f": files}).fetchall()
    }
    assert not left & set(gone)
    assert f"{diwan}/kilim.html" in left
    assert not [url for url in left if wheels in url]
    down = pq.read_table(folder / "releases/v1.1/TOMBSTONES.parquet").to_pylist()
    assert url_id(f"{bakery}/flour.html") in {row["value"] for row in down}
    assert apply(folder, listed)["orders"] == 0
    assert verified(folder) == []


def test_a_page_that_comes_back_is_another_page(demo_corpus: DemoCorpus, folder: Path) -> None:
    """A purge forbids nothing: after 410 and its removal the URL may be asked for again, and is no taken-down page."""
    url = f"{demo_corpus.origins['bakery']}/oven.html"
    _settle(folder, url, UrlState.GONE, "http-410")
    assert apply(folder)["removed"]["documents"] == 1
    assert project_of(folder).control.tombstones().blocks(url=url) is None
    assert run(folder, "why", url, "--json").json["verdict"] == "gone"
    assert run(folder, "export", "--name", "v2").code == 0
    down = pq.read_table(folder / "releases/v2/TOMBSTONES.parquet").to_pylist()
    assert url_id(url) in {row["value"] for row in down}


@pytest.mark.slow
def test_an_archive_that_is_taken_in_again_does_not_bring_it_back(demo_corpus: DemoCorpus, folder: Path) -> None:
    """Pages of a domain that was taken down are left out of every later ingest."""
    bakery = demo_corpus.origins["bakery"].split("//")[1].split(":")[0]
    assert run(folder, "takedown", "add", bakery, "--reason", "r").code == 0
    apply(folder)
    said = corpus_cli(
        "ingest", next(iter(demo_corpus.folder.glob("warc/crawl_id=*/*.warc.gz"))), "--json", "-c", folder / "corpus.toml"
    )
    assert said.code == 0, said.err
    assert said.json["pages"] > 10
    assert corpus_cli("process", "-c", folder / "corpus.toml").code == 0
    assert _sql(folder, f"select count(*) from documents where host = '{bakery}'") == [[0]]
    assert apply(folder)["removed"] == {}


def test_sealed_pages_and_open_segments_are_no_hiding_place(demo_corpus: DemoCorpus, folder: Path) -> None:
    """A segment of sealed pages is rewritten like any other; what a crash left half-written is cut, sealed or removed first."""
    project = project_of(folder)
    (source,) = folder.glob("warc/crawl_id=*/*.warc.gz")
    name = "sealed/crawl_id=2026-11/s07-000001-000001.warc.gz"
    (folder / name).parent.mkdir(parents=True)
    shutil.copyfile(source, folder / name)
    record_segment(project, describe(folder / name, name), kind="sealed", crawl_id="2026-11")
    shutil.copyfile(source, source.with_name("s08-000001-000001.warc.gz.open"))
    (folder / "documents" / ".part-999999-abc.parquet").write_bytes(b"a text in it")
    (folder / "releases" / ".v7.part").mkdir()
    (folder / ".local/spill/piece").mkdir(parents=True)
    url = f"{demo_corpus.origins['bakery']}/flour.html"
    assert run(folder, "takedown", "add", url, "--reason", "r").code == 0
    apply(folder)
    for path in (source, folder / name):
        assert not [m for m in read_members(path) if isinstance(m, Member) and m.target == url]
        assert [m for m in read_members(path) if isinstance(m, Member) and m.removed]
    left = [
        p for p in folder.rglob("*") if p.name.startswith(".part-") or p.name.endswith((".open", ".part")) or p.name == "piece"
    ]
    assert left == []


@pytest.mark.slow
def test_a_corpus_in_a_bucket(demo_corpus: DemoCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same over S3: nothing of the text in this machine's working folder or in any object of the bucket, and verify agrees."""
    pytest.importorskip("moto")
    from tests import s3_kit

    for key, value in s3_kit.KEYS.items():
        monkeypatch.setenv(key, value)
    with s3_kit.moto() as server:
        text = CONFIG.format(bucket=s3_kit.BUCKET, local=tmp_path / "local", endpoint=server.endpoint)
        (tmp_path / "corpus.toml").write_text(text, "utf-8")
        archives = (["ingest"], "warc/crawl_id=*/*.warc.gz"), (["ingest", "--robots"], "warc/policy/crawl_id=*/*.warc.gz")
        for verb, pattern in archives:
            assert run(tmp_path, *verb, next(iter(demo_corpus.folder.glob(pattern)))).code == 0
        wanted = prey(demo_corpus)
        assert run(tmp_path, "process").code == 0
        assert run(tmp_path, "export").code == 0
        wanted.order(tmp_path)
        assert apply(tmp_path)["superseded"] == {"v1": "v1.1"}
        assert verified(tmp_path) == []
        assert found_in([tmp_path], list(wanted.needles)) == []
        objects = project_of(tmp_path).objects
        names = objects.list("")
        assert len(names) > 20
        assert not [name for name in names if held(objects.get(name), list(wanted.needles))]


CONFIG = """
[corpus]
name = "bucket"
[crawl]
seeds = ["http://127.10.0.1:1/"]
contact = "https://corpus.example/x"
allow_private = ["127.10.0.0/24"]
[store]
root = "s3://{bucket}/c"
local = "{local}"
s3_endpoint = "{endpoint}"
"""


def test_what_cannot_be_read_is_never_called_proved(demo_corpus: DemoCorpus, folder: Path) -> None:
    """A damaged archive: exit 1 with the place, no proof, and other stages go on; nothing recorded blesses the damage."""
    path = next(iter(folder.glob("warc/crawl_id=*/*.warc.gz")))
    data = bytearray(path.read_bytes())
    data[5000:5040] = bytes(40)
    path.write_bytes(data)
    assert run(folder, "takedown", "add", f"{demo_corpus.origins['bakery']}/flour.html", "--reason", "r").code == 0
    said = run(folder, "takedown", "apply", "--json")
    assert said.code == 1
    assert "verify" in said.err
    assert not list(folder.glob("proofs/takedown-*"))
    assert run(folder, "export", "--name", "v9").code == 0
    assert "takedown" in str([fault for fault in verified(folder) if fault.startswith("takedown")])
    assert json.loads(next(iter(folder.glob("commits/takedown-plan/*.json"))).read_text())["info"]["control"] == 1
