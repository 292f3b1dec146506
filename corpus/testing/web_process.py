"""A simulated web served from its own process, so that the crawler's CPU and crashes are its own.

The child is told what to serve over its standard input and lives only as long as that pipe is open: it cannot outlive
a parent that was killed. It says on its standard output where it listens. Stopping is closing the pipe.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from corpus.errors import WorkerDied
from corpus.testing.dns import SimDns
from corpus.testing.web_answer import Site
from corpus.testing.web_log import Contact, ContactLog, read_log
from corpus.testing.web_server import SimServer


class ServerProcess:
    """`with ServerProcess(site) as process:`: then `pid`, `port`, `dns` ("IP:PORT") and `log()` are there."""

    def __init__(self, site: Site, *, port: int = 0, log_path: Path | None = None, start_s: float = 30.0) -> None:
        self._site, self._wanted_port, self._start_s = site, port, start_s
        self._folder = TemporaryDirectory(prefix="simweb-") if log_path is None else None
        self.log_path = log_path or Path(self._folder.name if self._folder else ".") / "contacts.jsonl"
        self._process: subprocess.Popen[bytes] | None = None
        self.pid = self.port = 0
        self.dns = ""

    def start(self) -> None:
        """Start and wait until it listens. Raises WorkerDied when it does not come up."""
        process = subprocess.Popen(
            [sys.executable, "-m", "corpus.testing.web_process"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        task = pickle.dumps((self._site, self._wanted_port, str(self.log_path)))
        process.stdin.write(len(task).to_bytes(8, "big") + task)
        process.stdin.flush()
        timer = threading.Timer(self._start_s, process.kill)
        timer.start()
        line = process.stdout.readline()
        timer.cancel()
        if not line:
            raise WorkerDied("the simulated web did not come up", f"pid {process.pid}", "see its standard error")
        ready = json.loads(line)
        self.pid, self.port, self.dns = process.pid, ready["port"], ready["dns"]
        at_port = getattr(self._site, "at_port", None)
        if at_port is not None:
            at_port(self.port)

    def log(self) -> list[Contact]:
        """Every contact that has ended so far, by arrival."""
        return read_log(self.log_path) if self.log_path.exists() else []

    def stop(self) -> None:
        """End the process and wait for it."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()
        if self._folder is not None:
            self._folder.cleanup()


async def _serve(site: Site, port: int, log_path: str) -> None:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()

    def wait_for_eof() -> None:
        sys.stdin.buffer.read()
        loop.call_soon_threadsafe(stopped.set)

    threading.Thread(target=wait_for_eof, daemon=True).start()
    log = ContactLog(Path(log_path))
    async with SimServer(site, port=port, log=log) as server, SimDns(site.names()) as dns:
        at_port = getattr(site, "at_port", None)
        if at_port is not None:
            at_port(server.port)
        print(json.dumps({"port": server.port, "dns": dns.endpoint}), flush=True)
        await stopped.wait()
    log.close()


def main() -> None:
    """Entry of the child."""
    size = int.from_bytes(sys.stdin.buffer.read(8), "big")
    # From our own parent over a private pipe.
    site, port, log_path = pickle.loads(sys.stdin.buffer.read(size))
    serving = _serve(site, port, log_path)
    try:
        import uvloop
    except ImportError:  # a platform without it: the server is only slower
        asyncio.run(serving)
    else:
        uvloop.run(serving)


if __name__ == "__main__":
    main()
