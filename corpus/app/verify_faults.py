"""What `verify` finds: a closed set of kinds, and a collector that stays small however broken a folder is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    """What is wrong. A kind never changes its meaning."""

    RECORD = "commit-record"
    """A commit record is damaged, misnamed, or contradicts itself."""
    MISSING = "missing-file"
    DIGEST = "digest"
    """A file's bytes are not those that were recorded."""
    ROWS = "row-count"
    WARC = "warc-record"
    """A record inside a segment cannot be read, or does not match its own digest."""
    UNRECORDED = "unrecorded"
    """A whole file that no commit record speaks of."""
    OPEN = "open-segment"
    """A segment left open although nothing is running."""
    TEMPORARY = "temporary-file"
    FRONTIER = "frontier"
    """A partition file is damaged or its own counts disagree."""
    REFERENCE = "reference"
    """A frontier row, document or release row points at a capture that is not there, or is another page's."""
    CONSENT = "consent-log"
    CONTROL = "control-log"
    SNAPSHOT = "snapshot"
    RELEASE = "release"
    UNIQUE = "not-unique"
    """A release holds a url or an id twice."""
    FUNNEL = "funnel"
    """A sum of the funnel does not close (law C)."""


Mend = Callable[[], str]
"""Repairs one fault and says what was done. Raises StoreError when it cannot."""


@dataclass(slots=True)
class Finding:
    """One fault. `file` is relative to the store's root, `offset` a byte offset in it where one is known."""

    kind: Kind
    file: str
    message: str
    offset: int | None = None
    repaired: bool = False
    mend: Mend | None = field(default=None, repr=False, compare=False)

    def document(self) -> dict[str, Any]:
        return {
            "kind": self.kind.value,
            "file": self.file,
            "offset": self.offset,
            "message": self.message,
            "repaired": self.repaired,
        }


class Findings:
    """Faults in the order they were found, at most `KEPT` of a kind; further ones are counted. `checked` counts what was looked at."""

    KEPT = 1000

    def __init__(self) -> None:
        self.faults: list[Finding] = []
        self.checked: dict[str, int] = {}
        self._by_kind: dict[Kind, int] = {}

    def add(self, kind: Kind, file: str, message: str, *, offset: int | None = None, mend: Mend | None = None) -> None:
        self._by_kind[kind] = self._by_kind.get(kind, 0) + 1
        if self._by_kind[kind] <= self.KEPT:
            self.faults.append(Finding(kind, file, message, offset, mend=mend))

    def count(self, what: str, n: int = 1) -> None:
        self.checked[what] = self.checked.get(what, 0) + n

    def found(self, *kinds: Kind) -> bool:
        """Whether anything (or anything of these kinds) was found so far."""
        return bool(self.faults) if not kinds else any(kind in self._by_kind for kind in kinds)

    def all(self) -> list[Finding]:
        """Every fault kept, and one line for each kind of which there were more."""
        more = {kind: n - self.KEPT for kind, n in self._by_kind.items() if n > self.KEPT}
        return [*self.faults, *(Finding(kind, "", f"{n} more faults of this kind") for kind, n in more.items())]
