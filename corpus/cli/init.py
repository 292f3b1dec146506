"""`corpus init DIR`: a commented configuration to start from."""

from __future__ import annotations

import click


@click.command(name="init")
@click.argument("folder", type=click.Path(file_okay=False))
@click.option("--name", default=None, help="The dataset's name; default: the folder's.")
def command(folder: str, name: str | None) -> None:
    """Write a commented corpus.toml and a seeds file into a new folder."""
    from corpus.app.init import scaffold

    for path in scaffold(folder, name):
        click.echo(f"wrote {path}")
    click.echo(f"next: put seeds into {folder}/seeds.txt, set crawl.contact, then: corpus check -c {folder}/corpus.toml")
