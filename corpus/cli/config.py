"""`corpus config show|schema`."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, emit, with_config


@click.group(name="config")
def command() -> None:
    """Show the resolved configuration, or its JSON Schema."""


@command.command()
@with_config()
@click.option("--origin", is_flag=True, help="Say where each value came from.")
@as_json
def show(config: object, origin: bool, as_json: bool) -> None:
    """Print every key with its value."""
    from corpus.config.load import show as render
    from corpus.config.tree import Config

    assert isinstance(config, Config)
    if as_json:
        emit(config.model_dump(mode="json"))
    else:
        click.echo(render(config, origin=origin))


@command.command()
def schema() -> None:
    """Print the JSON Schema of corpus.toml."""
    from corpus.config.load import json_schema

    emit(json_schema())
