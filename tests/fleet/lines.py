"""Lines between a worker and the world that can be cut so that packets vanish: a relay, and a network namespace with one cable."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import uuid
from collections.abc import Iterator


class Line:
    """Relays TCP connections to a port of this machine. While cut nothing travels, nothing is refused and nothing is closed;
    what was under way arrives when it is mended, however late."""

    def __init__(self, to: int) -> None:
        self._to, self._open = to, threading.Event()
        self._open.set()
        self._ends: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._open.set()
        for end in (self._server, *self._ends):
            with contextlib.suppress(OSError):  # whoever waits on it hears of the end
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                near, _ = self._server.accept()
                self._open.wait()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(source, target), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):  # one of them is gone, and then both are
            while data := source.recv(1 << 16):
                self._open.wait()
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):  # gone already
                end.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def line(to: int) -> Iterator[Line]:
    made = Line(to)
    try:
        yield made
    finally:
        made.close()


class Namespace:
    """A network of its own with one cable to this machine, through which every loopback address of this machine is reached."""

    def __init__(self, number: int) -> None:
        self.name = f"corpus-{uuid.uuid4().hex[:8]}"
        self._outer, self._inner = f"co{self.name[-8:]}", f"ci{self.name[-8:]}"
        self._net = f"10.213.{number}"

    @property
    def inside(self) -> tuple[str, ...]:
        """What a command is begun with to run there."""
        return ("nsenter", f"--net=/run/netns/{self.name}")

    def make(self) -> str:
        """Why it cannot be made here, or empty."""
        steps = [
            f"ip netns add {self.name}",
            f"ip link add {self._outer} type veth peer name {self._inner} netns {self.name}",
            f"ip addr add {self._net}.1/24 dev {self._outer}",
            f"ip link set {self._outer} up",
            f"sysctl -qw net.ipv4.conf.{self._outer}.route_localnet=1",
            f"ip -n {self.name} addr add {self._net}.2/24 dev {self._inner}",
            f"ip -n {self.name} link set {self._inner} up",
            f"ip netns exec {self.name} sysctl -qw net.ipv4.conf.{self._inner}.route_localnet=1",
            f"ip -n {self.name} route add 127.0.0.0/8 via {self._net}.1 dev {self._inner} src {self._net}.2",
        ]
        for step in steps:
            try:
                done = subprocess.run(step.split(), capture_output=True, text=True, timeout=20, check=False)
            except FileNotFoundError as error:
                return f"{error.filename} is missing"
            if done.returncode:
                return f"{step}: {done.stderr.strip()}"
        return ""

    def cut(self) -> None:
        """Pull the cable on our side: what is sent from there vanishes."""
        subprocess.run(["ip", "link", "set", self._outer, "down"], check=True)

    def mend(self) -> None:
        subprocess.run(["ip", "link", "set", self._outer, "up"], check=True)

    def remove(self) -> None:
        subprocess.run(["ip", "netns", "del", self.name], capture_output=True, check=False)
        subprocess.run(["ip", "link", "del", self._outer], capture_output=True, check=False)
