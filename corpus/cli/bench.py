"""`corpus bench`: measure each stage, or compare whole jobs with others and with bare loops."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(name="bench")
@click.argument("stages", nargs=-1)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False),
    default=None,
    help="A folder of HTML pages (default: bench-data/tree); with --peers, what make bench-data unpacked.",
)
@click.option("--peers", is_flag=True, help="Compare whole jobs (fetch, process, chain, dedup) instead.")
@click.option(
    "--python", default=".venv-peers/bin/python", show_default=True, help="The Python that has the others (make peers)."
)
@click.option("--hosts", type=click.IntRange(1, 1000), default=40, show_default=True, help="Loopback hosts, with --peers.")
@click.option("--pages", type=click.IntRange(1, 1000), default=20, show_default=True, help="Pages per host, with --peers.")
@click.option("--rounds", type=click.IntRange(1, 99), default=3, show_default=True, help="How often each runs, with --peers.")
def command(stages: tuple[str, ...], data: str | None, peers: bool, python: str, hosts: int, pages: int, rounds: int) -> None:
    """Measure stages (all without arguments) in CPU-seconds, peak memory and bytes; one JSON line each."""
    import json

    from corpus.app.bench import bench
    from corpus.app.bench_peers import bench_peers

    if peers:
        rows = bench_peers(stages, data=Path(data or "bench-data"), python=Path(python), hosts=hosts, pages=pages, rounds=rounds)
    else:
        rows = bench(stages, Path(data) if data else None)
    for row in rows:
        click.echo(json.dumps(row))
