"""Where everything lies under `store.root` and `store.local`: the one place that knows folder names.

Paths are computed, never searched, and a name that came from outside (a crawl's label, a release, a file column) is
checked before it becomes a path. `corpus.json` names the layout's version; a newer one is refused before anything is read.
"""

from __future__ import annotations

import contextlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from corpus.errors import AlreadyExists, NewerSchema, StoreError
from corpus.model import SCHEMA_VERSION
from corpus.store.local_objects import LocalObjects
from corpus.store.objects import ObjectStore
from corpus.url.partition import PARTITION_FILES
from corpus.version import __version__

FAMILIES = ("documents", "signals", "spans", "signatures")
"""Outputs of the map stage: one Parquet file per segment in each."""
OPEN_SUFFIX = ".open"
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_SEGMENT = re.compile(r"s(\d{2,})-(\d{6,})-(\d{6,})\Z")
_DIGEST = re.compile(r"[0-9a-f]{16,64}\Z")


@dataclass(frozen=True, slots=True)
class Layout:
    """`root` holds what is kept and shared, `local` what one machine can rebuild."""

    root: Path
    local: Path
    server: str = ""
    """DSN of the PostgreSQL server that keeps the frontier; empty where SQLite does."""
    lease: tuple[float, float] = (30.0, 120.0)
    """(seconds for which a partition file on a server is leased, the longest a request may last)"""
    spread: int = PARTITION_FILES
    """Over how many partition files the frontier is spread"""
    node: str = ""
    """Who owns leases from here: a member of a fleet; empty for this machine's folder."""

    # archive
    @property
    def warc(self) -> Path:
        return self.root / "warc"

    def warc_dir(self, crawl_id: str) -> Path:
        return self.warc / f"crawl_id={_label(crawl_id)}"

    def policy_dir(self, crawl_id: str) -> Path:
        """Authority files, refusals and redirects."""
        return self.warc / "policy" / f"crawl_id={_label(crawl_id)}"

    def sealed_dir(self, crawl_id: str) -> Path:
        """Segments kept for archives under a use refusal; never measured."""
        return self.root / "sealed" / f"crawl_id={_label(crawl_id)}"

    @property
    def cdxj(self) -> Path:
        return self.root / "cdxj"

    # truth
    @property
    def commits(self) -> Path:
        return self.root / "commits"

    @property
    def inbox(self) -> Path:
        return self.root / "inbox"

    @property
    def consent(self) -> Path:
        return self.root / "consent"

    @property
    def control(self) -> Path:
        return self.root / "control"

    @property
    def proofs(self) -> Path:
        return self.root / "proofs"

    # measured
    def families(self, family: str, crawl_id: str) -> Path:
        """The folder of one family's files of one crawl."""
        if family not in FAMILIES:
            raise StoreError(f"there is no family {family!r}", hint=f"one of {', '.join(FAMILIES)}")
        return self.root / family / f"crawl_id={_label(crawl_id)}"

    def family_file(self, family: str, crawl_id: str, segment: str) -> Path:
        return self.families(family, crawl_id) / f"{_label(segment)}.parquet"

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    def snapshot_dir(self, digest: str) -> Path:
        if not _DIGEST.match(digest):
            raise StoreError(f"not a snapshot digest: {digest[:80]!r}")
        return self.snapshots / digest

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    def run_dir(self, run_id: str) -> Path:
        return self.runs / _label(run_id)

    @property
    def releases(self) -> Path:
        return self.root / "releases"

    def release_dir(self, name: str) -> Path:
        return self.releases / _label(name)

    # machine-local
    @property
    def frontier(self) -> Path:
        return self.local / "frontier"

    @property
    def catalog(self) -> Path:
        return self.local / "catalog.sqlite"

    @property
    def locks(self) -> Path:
        return self.local / "locks"

    @property
    def spill(self) -> Path:
        return self.local / "spill"

    # names
    def relative(self, path: Path) -> str:
        """A path below the root as it stands in file columns: relative, with forward slashes."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            raise StoreError("not a path below the store's root", str(path)) from None

    def absolute(self, file: str) -> Path:
        """The inverse of `relative`; refuses what would leave the root."""
        if not file or "\0" in file or Path(file).is_absolute() or ".." in Path(file).parts:
            raise StoreError(f"not a file of the store: {file[:200]!r}")
        return self.root / file

    def check_schema(self, objects: ObjectStore | None = None) -> None:
        """Write `corpus.json` into a new store (default: the root's folder), or read it. Raises NewerSchema, or StoreError when it is unreadable."""
        objects = objects or LocalObjects(self.root)
        ours = json.dumps({"schema": SCHEMA_VERSION, "created_by": __version__}) + "\n"
        if not objects.exists("corpus.json"):  # a store that replaces what is there must not get at it
            with contextlib.suppress(AlreadyExists):  # somebody else was quicker
                objects.put_new("corpus.json", ours.encode())
                return
        _refuse_newer(objects.get("corpus.json"), str(self.root / "corpus.json"))


def segment_name(worker: int, epoch: int, seq: int) -> str:
    """`s<worker>-<epoch>-<seq>`: sorts by worker, then age. Epochs grow with every take-over, so names never repeat."""
    return f"s{worker:02d}-{epoch:06d}-{seq:06d}"


def parse_segment(name: str) -> tuple[int, int, int] | None:
    """The inverse of `segment_name`; None for a name of other making (an ingested archive)."""
    match = _SEGMENT.match(name)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _label(text: str) -> str:
    if not _LABEL.match(text):
        raise StoreError(
            f"not a usable name: {text[:120]!r}",
            hint="letters, digits, '.', '_' and '-', at most 100, starting with one of the first two",
        )
    return text


def _refuse_newer(data: bytes, where: str) -> None:
    try:
        found = json.loads(data)
        schema, by = int(found["schema"]), str(found.get("created_by", "an unknown version"))
    except (ValueError, TypeError, KeyError):
        raise StoreError("it does not say which version made this folder", where, "restore it from a backup") from None
    if schema > SCHEMA_VERSION:
        raise NewerSchema(
            f"made by version {by} (schema {schema}); this is {__version__} (schema {SCHEMA_VERSION})",
            where,
            "upgrade this software",
        )
