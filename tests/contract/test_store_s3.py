"""What S3 adds to the contract of an object store: careless stores, uploads in parts, lost answers, refusals in plain words."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus.app.doctor_network import services
from corpus.app.project import open_project
from corpus.config.load import load_config
from corpus.config.tree import Config
from corpus.errors import AlreadyExists, StoreError, TryLater, UsageError
from corpus.store import s3_objects
from corpus.store.s3_cache import CachedObjects
from corpus.store.s3_objects import S3Objects
from corpus.store.s3_place import S3Place
from tests.s3_kit import BUCKET, CUT, HALF, KEYS, LOST, Gateway, Refuse, Seen, Server, gateway

pytestmark = pytest.mark.needs("s3")
PART = 5 * 2**20
BIG = hashlib.shake_128(b"big").digest(PART + 12_345)


@pytest.fixture
def gate(s3_server: Server) -> Iterator[Gateway]:
    """moto behind a gateway."""
    with gateway(s3_server) as found:
        yield found


@pytest.fixture
def big(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that goes up in two parts."""
    monkeypatch.setattr(s3_objects, "PART_BYTES", PART)
    path = tmp_path / "big.bin"
    path.write_bytes(BIG)
    return path


def uploads(objects: S3Objects) -> list[str]:
    """Keys of multipart uploads nobody has ended."""
    found = objects.client.list_multipart_uploads(Bucket=objects.place.bucket, Prefix=objects.place.prefix)
    return [str(upload["Key"]) for upload in found.get("Uploads", ())]


def test_a_careless_store_is_refused_by_name(nanio_server: Server) -> None:
    """nanio ignores If-None-Match: the probe says so, names the store and what to use in its place."""
    with pytest.raises(StoreError) as caught:
        nanio_server.objects().probe()
    assert "ignores If-None-Match" in caught.value.what
    assert caught.value.where == nanio_server.endpoint
    assert caught.value.hint


def test_a_store_careless_with_parts_is_refused(gate: Gateway) -> None:
    """A store that keeps the promise for plain objects only is found out too."""
    backend = gate.server.objects("careless")
    fine = Refuse(200, body="<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")
    gate.rule = lambda seen: fine if seen.method == "POST" and "uploadId" in seen.path else None
    with pytest.raises(StoreError, match="multipart"):
        gate.objects("careless").probe()
    assert backend.list("") == ["probe"]


def test_a_good_store_is_probed_twice(s3_server: Server) -> None:
    """The probe passes, passes again, and leaves one small object and no upload."""
    objects = s3_server.objects()
    objects.probe()
    objects.probe()
    assert objects.list("") == ["probe"]
    assert uploads(objects) == []


def test_a_large_file_is_created_once(s3_server: Server, big: Path, tmp_path: Path) -> None:
    """Two parts become one object, byte for byte; a second create is refused; no upload and no note stays behind."""
    objects = s3_server.objects(journal=tmp_path / "uploads")
    objects.put_file_new("warc/big", big)
    assert objects.get("warc/big") == BIG
    with pytest.raises(AlreadyExists):
        objects.put_file_new("warc/big", big)
    with pytest.raises(AlreadyExists):  # the condition itself, without the look beforehand
        objects._upload("warc/big", [lambda: BIG], only_new=True)
    assert uploads(objects) == []
    assert list((tmp_path / "uploads").iterdir()) == []
    big.write_bytes(BIG[::-1])
    objects.replace_file("warc/big", big)
    assert objects.get("warc/big") == BIG[::-1]


_UPLOADER = """
import sys
from pathlib import Path
from corpus.store import s3_objects
from corpus.store.s3_place import S3Place
from corpus.store.s3_uploads import UploadJournal
s3_objects.PART_BYTES = 5 * 2**20
bucket, prefix, endpoint, journal, file = sys.argv[1:]
objects = s3_objects.S3Objects(S3Place(bucket, prefix, endpoint, "us-east-1"), UploadJournal(Path(journal)))
objects.put_file_new("warc/big", Path(file))
"""


def test_an_upload_killed_half_way_leaves_nothing(gate: Gateway, big: Path, tmp_path: Path) -> None:
    """kill -9 between the parts: no object is visible, the next start aborts the upload, and the name is free."""
    second = []

    def stall(seen: Seen) -> None:
        if "partNumber=2" in seen.path:
            second.append(seen)
            time.sleep(60)

    gate.rule = stall
    place = gate.objects("killed").place
    child = subprocess.Popen(
        [sys.executable, "-c", _UPLOADER, place.bucket, place.prefix, gate.endpoint, str(tmp_path / "uploads"), str(big)],
        env={**os.environ, **KEYS},
    )
    until = time.monotonic() + 30
    while not second and time.monotonic() < until:
        time.sleep(0.02)
    objects = gate.server.objects("killed", journal=tmp_path / "uploads")
    assert objects.sweep_uploads() == 0, "the process that uploads is alive"
    child.send_signal(signal.SIGKILL)
    child.wait(10)
    assert second
    assert not objects.exists("warc/big")
    assert objects.list("") == []
    assert uploads(objects) == [f"{place.prefix}warc/big"]
    assert objects.sweep_uploads() == 1
    assert uploads(objects) == []
    objects.put_file_new("warc/big", big)
    assert objects.get("warc/big") == BIG


ROUNDS = 8


def _create(place: S3Place, me: str, ready: Any, told: Any) -> None:
    objects, won = S3Objects(place), []
    for n in range(ROUNDS):
        ready.wait(60)
        try:
            objects.put_new(f"race/{n}", f"{me} {n}".encode())
            won.append(f"{me} {n}")
        except AlreadyExists:
            continue
    told.put(won)


def test_of_two_processes_one_creates(s3_server: Server) -> None:
    """Two processes put one name at once, eight times: each time one wins, and its bytes are the object."""
    context = multiprocessing.get_context("spawn")
    with gateway(s3_server, create_only=True) as gate:  # moto looks and writes in two steps; the gateway makes them one
        objects = gate.objects()
        ready, told = context.Barrier(2), context.Queue()
        children = [context.Process(target=_create, args=(objects.place, me, ready, told)) for me in ("a", "b")]
        for child in children:
            child.start()
        won = sorted([*told.get(timeout=60), *told.get(timeout=60)], key=lambda said: int(said.split()[1]))
        for child in children:
            child.join(10)
        assert won == [objects.get(f"race/{n}").decode() for n in range(ROUNDS)]


def test_a_lost_answer_is_not_somebody_else(gate: Gateway, big: Path) -> None:
    """The store did it and its answer was lost: the second try finds its own token and is content, plain or in parts."""
    lost: list[str] = []

    def once(seen: Seen) -> str | None:
        makes = (seen.method == "PUT" and "partNumber" not in seen.path) or "uploadId" in seen.path
        if makes and "partNumber" not in seen.path and seen.path not in lost:
            lost.append(seen.path)
            return LOST
        return None

    gate.rule = once
    objects = gate.objects()
    objects.put_new("plain", b"text")
    objects.put_file_new("large", big)
    assert len(lost) == 2
    assert (objects.get("plain"), objects.get("large")) == (b"text", BIG)
    with pytest.raises(AlreadyExists):
        objects.put_new("plain", b"text")


def test_a_connection_that_breaks_is_taken_up(gate: Gateway, tmp_path: Path) -> None:
    """Cut before the store heard, cut in the middle of an answer: the same call ends well, and a file goes on where it broke."""
    objects = gate.objects()
    faults = [CUT, Refuse(503, "SlowDown"), Refuse(409, "ConditionalRequestConflict")]
    gate.rule = lambda seen: faults.pop(0) if faults and seen.makes("x") else None
    objects.put_new("x", b"0123456789" * 100_000)
    halves = [HALF, HALF]
    gate.rule = lambda seen: halves.pop(0) if halves and seen.method == "GET" else None
    gate.seen.clear()
    with (tmp_path / "out").open("wb") as out:
        digest = objects.get_file("x", out)
    assert (tmp_path / "out").read_bytes() == b"0123456789" * 100_000
    assert digest == hashlib.sha256(b"0123456789" * 100_000).hexdigest()
    assert [seen.headers.get("range") for seen in gate.seen] == [None, "bytes=500000-", "bytes=750000-"]
    halves[:] = [HALF]
    assert objects.get("x") == b"0123456789" * 100_000


REFUSALS = [
    (Refuse(401), StoreError, "credentials"),
    (Refuse(403, "AccessDenied"), StoreError, "access is denied"),
    (Refuse(403, "InvalidAccessKeyId"), StoreError, "access key"),
    (Refuse(403, "SignatureDoesNotMatch"), StoreError, "secret key"),
    (Refuse(403, "RequestTimeTooSkewed"), StoreError, "clock"),
    (Refuse(400, "ExpiredToken"), StoreError, "expired"),
    (Refuse(404, "NoSuchBucket"), StoreError, "no such bucket"),
    (Refuse(301, "PermanentRedirect"), StoreError, "another region"),
    (Refuse(409, "OperationAborted"), TryLater, "writing the same object"),
    (Refuse(429, "TooManyRequests"), TryLater, "slow down"),
    (Refuse(500, "InternalError"), TryLater, "fault of its own"),
    (Refuse(503, "SlowDown"), TryLater, "fault of its own"),
    (CUT, TryLater, "cannot be reached"),
]


@pytest.mark.parametrize(("fault", "kind", "words"), REFUSALS)
def test_a_refusal_is_told_in_plain_words(gate: Gateway, fault: Refuse | str, kind: type[StoreError], words: str) -> None:
    """Each refusal that stays says what it means and what to do, shows no key, and leaves the name free."""
    gate.rule = lambda seen: fault if "/refused/" in seen.path else None
    objects = gate.objects("refused", patience_s=0.1)
    with pytest.raises(StoreError) as caught:
        objects.put_new("a/b", b"text")
    assert type(caught.value) is kind
    assert words in caught.value.what
    assert caught.value.where == "s3://bucket/refused/a/b"
    assert caught.value.hint
    assert not any(secret in str(caught.value) for secret in KEYS.values())
    gate.rule = lambda _: None
    objects.put_new("a/b", b"text")
    objects.delete("a/b")


def test_wrong_keys_are_named(nanio_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that checks signatures: the wrong secret, an unknown key and no credentials at all each get their own sentence."""
    for name, value, words in (
        ("AWS_SECRET_ACCESS_KEY", "another-secret-entirely", "secret key"),
        ("AWS_ACCESS_KEY_ID", "nobody", "access key"),
    ):
        with monkeypatch.context() as changed:
            changed.setenv(name, value)
            with pytest.raises(StoreError, match=words) as caught:
                nanio_server.objects().get("x")
            assert value not in str(caught.value)
    for name in KEYS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    with pytest.raises(StoreError, match="no credentials"):
        nanio_server.objects().get("x")


@pytest.mark.parametrize(
    "root",
    [
        "s3://",
        "s3://B/x",
        "s3://ab",
        "s3://a..b/x",
        "s3://127.0.0.1/x",
        "s3://good/../x",
        "s3://good/a b",
        "s3://good/" + "x" * 200,
    ],
)
def test_what_cannot_be_a_bucket_is_a_usage_error(root: str) -> None:
    """A root that S3 would refuse is refused before it is asked."""
    with pytest.raises(UsageError):
        S3Place.parse(root)


def test_a_copy_for_another_process_connects_anew(s3_server: Server) -> None:
    """Tasks carry the store; what arrives works and holds no connection."""
    objects = s3_server.objects()
    objects.put_new("x", b"1")
    assert pickle.loads(pickle.dumps(objects)).get("x") == b"1"


def test_kept_objects_are_what_the_store_has(gate: Gateway, tmp_path: Path) -> None:
    """A second reading asks for no body; one that somebody replaced or removed is noticed; listings are read ahead."""
    objects = gate.objects()
    for n in range(5):
        objects.put_new(f"commits/s/{n}.json", b"%d" % n)

    def bodies() -> int:
        return sum(seen.method == "GET" and "list-type" not in seen.path for seen in gate.seen)

    for _ in range(2):
        kept = CachedObjects(objects, tmp_path / "cache")
        assert [kept.get(name) for name in kept.list("commits/s/")] == [b"%d" % n for n in range(5)]
    assert bodies() == 5
    objects.delete("commits/s/1.json")
    objects.put_new("commits/s/1.json", b"other")
    objects.delete("commits/s/2.json")
    assert kept.get("commits/s/1.json") == b"other"
    with pytest.raises(StoreError):
        kept.get("commits/s/2.json")


def _config(folder: Path, server: Server | Gateway, root: str) -> Config:
    folder.mkdir(exist_ok=True)
    (folder / "corpus.toml").write_text(
        f'[corpus]\nname = "x"\n[store]\nroot = "{root}"\ns3_endpoint = "{server.endpoint}"\ns3_region = "us-east-1"\n', "utf-8"
    )
    return load_config(folder / "corpus.toml", environment={})


def test_a_corpus_is_not_begun_in_a_careless_store(nanio_server: Server, tmp_path: Path) -> None:
    """Nothing but the probe is written, and what another version may have put there is not touched."""
    objects = nanio_server.objects("careless-root")
    objects.put_new("corpus.json", b"of somebody else")
    with pytest.raises(StoreError, match="ignores If-None-Match"):
        open_project(_config(tmp_path / "here", nanio_server, "s3://bucket/careless-root"))
    assert objects.get("corpus.json") == b"of somebody else"
    assert objects.list("") == ["corpus.json", "probe"]


def test_one_local_folder_serves_one_root(s3_server: Server, tmp_path: Path) -> None:
    """A frontier points into its own archive: another root over the same store.local is a usage error; the first one opens again."""
    first = _config(tmp_path / "here", s3_server, "s3://bucket/first-root")
    with pytest.raises(StoreError, match="no corpus here yet"):
        open_project(first, create=False)
    assert open_project(first).remote
    with pytest.raises(UsageError, match="belongs to s3://bucket/first-root"):
        open_project(_config(tmp_path / "here", s3_server, "s3://bucket/second-root"))
    project = open_project(_config(tmp_path / "here", s3_server, "s3://bucket/first-root"), create=False)
    assert project.objects.exists("corpus.json")


def test_doctor_reads_in_the_bucket(s3_server: Server, gate: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bucket that is there is well; a missing one, and keys that the store does not accept, are told before a crawl meets them."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)

    def found(root: str) -> tuple[str, str, str]:
        toml = f'[corpus]\nname = "x"\n[store]\nroot = "{root}"\ns3_endpoint = "{gate.endpoint}"\nlocal = "{tmp_path}"\n'
        (tmp_path / "corpus.toml").write_text(toml, "utf-8")
        (one,) = [finding for finding in services(load_config(tmp_path / "corpus.toml", environment={})) if finding.name == "s3"]
        return one.state, one.key, one.said

    assert found(f"s3://{BUCKET}/x")[0] == "ok"
    assert found("s3://no-such-bucket/x")[:2] == ("fault", "store.root")
    gate.rule = lambda seen: Refuse(403, "SignatureDoesNotMatch")
    state, key, said = found(f"s3://{BUCKET}/x")
    assert (state, key, "secret key" in said) == ("fault", "store.root", True), said
