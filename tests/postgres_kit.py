"""A PostgreSQL server of the tests' own: a cluster in a temporary folder, under a user that is not root, ended by its number."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

USER_ID = 65534
"""`nobody`: PostgreSQL refuses root, and a build machine is root."""


def _programs() -> Path:
    return max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: int(folder.parent.name))


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Postgres:
    """One cluster. `dsn()` makes a database of its own for every caller."""

    def __init__(self, folder: Path, options: Sequence[str] = ()) -> None:
        self._data, self.port = folder / "data", _port()
        self._folder, self._options, self._template = folder, options, ""
        self._process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            os.chown(folder, USER_ID, USER_ID)
        command = [
            "initdb",
            "-D",
            str(self._data),
            "-A",
            "trust",
            "-U",
            "corpus",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
            "--no-instructions",
        ]
        subprocess.run(self._as_user(command), check=True, capture_output=True, cwd=folder)

    def _as_user(self, command: list[str]) -> list[str]:
        command = [str(_programs() / command[0]), *command[1:]]
        if os.geteuid() != 0:
            return command
        return ["setpriv", f"--reuid={USER_ID}", f"--regid={USER_ID}", "--clear-groups", *command]

    def start(self) -> None:
        options = [
            f"port={self.port}", "listen_addresses=127.0.0.1", f"unix_socket_directories={self._folder}", "max_connections=100",
            "shared_buffers=64MB", "fsync=on", "synchronous_commit=on", *self._options,
        ]  # fmt: skip
        command = ["postgres", "-D", str(self._data), *(part for option in options for part in ("-c", option))]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(self._as_user(command), stdout=log, stderr=log, cwd=self._folder)
        self._wait()

    def _wait(self) -> None:
        import psycopg

        ends = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self._dsn("postgres"), connect_timeout=3).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > ends or self.process.poll() is not None:
                    raise RuntimeError((self._folder / "log").read_text()[-3000:]) from None
                time.sleep(0.05)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _dsn(self, database: str) -> str:
        return f"postgresql://corpus@127.0.0.1:{self.port}/{database}"

    def dsn(self, *, prepared: bool = False) -> str:
        """A new database: empty, or with the tables of file 0 (copied, which is quicker than making them)."""
        import psycopg

        if prepared and not self._template:
            from corpus.store.frontier_postgres import PostgresFrontier

            self._template = self.dsn()
            PostgresFrontier(self._template, 0).close(clean=False)
        name = f"t{uuid.uuid4().hex[:12]}"
        of = f" TEMPLATE {self._template.rpartition('/')[2]}" if prepared else ""
        with psycopg.connect(self._dsn("postgres"), autocommit=True) as con:
            con.execute(f"CREATE DATABASE {name}{of}".encode())
        return self._dsn(name)

    def children(self) -> list[int]:
        """The server's own processes; only these may be killed."""
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in found.split()]

    def cpu_s(self) -> float:
        """CPU that the server and all it ever forked and has waited for have used."""
        ticks, total = os.sysconf("SC_CLK_TCK"), 0
        for pid in (self.process.pid, *self.children()):
            with contextlib.suppress(FileNotFoundError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:13])) + (sum(map(int, fields[13:15])) if pid == self.process.pid else 0)
        return total / ticks

    def kill(self) -> None:
        """kill -9 of the server and of every process it has: what a power cut leaves, but for the disk's own cache."""
        pids = [self.process.pid, *self.children()]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        ends = time.monotonic() + 10
        while any(Path(f"/proc/{pid}/exe").exists() for pid in pids) and time.monotonic() < ends:
            time.sleep(0.02)

    def restart(self) -> None:
        """After `kill`. A server that is not yet quite gone makes the new one refuse for some seconds."""
        ends = time.monotonic() + 30
        while True:
            try:
                return self.start()
            except RuntimeError:
                if time.monotonic() > ends:
                    raise
                time.sleep(0.5)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)  # at once: its folder is thrown away
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


@contextlib.contextmanager
def postgres(options: Sequence[str] = ()) -> Iterator[Postgres]:
    """A running server; its folder is gone afterwards. A path of few letters: a socket's name has at most 107."""
    folder = Path(tempfile.mkdtemp(prefix="corpus-pg-", dir="/tmp" if sys.platform == "linux" else None))
    server = Postgres(folder, options)
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)
