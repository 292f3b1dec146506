"""A two-node Ray cluster on one machine's loopback, in a process of its own, so that nothing of it outlives a test.

`ray.cluster_utils.Cluster` and never `ray start`: a second one on a loopback waits for ever.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
UP_S = 120.0
GIB = 2**30


@dataclass(frozen=True, slots=True)
class RayCluster:
    """`address` of the head; `second` is the raylet of the second node, which may be killed."""

    address: str
    second: int

    def engine(self) -> tuple[str, ...]:
        """Flags that make a verb use it."""
        return ("--set", "engine.kind=ray", "--set", f"engine.address={self.address}", "--set", "engine.memory=2GB")

    def kill_second(self) -> list[int]:
        """kill -9 of the second node: its raylet and the workers on it. Returns their pids."""
        pids = [self.second, *children_of(self.second)]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return pids


def children_of(pid: int) -> list[int]:
    """Every process below one, at this moment."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has just ended
            parents.setdefault(int(stat.read_text("utf-8", "replace").rsplit(")", 1)[1].split()[1]), []).append(
                int(stat.parent.name)
            )
    found, at = [], [pid]
    while at:
        at = [child for parent in at for child in parents.get(parent, ())]
        found += at
    return found


@contextmanager
def ray_cluster(folder: Path) -> Iterator[RayCluster]:
    """Two nodes of one core each; gone afterwards, whatever happened to them."""
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.fleet.ray_kit"], cwd=root, env=os.environ | ENVIRONMENT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=(folder / "ray.log").open("w"),
    )  # fmt: skip
    below: list[int] = []
    timer = threading.Timer(UP_S, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        timer.cancel()
        assert line, f"Ray did not come up: {(folder / 'ray.log').read_text()[-2000:]}"
        below = children_of(process.pid)
        yield RayCluster(**json.loads(line))
    finally:
        timer.cancel()
        below = sorted({*below, *children_of(process.pid)})
        process.kill()
        process.wait()
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Bring the nodes up, say where, and wait to be killed."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "memory": 4 * GIB}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    second = cluster.add_node(**node)
    (raylet,) = (info.process.pid for info in second.all_processes["raylet"])
    print(json.dumps({"address": cluster.address, "second": raylet}), flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
