"""A snapshot: everything a release is a function of, by digest, under `snapshots/<digest>/`.

Taking one reads the logs and the frontier; from then on nothing looks at them again. The same state gives the same
digest, so a second export of an unchanged folder finds its clusters and its release already made.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpus.app.frontier_view import turned_away, visited
from corpus.app.process import map_records, map_settings
from corpus.app.project import Project
from corpus.app.segments import SegmentInfo, page_segments
from corpus.app.takedown_open import refuse_half_done
from corpus.config.check import configured_policy
from corpus.config.tree import Config
from corpus.errors import NothingDone, StoreError, TryLater
from corpus.export.ports import FRONTIER, TOMBSTONES
from corpus.export.words import read_words
from corpus.store.commits import CommitRecord, canonical_json, stage_key
from corpus.store.consent_log import Watermark
from corpus.store.control_log import ControlEntry
from corpus.store.objects import write_new_or_same
from corpus.version import __version__

SCHEMA = 1
MEASURED_BY = ("stage_version", "language_model", "sources")
"""Inputs of the map stage that a snapshot insists on: rows of two kinds never meet in one release."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`facts` is `snapshot.json`; `folder` holds it, `frontier.parquet` and the reduce outputs."""

    digest: str
    folder: Path
    facts: dict[str, Any]

    @property
    def watermark(self) -> Watermark:
        return Watermark.of((name, digest) for name, digest in self.facts["consent"])

    @property
    def stale(self) -> frozenset[str]:
        return frozenset(self.facts["stale"])

    @property
    def segments(self) -> list[dict[str, Any]]:
        return list(self.facts["segments"])

    def family(self, name: str) -> dict[str, str]:
        """Path → digest of one family's file of every segment, in the snapshot's order."""
        return {
            path: str(digest)
            for facts in self.segments
            for path, digest in facts["outputs"].items()
            if path.startswith(f"{name}/")
        }


def take_snapshot(project: Project, *, stale: frozenset[str] = frozenset()) -> Snapshot:
    """Take a snapshot of the folder as it stands. Raises NothingDone when nothing was measured, StoreError when something was not."""
    config = project.config
    refuse_half_done(project)
    segments = _measured(project)
    frontier = _parquet(visited(project))
    tombstones = tombstone_rows(project.control.read())
    purged = tombstone_rows(project.control.read(), purged=True, only_purged=True)
    operator = _operator_text(project)
    policy = configured_policy(config)
    facts: dict[str, Any] = {
        "schema": SCHEMA,
        "segments": [_segment_facts(segment, record) for segment, record in segments],
        "consent": [list(pair) for pair in project.consent_log().watermark().names],
        "control": project.control.version(),
        "policy": {"name": config.filter.policy, "digest": policy.digest},
        "settings": _settings(project),
        "models": {"language": map_settings(project).inputs()["language_model"]},
        "code": __version__,
        "stale": sorted(stale),
        "operator": operator,
        "tombstones": tombstones,
        **({"purged": purged} if purged else {}),
        "frontier": _sha256(frontier),
        "turned_away": turned_away(project),
    }
    data = canonical_json(facts, "snapshot")
    digest = _sha256(data)[:32]
    write_new_or_same(project.objects, f"snapshots/{digest}/snapshot.json", data)
    write_new_or_same(project.objects, f"snapshots/{digest}/frontier.parquet", frontier)
    return Snapshot(digest, project.layout.snapshot_dir(digest), facts)


def load_snapshot(project: Project, digest: str) -> Snapshot:
    """A snapshot taken before. Raises StoreError when it is missing or not what its digest says."""
    folder = project.layout.snapshot_dir(digest)
    try:
        data = project.objects.get(f"snapshots/{digest}/snapshot.json")
    except TryLater:
        raise
    except StoreError:
        raise StoreError("there is no such snapshot", str(folder), "run corpus export") from None
    if _sha256(data)[:32] != digest:
        raise StoreError("the snapshot is not what its digest says", str(folder), "restore it from a backup")
    return Snapshot(digest, folder, json.loads(data))


def latest_snapshot(project: Project, having: str) -> Path | None:
    """The folder of the newest snapshot that holds a file `having`, with that file in it; None when there is none."""
    name = project.files.newest("snapshots", having)
    return None if name is None else project.file(name).parent


def frontier_table(project: Project, snapshot: Snapshot) -> pa.Table:
    """What the frontier knew beyond the documents (`export.ports.FRONTIER`)."""
    data = project.objects.get(f"snapshots/{snapshot.digest}/frontier.parquet")
    return pq.read_table(io.BytesIO(data)).cast(FRONTIER)


def tombstone_table(snapshot: Snapshot) -> pa.Table:
    """Takedowns in force (`export.ports.TOMBSTONES`)."""
    return pa.Table.from_pylist(snapshot.facts["tombstones"], schema=TOMBSTONES)


def purged_table(snapshot: Snapshot) -> pa.Table:
    """What was removed because sites or the operator's list said so: for holders of older copies, never a bar to new ones."""
    return pa.Table.from_pylist(snapshot.facts.get("purged", []), schema=TOMBSTONES)


def cluster_key(snapshot: Snapshot) -> str:
    """What clusters depend on: the measured segments and the dedup settings, never policy or consent."""
    return stage_key(segments=snapshot.facts["segments"], dedup=snapshot.facts["settings"]["dedup"])


def _measured(project: Project) -> list[tuple[SegmentInfo, CommitRecord]]:
    records = map_records(project)
    segments = page_segments(project)
    if not segments:
        raise NothingDone(
            "no page has been stored yet, so there is nothing to release", hint="run corpus crawl or corpus ingest first"
        )
    missing = [s.file for s in segments if f"{s.crawl_id}/{s.name}" not in records]
    if missing:
        raise StoreError(f"{len(missing)} segments are not processed yet", missing[0], "run corpus process")
    measured = [(s, records[f"{s.crawl_id}/{s.name}"]) for s in segments]
    wanted = map_settings(project).inputs()
    stale = next((s.file for s, r in measured if any(r.inputs.get(key) != wanted.get(key) for key in MEASURED_BY)), None)
    if stale is not None:
        raise StoreError("was measured by other code, models or lists than the configuration names", stale, "run corpus process")
    return measured


def _segment_facts(segment: SegmentInfo, record: CommitRecord) -> dict[str, Any]:
    return {
        "name": segment.name,
        "crawl_id": segment.crawl_id,
        "file": segment.file,
        "digest": segment.digest,
        "map": record.key,
        "outputs": dict(sorted(record.outputs.items())),
    }


def _settings(project: Project) -> dict[str, Any]:
    """The settings that decide what is in a release. How much memory or how many workers it took is not among them."""
    config = project.config
    dedup = config.dedup.model_dump(mode="json")
    del dedup["memory"]
    export = config.export.model_dump(mode="json")
    del export["name"]
    return {
        "languages": list(config.corpus.languages),
        "optout": config.optout.model_dump(mode="json"),
        "token": config.crawl.robots_token,
        "dedup": dedup,
        "export": export,
        "filter": config.filter.model_dump(mode="json"),
        "license": config.publish.license,
        **_card(config),
    }


def _card(config: Config) -> dict[str, dict[str, str]]:
    """What a person wrote for the card, and where it is going to stand; nothing where nothing was given."""
    words = read_words(config.base / config.publish.card) if config.publish.card else {}
    if config.publish.repo:
        words["repo"] = config.publish.repo
    return {"card": words} if words else {}


def tombstone_rows(orders: Iterable[ControlEntry], *, purged: bool = False, only_purged: bool = False) -> list[dict[str, Any]]:
    """Takedowns as rows of `export.ports.TOMBSTONES`, in the order they were given; purges as well, or alone, where asked for."""
    rows = []
    for entry in orders:
        if (entry.action == "takedown" and not only_purged) or (entry.action == "purge" and purged):
            named = [{"domain": "domain", "url": "url_id", "id": "id"}[entry.kind], entry.value]
            also = [["url_id", url] for url in (*([entry.url_id] if entry.url_id else []), *entry.members) if url != entry.value]
            rows += [
                {"kind": kind, "value": value, "reason": entry.reason, "requested_at": round(entry.at * 1e6)}
                for kind, value in (named, *also)
            ]
    return rows


def _operator_text(project: Project) -> str:
    file = project.config.optout.domains_file
    return (project.config.base / file).read_text("utf-8") if file else ""


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table.cast(FRONTIER).sort_by("url"), sink, compression="zstd")
    return sink.getvalue()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
