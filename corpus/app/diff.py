"""Two releases side by side: which pages came, went and changed, and why, from the decisions each was made with.

Works on the shards as they stand; order of the arguments is free (an older release second is as good). Reads texts never.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import duckdb

from corpus.app.project import Project
from corpus.app.release import RELEASE_STAGE, release_files
from corpus.app.removals import COLUMNS, removed_rows
from corpus.app.snapshot import Snapshot, load_snapshot
from corpus.errors import StoreError, UsageError
from corpus.reasons import REASONS
from corpus.store.control_log import Tombstones

NEW, UNKNOWN = "new", "unknown"
_SENTENCES = {
    NEW: "the other release knew nothing of it",
    UNKNOWN: "the other release's snapshot has no document of it",
    "same-text": "another body with the same text",
    "other-text": "another body with another text",
}
"""Reasons that only a comparison has; all others are of `corpus.reasons`."""

_CHANGED = """
SELECT a.url, a.ids, b.ids, a.texts = b.texts
FROM (SELECT url, list(id ORDER BY id) AS ids, list(DISTINCT text_sha256 ORDER BY text_sha256) AS texts
    FROM read_parquet($a, hive_partitioning = false) GROUP BY url) a
JOIN (SELECT url, list(id ORDER BY id) AS ids, list(DISTINCT text_sha256 ORDER BY text_sha256) AS texts
    FROM read_parquet($b, hive_partitioning = false) GROUP BY url) b USING (url)
WHERE a.ids <> b.ids ORDER BY a.url
"""


@dataclass(frozen=True, slots=True)
class Change:
    """One page. `ids_a`, `ids_b` are its versions in either release; `evidence` is the line that decided a refusal."""

    change: str
    url: str
    ids_a: tuple[str, ...]
    ids_b: tuple[str, ...]
    reason: str
    evidence: dict[str, Any] | None = None
    other: str = ""
    """The page that stands for it now, or the domain whose refusal took it along."""

    @property
    def sentence(self) -> str:
        return _SENTENCES.get(self.reason) or REASONS[self.reason].sentence

    @property
    def group(self) -> str:
        """What a reader of a summary wants to know of a removal."""
        if self.change != "removed":
            return self.change
        if self.reason == "taken-down":
            return "taken-down"
        if self.reason in REASONS and REASONS[self.reason].step in ("consent", "robots") and self.reason != "stale":
            return "opted-out"
        return "gone" if self.reason == "gone" else "removed"

    def document(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "change": self.change, "group": self.group, "url": self.url, "ids_a": list(self.ids_a), "ids_b": list(self.ids_b), "reason": self.reason,
            "sentence": self.sentence, "evidence": self.evidence, "other": self.other or None,
        }  # fmt: skip


@dataclass(slots=True)
class Diff:
    """Counts of a comparison, and up to `limit` changes of each kind."""

    a: str
    b: str
    rows_a: int
    rows_b: int
    counts: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(
        default_factory=lambda: {"added": Counter(), "removed": Counter(), "changed": Counter()}
    )
    changes: list[Change] = field(default_factory=list)
    pages_a: int = 0

    @property
    def unchanged(self) -> int:
        return self.pages_a - self.counts["removed"] - self.counts["changed"]

    def document(self) -> dict[str, Any]:
        """The JSON form. Counts are pages (URLs)."""
        groups = ("opted-out", "taken-down", "gone")
        return {
            "a": self.a, "b": self.b, "rows_a": self.rows_a, "rows_b": self.rows_b,
            "added": self.counts["added"], "removed": self.counts["removed"], "changed": self.counts["changed"], "unchanged": self.unchanged,
            "removed_because": {group: self.counts[group] for group in groups},
            "reasons": {kind: dict(sorted(counted.items())) for kind, counted in self.reasons.items()},
            "changes": [change.document() for change in self.changes],
        }  # fmt: skip


def diff(project: Project, a: str, b: str, *, limit: int | None = None) -> Diff:
    """Compare two releases by name. `limit`: at most so many changes of each kind are kept; all are counted.

    Raises UsageError for a release that is not there or withdrawn, StoreError when one cannot be read.
    """
    snapshots = {name: _snapshot(project, name) for name in (a, b)}
    files = {name: release_files(project, name) for name in (a, b)}
    try:
        with duckdb.connect(":memory:", config={"temp_directory": str(project.layout.spill)}) as con:
            rows = {name: _count(con, "count(*)", files[name]) for name in (a, b)}
            told = Diff(a, b, rows[a], rows[b], pages_a=_count(con, "count(DISTINCT url)", files[a]))
            for change in _changes(project, con, files[a], files[b], snapshots[a], snapshots[b]):
                told.reasons[change.change][change.reason] += 1
                told.counts[change.change] += 1
                if change.group != change.change:
                    told.counts[change.group] += 1
                if limit is None or told.counts[change.change] <= limit:
                    told.changes.append(change)
    except duckdb.Error as error:
        raise StoreError(f"a shard cannot be read: {str(error).splitlines()[0]}", f"{a}, {b}", "run corpus verify") from None
    return told


def _snapshot(project: Project, name: str) -> Snapshot:
    record = project.commits.get(RELEASE_STAGE, name) if name in project.commits.keys(RELEASE_STAGE) else None
    if record is None:
        names = ", ".join(project.commits.keys(RELEASE_STAGE)) or "none yet"
        raise UsageError("there is no such release", name[:100], f"the releases are: {names}")
    if into := str(record.info.get("superseded_by") or ""):
        raise UsageError(
            "it is withdrawn: rows of it were taken down and are gone, so it cannot be compared",
            name,
            f"compare {into}, which stands in its place",
        )
    return load_snapshot(project, str(record.info["snapshot"]))


def _count(con: duckdb.DuckDBPyConnection, what: str, files: list[str]) -> int:
    if not files:
        return 0
    found = con.execute(f"SELECT {what} FROM read_parquet($files, hive_partitioning = false)", {"files": files}).fetchone()
    return int(found[0]) if found else 0


def _changes(
    project: Project, con: duckdb.DuckDBPyConnection, old: list[str], new: list[str], then: Snapshot, now: Snapshot
) -> Iterator[Change]:
    """Removed, added, changed; each by URL."""
    tombstones = project.control.tombstones(upto=int(now.facts["control"]))
    for row in removed_rows(project, now, old, new) if old else ():
        yield _removed(dict(zip(COLUMNS, row, strict=True)), tombstones)
    for row in removed_rows(project, then, new, old) if new else ():
        found = dict(zip(COLUMNS, row, strict=True))
        reason = NEW if found["reason"] == "unprocessed" else found["reason"]
        yield Change("added", found["url"], (), (found["id"],), reason, _evidence(found), found["refusing_domain"] or "")
    if old and new:
        for url, before, after, same in con.execute(_CHANGED, {"a": old, "b": new}).fetchall():
            yield Change("changed", url, tuple(before), tuple(after), "same-text" if same else "other-text")


def _removed(found: dict[str, Any], tombstones: Tombstones) -> Change:
    reason = found["reason"]
    if reason == "unprocessed":  # no document is left to speak of it
        reason = "taken-down" if tombstones.blocks(url=found["url"], id=found["id"]) else UNKNOWN
    return Change("removed", found["url"], (found["id"],), (), reason, _evidence(found), found["refusing_domain"] or "")


def _evidence(found: dict[str, Any]) -> dict[str, Any] | None:
    if found["protocol"] is None:
        return None
    at = datetime.fromtimestamp(float(found["read_at"] or 0.0), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {name: found[name] for name in ("protocol", "source", "line_no", "raw", "file_digest")} | {"read_at": at}
