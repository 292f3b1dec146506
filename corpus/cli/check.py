"""`corpus check`: every problem at once."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, emit


@click.command(name="check")
@click.option("-c", "--config", "config_file", default="corpus.toml", metavar="FILE", show_default=True, help="Configuration.")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one key; repeatable.")
@as_json
def command(config_file: str, overrides: tuple[str, ...], as_json: bool) -> int:
    """Name every problem of the configuration, and of this machine for it, with file, line and key. Nothing is fetched."""
    from dataclasses import asdict

    from corpus.app.doctor import machine_problems
    from corpus.config.check import load_checked
    from corpus.config.load import ConfigError, Problem
    from corpus.config.tree import Config

    found: list[Problem] = []
    try:
        config: Config | None = load_checked(config_file, overrides, fetching=True, deep=True)
    except ConfigError as error:
        found, config = list(error.problems), error.rest
    if config is not None:
        told = {problem.key for problem in found}
        found += [problem for problem in machine_problems(config) if problem.key not in told]
    if as_json:
        emit({"problems": [asdict(problem) for problem in found]})
    else:
        for problem in found:
            click.echo(str(problem))
        click.echo(
            f"{len(found)} {'problem' if len(found) == 1 else 'problems'}, nothing was fetched" if found else "no problems found"
        )
    return 2 if found else 0
