"""Laws of the durable things: cut the power between any two steps, and nothing that was promised is gone.

Objects: a listed name is whole, a returned put is there. Segments: an acknowledged capture survives, cut and sealed, at
the place its ref named. The simulated disk loses unsynced bytes and names as its seed decides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.crawl.ports import Request
from corpus.errors import StoreError
from corpus.model import CaptureRef, Response
from corpus.store.disk import Disk, LocalDisk
from corpus.store.layout import Layout, segment_name
from corpus.store.local_objects import LocalObjects, sealed
from corpus.store.warc_read import read_at, read_captures
from corpus.store.warc_recover import recover_open
from corpus.store.warc_write import SegmentWriter
from corpus.store.writers import PREFIX
from corpus.testing.disk import CrashingDisk, PowerCut

SEEDS = range(4)


def _response(n: int, body: bytes) -> Response:
    return Response(
        status=200, headers=(("Content-Type", "text/html"),), body=body, decoded=body, raw_status="HTTP/1.1 200 OK",
        raw_request=b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", ip="127.0.0.1", started_at=1_800_000_000 + n, ended_at=1_800_000_000.5 + n,
        latency_s=0.1, bytes_wire=len(body),
    )  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_objects_survive_a_power_cut_at_any_step(tmp_path: Path, seed: int) -> None:
    """For every step: names listed after the crash hold whole objects, and every put that returned is among them."""
    wanted = {f"log/{n}": bytes([n]) * (3000 * n) for n in range(1, 5)}
    for crash_at in range(1, 200):
        root = tmp_path / f"{crash_at}"
        disk = CrashingDisk(seed, crash_at)
        done = []
        try:
            for name, data in wanted.items():
                LocalObjects(root, disk).put_new(name, data)
                done.append(name)
            LocalObjects(root, disk).delete("log/1")
        except PowerCut:
            disk.settle()
        after = LocalObjects(root)
        listed = after.list("")
        assert all(after.get(name) == wanted[name] for name in listed), (seed, crash_at)
        promised = set(done) - ({"log/1"} if len(done) == len(wanted) else set())  # the delete may be under way
        assert promised <= set(listed), (seed, crash_at)
        assert all(path.name.startswith(PREFIX) for path in root.rglob(".*") if path.is_file())
        if not disk.dead:
            assert crash_at > 20, "the script must have steps to crash at"
            return
    pytest.fail("the script never ran to its end")


def test_a_full_disk_leaves_no_object(tmp_path: Path) -> None:
    """ENOSPC in the middle of a put: a StoreError, no name, no leftovers, and the next put works."""
    disk = CrashingDisk(seed=0, capacity=1000)
    objects = LocalObjects(tmp_path, disk)
    with pytest.raises(StoreError, match="No space left"):
        objects.put_new("big", b"x" * 5000)
    assert objects.list("") == []
    assert not list(tmp_path.glob(".part*"))
    disk.capacity = None
    objects.put_new("big", b"x" * 5000)
    assert objects.get("big") == b"x" * 5000


class _Recorder(LocalDisk):
    """Remembers the order of what matters."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def sync(self, fd: int) -> None:
        self.calls.append("sync")
        super().sync(fd)

    def replace(self, source: Path, target: Path) -> None:
        self.calls.append("replace")
        super().replace(source, target)

    def sync_folder(self, path: Path) -> None:
        self.calls.append("sync_folder")
        super().sync_folder(path)


def test_a_sealed_file_is_synced_before_it_has_a_name(tmp_path: Path) -> None:
    """sealed(): bytes, then name, then folder; on an error the old file stays and nothing else is left."""
    disk, path = _Recorder(), tmp_path / "f.parquet"
    with sealed(path, disk) as part:
        part.write_bytes(b"one")
        assert part.suffix == ".parquet"
        assert not path.exists()
    assert disk.calls == ["sync", "replace", "sync_folder"]
    with pytest.raises(ZeroDivisionError), sealed(path) as part:
        part.write_bytes(b"%d" % (1 // 0))
    assert [file.name for file in tmp_path.iterdir()] == ["f.parquet"]
    assert path.read_bytes() == b"one"


@dataclass
class _Crawl:
    """A worker's life in small: append, sync, acknowledge, sometimes rotate."""

    root: Path
    disk: Disk
    acked: dict[str, int] = field(default_factory=dict)
    """Highest acknowledged end per segment: what the frontier would hold, in a database that never lies."""
    promised: list[tuple[CaptureRef, str, bytes]] = field(default_factory=list)

    def run(self, script: list[tuple[str, int]]) -> None:
        layout = Layout(self.root, self.root / ".local")
        writer = SegmentWriter(
            layout, layout.warc_dir("c"), lambda seq: segment_name(0, 1, seq), clock=lambda: 0.0, disk=self.disk, identity="t"
        )  # fmt: skip
        pending: list[tuple[CaptureRef, int, str, bytes]] = []
        for n, (step, size) in enumerate(script):
            if step == "append":
                url, body = f"http://a.test/{n}", bytes([n % 250 + 1]) * size
                ref, end = writer.append(
                    url, Request(url, "a.test", "127.0.0.1"), _response(n, body), depth=1, via="", metadata={}
                )
                pending.append((ref, end, url, body))
                continue
            writer.sync() if step == "sync" else writer.rotate(force=True)
            for ref, end, url, body in pending:  # the ack transaction
                self.acked[ref.file] = max(self.acked.get(ref.file, 0), end)
                self.promised.append((ref, url, body))
            pending.clear()

    def check(self) -> None:
        for ref, url, body in self.promised:
            capture = read_at(self.root / ref.file, ref.offset, ref.file)
            assert (capture.url, capture.body, capture.fault) == (url, body, "")
            assert capture.ref == ref
        for path in sorted((self.root / "warc").rglob("*")):
            if path.is_file():
                assert path.name.endswith(".warc.gz"), "nothing but whole segments is left"
                assert not [capture.fault for capture in read_captures(path, path.name) if capture.fault]

    def recover(self, disk: Disk | None = None) -> None:
        layout = Layout(self.root, self.root / ".local")
        for path in sorted((self.root / "warc").rglob("*.open")):
            file = layout.relative(path).removesuffix(".open")
            recover_open(path, self.acked.get(file, 0), layout=layout, disk=disk)


SCRIPT = [
    ("append", 10), ("append", 5000), ("sync", 0), ("append", 20), ("sync", 0), ("append", 9), ("rotate", 0),
    ("append", 70_000), ("sync", 0), ("append", 1), ("append", 2), ("rotate", 0), ("append", 3),
]  # fmt: skip


@pytest.mark.parametrize("seed", SEEDS)
def test_acknowledged_captures_survive_a_power_cut_at_any_step(tmp_path: Path, seed: int) -> None:
    """For every step of writing, sealing and recovering: each acknowledged capture is readable where its ref says."""
    for crash_at in range(1, 200):
        disk = CrashingDisk(seed, crash_at)
        crawl = _Crawl(tmp_path / f"{crash_at}", disk)
        try:
            crawl.run(SCRIPT)
        except PowerCut:
            disk.settle()
        again = CrashingDisk(seed, 1 + (crash_at + seed) % 7)  # and the power goes once more while recovering
        try:
            crawl.recover(again)
        except PowerCut:
            again.settle()
        crawl.recover()
        crawl.check()
        if not disk.dead:
            assert len(crawl.promised) == 7
            return
    pytest.fail("the script never ran to its end")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    script=st.lists(
        st.one_of(st.tuples(st.just("append"), st.integers(0, 3000)), st.tuples(st.sampled_from(["sync", "rotate"]), st.just(0))), max_size=14
    ),
    crash_at=st.integers(1, 40),
    seed=st.integers(0, 10**6),
)  # fmt: skip
def test_any_script_any_crash(
    tmp_path_factory: pytest.TempPathFactory, script: list[tuple[str, int]], crash_at: int, seed: int
) -> None:
    """The same law for scripts, steps and losses nobody chose."""
    disk = CrashingDisk(seed, crash_at)
    crawl = _Crawl(tmp_path_factory.mktemp("crawl"), disk)
    try:
        crawl.run(script)
    except PowerCut:
        disk.settle()
    (crawl.root / "warc").mkdir(parents=True, exist_ok=True)
    crawl.recover()
    crawl.check()


def test_a_full_disk_pauses_the_writer_and_loses_nothing(tmp_path: Path) -> None:
    """ENOSPC at a sync: a StoreError, the file as before it; with space again the next sync writes everything."""
    disk = CrashingDisk(seed=3, capacity=2500)
    layout = Layout(tmp_path, tmp_path / ".local")
    writer = SegmentWriter(layout, layout.warc_dir("c"), lambda seq: segment_name(0, 1, seq), clock=lambda: 0.0, disk=disk)
    refs = []
    for n in range(4):
        url, body = f"http://a.test/{n}", bytes(range(256)) * 8
        refs.append(writer.append(url, Request(url, "a.test", "127.0.0.1"), _response(n, body), depth=0, via="", metadata={})[0])
        if n == 0:
            writer.sync()
            size = next(tmp_path.rglob("*.open")).stat().st_size
    for _ in range(2):
        with pytest.raises(StoreError, match="No space left"):
            writer.sync()
        assert next(tmp_path.rglob("*.open")).stat().st_size == size
    disk.capacity = None
    assert writer.rotate(force=True) == [refs[0].file]
    assert [capture.ref for capture in read_captures(tmp_path / refs[0].file, refs[0].file)] == refs


def test_lost_acknowledged_bytes_are_an_error_not_a_cut(tmp_path: Path) -> None:
    """A file shorter than its acknowledged end, or an end inside a member, stops the recovery and changes nothing."""
    crawl = _Crawl(tmp_path, LocalDisk())
    crawl.run([("append", 4000), ("append", 10), ("sync", 0)])
    (path,) = tmp_path.rglob("*.open")
    whole = path.read_bytes()
    for end in (len(whole) + 1, len(whole) - 1, 1):
        with pytest.raises(StoreError):
            recover_open(path, end)
        assert path.read_bytes() == whole
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 0xFF
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match="damaged"):
        recover_open(path, len(whole))


def test_nothing_acknowledged_leaves_nothing(tmp_path: Path) -> None:
    """An open segment of which nothing was acknowledged is removed."""
    crawl = _Crawl(tmp_path, LocalDisk())
    crawl.run([("append", 100), ("sync", 0)])
    (path,) = tmp_path.rglob("*.open")
    assert recover_open(path, 0) is None
    assert not list((tmp_path / "warc").rglob("*.gz*"))
