"""Laws A and B where the corpus lies in a bucket: the same rows as in a folder, after kills, after the store was away, and
on a machine that has nothing but the frontier; and not one page acknowledged that the bucket does not hold."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import corpus
from corpus.store.s3_objects import S3Objects
from corpus.testing.demo.server import serving
from corpus.testing.demo.settings import demo_config
from corpus.testing.kill import Victim
from corpus.testing.web_process import ServerProcess
from tests.demo_corpus import corpus_cli
from tests.laws.crawl_folder import Folder
from tests.laws.law_web import LawWeb
from tests.s3_kit import BUCKET, KEYS, Gateway, Refuse, Server, gateway

pytestmark = pytest.mark.needs("s3")


@dataclass(slots=True)
class Bucket(Folder):
    """A corpus whose root is `s3://bucket/<name>`; its working folder stands in for the folder."""

    root: str = ""

    @classmethod
    def at(cls, path: Path, server: ServerProcess, seeds: list[str], endpoint: str, *, age: str = "60s") -> Bucket:
        folder = Folder.make(path, server, seeds)
        text = (path / "corpus.toml").read_text("utf-8")
        store = (
            f'[store]\nroot = "s3://{BUCKET}/{path.parent.name}/{path.name}"\ns3_endpoint = "{endpoint}"\nsegment_age = "{age}"\n'
        )
        (path / "corpus.toml").write_text(text.replace("[store]\n", store), "utf-8")
        return cls(folder.path, server, root=f"{path.parent.name}/{path.name}")

    @property
    def working(self) -> Path:
        return self.path / ".local" / "working" / BUCKET / self.root

    def logs(self) -> set[Path]:
        return {path for path in (self.working / "runs").glob("*/log.jsonl") if path.stat().st_size}

    def rows(self) -> list[dict[str, Any]]:
        return Folder(self.working, self.server).rows()

    def files(self, of: str = "releases/v1") -> dict[str, bytes]:
        return Folder(self.working, self.server).files(of)

    def verified(self, *flags: str) -> dict[str, Any]:
        """What a verify without a fault has counted; it reads every byte from the bucket."""
        said = corpus_cli("verify", *flags, "-c", self.path / "corpus.toml", "--json").json
        assert said["ok"], said["faults"][:5]
        return dict(said["checked"])

    def forget(self) -> None:
        """What this machine keeps of the bucket is gone; the frontier stays."""
        for name in ("working", "cache"):
            shutil.rmtree(self.path / ".local" / name)


@pytest.fixture(scope="module")
def gate(s3_server: Server) -> Iterator[Gateway]:
    """The bucket's server behind a gateway that makes moto's create-only one step."""
    os.environ.update(KEYS)
    with gateway(s3_server, create_only=True) as found:
        yield found


@pytest.fixture(scope="module")
def there(web: LawWeb, whole: Folder, gate: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Bucket:
    """What one undisturbed run makes of the same web in a bucket."""
    bucket = Bucket.at(tmp_path_factory.mktemp("bucket") / "corpus", whole.server, web.seeds(), gate.endpoint)
    bucket.run()
    return bucket


def test_a_killed_run_in_a_bucket_is_as_one_in_a_folder(gate: Gateway, tmp_path: Path) -> None:
    """The demo web, once into a folder and once into a bucket with kill -9 after its first segment: equal rows and states. What the
    bucket holds is enough for verify, a replay byte for byte, SQL, and one page by a few ranges."""
    with serving() as served:
        text = demo_config(served.origins).replace("[crawl]\n", '[crawl]\nnear_copies = "store"\n')
        folder, there = Folder(tmp_path / "folder", None), Bucket(tmp_path / "bucket", None, root="demo-killed")  # type: ignore[arg-type]
        store = f'root = "s3://{BUCKET}/{there.root}"\ns3_endpoint = "{gate.endpoint}"\nsegment_age = "1s"\n'
        for one, config in ((folder, text), (there, text.replace('root = "."\n', store))):
            one.path.mkdir()
            (one.path / "corpus.toml").write_text(config, "utf-8")
        objects = S3Objects(Server(gate.endpoint).place(there.root))
        first = subprocess.Popen(
            [*there.argv(), "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        until = time.monotonic() + 60
        while time.monotonic() < until and not objects.list("commits/segment/") and first.poll() is None:
            time.sleep(0.05)
        os.killpg(first.pid, signal.SIGKILL)
        assert first.wait(10) == -signal.SIGKILL, "it ended before its first segment was there"
        assert corpus_cli("run", "-c", folder.path / "corpus.toml").code == 0
        assert corpus_cli("run", "-c", there.path / "corpus.toml").code == 0
    assert there.urls() == folder.urls()
    assert there.rows() == folder.rows()
    there.forget()
    there.verified()
    assert corpus_cli("replay", "v1", "-c", there.path / "corpus.toml").code == 0
    opened = corpus.open(there.path)
    (row,) = opened.sql("SELECT id, url FROM records WHERE language = 'en' ORDER BY id LIMIT 1").to_pylist()
    gate.seen.clear()
    assert opened.page(row["id"]).url == row["url"]
    assert 1 <= sum("range" in seen.headers for seen in gate.seen) <= 3
    assert all("range" in seen.headers for seen in gate.seen if "/warc/" in seen.path and seen.method == "GET")


@pytest.mark.slow
def test_a_bucket_holds_what_a_folder_does(web: LawWeb, whole: Folder, there: Bucket) -> None:
    """The same rows and states, good manners, and a verify without a fault, which reads every byte from the bucket."""
    assert there.urls() == whole.urls()
    assert there.rows() == whole.rows()
    there.check_manners(web.refusals())
    checked = there.verified()
    assert checked["release_rows"] == len(whole.rows())


@pytest.mark.slow
def test_everything_durable_is_in_the_bucket(there: Bucket, gate: Gateway, tmp_path: Path) -> None:
    """Law A from the bucket alone: without the working folder the release is replayed byte for byte, and exported again as it was."""
    before = there.files()
    copy = Bucket(tmp_path / "elsewhere", there.server, root=there.root)
    shutil.copytree(there.path, copy.path, ignore=shutil.ignore_patterns("working", "cache"))
    copy.run("export")
    assert copy.files() == before
    names = S3Objects(Server(gate.endpoint).place(there.root)).list("")
    assert {f"releases/v1/{name}" for name in before} <= set(names)
    assert not [name for name in names if name.endswith(".open") or "/.part" in name]


@pytest.mark.slow
def test_kills_lose_nothing_and_double_nothing(web: LawWeb, whole: Folder, gate: Gateway, tmp_path: Path) -> None:
    """kill -9 in crawl, process and export over a bucket with short segments: the same rows and states, and no short gap."""
    crawling = 0
    for seed in range(2):
        victim = Victim.TREE if seed else Victim.SUPERVISOR
        one = Bucket.at(tmp_path / f"corpus-{seed}", whole.server, web.seeds(), gate.endpoint, age="1s")
        report = one.killed(seed, 3, 0.7 * whole.run_s(), victim)
        assert report.kills
        crawling += one.killed_crawling()
        assert one.urls() == whole.urls(), f"seed {seed}"
        assert one.rows() == whole.rows(), f"seed {seed}"
        one.check_manners(web.refusals())
        one.verified("--repair")  # a killed export leaves its scratch
    assert crawling, "no kill came between the first and the last contact"


@pytest.mark.slow
def test_three_processes_share_a_bucket(web: LawWeb, whole: Folder, gate: Gateway, tmp_path: Path) -> None:
    """Law B: three fetch processes publish under their own names; the same rows and states."""
    one = Bucket.at(tmp_path / "corpus", whole.server, web.seeds(), gate.endpoint, age="1s")
    one.run("run", "crawl.processes=3")
    assert one.urls() == whole.urls()
    assert one.rows() == whole.rows()


@pytest.mark.slow
def test_a_store_that_was_away_is_waited_for(web: LawWeb, whole: Folder, gate: Gateway, tmp_path: Path) -> None:
    """The bucket refuses everything for some seconds in the middle of a crawl: the run ends as if nothing had been."""
    one = Bucket.at(tmp_path / "corpus", whole.server, web.seeds(), gate.endpoint, age="1s")
    away = {"from": 0.0}

    def rule(seen: Any) -> Refuse | None:
        if one.root in seen.path and "/warc/" in seen.path and seen.method == "PUT" and not away["from"]:
            away["from"] = time.monotonic()
        return Refuse(503, "SlowDown") if one.root in seen.path and 0 < time.monotonic() - away["from"] < 4 else None

    gate.rule = rule
    try:
        one.run()
    finally:
        gate.rule = lambda _: None
    assert away["from"]
    assert one.urls() == whole.urls()
    assert one.rows() == whole.rows()
