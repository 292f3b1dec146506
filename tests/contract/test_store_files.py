"""The durable files of a corpus, in a folder and in a bucket: what is published is whole, and what is read is what was recorded."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus.errors import StoreError
from corpus.store import s3_files
from corpus.store.files import Files, LocalFiles, holds, remove_folder
from corpus.store.s3_files import S3Files
from tests.s3_kit import Gateway, Server, gateway


@pytest.fixture(params=["folder", pytest.param("bucket", marks=pytest.mark.needs("s3"))])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    if request.param == "folder":
        return LocalFiles(tmp_path / "root")
    server: Server = request.getfixturevalue("s3_server")
    return S3Files(server.objects(), tmp_path / "root")


@pytest.fixture
def gate(s3_server: Server) -> Iterator[Gateway]:
    with gateway(s3_server) as found:
        yield found


def make(files: Files, name: str, data: bytes) -> str:
    """Write a file under the root; its digest."""
    path = files.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def test_what_is_published_is_there(files: Files) -> None:
    """Files come back by name, in order, with their sizes; a copy of the port for a task sees them too."""
    made = {
        name: make(files, name, name.encode() * 100)
        for name in ("documents/a.parquet", "documents/b.parquet", "warc/x/s.warc.gz")
    }
    files.publish(made)
    files.publish(made)
    assert files.names("documents") == ["documents/a.parquet", "documents/b.parquet"]
    paths = pickle.loads(pickle.dumps(files)).all_local(made)
    assert [path.read_bytes() for path in paths] == [name.encode() * 100 for name in made]
    assert files.size("documents/a.parquet") == len("documents/a.parquet") * 100
    assert files.size("documents/none") is None
    assert all(holds(files, name, digest) for name, digest in made.items())
    assert not holds(files, "documents/a.parquet", "0" * 64)
    with files.open_far("warc/x/s.warc.gz") as far:
        far.seek(len("warc/x/s.warc.gz") * 99)
        assert far.read() == b"warc/x/s.warc.gz"


def test_what_is_removed_is_gone(files: Files) -> None:
    """Single files and whole folders; names that are not there are fine."""
    files.publish({name: make(files, name, b"1") for name in ("releases/v1/a", "releases/v1/data/b", "releases/v2/a")})
    remove_folder(files, "releases/v1")
    remove_folder(files, "releases/none")
    files.remove(["releases/v2/none"])
    assert files.names("releases") == ["releases/v2/a"]
    assert files.reread("releases/v1/a") is None
    assert not (files.root / "releases" / "v1").exists()


def test_the_newest_is_the_one_written_last(files: Files) -> None:
    """By time, then by name; only the file asked for, one folder down."""
    assert files.newest("snapshots", "clusters.parquet") is None
    files.publish({"snapshots/b/clusters.parquet": make(files, "snapshots/b/clusters.parquet", b"1")})
    files.publish({"snapshots/c/pairs.parquet": make(files, "snapshots/c/pairs.parquet", b"1")})
    assert files.newest("snapshots", "clusters.parquet") == "snapshots/b/clusters.parquet"


@pytest.mark.needs("s3")
def test_a_copy_is_checked_before_it_is_trusted(s3_server: Server, tmp_path: Path) -> None:
    """Another machine fetches and checks; a copy that changed is fetched again; what the bucket spoiled is told, never used."""
    place = s3_server.objects()
    here, there = S3Files(place, tmp_path / "here"), S3Files(place, tmp_path / "there")
    digest = make(here, "documents/a.parquet", b"rows")
    here.publish({"documents/a.parquet": digest})
    assert there.local("documents/a.parquet", digest).read_bytes() == b"rows"
    (tmp_path / "there" / "documents" / "a.parquet").write_bytes(b"worm")
    assert there.local("documents/a.parquet", digest).read_bytes() == b"rows"
    place.delete("documents/a.parquet")
    place.put_new("documents/a.parquet", b"worm")
    other = S3Files(place, tmp_path / "other")
    with pytest.raises(StoreError, match="not those that were recorded"):
        other.local("documents/a.parquet", digest)
    assert not list((tmp_path / "other").rglob("*.parquet"))
    reread = there.reread("documents/a.parquet")
    assert reread is not None
    assert reread.read_bytes() == b"worm", "a rereading shows what the bucket holds"


@pytest.mark.needs("s3")
def test_an_archive_of_another_machine_is_never_replaced(s3_server: Server, tmp_path: Path) -> None:
    """Two machines under one root: the second one's segment of the same name is refused. A measurement is replaced: a record decides."""
    place = s3_server.objects()
    here, there = S3Files(place, tmp_path / "here"), S3Files(place, tmp_path / "there")
    for name in ("warc/crawl_id=x/s.warc.gz", "documents/crawl_id=x/s.parquet"):
        here.publish({name: make(here, name, b"mine")})
    with pytest.raises(StoreError, match="another machine"):
        there.publish({"warc/crawl_id=x/s.warc.gz": make(there, "warc/crawl_id=x/s.warc.gz", b"theirs")})
    there.publish({"documents/crawl_id=x/s.parquet": make(there, "documents/crawl_id=x/s.parquet", b"theirs")})
    assert (place.get("warc/crawl_id=x/s.warc.gz"), place.get("documents/crawl_id=x/s.parquet")) == (b"mine", b"theirs")


@pytest.mark.needs("s3")
def test_copies_of_archives_stay_within_their_budget(s3_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copies used longest ago go; what was used just now, or is not in the bucket, stays."""
    files = S3Files(s3_server.objects(), tmp_path / "root", archive_copies=2500)
    names = [f"warc/crawl_id=x/s{n}.warc.gz" for n in range(5)]
    unpublished = files.root / "warc" / "crawl_id=x" / "new.warc.gz"
    digests = {name: make(files, name, name.encode() * 40) for name in names}
    make(files, "warc/crawl_id=x/new.warc.gz", b"x" * 900)
    files.publish(dict(list(digests.items())[:4]))
    assert all((files.root / name).exists() for name in names), "all of them were used just now"
    monkeypatch.setattr(s3_files, "JUST_NOW_S", -1.0)
    files.publish({names[4]: digests[names[4]]})
    left = [name for name in names if (files.root / name).exists()]
    assert left == names[-len(left) :]
    assert 0 < len(left) < 3
    assert unpublished.exists()
    assert files.local(names[0], digests[names[0]]).read_bytes() == names[0].encode() * 40


@pytest.mark.needs("s3")
def test_a_look_at_one_page_brings_no_segment(gate: Gateway, tmp_path: Path) -> None:
    """Reading a little of a large object is a few ranged requests, whatever lies before and behind."""
    files = S3Files(gate.objects(), tmp_path / "root")
    data = hashlib.shake_128(b"segment").digest(3_000_000)
    files.publish({"warc/crawl_id=x/s.warc.gz": make(files, "warc/crawl_id=x/s.warc.gz", data)})
    gate.seen.clear()
    with files.open_far("warc/crawl_id=x/s.warc.gz") as far:
        far.seek(2_000_000)
        assert far.read(5_000) == data[2_000_000:2_005_000]
    assert [seen.headers.get("range") for seen in gate.seen if seen.method == "GET"] == ["bytes=2000000-2262143"]
