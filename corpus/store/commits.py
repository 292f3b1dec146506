"""Commit records: the truth about which stage has made what from what.

A stage's output exists when its record does. Records are create-only and canonical JSON, so two workers that did the
same work write the same bytes; different bytes for one key stop the run (`NonDeterministicStage`). A record holds no
clock, no host and nothing measured in float: only digests, counts, names and settings.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus.errors import StoreError
from corpus.store.objects import ObjectStore, write_new_or_same

_PREFIX = "commits"
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One finished piece of work. `inputs` and `outputs` map names (outputs: paths relative to the root) to SHA-256 hex."""

    stage: str
    key: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    """Further facts that follow from the inputs; no time, no place, no float that was summed."""


class Commits:
    """Commit records in an object store, at `commits/<stage>/<key>.json`.

    `publish` makes a record's outputs durable where that takes more than writing them: a record never names what is not.
    """

    def __init__(self, objects: ObjectStore, publish: Callable[[Mapping[str, str]], None] | None = None) -> None:
        self._objects, self._publish = objects, publish

    def put(self, record: CommitRecord) -> bool:
        """True when new, False when the same record was there. Raises `NonDeterministicStage` when another one was."""
        if self._publish is not None:
            self._publish(record.outputs)
        return write_new_or_same(self._objects, _name(record.stage, record.key), encode(record))

    def get(self, stage: str, key: str) -> CommitRecord | None:
        name = _name(stage, key)
        return decode(self._objects.get(name), name) if self._objects.exists(name) else None

    def keys(self, stage: str) -> tuple[str, ...]:
        """Keys with a record, sorted; reads no record."""
        names = self._objects.list(f"{_PREFIX}/{stage}/")
        return tuple(name.rpartition("/")[2].removesuffix(".json") for name in names)

    def list(self, stage: str) -> Iterator[CommitRecord]:
        """Records of a stage in key order."""
        for name in self._objects.list(f"{_PREFIX}/{stage}/"):
            yield decode(self._objects.get(name), name)

    def drop(self, stage: str, key: str) -> None:
        """Forget a piece of work so that it is done again (repair and takedown; never a stage itself)."""
        self._objects.delete(_name(stage, key))

    def verify(self, record: CommitRecord, root: Path) -> tuple[str, ...]:
        """Check the outputs on disk against the record; one sentence per fault, empty when all is well."""
        faults = []
        for path, digest in sorted(record.outputs.items()):
            if not (root / path).is_file():
                faults.append(f"{path}: missing")
            elif file_sha256(root / path) != digest:
                faults.append(f"{path}: its bytes are not what stage {record.stage} wrote")
        return tuple(faults)


def encode(record: CommitRecord) -> bytes:
    """Canonical JSON: sorted keys, no spaces, ASCII, one line."""
    value = {
        "stage": record.stage, "key": record.key, "inputs": dict(record.inputs), "outputs": dict(record.outputs),
        "rows": dict(record.rows), "info": dict(record.info),
    }  # fmt: skip
    return canonical_json(value, f"{record.stage}/{record.key}") + b"\n"


def decode(data: bytes, where: str) -> CommitRecord:
    """The record in `data`; StoreError when it is damaged."""
    try:
        return CommitRecord(**json.loads(data))
    except (ValueError, TypeError) as error:
        raise StoreError(f"a damaged commit record ({error})", where, "run corpus verify --repair") from None


def canonical_json(value: Any, where: str = "") -> bytes:
    """One spelling per value: sorted keys, no spaces, ASCII. StoreError for NaN, bytes, or a key that is not a string."""
    _check(value, where)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def stage_key(**parts: Any) -> str:
    """Digest (32 hex) of everything a stage's bytes depend on, by name."""
    return hashlib.sha256(canonical_json(parts, "stage key")).hexdigest()[:32]


def file_sha256(path: Path) -> str:
    """SHA-256 (hex) of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def _check(value: Any, where: str) -> None:
    match value:
        case str() | int() | None:
            return
        case float() if math.isfinite(value):
            return
        case Mapping():
            for key, inner in value.items():
                if not isinstance(key, str):
                    raise StoreError(f"a key of a canonical record must be text, not {key!r}", where)
                _check(inner, where)
        case list() | tuple():
            for inner in value:
                _check(inner, where)
        case _:
            raise StoreError(f"a canonical record may not hold {value!r}: write it as text", where)


def _name(stage: str, key: str) -> str:
    return f"{_PREFIX}/{stage}/{key}.json"
