"""`corpus bench`: measure each stage."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="bench")
@click.argument("stages", nargs=-1)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    default=None,
    help="A folder of HTML pages; default: bench-data/tree.",
)
def command(stages: tuple[str, ...], data: str | None) -> None:
    """Measure stages (all without arguments) in CPU-seconds, peak memory and bytes; one JSON line each."""
    import json

    from corpus.app.bench import bench

    for row in bench(stages, Path(data) if data else None):
        click.echo(json.dumps(row))
