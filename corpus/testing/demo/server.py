"""The demo web on the wire: in this event loop (`DemoWeb`) or as a process of its own (`serving`, `python -m …`).

One 127.10.0.x address per host and one port for all of them. Where the system gives out no loopback address but
127.0.0.1 (macOS), the hosts become ports of that address instead, and the ready line says so. Listens on nothing but
loopback; the process ends when its standard input does, so it never outlives whoever started it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from corpus.errors import CorpusError, UsageError
from corpus.testing.demo.answers import DemoSite, Ready, answers
from corpus.testing.demo.pages import sites
from corpus.testing.web_log import ContactLog
from corpus.testing.web_server import SimServer

PORT = 8437
"""The port tried first, so that the same demo has the same URLs next time."""
ONE_ADDRESS = "127.0.0.1"
_READY_TIMEOUT_S = 20.0


class DemoWeb:
    """`async with DemoWeb() as web:` serves the demo web; `web.origins` maps host keys to `http://host:port`."""

    def __init__(self, *, port: int | None = None, log: ContactLog | None = None, one_address: bool | None = None) -> None:
        """`port`: None tries `PORT` and then any free one, 0 takes any free one. `one_address` forces the fallback."""
        self._wanted = port
        self._one_address = not _has_loopback_range() if one_address is None else one_address
        self.log = ContactLog() if log is None else log
        self.origins: dict[str, str] = {}
        self._stack = AsyncExitStack()

    @property
    def port(self) -> int:
        """The port of the first host (of every host, unless they share one address)."""
        return int(next(iter(self.origins.values())).rpartition(":")[2])

    async def __aenter__(self) -> DemoWeb:
        """Listen. Raises UsageError when a port that was asked for by number is taken."""
        try:
            await (self._start_ports() if self._one_address else self._start_addresses())
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None) -> None:
        await self._stack.aclose()

    async def _start_addresses(self) -> None:
        # The pages name the port in their links, so the listener comes first and its tables are filled in after.
        tables: dict[str, dict[str, Ready]] = {site.address: {} for site in sites()}
        server = await self._listen(DemoSite(tables), PORT if self._wanted is None else self._wanted)
        self.origins = {site.key: f"http://{site.address}:{server.port}" for site in sites()}
        for key, table in answers(self.origins).items():
            tables[self._address(key)].update(table)

    async def _start_ports(self) -> None:
        tables: dict[str, dict[str, Ready]] = {}
        for number, site in enumerate(sites()):
            tables[site.key] = {}
            wanted = 0 if self._wanted == 0 else (self._wanted or PORT) + number
            server = await self._listen(DemoSite({ONE_ADDRESS: tables[site.key]}), wanted)
            self.origins[site.key] = f"http://{ONE_ADDRESS}:{server.port}"
        for key, table in answers(self.origins).items():
            tables[key].update(table)

    async def _listen(self, site: DemoSite, port: int) -> SimServer:
        try:
            return await self._stack.enter_async_context(SimServer(site, port=port, log=self.log))
        except UsageError:
            if self._wanted is not None:
                raise
            return await self._stack.enter_async_context(SimServer(site, port=0, log=self.log))

    @staticmethod
    def _address(key: str) -> str:
        return next(site.address for site in sites() if site.key == key)


@dataclass(frozen=True, slots=True)
class Served:
    """A demo web in a process of its own: where its hosts are, and which process it is."""

    origins: dict[str, str]
    pid: int
    one_address: bool


@contextmanager
def serving(*, port: int | None = None, log: Path | None = None) -> Iterator[Served]:
    """Serve the demo web from a child process until the block ends.

    `log`: a file that gets one JSON line per contact. Raises UsageError when the port is taken, CorpusError when the
    server does not come up within 20 s.
    """
    argv = [sys.executable, "-m", "corpus.testing.demo.server", "--until-eof", "--print-ready"]
    argv += [] if port is None else ["--port", str(port)]
    argv += [] if log is None else ["--log", str(log)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True) as child:
        assert child.stdin is not None
        try:
            ready = _ready(child)
            yield Served(dict(ready["origins"]), child.pid, bool(ready["one_address"]))
        finally:
            child.stdin.close()
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                child.kill()


def _ready(child: subprocess.Popen[str]) -> dict[str, Any]:
    assert child.stdout is not None
    readable, _, _ = select.select([child.stdout], [], [], _READY_TIMEOUT_S)
    if not readable:
        child.kill()
        raise CorpusError("the demo server did not come up", f"pid {child.pid}, after {_READY_TIMEOUT_S:g} s")
    line = child.stdout.readline()
    if not line:
        code = child.wait(timeout=_READY_TIMEOUT_S)
        raise (UsageError if code == 2 else CorpusError)("the demo server did not start", f"exit code {code}")
    return dict(json.loads(line))


def _has_loopback_range() -> bool:
    """Can a second loopback address be bound? Linux gives out all of 127.0.0.0/8, macOS only 127.0.0.1."""
    with socket.socket() as probe:
        try:
            probe.bind((sites()[0].address, 0))
        except OSError:
            return False
    return True


async def _serve(options: argparse.Namespace) -> None:
    log = ContactLog(options.log)
    async with DemoWeb(port=options.port, log=log, one_address=options.one_address or None) as web:
        shared = len({origin.rpartition(":")[0] for origin in web.origins.values()}) == 1
        print(json.dumps({"port": web.port, "pid": os.getpid(), "one_address": shared, "origins": web.origins}), flush=True)
        if not options.print_ready:
            for key, origin in web.origins.items():
                print(f"  {key:8} {origin}/index.html", file=sys.stderr)
            if shared:
                print("  only 127.0.0.1 can be bound here, so hosts are ports", file=sys.stderr)
        await _until_told(options.until_eof)
    log.close()


async def _until_told(until_eof: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if until_eof:
        reader = asyncio.StreamReader()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        waits = {asyncio.ensure_future(reader.read()), asyncio.ensure_future(stop.wait())}
        _, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
    else:
        await stop.wait()


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGTERM, SIGINT or (with `--until-eof`) the end of standard input. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m corpus.testing.demo.server", description="Serve the demo web on loopback.")
    parser.add_argument(
        "--port", type=int, default=None, help=f"default: {PORT}, or a free one when it is taken; 0: any free one"
    )
    parser.add_argument("--log", type=Path, default=None, help="append one JSON line per contact to this file")
    parser.add_argument("--print-ready", action="store_true", help="print only the ready line (JSON)")
    parser.add_argument("--until-eof", action="store_true", help="stop when standard input ends")
    parser.add_argument(
        "--one-address", action="store_true", help="hosts are ports of 127.0.0.1 even where addresses are to be had"
    )
    options = parser.parse_args(argv)
    try:
        asyncio.run(_serve(options))
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
