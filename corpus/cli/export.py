"""`corpus export`: consent refresh, snapshot, release."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, release_name, with_config, with_share
from corpus.cli.summaries import not_shared, run_stages
from corpus.config.tree import Config
from corpus.engine.share import Share


@click.command(name="export")
@with_config()
@with_share
@click.option("--name", default=None, callback=release_name, help="The release's name; default: export.name.")
@as_json
def command(config: Config, share: Share, name: str | None, as_json: bool) -> int:
    """Refresh consent where it is stale, take a snapshot, and write a release."""
    if not share.leads:
        not_shared(share, as_json=as_json)
        return 0
    return run_stages(config, ("export",), name=name, as_json=as_json)
