"""The folders of a configuration: can they be written, have they room, how fast is a sync, do locks work there.

Everything that is written is a temporary file of a few kilobytes in the nearest folder that exists, and is removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from corpus.app.findings import Finding, fault, ok, warn
from corpus.config.tree import Config

ROOM_FAULT, ROOM_WARN = 200 * 10**6, 5 * 10**9
SYNC_WARN_S, SYNC_FAULT_S = 0.05, 1.0
"""A group commit syncs twice in half a second."""
_SYNCS = 9


def folders(config: Config) -> Iterator[Finding]:
    """`store.root` and `store.local`: where nothing is on this machine there is nothing to look at."""
    if not config.store.root.startswith("s3://"):
        yield from _folder("store.root", config.root)
    yield from _folder("store.local", config.local)


def writable(config: Config) -> Iterator[Finding]:
    """Only whether they can be written to: the part of it that `check` asks."""
    named = [("store.local", config.local)]
    if not config.store.root.startswith("s3://"):
        named.insert(0, ("store.root", config.root))
    for key, path in named:
        found = _unwritable(key, path)
        if found is not None:
            yield found


def _folder(key: str, path: Path) -> Iterator[Finding]:
    bad = _unwritable(key, path)
    if bad is not None:
        yield bad
        return
    place = _existing(path)
    free = shutil.disk_usage(place).free
    said = f"{path}: {free / 1e9:.1f} GB free"
    if free < ROOM_FAULT:
        yield fault(key, said, "free some space, or name another folder", key)
    elif free < ROOM_WARN:
        yield warn(key, said, "corpus plan says how much a crawl will need", key)
    else:
        yield ok(key, said)
    yield _sync(key, place)
    if key == "store.local":
        yield _locks(key, place)


def _existing(path: Path) -> Path:
    """The folder itself, or the nearest one above it that exists."""
    while not path.exists() and path != path.parent:
        path = path.parent
    return path


def _unwritable(key: str, path: Path) -> Finding | None:
    place = _existing(path)
    hint = f"make it writable for this user, or set {key} to another folder"
    if not place.is_dir():
        return fault(key, f"{place} is no folder", hint, key)
    try:
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"corpus")
    except OSError as error:
        return fault(key, f"{place} cannot be written to: {error.strerror}", hint, key)
    return None


def _sync(key: str, place: Path) -> Finding:
    took = []
    with tempfile.TemporaryFile(dir=place) as file:
        for _ in range(_SYNCS):
            file.write(b"\0" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            took.append(time.perf_counter() - began)
    median = statistics.median(took)
    said = f"a sync takes {median * 1000:.1f} ms (median of {_SYNCS}, longest {max(took) * 1000:.1f} ms)"
    hint = "use a local disk: every half second of a crawl waits for one"
    if median > SYNC_FAULT_S:
        return fault(f"{key} sync", said, hint, key)
    return warn(f"{key} sync", said, hint, key) if median > SYNC_WARN_S else ok(f"{key} sync", said)


def _locks(key: str, place: Path) -> Finding:
    with tempfile.NamedTemporaryFile(dir=place) as file, Path(file.name).open("rb") as other:
        try:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return fault(f"{key} locks", f"locks do not work here: {error.strerror}", "use a disk of this machine", key)
        try:
            fcntl.flock(other.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return ok(f"{key} locks", "locks work")
    return fault(f"{key} locks", "a lock is given to two at once", "use a disk of this machine", key)
