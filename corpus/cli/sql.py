"""`corpus sql QUERY`: read-only queries over CONTRACT's views."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from corpus.cli.options import as_json, clean, document, with_config
from corpus.config.tree import Config

if TYPE_CHECKING:
    from pyarrow import Table


@click.command(name="sql")
@click.argument("query", required=False)
@with_config()
@click.option(
    "--format", "form", type=click.Choice(["table", "csv", "json", "parquet", "jsonl.zst"]), default="table", show_default=True
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default=None,
    help="Write this file instead of printing (needed for parquet and jsonl.zst).",
)
@click.option("--attach", is_flag=True, help="Write attach.sql: the same views for the duckdb shell (into -o FOLDER).")
@as_json
def command(config: Config, query: str | None, form: str, output: str | None, attach: bool, as_json: bool) -> int:
    """Run one SELECT over pages, documents, records, decisions, consent, hosts, domains, clusters, funnel, releases.

    jsonl.zst streams: a whole release leaves as JSON lines with --format jsonl.zst -o v1.jsonl.zst "select * from records".
    """
    if attach == (query is not None):
        raise click.UsageError("give one query, or --attach without one")
    from corpus.app.project import open_project

    project = open_project(config, create=False)
    if query is None:
        from corpus.app.attach import write_attach

        click.echo(f"wrote {write_attach(project, Path(output) if output else None)}")
        return 0
    from corpus.app.query import write_jsonl, write_parquet
    from corpus.app.views import Views

    with Views(project) as views:
        if form == "jsonl.zst" and not as_json:
            rows = write_jsonl(views.stream(query, JSONL_BATCH), output)
            click.echo(f"wrote {rows} rows to {output}")
            return 0
        table = views.query(query)
    if form == "parquet" and not as_json:
        click.echo(f"wrote {write_parquet(table, output)}")
    else:
        _say(table, "json" if as_json else form, output)
    return 0


def _say(table: Table, form: str, output: str | None) -> None:
    """A result as text: on stdout, or in a file."""
    from corpus.app.query import as_csv, as_document, as_table, write_text

    match form:
        case "json":
            text = document(as_document(table)) + "\n"
        case "csv":
            text = as_csv(table)
        case _:
            text = clean(as_table(table))
    if output is None:
        click.echo(text, nl=False)
    else:
        click.echo(f"wrote {write_text(text, output)}", err=form == "json")


JSONL_BATCH = 1024
"""Rows in memory at a time."""
