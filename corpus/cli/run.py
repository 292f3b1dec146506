"""`corpus run`: every stage; again = resume."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, release_name, with_config
from corpus.cli.summaries import run_stages
from corpus.config.tree import Config


@click.command(name="run")
@with_config(fetching=True)
@click.option("--name", default=None, callback=release_name, help="The release's name; default: export.name.")
@as_json
def command(config: Config, name: str | None, as_json: bool) -> int:
    """Crawl, process, dedup and export. Ctrl-C drains; the same command again resumes."""
    from corpus.app.ranks import share_of

    share_of(config, None, None)
    return run_stages(config, ("crawl", "process", "export"), name=name, as_json=as_json)
