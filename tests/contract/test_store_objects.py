"""The contract of an object store, run over every implementation of the port."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corpus.errors import AlreadyExists, NonDeterministicStage, StoreError
from corpus.store.local_objects import LocalObjects
from corpus.store.objects import ObjectStore, put_same, write_new_or_same
from corpus.store.s3_cache import CachedObjects
from corpus.testing.disk import CrashingDisk, MemoryObjects
from tests.s3_kit import Gateway, Server, gateway

S3 = {"s3-moto": "s3_server", "s3-nanio": "kept_nanio"}
"""Implementations behind a server, by its fixture."""
IMPLEMENTATIONS: dict[str, Callable[[Path], ObjectStore]] = {
    "folder": lambda folder: LocalObjects(folder / "store"),
    "folder-on-a-simulated-disk": lambda folder: LocalObjects(folder / "store", CrashingDisk(seed=1)),
    "memory": lambda _: MemoryObjects(),
}


@pytest.fixture(scope="module")
def kept_nanio(nanio_server: Server) -> Iterator[Gateway]:
    """nanio behind a gateway that keeps the create-only promise for it."""
    with gateway(nanio_server, create_only=True) as gate:
        yield gate


@pytest.fixture(params=[*sorted(IMPLEMENTATIONS), *(pytest.param(name, marks=pytest.mark.needs("s3")) for name in sorted(S3))])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param in S3:
        server: Server | Gateway = request.getfixturevalue(S3[request.param])
        return CachedObjects(server.objects(), tmp_path / "cache")
    return IMPLEMENTATIONS[request.param](tmp_path)


def test_what_was_put_is_what_is_got(objects: ObjectStore) -> None:
    """Bytes come back as they went in, the empty object included."""
    for name, data in (("a", b""), ("b/c.json", b"\0\xff" * 1000), ("b/d/crawl_id=2026-11.x", b"x")):
        objects.put_new(name, data)
        assert objects.exists(name)
        assert objects.get(name) == data


def test_a_name_is_taken_once(objects: ObjectStore) -> None:
    """A second put of a name fails and changes nothing, even with the same bytes."""
    objects.put_new("x/y", b"first")
    for data in (b"second", b"first"):
        with pytest.raises(AlreadyExists):
            objects.put_new("x/y", data)
    assert objects.get("x/y") == b"first"


def test_a_file_becomes_an_object(objects: ObjectStore, tmp_path: Path) -> None:
    """put_file_new stores a file's bytes, create-only, and leaves the file where it is."""
    source = tmp_path / "source.bin"
    source.write_bytes(b"shard" * 100_000)
    objects.put_file_new("data/shard", source)
    assert objects.get("data/shard") == source.read_bytes()
    with pytest.raises(AlreadyExists):
        objects.put_file_new("data/shard", source)


def test_list_is_sorted_and_by_prefix(objects: ObjectStore) -> None:
    """A prefix is a prefix of the name, not a folder; the order is by code point; what is absent lists as empty."""
    for name in ("log/b-2", "log/b-1", "log/a-1", "logs/x", "log/sub/z"):
        objects.put_new(name, b"1")
    assert objects.list("log/") == ["log/a-1", "log/b-1", "log/b-2", "log/sub/z"]
    assert objects.list("log/b") == ["log/b-1", "log/b-2"]
    assert objects.list("log") == ["log/a-1", "log/b-1", "log/b-2", "log/sub/z", "logs/x"]
    assert objects.list("") == objects.list("lo")
    assert objects.list("nothing/here") == []


def test_delete_forgets_and_is_repeatable(objects: ObjectStore) -> None:
    """A deleted name is free again; deleting what is not there is fine."""
    objects.put_new("p/q", b"1")
    objects.delete("p/q")
    objects.delete("p/q")
    objects.delete("never/was")
    assert not objects.exists("p/q")
    assert objects.list("p/") == []
    objects.put_new("p/q", b"2")
    assert objects.get("p/q") == b"2"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "a/../b",
        "..",
        "a//b",
        "a/",
        ".hidden",
        "a/.part-1",
        "a\0b",
        "a\nb",
        "ä",
        "x" * 201,
        "a b",
        "a/" * 500 + "a",
    ],
)
def test_a_name_that_could_leave_the_store_is_refused(objects: ObjectStore, name: str) -> None:
    """Names are plain relative paths; every verb refuses anything else before touching the store."""
    for verb in (
        lambda: objects.put_new(name, b""),
        lambda: objects.get(name),
        lambda: objects.exists(name),
        lambda: objects.delete(name),
    ):
        with pytest.raises(StoreError):
            verb()


def test_a_missing_object_is_an_error(objects: ObjectStore) -> None:
    """get of an absent name, or of a mere folder, is a StoreError."""
    objects.put_new("a/b", b"1")
    for name in ("a", "a/c", "zzz"):
        assert not objects.exists(name)
        with pytest.raises(StoreError):
            objects.get(name)


def test_deterministic_outputs_may_meet(objects: ObjectStore) -> None:
    """Equal bytes under one name are fine; different ones stop the run."""
    assert write_new_or_same(objects, "commits/s/k", b"same")
    assert not write_new_or_same(objects, "commits/s/k", b"same")
    with pytest.raises(NonDeterministicStage):
        write_new_or_same(objects, "commits/s/k", b"other")
    assert put_same(objects, "files/d", b"d")
    assert not put_same(objects, "files/d", b"d")


def test_of_many_writers_one_wins(tmp_path: Path) -> None:
    """Eight threads put one name at once on a real folder: exactly one succeeds, and its bytes are the object."""
    objects = LocalObjects(tmp_path)
    outcomes: list[bytes | None] = []
    barrier = threading.Barrier(8)

    def put(data: bytes) -> None:
        barrier.wait()
        try:
            objects.put_new("race/name", data)
            outcomes.append(data)
        except AlreadyExists:
            outcomes.append(None)

    threads = [threading.Thread(target=put, args=(b"%d" % n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [data for data in outcomes if data is not None]
    assert len(outcomes) == 8
    assert [objects.get("race/name")] == winners
    assert [path.name for path in (tmp_path / "race").iterdir()] == ["name"]
