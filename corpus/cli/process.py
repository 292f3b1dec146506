"""`corpus process`."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, emit, with_config, with_share
from corpus.cli.summaries import run_stages
from corpus.config.tree import Config
from corpus.engine.share import Share


@click.command(name="process")
@with_config()
@with_share
@click.option("--explain", is_flag=True, help="Print the policy as the SQL that decides, and stop.")
@as_json
def command(config: Config, share: Share, explain: bool, as_json: bool) -> int:
    """Extract text, detect languages and measure every sealed segment that is not measured yet."""
    if explain:
        from corpus.config.check import configured_policy

        click.echo(configured_policy(config).sql("signals"))
        return 0
    if share.whole:
        return run_stages(config, ("process",), as_json=as_json)
    from corpus.app.project import open_project
    from corpus.app.ranks import process_share
    from corpus.observe.runlog import Terminal

    told = process_share(open_project(config, create=False), share, Terminal())
    if as_json:
        emit(told)
    else:
        click.echo(
            f"rank {share.rank} of {share.world}: {told['segments']} segments, {told['measured']} measured now, "
            f"{told['documents']} documents; {told['unmeasured']} segments of all ranks are not measured yet"
        )
    return 0
