"""The object store port: whole, immutable values under checked names, created once.

A folder and S3 stand behind the same five verbs. Create-only is the one primitive that commit records, logs and
numbering rest on; nothing here replaces or renames. A name is a relative path of plain components.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from corpus.errors import AlreadyExists, NonDeterministicStage, StoreError

_COMPONENT = re.compile(r"[A-Za-z0-9_=+@,~-][A-Za-z0-9._=+@,~-]{0,199}\Z")
_NAME_MAX = 900
"""S3 allows 1024 bytes of key; the bucket prefix needs some."""


class ObjectStore(Protocol):
    """Errors: `AlreadyExists` when a name is taken, `StoreError` for a bad name, a missing object or a failing disk.

    When `put_new` or `put_file_new` returns, the object survives a power cut; when it raises anything else than
    `AlreadyExists`, the name holds either nothing or the whole object.
    """

    def put_new(self, name: str, data: bytes) -> None: ...
    def put_file_new(self, name: str, local_path: Path) -> None:
        """Like `put_new` with a file's content; the file must not change afterwards (a folder may share its bytes)."""
        ...

    def get(self, name: str) -> bytes: ...
    def exists(self, name: str) -> bool: ...
    def list(self, prefix: str) -> list[str]:
        """Names of whole objects that begin with the prefix, sorted by code point."""
        ...

    def delete(self, name: str) -> None:
        """Remove an object; a name that is not there is fine."""
        ...


def check_name(name: str) -> str:
    """The name itself, if every component is plain (no `..`, no leading dot or slash, no control character)."""
    if len(name) <= _NAME_MAX and all(_COMPONENT.match(part) for part in name.split("/")):
        return name
    raise StoreError(f"not a valid object name: {name[:200]!r}", hint="names are relative paths of plain components")


def put_same(objects: ObjectStore, name: str, data: bytes) -> bool:
    """Put an object whose name is its content: True when new, False when it was there already."""
    try:
        objects.put_new(name, data)
    except AlreadyExists:
        return False
    return True


def write_new_or_same(objects: ObjectStore, name: str, data: bytes) -> bool:
    """Put a deterministic output: True when new, False when the same bytes were there.

    Raises `NonDeterministicStage` when other bytes stand under the name.
    """
    if put_same(objects, name, data):
        return True
    ours, theirs = hashlib.sha256(data).hexdigest(), hashlib.sha256(objects.get(name)).hexdigest()
    if ours != theirs:
        raise NonDeterministicStage(
            f"it already holds {theirs[:16]}…, and this run made {ours[:16]}…",
            name,
            "the same inputs gave different bytes: report it, with both files",
        )
    return False


def under(names: Iterable[str], prefix: str) -> list[str]:
    """The sorted names that begin with a prefix: what `list` means, for implementations that filter themselves."""
    return sorted(name for name in names if name.startswith(prefix))
