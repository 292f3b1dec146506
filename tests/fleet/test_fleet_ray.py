"""Stages as tasks of a two-node Ray cluster: the release of one process, a crash that costs one task, and a node killed -9."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from corpus.app.process import map_records
from corpus.app.segments import page_segments
from corpus.engine.local import OUT_OF_MEMORY
from corpus.engine.ray import RayEngine
from corpus.engine.tasks import Crashed, Done, Task
from corpus.errors import StoreError, UsageError
from tests.demo_corpus import corpus_cli, crawled_in_segments, project_of
from tests.fleet.ray_kit import ENVIRONMENT, RayCluster, ray_cluster
from tests.s3_kit import BUCKET, KEYS, Gateway, Server, gateway

pytestmark = pytest.mark.needs("ray")
WAIT_S = 150.0
MEMORY = 2 * 10**9
HERE = "tests.fleet.test_fleet_ray"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    """One cluster for all tests of this file; the last one kills a node of it."""
    before = {name: os.environ.get(name) for name in (*ENVIRONMENT, *KEYS)}
    os.environ.update(ENVIRONMENT | KEYS)  # nodes know the bucket's keys from where they were begun
    with ray_cluster(tmp_path_factory.mktemp("ray")) as made:
        yield made
        sys.modules["ray"].shutdown() if "ray" in sys.modules else None
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo web in many small segments, none of them measured."""
    return crawled_in_segments(tmp_path_factory.mktemp("rays") / "crawled")


@pytest.fixture(scope="module")
def whole(crawled: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The release that the local engine makes."""
    folder = copied(crawled, tmp_path_factory.mktemp("whole"))
    for verb in ("process", "dedup", "export"):
        assert corpus_cli(verb, "-c", folder / "corpus.toml").code == 0
    return release(folder)


def copied(crawled: Path, to: Path) -> Path:
    subprocess.run(["cp", "-a", str(crawled), str(to / "c")], check=True)
    return to / "c"


def release(folder: Path) -> dict[str, bytes]:
    root = folder / "releases" / "v1"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def started(verb: str, folder: Path, cluster: RayCluster, *flags: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "corpus", verb, "-c", str(folder / "corpus.toml"), *cluster.engine(), *flags]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=(folder.parent / f"{verb}.err").open("w"))


def ended(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(WAIT_S)
    finally:
        process.kill()


def until(met: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not met():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.02)


# ---- what tasks do


def double(spec: int) -> int:
    return spec * 2


def misbehave(spec: tuple[str, str]) -> str:
    what, note = spec
    Path(note).write_text(f"at {what}")
    match what:
        case "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "eat":
            return str(len(bytearray(2 * MEMORY)))
        case "refuse":
            raise StoreError("no room", note, "make room")
    return what


def sleep_long(spec: str) -> None:
    Path(spec).write_text(str(os.getpid()))
    time.sleep(600)


# ---- the engine


def test_every_task_is_answered_once_from_both_nodes(cluster: RayCluster) -> None:
    """More tasks than are handed out at once give one outcome each, in whatever order."""
    engine = RayEngine(cluster.address, memory=MEMORY)
    outcomes = list(engine.run(f"{HERE}:double", [Task(str(n), n) for n in range(10)]))
    assert sorted(outcomes, key=lambda outcome: int(outcome.key)) == [Done(str(n), n * 2) for n in range(10)]


def test_a_crash_costs_one_task_and_leaves_its_note(cluster: RayCluster, tmp_path: Path) -> None:
    """A task that is killed or takes more memory than it may is reported after three tries, with what it was at; others are done."""
    tasks = [Task(what, (what, str(tmp_path / what)), (str(tmp_path / what),)) for what in ("fine", "segfault", "eat")]
    outcomes = {o.key: o for o in RayEngine(cluster.address, memory=MEMORY).run(f"{HERE}:misbehave", tasks)}
    assert outcomes["fine"] == Done("fine", "fine")
    for what, status in (("segfault", -signal.SIGSEGV), ("eat", OUT_OF_MEMORY)):
        crashed = outcomes[what]
        assert isinstance(crashed, Crashed)
        assert (crashed.tries, crashed.detail) == (3, f"worker ended with exit status {int(status)}")
        assert (tmp_path / what).read_text() == f"at {what}"


def test_errors_cross_the_cluster_whole(cluster: RayCluster, tmp_path: Path) -> None:
    """An error of ours arrives with what, where and hint; a task for which no node has memory is refused and not waited for."""
    with pytest.raises(StoreError) as caught:
        list(RayEngine(cluster.address, memory=MEMORY).run(f"{HERE}:misbehave", [Task("x", ("refuse", str(tmp_path / "n")))]))
    assert (caught.value.what, caught.value.hint) == ("no room", "make room")
    with pytest.raises(UsageError, match="no node of the Ray cluster"):
        list(RayEngine(cluster.address, memory=10**15).run(f"{HERE}:double", [Task("x", 1)]))


def test_tasks_end_with_their_driver(cluster: RayCluster, tmp_path: Path) -> None:
    """Kill -9 of the caller ends what runs on the cluster."""
    marker = tmp_path / "pid"
    script = (
        "from corpus.engine.ray import RayEngine\nfrom corpus.engine.tasks import Task\n"
        f"list(RayEngine({cluster.address!r}, memory={MEMORY}).run('{HERE}:sleep_long', [Task('x', {str(marker)!r})]))"
    )
    driver = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parents[2], stderr=subprocess.DEVNULL)
    try:
        until(lambda: marker.exists() and marker.read_text())
    finally:
        driver.kill()
        driver.wait()
    worker = int(marker.read_text())
    until(lambda: not _running(worker))


def _running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


# ---- the stages


def test_ray_gives_the_release_of_one_process(
    cluster: RayCluster, crawled: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    """Measured, joined and released with tasks on two nodes: byte for byte what the local engine makes, and nothing is left over."""
    folder = copied(crawled, tmp_path)
    for verb in ("process", "dedup", "export"):
        assert ended(started(verb, folder, cluster)) == 0, (tmp_path / f"{verb}.err").read_text()[-2000:]
    assert release(folder) == whole
    assert not (folder / "joins").exists()
    assert corpus_cli("verify", "-c", folder / "corpus.toml").code == 0


@pytest.mark.slow
@pytest.mark.needs("s3")
def test_ray_in_a_bucket_gives_the_same_bytes(
    cluster: RayCluster, crawled: Path, whole: dict[str, bytes], s3_server: Server, tmp_path: Path
) -> None:
    """Law A with the corpus in S3: tasks on two nodes read archives from the bucket and write into it; nothing but the bucket is left
    between stages, and the release is byte for byte that of one process on a folder."""
    folder, root = copied(crawled, tmp_path), f"rays/{tmp_path.name}"
    with gateway(s3_server, create_only=True) as gate:
        upload(folder, gate, root)
        flags = ("--set", f"store.root=s3://{BUCKET}/{root}", "--set", f"store.s3_endpoint={gate.endpoint}")
        for verb in ("process", "dedup", "export"):
            shutil.rmtree(folder / ".local" / "working", ignore_errors=True)
            assert ended(started(verb, folder, cluster, *flags)) == 0, (tmp_path / f"{verb}.err").read_text()[-2000:]
        found = f"{root}/releases/v1/"
        listed = client_of(gate).list_objects_v2(Bucket=BUCKET, Prefix=found)["Contents"]
        made = {
            item["Key"].removeprefix(found): client_of(gate).get_object(Bucket=BUCKET, Key=item["Key"])["Body"].read()
            for item in listed
        }
    assert made == whole


def client_of(gate: Gateway) -> Any:
    import boto3

    return boto3.client("s3", endpoint_url=gate.endpoint, region_name="us-east-1")


def upload(folder: Path, gate: Gateway, root: str) -> None:
    """Everything durable of a folder, under the same names."""
    client = client_of(gate)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith((".local", "runs/", "corpus.toml")):
            client.put_object(Bucket=BUCKET, Key=f"{root}/{name}", Body=path.read_bytes())


def test_a_node_killed_in_mid_stage_costs_nothing(
    cluster: RayCluster, crawled: Path, whole: dict[str, bytes], tmp_path: Path
) -> None:
    """Kill -9 of a node while it measures: the stage ends, no segment is lost or done twice, and the release is the same."""
    folder = copied(crawled, tmp_path)
    process = started("process", folder, cluster)
    until(lambda: list((folder / "commits" / "map").glob("*.json")) or process.poll() is not None)
    left = process.poll() is None
    cluster.kill_second()
    assert ended(process) == 0, (tmp_path / "process.err").read_text()[-2000:]
    assert left, "the stage was over before the node was killed"
    segments = [f"{s.crawl_id}/{s.name}" for s in page_segments(project_of(folder))]
    assert sorted(map_records(project_of(folder))) == sorted(segments)
    for verb in ("dedup", "export"):
        assert ended(started(verb, folder, cluster)) == 0, (tmp_path / f"{verb}.err").read_text()[-2000:]
    assert release(folder) == whole
