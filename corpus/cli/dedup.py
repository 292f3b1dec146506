"""`corpus dedup`: clusters of the newest snapshot, or one rank's share of the join before them."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, emit, with_config, with_share
from corpus.config.tree import Config
from corpus.engine.share import Share


@click.command(name="dedup")
@with_config()
@with_share
@as_json
def command(config: Config, share: Share, as_json: bool) -> None:
    """Cluster near-duplicates over everything measured so far; policies and consent play no part in it."""
    from corpus.app.clusters import dedup
    from corpus.app.project import open_project
    from corpus.app.snapshot import take_snapshot
    from corpus.app.views import Views
    from corpus.observe.runlog import Terminal

    if not share.whole:
        _rank(config, share, as_json=as_json)
        return
    project = open_project(config, create=False)
    dedup(project, take_snapshot(project), Terminal())
    query = "SELECT count(DISTINCT cluster_id) AS clusters, count(*) AS documents, count(*) - count(DISTINCT cluster_id) AS copies FROM clusters"
    with Views(project) as views:
        counts = views.query(query).to_pylist()[0]
    if as_json:
        emit(counts)
    else:
        click.echo(f"{counts['documents']} documents in {counts['clusters']} clusters, {counts['copies']} of them copies")


def _rank(config: Config, share: Share, *, as_json: bool) -> None:
    from corpus.app.project import open_project
    from corpus.app.ranks import dedup_rank
    from corpus.observe.runlog import Terminal

    told = dedup_rank(open_project(config, create=False), share, Terminal())
    if as_json:
        emit(told)
        return
    end = "the clusters are made" if told["clusters"] else f"{told['left']} tasks of all ranks are left"
    click.echo(f"rank {share.rank} of {share.world}: {told['done']} of {told['tasks']} tasks joined now; {end}")
