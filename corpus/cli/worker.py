"""`corpus worker`."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, emit, with_config
from corpus.config.tree import Config


@click.command(name="worker")
@with_config(fetching=True)
@click.option(
    "--region", default="", metavar="NAME", help="Where this machine is; recorded, and counted where connections are slower."
)
@as_json
def command(config: Config, region: str, as_json: bool) -> int:
    """Join the crawl of a fleet: many machines, one PostgreSQL, one bucket or shared folder.

    Start one for each core, on any machine, at any time. Ends when nobody has anything left to ask. Ctrl-C (SIGTERM) drains and
    hands its share to the others.
    """
    from corpus.app.worker import run_worker

    summary = run_worker(config, region=region)
    if as_json:
        emit(summary.document())
    else:
        fetch = summary.fetch
        click.echo(f"{fetch.pages} pages in {fetch.requests} requests by this worker ({summary.ended}, {summary.wall_s:.1f} s)")
    return summary.exit_code
