"""`corpus report run`: one run and what it left, for a person."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, clean, with_config
from corpus.config.tree import Config


@click.command(name="run")
@with_config()
@click.option("--run", "run_id", default="", metavar="RUN", help="A run's name; the newest without it.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "html"]),
    default="markdown",
    show_default=True,
    help="HTML is one file, with plots.",
)
@click.option("-o", "--output", metavar="FILE", help="Write a file instead of printing.")
@as_json
def command(config: Config, run_id: str, form: str, output: str | None, as_json: bool) -> int:
    """One run: funnel, pages over time, hosts, codes, types, seeds, languages, lengths, refusals, freshness, clusters."""
    from corpus.app.project import open_project
    from corpus.app.report_run import run_report, write_run_report

    text = write_run_report(run_report(open_project(config, create=False), run_id), "json" if as_json else form, output)
    click.echo(clean(text) if output is None else f"written: {output}", nl=output is not None)
    return 0
