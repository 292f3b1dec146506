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
    CATALOG = "catalog"
    """The catalog says of a release what its shards do not. Nothing is lost with a catalog."""
    UNIQUE = "not-unique"
    """A release holds a url or an id twice."""
    TAKEDOWN = "takedown"
    """A takedown is half carried out, or its proof proves nothing."""
    FUNNEL = "funnel"
    """A sum of the funnel does not close (law C)."""


MENDED = "corpus verify --repair makes it again from what is whole"
NEXT: dict[Kind, str] = {
    Kind.RECORD: MENDED,
    Kind.MISSING: f"{MENDED}; an archive cannot be made again: take it from a copy",
    Kind.DIGEST: f"{MENDED}; an archive cannot be made again: take it from a copy",
    Kind.ROWS: MENDED,
    Kind.WARC: "take the archive from a copy; pages in what cannot be read are lost, everything else stays usable",
    Kind.UNRECORDED: "corpus verify --repair records it where it is whole, and removes what can be made again",
    Kind.OPEN: "corpus verify --repair seals it; so does the next corpus run",
    Kind.TEMPORARY: "corpus verify --repair removes it",
    Kind.FRONTIER: "take the partition file from a copy; pages that are stored stay usable without it",
    Kind.REFERENCE: "find out what was changed by hand; corpus why shows the row's chain",
    Kind.CONSENT: "take the log from a copy: nothing can replace it as evidence",
    Kind.CONTROL: "take the log from a copy: orders are in no other place",
    Kind.SNAPSHOT: "corpus export makes a new one",
    Kind.RELEASE: "corpus replay tells whether it can be made again; else make a new release",
    Kind.CATALOG: "corpus verify --rebuild makes it again from releases",
    Kind.UNIQUE: "do not publish the release; report it",
    Kind.TAKEDOWN: "corpus takedown apply goes on where it stopped",
    Kind.FUNNEL: "report it, with the step that is named",
}
"""What a person can do about each kind; in the reference of the docs."""

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
