"""`corpus replay RELEASE`: the same release again, byte for byte."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, emit, release_name, with_config
from corpus.config.tree import Config


@click.command(name="replay")
@click.argument("release", callback=release_name)
@with_config()
@as_json
def command(config: Config, release: str, as_json: bool) -> int:
    """Build a release again from its snapshot and compare every byte with what is there."""
    from corpus.app.project import open_project
    from corpus.app.release import replay
    from corpus.observe.runlog import Terminal

    different = replay(open_project(config, create=False), release, Terminal())
    if as_json:
        emit({"release": release, "identical": not different, "different": different})
    else:
        click.echo("\n".join([f"differs: {file}" for file in different]) or f"{release}: every byte is the same")
    return 1 if different else 0
