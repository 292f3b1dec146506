"""`corpus crawl`."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, with_config
from corpus.cli.summaries import run_stages
from corpus.config.tree import Config


@click.command(name="crawl")
@with_config(fetching=True)
@as_json
def command(config: Config, as_json: bool) -> int:
    """Fetch politely into WARC segments. Ctrl-C drains; the same command again resumes."""
    return run_stages(config, ("crawl",), as_json=as_json)
