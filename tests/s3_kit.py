"""S3 servers for tests, and a gateway that breaks what passes through it.

moto honours create-only and knows no secrets; nanio checks signatures and ignores If-None-Match. A `Gateway` in front of
either can refuse, cut or lose answers by rule, and can keep the create-only promise that nanio does not.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from corpus.store.s3_objects import S3Objects
from corpus.store.s3_place import S3Place
from corpus.store.s3_retry import Patience
from corpus.store.s3_uploads import UploadJournal

KEYS = {"AWS_ACCESS_KEY_ID": "test-key-4711", "AWS_SECRET_ACCESS_KEY": "test-secret-that-must-not-be-shown"}
BUCKET = "bucket"
START_S = 30.0


@dataclass(frozen=True, slots=True)
class Server:
    """`endpoint` is its URL; the bucket is there already."""

    endpoint: str

    def place(self, prefix: str | None = None) -> S3Place:
        """A place of its own (or a named one) in the bucket."""
        return S3Place(BUCKET, f"{prefix or secrets.token_hex(6)}/", self.endpoint, "us-east-1")

    def objects(self, prefix: str | None = None, *, journal: Path | None = None, patience_s: float = 3.0) -> S3Objects:
        return S3Objects(self.place(prefix), UploadJournal(journal) if journal else None, Patience(patience_s))


@contextlib.contextmanager
def moto() -> Iterator[Server]:
    """moto's threaded server, in this process."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield _with_bucket(f"http://{host}:{port}")
    finally:
        server.stop()


@contextlib.contextmanager
def nanio(folder: Path) -> Iterator[Server]:
    """nanio in a process of its own, over a folder."""
    port = _free_port()
    command = [
        str(Path(sys.executable).with_name("nanio")),
        "serve",
        "--data-dir",
        str(folder),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    keys = {"NANIO_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"], "NANIO_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
    child = subprocess.Popen(
        [*command, "--no-access-log", "--log-level", "error"],
        env={**os.environ, **keys},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port, child)
        yield _with_bucket(f"http://127.0.0.1:{port}")
    finally:
        child.terminate()
        child.wait(10)


def _with_bucket(endpoint: str) -> Server:
    import boto3

    os.environ.update(KEYS)
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.create_bucket(Bucket=BUCKET)
    return Server(endpoint)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(port: int, child: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_S
    while time.monotonic() < until and child.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise RuntimeError("the S3 server did not start")


@dataclass(frozen=True, slots=True)
class Seen:
    """One request on its way through a gateway."""

    method: str
    path: str
    headers: dict[str, str]
    bytes: int

    def makes(self, name: str) -> bool:
        """Whether it would make the object with this name (or a part of it)."""
        return self.method in ("PUT", "POST") and self.path.partition("?")[0].endswith(f"/{name}")


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer instead of the store."""

    status: int
    code: str = ""
    body: str = ""


CUT, LOST, HALF = "cut", "lost", "half"
"""Drop the connection before the store hears of it; let it hear and drop its answer; send half of the answer's body."""
Rule = Callable[[Seen], "Refuse | str | None"]


@dataclass(slots=True)
class Gateway:
    """A proxy in front of a server. `rule` says what goes wrong; `create_only` keeps If-None-Match for a store that does not."""

    server: Server
    endpoint: str = ""
    create_only: bool = False
    rule: Rule = lambda _: None
    seen: list[Seen] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def objects(self, prefix: str | None = None, *, journal: Path | None = None, patience_s: float = 3.0) -> S3Objects:
        return Server(self.endpoint).objects(prefix, journal=journal, patience_s=patience_s)


@contextlib.contextmanager
def gateway(server: Server, *, create_only: bool = False) -> Iterator[Gateway]:
    """A gateway on a port of its own."""
    gate = Gateway(server, create_only=create_only)

    class Handler(_Handler):
        gateway = gate

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.daemon_threads = True
    gate.endpoint = f"http://127.0.0.1:{proxy.server_address[1]}"
    thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield gate
    finally:
        proxy.shutdown()
        proxy.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    gateway: Gateway

    def __getattr__(self, name: str) -> Any:
        if name in ("do_GET", "do_PUT", "do_POST", "do_HEAD", "do_DELETE"):
            return self._pass_on
        raise AttributeError(name)

    def log_message(self, *_: Any) -> None:
        """Nothing: thousands of lines would drown a failure."""

    def _pass_on(self) -> None:
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.send_response_only(100)
            self.end_headers()
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        seen = Seen(self.command, self.path, {k.lower(): v for k, v in self.headers.items()}, len(body))
        self.gateway.seen.append(seen)
        fault = self.gateway.rule(seen)
        if isinstance(fault, Refuse):
            self._refuse(fault)
        elif fault == CUT:
            self.close_connection = True
        elif self.gateway.create_only and seen.headers.get("if-none-match") == "*":
            with self.gateway.lock:
                if self._is_there(self.path.partition("?")[0]):
                    self._refuse(Refuse(412, "PreconditionFailed"))
                else:
                    self._answer(*self._ask(self.command, self.path, body), fault)
        else:
            self._answer(*self._ask(self.command, self.path, body), fault)

    def _ask(self, method: str, path: str, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        backend = self.gateway.server.endpoint.removeprefix("http://")
        connection = http.client.HTTPConnection(backend, timeout=60)
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("expect", "connection"):
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        found = answer.status, answer.getheaders(), answer.read()
        connection.close()
        return found

    def _is_there(self, path: str) -> bool:
        """Whether an object is there, asked with the gateway's own keys."""
        import boto3
        from botocore.exceptions import ClientError

        client = boto3.client("s3", endpoint_url=self.gateway.server.endpoint, region_name="us-east-1")
        _, bucket, key = path.split("/", 2)
        try:
            client.head_object(Bucket=bucket, Key=key)
        except ClientError:
            return False
        return True

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes, fault: object) -> None:
        if fault == LOST:
            self.close_connection = True
            return
        self.send_response_only(status)
        length = next((value for name, value in headers if name.lower() == "content-length"), str(len(body)))
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", length if self.command == "HEAD" else str(len(body)))
        self.end_headers()
        if fault == HALF:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, fault: Refuse) -> None:
        body = (fault.body or f"<?xml version='1.0'?><Error><Code>{fault.code}</Code><Message>test</Message></Error>").encode()
        self.send_response_only(fault.status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(0 if self.command == "HEAD" else len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
