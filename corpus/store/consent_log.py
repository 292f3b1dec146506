"""What sites said about us, and when: an append-only log of authority files and of what responses said.

Each append is one create-only object, durable when the call returns; each body is kept once, under its digest. A
`Watermark` names exactly the objects read, so a release can be decided again, years later, from the same words.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from corpus.errors import AlreadyExists, StoreError
from corpus.store.commits import canonical_json
from corpus.store.objects import ObjectStore, put_same

_LOG = "consent/log/"
_FILES = "consent/files/"
_POLICIES = "consent/policies/"
_KNOWN_MAX = 100_000
AUTHORITY_FILES = ("robots", "tdmrep", "ai-txt", "rsl")
AUTHORITY_OUTCOMES = ("ok", "absent", "denied", "unreachable")


@dataclass(frozen=True, slots=True)
class AuthorityRead:
    """One reading of one authority file. `authority` is scheme://host:port; `read_at` epoch seconds; `digest` SHA-256 hex or empty."""

    authority: str
    file: str
    url: str
    status: int | None
    outcome: str
    digest: str
    read_at: float
    detail: str = ""
    truncated: bool = False
    headers: tuple[tuple[str, str], ...] = ()
    origin: str = "crawl"
    """`crawl`, or `archive` for a reading that somebody else made."""
    policy: str = ""
    """Version of the reader, table and settings that decided with it (`optout.policy`); empty when nothing did yet."""

    def to_json(self) -> dict[str, Any]:
        return {"kind": "authority", **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        values = {key: value[key] for key in value if key != "kind"}
        values["headers"] = tuple((str(name), str(text)) for name, text in values.get("headers", ()))
        entry = cls(**values)
        if entry.file not in AUTHORITY_FILES or entry.outcome not in AUTHORITY_OUTCOMES:
            raise ValueError(f"no such file or outcome: {entry.file!r}, {entry.outcome!r}")
        return entry


@dataclass(frozen=True, slots=True)
class Refusal:
    """A body that was dropped because its own response refused: the tombstone that remains. `at` is epoch seconds."""

    url: str
    at: float
    protocol: str
    raw: str
    source: str = ""
    line_no: int | None = None
    http_status: int | None = None
    policy: str = ""
    file_digest: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"kind": "refusal", **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**{key: value[key] for key in value if key != "kind"})


@dataclass(frozen=True, slots=True)
class Statement:
    """What a response without a body of its own (a 304) adds to the signals of the copy that is kept; it refuses nothing."""

    url: str
    at: float
    protocol: str
    raw: str
    verdict: str
    source: str = ""
    http_status: int | None = None
    policy: str = ""
    file_digest: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"kind": "statement", **asdict(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(**{key: value[key] for key in value if key != "kind"})


Entry = AuthorityRead | Refusal | Statement
_KINDS: dict[str, type[AuthorityRead] | type[Refusal] | type[Statement]] = {
    "authority": AuthorityRead,
    "refusal": Refusal,
    "statement": Statement,
}


def parse_entry(value: Mapping[str, Any]) -> Entry:
    """The typed entry of a log line. Raises StoreError for an unknown kind or a wrong set of keys."""
    kind = _KINDS.get(str(value.get("kind")))
    if kind is None:
        raise StoreError(f"the consent log knows no entry of kind {value.get('kind')!r}", hint="upgrade this software")
    try:
        return kind.from_json(value)
    except (TypeError, ValueError) as error:
        raise StoreError(f"a damaged consent entry: {error}") from None


@dataclass(frozen=True, slots=True)
class Watermark:
    """Which log objects have been read: sorted (name, SHA-256 hex) pairs, and one digest over them."""

    names: tuple[tuple[str, str], ...]
    digest: str

    @classmethod
    def of(cls, names: Iterable[tuple[str, str]]) -> Self:
        pairs = tuple(sorted(names))
        return cls(pairs, hashlib.sha256(canonical_json(pairs)).hexdigest())


@dataclass(slots=True)
class ConsentLog:
    """One writer's end of the log, and everybody's reader. `writer` must be this process's own name (worker and epoch)."""

    objects: ObjectStore
    writer: str
    _next: int | None = None
    _bodies: dict[str, None] = field(default_factory=dict)
    _digests: dict[str, str] = field(default_factory=dict)

    def append(self, entries: Sequence[Entry | Mapping[str, Any]], bodies: Mapping[str, bytes] | None = None) -> str:
        """Write a batch as one object, its bodies first; durable on return. The object's name, or "" for an empty batch.

        `bodies` maps SHA-256 hex to bytes; StoreError when one is not what its digest says, or an entry is malformed.
        """
        typed = [entry if isinstance(entry, AuthorityRead | Refusal | Statement) else parse_entry(entry) for entry in entries]
        for digest, body in (bodies or {}).items():
            self._put_body(digest, body)
        if not typed:
            return ""
        lines = b"".join(
            json.dumps(entry.to_json(), sort_keys=True, separators=(",", ":")).encode("ascii") + b"\n" for entry in typed
        )
        while True:
            name = f"{_LOG}{self.writer}-{self._take_number():08d}.jsonl"
            try:
                self.objects.put_new(name, lines)
            except AlreadyExists:
                continue  # an earlier life of this writer got further than the listing showed
            return name

    def read(self, watermark: Watermark | None = None) -> Iterator[dict[str, Any]]:
        """Entries as written, by object name, then line; up to the watermark, or all there is now.

        Raises StoreError when an object of the watermark is missing or holds other bytes.
        """
        for _, _, entry in self._lines(watermark):
            yield entry

    def watermark(self) -> Watermark:
        """Everything in the log now. Reads objects it has not seen before."""
        names = self.objects.list(_LOG)
        return Watermark.of((name, self._digest(name)) for name in names)

    def declare(self, version: str, policy: Mapping[str, Any]) -> None:
        """Keep what a policy version stands for (settings, token, tables), once."""
        put_same(self.objects, f"{_POLICIES}{version}.json", canonical_json({"version": version, **policy}))

    def policies(self) -> dict[str, dict[str, Any]]:
        """Every policy that decided here, by version."""
        found = {}
        for name in self.objects.list(_POLICIES):
            value = json.loads(self.objects.get(name))
            found[str(value["version"])] = value
        return found

    def body(self, digest: str) -> bytes:
        """The body of an authority file. Raises StoreError when it is missing or damaged."""
        data = self.objects.get(_FILES + digest)
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreError("the stored file is not what its digest says", _FILES + digest, "restore it from a backup")
        return data

    def latest_authorities(self, watermark: Watermark | None = None) -> dict[tuple[str, str], AuthorityRead]:
        """The latest reading per (authority, file); on equal times the later object name and line wins."""
        latest: dict[tuple[str, str], AuthorityRead] = {}
        for _, _, value in self._lines(watermark):
            if value.get("kind") != "authority":
                continue
            entry = AuthorityRead.from_json(value)
            known = latest.get((entry.authority, entry.file))
            if known is None or entry.read_at >= known.read_at:
                latest[entry.authority, entry.file] = entry
        return latest

    def _lines(self, watermark: Watermark | None) -> Iterator[tuple[str, int, dict[str, Any]]]:
        for name, digest in (watermark or self.watermark()).names:
            data = self.objects.get(name)
            if hashlib.sha256(data).hexdigest() != digest:
                raise StoreError("this part of the consent log has changed", name, "restore it from a backup")
            for number, line in enumerate(data.splitlines()):
                yield name, number, json.loads(line)

    def _take_number(self) -> int:
        if self._next is None:
            prefix = f"{_LOG}{self.writer}-"
            last = [name[len(prefix) :].removesuffix(".jsonl") for name in self.objects.list(prefix)]
            self._next = 1 + max((int(text) for text in last if text.isdigit()), default=0)
        number, self._next = self._next, self._next + 1
        return number

    def _put_body(self, digest: str, body: bytes) -> None:
        if digest in self._bodies:
            return
        if hashlib.sha256(body).hexdigest() != digest:
            raise StoreError(f"a body was handed in under another digest ({digest[:16]}…)", _FILES)
        put_same(self.objects, _FILES + digest, body)
        if len(self._bodies) >= _KNOWN_MAX:
            self._bodies.clear()
        self._bodies[digest] = None

    def _digest(self, name: str) -> str:
        if name not in self._digests:
            self._digests[name] = hashlib.sha256(self.objects.get(name)).hexdigest()
        return self._digests[name]
