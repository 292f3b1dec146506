"""A dataset repository for the hub stand-in: revisions with their trees, refs, squashing, and large objects that can be deleted.

A revision is served while some ref reaches it. `hoards` makes a repository that claims to forget and does not.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, field
from typing import Any

MAIN = "refs/heads/main"
_serial = itertools.count(1)


@dataclass
class Stored:
    """A file of the repository."""

    data: bytes
    large: bool

    @property
    def oid(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def entry(self) -> dict[str, Any]:
        blob = hashlib.sha1(b"blob %d\0" % len(self.data) + self.data, usedforsecurity=False).hexdigest()
        entry: dict[str, Any] = {"type": "file", "oid": blob, "size": len(self.data)}
        if self.large:
            entry["lfs"] = {"oid": self.oid, "size": len(self.data), "pointerSize": 130}
        return entry


Tree = dict[str, Stored]


@dataclass
class Repo:
    """`refs`: full ref name → revision; `trees`, `parents` by revision; `objects`: large objects ever pushed here, by digest."""

    private: bool
    hoards: bool = False
    refs: dict[str, str] = field(default_factory=dict)
    trees: dict[str, Tree] = field(default_factory=dict)
    parents: dict[str, str] = field(default_factory=dict)
    objects: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.trees["0" * 40] = {}
        self.refs[MAIN] = "0" * 40

    @property
    def files(self) -> Tree:
        """The files of the newest revision of main."""
        return self.trees[self.refs[MAIN]]

    @property
    def commits(self) -> list[str]:
        """The revisions of main, oldest first."""
        return self.history(MAIN)

    def history(self, ref: str) -> list[str]:
        """Revisions that a ref reaches, oldest first."""
        found = [self.refs[ref]]
        while parent := self.parents.get(found[-1]):
            found.append(parent)
        return found[::-1]

    def resolve(self, name: str) -> str | None:
        """The revision a name stands for: a branch, a tag, a full ref, or a revision that is still served."""
        for ref in (name, f"refs/heads/{name}", f"refs/tags/{name}"):
            if ref in self.refs:
                return self.refs[ref]
        reached = {revision for ref in self.refs for revision in self.history(ref)}
        return name if name in reached or (self.hoards and name in self.trees) else None

    def commit(self, files: Tree, ref: str = MAIN, *, parent: str | None = None) -> str:
        """Put a revision on top of a ref (or of `parent`); its name."""
        for path, stored in files.items():
            if stored.large:
                self.objects.setdefault(stored.oid, path)
        revision = hashlib.sha256(f"{next(_serial)} {sorted(files)}".encode()).hexdigest()[:40]
        below = parent if parent is not None else self.refs.get(ref, "")
        if below:
            self.parents[revision] = below
        self.trees[revision] = files
        self.refs[ref] = revision
        return revision

    def squash(self, ref: str) -> str:
        """One revision with the ref's files and no parent."""
        files = dict(self.trees[self.refs.pop(ref)])
        return self.commit(files, ref)

    def delete_objects(self, digests: set[str], *, rewrite: bool) -> None:
        """Forget large objects; with `rewrite`, every ref that names them gets a new history without."""
        if self.hoards:
            return
        for digest in digests:
            self.objects.pop(digest, None)
        for ref in [ref for ref in self.refs if rewrite]:
            old = self.history(ref)
            if not any(stored.large and stored.oid in digests for revision in old for stored in self.trees[revision].values()):
                continue
            del self.refs[ref]
            for revision in old:
                kept = {p: s for p, s in self.trees[revision].items() if not (s.large and s.oid in digests)}
                self.commit(kept, ref)
