"""`corpus status`: what the crawl holds and what it waits for, as lines or as a page."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config


@click.command(name="status")
@with_config()
@click.option("--serve", is_flag=True, help="Serve the status page, /status.json and /metrics on 127.0.0.1 until Ctrl-C.")
@click.option("--port", type=click.IntRange(0, 65535), default=8420, show_default=True, help="For --serve; 0: any free one.")
@as_json
def command(config: Config, serve: bool, port: int, as_json: bool) -> int:
    """Counts of URLs and hosts by state and reason, orders in force, segments, releases, and whether a run holds the folder."""
    from corpus.app.project import open_project
    from corpus.app.status import status

    project = open_project(config, create=False)
    if serve:
        from corpus.app.status_server import serve as serve_page

        serve_page(
            project, port, lambda address: click.echo(f"status page at {address} (read-only, this machine alone); Ctrl-C ends it")
        )
        return 0
    told = status(project)
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
    for fact in told["facts"]:
        click.echo(clean(f"{fact['name']}: {fact['value']}"))
    click.echo(f"segments: {told['segments']}, measured {told['measured']}; releases: {', '.join(told['releases']) or 'none'}")
    click.echo(f"running: {told['running']}" if told["running"] else "no run holds this folder")
    return 0
