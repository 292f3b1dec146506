"""The simulated web as a process and in memory: its log, its end, and runs that are equal byte for byte."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import asdict
from pathlib import Path

import pytest

from corpus.crawl.ports import Request, Resolved
from corpus.crawl.settings import CrawlSettings
from corpus.model import Failed, Failure, FetchResult
from corpus.testing.clock import VirtualClock
from corpus.testing.transport import SimResolver, SimTransport
from corpus.testing.web import SimHost, SimWeb, address_of, plain_hosts, read_log, zoo

SETTINGS = CrawlSettings(contact="ops@example.org", allow_private=("127.0.0.0/8",))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def gone(pid: int) -> bool:
    for _ in range(100):
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_a_process_serves_logs_and_stops(tmp_path: Path) -> None:
    """It says where it listens, logs each contact as it ends, and is gone after the block."""
    web = SimWeb(1, plain_hosts(3, 2, by_address=True))
    with web.serve_in_process(tmp_path / "contacts.jsonl") as process:
        for host in web.hosts:
            with urllib.request.urlopen(web.url(host, "/p/0001"), timeout=5) as page:
                assert page.status == 200
        log = process.log()
        assert [c.url for c in log] == [web.url(h, "/p/0001") for h in web.hosts]
        assert [c.ip for c in log] == [h.address for h in web.hosts]
        assert all(c.arrived <= c.ended and c.end == "sent" and "urllib" in c.agent for c in log)
        pid = process.pid
        assert alive(pid)
    assert gone(pid)
    assert read_log(tmp_path / "contacts.jsonl") == log


def test_a_process_dies_with_its_parent(tmp_path: Path) -> None:
    """Killed without warning, the parent takes the server with it."""
    code = (
        "import sys, time\nfrom corpus.testing.web import SimWeb, plain_hosts\n"
        "p = SimWeb(1, plain_hosts(1, 1)).serve_in_process()\np.start()\nprint(p.pid, flush=True)\ntime.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert alive(pid)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone(pid)


def test_a_half_written_log_line_is_left_out(tmp_path: Path) -> None:
    """A killed server leaves a log that can be read."""
    web = SimWeb(1, plain_hosts(1, 1, by_address=True))
    with web.serve_in_process(tmp_path / "log") as process:
        urllib.request.urlopen(web.url(web.hosts[0]), timeout=5).close()
        whole = process.log()
    with (tmp_path / "log").open("ab") as file:
        file.write(b'{"n": 2, "host": "a')
    assert read_log(tmp_path / "log") == whole


def crawl_in_memory() -> tuple[list[FetchResult], list[dict[str, object]], float]:
    """Ask every page of the zoo, many at a time, each host's name resolved first."""
    clock, web = VirtualClock(), SimWeb(4, zoo())
    transport, resolver = SimTransport(web, clock, SETTINGS), SimResolver(web, clock, SETTINGS)

    async def one(host: SimHost, path: str) -> FetchResult:
        found = await resolver.resolve(host.name)
        if isinstance(found, Failed):
            return found
        return await transport.fetch(Request(web.url(host, path), host.name, found.addresses[0]))

    async def main() -> list[FetchResult]:
        paths = ["/", "/robots.txt", "/p/0001", "/broken/drip", "/bomb/zstd", "/r/1", "/etag/1", "/slow/300"]
        return list(await asyncio.gather(*(one(host, path) for host in web.hosts for path in paths)))

    results = clock.run(main())
    return results, [asdict(contact) for contact in transport.log], clock.monotonic()


def test_two_simulated_runs_are_equal_byte_for_byte() -> None:
    """Results, times and log of a whole round over the zoo are the same in every run, and cost no real time."""
    began = time.monotonic()
    first, second = crawl_in_memory(), crawl_in_memory()
    assert first == second
    assert first[2] > 20.0
    assert time.monotonic() - began < first[2]
    assert len(first[1]) > 300


@pytest.mark.parametrize(
    ("host", "failure"),
    [
        ("nxdomain.test", Failure.DNS),
        ("blackhole.test", Failure.DNS),
        ("private.test", Failure.ADDRESS),
        ("metadata.test", Failure.ADDRESS),
        ("mapped.test", Failure.ADDRESS),
        ("10.0.0.1", Failure.ADDRESS),
        ("sitemap.test", None),
        (address_of(3), None),
    ],
)
def test_the_simulated_resolver_vets_as_the_real_one(host: str, failure: Failure | None) -> None:
    """Refusals and silence come out as the port says."""
    clock, web = VirtualClock(), SimWeb(4, zoo())
    result = clock.run(SimResolver(web, clock, SETTINGS).resolve(host))
    assert (result.failure if isinstance(result, Failed) else None) is failure
    assert isinstance(result, Resolved) is (failure is None)
