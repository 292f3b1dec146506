"""`corpus quality train`."""

from __future__ import annotations

from pathlib import Path

import click

from corpus.cli.options import as_json, emit

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(name="quality")
def command() -> None:
    """The quality classifier whose score is the signal `quality_score`."""


@command.command()
@click.option(
    "--positive",
    "positives",
    multiple=True,
    required=True,
    type=_FILE,
    help="Wanted texts: .txt (one a line), .jsonl or .parquet; repeatable.",
)
@click.option(
    "--negative",
    "negatives",
    multiple=True,
    required=True,
    type=_FILE,
    help="The pool to choose from, in the same forms; repeatable.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("quality.bin"),
    show_default=True,
    help="The model to write.",
)
@click.option(
    "--quantile",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.9,
    show_default=True,
    help="Share of the pool to drop.",
)
@as_json
def train(positives: tuple[Path, ...], negatives: tuple[Path, ...], out: Path, quantile: float, as_json: bool) -> int:
    """Train a fastText classifier, and find the threshold that drops the given share of the pool."""
    from dataclasses import asdict

    from corpus.filter.quality import train as train_model

    done = train_model(positives, negatives, out, quantile=quantile)
    for warning in done.warnings():
        click.echo(f"warning: {warning}", err=True)
    if as_json:
        emit({**asdict(done), "warnings": done.warnings()})
        return 0
    click.echo(f"{done.model}: sha256 {done.digest}, learned from {done.positives} wanted texts and {done.negatives} of the pool")
    click.echo(f"held back: keeps {done.kept_of_positives:.1%} of the wanted and {done.kept_of_negatives:.1%} of the pool")
    click.echo(f'\nset filter.quality_model = "{done.model}", and in a policy file:\n\n{done.rule()}')
    return 0
