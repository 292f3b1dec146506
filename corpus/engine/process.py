"""Child processes that cannot outlive their parent, and the two-way link to them.

A child is started by `spawn` with one picklable spec. It learns of its parent's death twice over: the kernel sends
it SIGKILL (Linux), and the read end of its link sees the end of file (everywhere). Parents start children from
their main thread only, because the kernel's signal follows the starting thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any

from corpus.engine.lean import lean

_CONTEXT = multiprocessing.get_context("spawn")
_PR_SET_PDEATHSIG = 1
ORPHANED = 70
"""Exit status of a child that noticed its parent is gone."""
DEAF = 71
"""Exit status of a child that could not read what its parent said."""


class Link:
    """The child's end: messages from the parent wait in a queue; the end of file ends the process at once."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._inbox: SimpleQueue[Any] = SimpleQueue()
        self._lock = threading.Lock()
        self.on_message: Callable[[], None] | None = None
        """Called from the reading thread after a message was queued (to wake an event loop)."""
        threading.Thread(target=self._read, name="link", daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                self._inbox.put(self._connection.recv())
                if self.on_message is not None:
                    self.on_message()
        except (EOFError, OSError):
            # no clean-up on purpose: whatever was not durable is done again by the successor
            os._exit(ORPHANED)
        except BaseException:  # noqa: BLE001  (a message that cannot be read, or whoever is told of it fails)
            traceback.print_exc()
            os._exit(DEAF)  # a process that hears nothing any more would wait for ever

    def send(self, message: Any) -> None:
        with self._lock:
            try:
                self._connection.send(message)
            except (BrokenPipeError, ConnectionResetError):
                os._exit(ORPHANED)

    def receive(self, timeout_s: float | None = None) -> Any | None:
        """The next message, or None after `timeout_s` (0: do not wait; None: wait for ever)."""
        try:
            return self._inbox.get(block=timeout_s != 0, timeout=timeout_s or None)
        except Empty:
            return None


@dataclass(slots=True, eq=False)
class Child:
    """The parent's end. `name` appears in errors and process lists."""

    name: str
    process: Any
    connection: Connection
    state: dict[str, Any] = field(default_factory=dict)

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    def send(self, message: Any) -> bool:
        """Whether the child was still there to read it."""
        try:
            self.connection.send(message)
        except (BrokenPipeError, ConnectionResetError, OSError):
            return False
        return True

    def alive(self) -> bool:
        return bool(self.process.is_alive())

    def exit_code(self) -> int | None:
        code = self.process.exitcode
        return None if code is None else int(code)

    def stop(self, grace_s: float = 5.0) -> None:
        """Close the link, wait, then kill: afterwards the process is gone."""
        self.connection.close()
        self.process.join(grace_s)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def start(name: str, target: str, spec: Any) -> Child:
    """Start `module:function` in a fresh process as `function(spec, link)`."""
    ours, theirs = _CONTEXT.Pipe(duplex=True)
    # The spec travels packed: unpacking it imports the target's room, and the child must be bound to us before it spends time on that.
    packed = pickle.dumps(spec)
    process = _CONTEXT.Process(target=_main, args=(target, packed, theirs, os.getpid()), name=name, daemon=False)
    with _importable_main():
        process.start()
    theirs.close()
    return Child(name, process, ours)


@contextlib.contextmanager
def _importable_main() -> Any:
    """Keep `spawn` from importing the parent's script again: children need only the target's module."""
    main = sys.modules.get("__main__")
    saved = {name: getattr(main, name) for name in ("__file__", "__spec__") if hasattr(main, name)}
    if main is not None:
        main.__dict__.pop("__file__", None)
        main.__spec__ = None
    try:
        yield
    finally:
        for name, value in saved.items():
            setattr(main, name, value)


def _main(target: str, packed: bytes, connection: Connection, parent: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):  # the parent decides what they mean, also where a whole group gets them
        signal.signal(number, signal.SIG_IGN)
    _die_with(parent)
    with lean():
        module, _, name = target.partition(":")
        getattr(import_module(module), name)(pickle.loads(packed), Link(connection))


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(ORPHANED)
