"""How the end of a run is printed: the sentence, the funnel, parked hosts; or the summary as JSON."""

from __future__ import annotations

import click

from corpus.cli.options import clean, emit
from corpus.config.tree import Config
from corpus.engine.share import Share


def not_shared(share: Share, *, as_json: bool) -> None:
    """What a rank prints in a stage that rank 0 does alone."""
    from corpus.app.ranks import left_to_rank_0

    if as_json:
        emit(left_to_rank_0(share))
    else:
        click.echo(f"rank {share.rank} of {share.world}: rank 0 does this stage alone, from the records of all")


def run_stages(config: Config, stages: tuple[str, ...], *, name: str | None = None, as_json: bool = False) -> int:
    """Run stages on a folder and print how it ended."""
    from corpus.app.project import open_project
    from corpus.app.run import run_all
    from corpus.observe.summary import render_funnel

    project = open_project(config)
    summary = run_all(project, name=name, stages=stages)
    if as_json:
        emit(summary.document())
        return summary.exit_code
    click.echo(f"{summary.sentence} ({summary.ended}, {summary.wall_s:.1f} s, crawl {summary.crawl_id})")
    click.echo(render_funnel(summary.funnel))
    if "crawl" in stages:
        from corpus.app.frontier_view import parked_hosts

        for host in parked_hosts(project):
            waits = f"{host['queued']} URLs wait, not before {host['next_contact']}"
            click.echo(clean(f"parked: {host['host']} ({host['reason']}), {waits}"))
    return summary.exit_code
