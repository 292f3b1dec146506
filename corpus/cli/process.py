"""`corpus process`."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, with_config
from corpus.cli.summaries import run_stages
from corpus.config.tree import Config


@click.command(name="process")
@with_config()
@click.option("--explain", is_flag=True, help="Print the policy as the SQL that decides, and stop.")
@as_json
def command(config: Config, explain: bool, as_json: bool) -> int:
    """Extract text, detect languages and measure every sealed segment that is not measured yet."""
    if explain:
        from corpus.config.check import configured_policy

        click.echo(configured_policy(config).sql("signals"))
        return 0
    return run_stages(config, ("process",), as_json=as_json)
