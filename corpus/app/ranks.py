"""Stages as ranks of a batch system: what a caller's `--rank R --world N` stands for, and what a rank says at its end.

Measuring (and indexing) is shared out by segment, the join of near-duplicates by band and key range; clusters, decisions and a release
are one rank's, from the records of all. Ranks never wait for each other: the batch system starts the next step when all have ended.
"""

from __future__ import annotations

from typing import Any

from corpus.app.engines import engine_of
from corpus.app.project import Project
from corpus.config.tree import Config
from corpus.engine.share import WHOLE, Share
from corpus.errors import UsageError
from corpus.observe.runlog import Reporter


def share_of(config: Config, rank: int | None, world: int | None) -> Share:
    """The share a caller asked for; everything where nothing was said. Raises UsageError for half of it, and where ranks are the rule."""
    if rank is not None and world is not None:
        return Share(rank, world)
    if rank is not None or world is not None:
        given, wanted = ("--rank", "--world") if world is None else ("--world", "--rank")
        raise UsageError(f"{given} without {wanted}", wanted, "a rank is one of a world: give both")
    if config.engine.kind == "rank":
        hint = "give both to process, dedup and export; or --set engine.kind=local, to do all of it here"
        raise UsageError(
            "the configuration leaves stages to ranks, and neither --rank nor --world was given", "engine.kind", hint
        )
    return WHOLE


def process_share(project: Project, share: Share, report: Reporter) -> dict[str, Any]:
    """Measure one rank's segments. Leaves no run folder: a thousand ranks are one piece of work. Raises NothingDone for an empty corpus."""
    from corpus.app.process import process

    end = process(project, engine_of(project.config), report, share)
    return {
        "rank": share.rank, "world": share.world, "segments": end.segments, "measured": end.measured, "documents": end.documents,
        "poisoned": end.poisoned, "unmeasured": end.unmeasured,
    }  # fmt: skip


def dedup_rank(project: Project, share: Share, report: Reporter) -> dict[str, Any]:
    """One rank's tasks of the join. `clusters`: whether this rank made the clusters too (rank 0, where nothing was left by then)."""
    from corpus.app.clusters import dedup_share
    from corpus.app.snapshot import take_snapshot

    joined = dedup_share(project, take_snapshot(project), share, report)
    return {
        "rank": share.rank, "world": share.world, "tasks": joined.tasks, "done": joined.done, "left": joined.left,
        "clusters": share.leads and not joined.left,
    }  # fmt: skip


def left_to_rank_0(share: Share) -> dict[str, Any]:
    """What a rank says that has nothing to do in a stage that is not shared out."""
    return {"rank": share.rank, "world": share.world, "left_to": 0}
