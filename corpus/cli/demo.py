"""`corpus demo`: the main job, offline, in seconds."""

from __future__ import annotations

from pathlib import Path

import click

from corpus.cli.options import as_json, emit


@click.command(name="demo")
@click.option("--dir", "folder", default="demo-corpus", show_default=True, help="Where the corpus goes.")
@click.option("--fresh", is_flag=True, help="Start over when the folder holds an earlier demo.")
@as_json
def command(folder: str, fresh: bool, as_json: bool) -> int:
    """Crawl a bundled little web on loopback and make a release of it."""
    from corpus.app.demo import demo
    from corpus.observe.summary import render_funnel

    end = demo(Path(folder), fresh=fresh)
    if as_json:
        emit(end.summary.document())
        return end.summary.exit_code
    click.echo(f"{end.summary.sentence} ({end.summary.wall_s:.1f} s)\n")
    click.echo(render_funnel(end.summary.funnel))
    click.echo("\nnext:")
    for line, what in end.next:
        click.echo(f"  {line}\n      {what}")
    return end.summary.exit_code
