"""`corpus status`: what the crawl holds and what it waits for."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config


@click.command(name="status")
@with_config()
@as_json
def command(config: Config, as_json: bool) -> int:
    """Counts of URLs and hosts by state and reason, segments, releases, and whether a run holds the folder."""
    from corpus.app.project import open_project
    from corpus.app.status import status

    told = status(open_project(config, create=False))
    if as_json:
        emit(told)
        return 0
    for title in ("urls", "hosts"):
        click.echo(f"{title}:")
        for row in told[title]:
            click.echo(clean(f"  {row['n']:>9}  {row['state']}" + (f" ({row['reason']})" if row["reason"] else "")))
    for host in told["parked"]:
        click.echo(
            clean(f"parked: {host['host']} ({host['reason']}), {host['queued']} URLs wait, not before {host['next_contact']}")
        )
    click.echo(f"segments: {told['segments']}, measured {told['measured']}; releases: {', '.join(told['releases']) or 'none'}")
    click.echo(f"running: {told['running']}" if told["running"] else "no run holds this folder")
    return 0
