"""Orders of the operator, in the order they were given: takedowns, blocks, pauses, budgets.

One create-only object per order, numbered without gaps, so a reader that knows `n` asks for `n + 1` and needs no
listing. Workers read it before every take and readers before every answer; an order is never edited, only superseded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from corpus.errors import AlreadyExists, StoreError
from corpus.model import url_id as id_of_url
from corpus.store.commits import canonical_json
from corpus.store.objects import ObjectStore

_PREFIX = "control/"
ACTIONS = ("takedown", "purge", "block", "unblock", "pause", "resume", "slow", "budget", "drain")
"""A `takedown` is final. A `purge` removes what was stored up to its time and forbids nothing: a site or the operator's list
said so, and the site may say something else one day."""
KINDS = ("domain", "url", "id")
_ON_TARGETS = frozenset({"takedown", "purge", "block", "unblock"})
_ID = re.compile(r"[0-9a-f]{32}\Z")
_HOST = re.compile(r"\A[a-z][a-z0-9+.-]*://(?:[^/?#@]*@)?(\[[^\]]*\]|[^/?#:]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ControlEntry:
    """One order. `kind`, `value` name its target where it has one; a target URL is kept as its `url_id` in a takedown."""

    n: int
    at: float
    action: str
    kind: str = ""
    value: str = ""
    url_id: str = ""
    """For a target of kind `id`: the URL of that version, which is blocked with it."""
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)

    @property
    def members(self) -> tuple[str, ...]:
        """Further `url_id`s that the order speaks of: the other scheme's spelling, the copies of a cluster."""
        found = self.detail.get("members", ())
        return tuple(found) if isinstance(found, list | tuple) and all(isinstance(item, str) for item in found) else ()


class ControlLog:
    """The log in an object store, at `control/<n>.json`, n from 1."""

    def __init__(self, objects: ObjectStore, told: Callable[[int], None] | None = None) -> None:
        """`told` hears the number of every order that was added (so that others need not wait until they look)."""
        self._objects, self._told = objects, told
        self._version = 0

    def append(
        self, action: str, *, at: float, kind: str = "", value: str = "", url_id: str = "", reason: str = "", detail: Mapping[str, Any] | None = None
    ) -> int:  # fmt: skip
        """Add an order; durable on return. Its number. StoreError for an action or target that makes no sense."""
        value = _checked(action, kind, value)
        while True:
            n = self.version() + 1
            entry = {
                "n": n, "at": at, "action": action, "kind": kind, "value": value, "url_id": url_id, "reason": reason, "detail": dict(detail or {}),
            }  # fmt: skip
            try:
                self._objects.put_new(_name(n), canonical_json(entry, _PREFIX) + b"\n")
            except AlreadyExists:
                continue  # somebody else's order came first
            self._version = n
            if self._told is not None:
                self._told(n)
            return n

    def version(self) -> int:
        """The number of the last order; 0 when there is none."""
        while self._objects.exists(_name(self._version + 1)):
            self._version += 1
        return self._version

    def read(self, after: int = 0, upto: int | None = None) -> Iterator[ControlEntry]:
        """Orders with after < n (and n ≤ upto), in order."""
        n = after + 1
        while (upto is None or n <= upto) and self._objects.exists(_name(n)):
            yield _decode(self._objects.get(_name(n)), n)
            n += 1

    def tombstones(self, upto: int | None = None) -> Tombstones:
        """All that is taken down or blocked, as of order `upto` (or now)."""
        index = Tombstones()
        index.apply(self.read(upto=upto))
        return index


class Tombstones:
    """What must not be fetched, read or released. A takedown is final; a block lasts until its unblock.

    Feed it orders with `apply` as they come; look-ups are a few dictionary probes.
    """

    def __init__(self) -> None:
        self.version = 0
        self._down: dict[tuple[str, str], ControlEntry] = {}
        self._blocked: dict[tuple[str, str], ControlEntry] = {}

    def apply(self, entries: Iterable[ControlEntry]) -> bool:
        """Take in orders in sequence; whether any of them changed what is blocked."""
        changed = False
        for entry in entries:
            self.version = max(self.version, entry.n)
            keys = _keys(entry)
            if entry.action == "takedown":
                self._down.update((key, entry) for key in keys if key not in self._down)
            elif entry.action == "block":
                self._blocked.update((key, entry) for key in keys)
            elif entry.action == "unblock":
                for key in keys:
                    self._blocked.pop(key, None)
            else:
                continue
            changed = True
        return changed

    def blocks(self, *, url: str = "", url_id: str = "", id: str = "", domain: str = "") -> ControlEntry | None:  # noqa: A002  (the column's name)
        """The order that forbids this, a takedown before a block; None when nothing does.

        Give what is known: `url` also stands for its `url_id` and host, and a domain's order covers every host below it.
        """
        if not self._down and not self._blocked:
            return None
        probes = [("id", id)] if id else []
        if url or url_id:
            probes.append(("url", url_id or id_of_url(url)))
        hosts = {domain.lower(), _host(url)} - {""}
        probes += [("domain", suffix) for host in sorted(hosts) for suffix in _suffixes(host)]
        return next((found for index in (self._down, self._blocked) for key in probes if (found := index.get(key))), None)

    @property
    def blocked(self) -> list[ControlEntry]:
        """The blocks that hold, each once, in the order in which they were given."""
        return sorted({entry.n: entry for entry in self._blocked.values()}.values(), key=lambda entry: entry.n)

    def __len__(self) -> int:
        return len(self._down) + len(self._blocked)


def _checked(action: str, kind: str, value: str) -> str:
    """The target as the log keeps it."""
    if action not in ACTIONS:
        raise StoreError(f"there is no order {action!r}", hint=f"one of {', '.join(ACTIONS)}")
    if action in _ON_TARGETS and (kind not in KINDS or not value):
        raise StoreError(f"{action} needs a target", hint=f"a kind ({', '.join(KINDS)}) and a value")
    if kind == "id" and not _ID.match(value):
        raise StoreError(f"not an id: {value[:80]!r}", hint="32 hex digits")
    if kind == "domain":
        return value.lower().strip(".")
    if kind == "url" and action in ("takedown", "purge") and not _ID.match(value):
        return id_of_url(value)  # what was asked to be forgotten is not written down again
    return value


def _keys(entry: ControlEntry) -> list[tuple[str, str]]:
    return [*_target(entry), *(("url", member) for member in entry.members)]


def _target(entry: ControlEntry) -> list[tuple[str, str]]:
    match entry.kind:
        case "url":
            return [("url", entry.value if _ID.match(entry.value) else id_of_url(entry.value))]
        case "id":
            return [("id", entry.value), *([("url", entry.url_id)] if entry.url_id else [])]
        case "domain":
            return [("domain", entry.value)]
        case _:
            return []


def _host(url: str) -> str:
    match = _HOST.match(url)
    return match[1].lower() if match else ""


def _suffixes(host: str) -> Iterator[str]:
    yield host
    while (dot := host.find(".")) >= 0:
        host = host[dot + 1 :]
        yield host


def _decode(data: bytes, n: int) -> ControlEntry:
    try:
        entry = ControlEntry(**json.loads(data))
    except (ValueError, TypeError) as error:
        raise StoreError(f"a damaged order ({error})", _name(n), "restore it from a backup") from None
    return entry


def _name(n: int) -> str:
    return f"{_PREFIX}{n:08d}.json"
