"""`corpus export`: consent refresh, snapshot, release."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, with_config
from corpus.cli.summaries import run_stages
from corpus.config.tree import Config


@click.command(name="export")
@with_config()
@click.option("--name", default=None, help="The release's name; default: export.name.")
@as_json
def command(config: Config, name: str | None, as_json: bool) -> int:
    """Refresh consent where it is stale, take a snapshot, and write a release."""
    return run_stages(config, ("export",), name=name, as_json=as_json)
