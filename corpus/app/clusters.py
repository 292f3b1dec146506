"""Clusters of a snapshot: made once, here or from what ranks and Ray tasks have joined, and the same bytes either way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from corpus.app.engines import engine_of
from corpus.app.idle import warn_idle_dedup
from corpus.app.join import Join, clear
from corpus.app.join import Progress as Joined
from corpus.app.project import Project
from corpus.app.reduced import reduced, scratch_folder
from corpus.app.snapshot import Snapshot, cluster_key
from corpus.engine.share import Share
from corpus.filter.reduce import cluster_snapshot
from corpus.filter.settings import DedupSettings
from corpus.filter.signatures import shingles
from corpus.observe.runlog import Reporter
from corpus.store.locks import stage_lock

CLUSTERS, PAIRS = "clusters.parquet", "pairs.parquet"
DEDUP_STAGE = "dedup"


def dedup(project: Project, snapshot: Snapshot, report: Reporter) -> Path:
    """Cluster a snapshot; clusters of an earlier snapshot over the same documents are taken over. Returns the file."""
    with stage_lock(project.layout.locks, "export"):
        project.clean()
        out = clusters_of(project, snapshot, report)
        clear(project)
        return out


def dedup_share(project: Project, snapshot: Snapshot, share: Share, report: Reporter) -> Joined:
    """One rank's share of the band join. Rank 0 makes the clusters as well where nothing of the join is left by then.

    Shares may be worked on at the same time, and the same share twice.
    """
    with stage_lock(project.layout.locks, "export", shared=True):
        project.clean()
        if project.commits.get(DEDUP_STAGE, cluster_key(snapshot)) is None:
            joined = _join(project, snapshot, report).share(share)
        else:
            joined = Joined(0, 0, 0)
        if share.leads and not joined.left:
            clusters_of(project, snapshot, report)
        return joined


def _join(project: Project, snapshot: Snapshot, report: Reporter) -> Join:
    return Join(project, snapshot, _settings_of(project, snapshot), engine_of(project.config), report)


def _settings_of(project: Project, snapshot: Snapshot) -> DedupSettings:
    return DedupSettings.model_validate(snapshot.facts["settings"]["dedup"] | {"memory": project.config.dedup.memory})


def clusters_of(project: Project, snapshot: Snapshot, report: Reporter) -> Path:
    """The clusters of a snapshot, made or taken over. Bands are joined by tasks on Ray, and where ranks have begun to; else here,
    which costs less."""
    out = snapshot.folder / CLUSTERS
    settings, join = _settings_of(project, snapshot), _join(project, snapshot, report)

    def make(parts: Sequence[Path], scratch: Path) -> dict[str, int]:
        clusters, pairs = parts
        summary = cluster_snapshot(
            project.files.all_local(snapshot.family("documents")),
            project.files.all_local(snapshot.family("signatures")),
            settings,
            clusters,
            scratch=scratch,
            shingles=lambda texts: shingles(list(texts)),
            pairs_path=pairs,
            pairs=join.pairs if project.config.engine.kind == "ray" or join.begun else None,
        )
        warn_idle_dedup(summary, report)
        counts = {"documents": summary.documents, "clusters": summary.clusters}
        report("dedup", **counts, candidates=summary.candidates, verified=summary.verified)
        return counts

    reduced(project, DEDUP_STAGE, cluster_key(snapshot), [out, snapshot.folder / PAIRS], scratch_folder, make)
    return out


def cluster_again(project: Project, snapshot: Snapshot, out: Path, pairs: Path, scratch: Path) -> None:
    """Make the clusters of a snapshot once more, elsewhere, to compare them."""
    cluster_snapshot(
        project.files.all_local(snapshot.family("documents")),
        project.files.all_local(snapshot.family("signatures")),
        _settings_of(project, snapshot), out, scratch=scratch, shingles=lambda texts: shingles(list(texts)), pairs_path=pairs,
    )  # fmt: skip


assert np.dtype(np.uint64).itemsize == 8, "shingles are 64-bit"
