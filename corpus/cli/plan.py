"""`corpus plan`: what a crawl will take, before it makes a request."""

from __future__ import annotations

from typing import Any

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config


@click.command(name="plan")
@with_config()
@click.option("--pages-per-host", type=click.IntRange(1), default=None, help="Also estimate for so many pages of each host.")
@as_json
def command(config: Config, pages_per_host: int | None, as_json: bool) -> int:
    """Hosts, time by the bound that holds, bytes, disk, and how many hosts say nothing about training. Nothing is fetched."""
    from corpus.app.plan import plan
    from corpus.app.project import open_project

    project = open_project(config, create=False) if (config.root / "corpus.json").exists() else None
    told = plan(config, project, pages_per_host=pages_per_host)
    if as_json:
        emit(told)
    else:
        click.echo(clean(render(told)))
    return 0


def render(told: dict[str, Any]) -> str:
    """The estimate for a person."""
    from corpus.observe.words import duration, size

    hosts, quiet = told["hosts"], told["silent"]
    lines = [f"{hosts['known']} hosts of {hosts['domains']} domains; statements of {hosts['read']} were read"]
    if quiet["judged"]:
        lines.append(
            f"  say nothing about training: {quiet['nothing']['hosts']} hosts ({quiet['nothing']['pages']} pages) · refuse it: "
            f"{quiet['no']['hosts']} ({quiet['no']['pages']}) · refuse us: {quiet['no_access']['hosts']} ({quiet['no_access']['pages']})"
            f" · allow it: {quiet['yes']['hosts']} ({quiet['yes']['pages']})"
        )
    if quiet["not_asked"]:
        lines.append(f"  {quiet['not_asked']} hosts were not asked yet: what they say is not known")
    lines += ["", f"{'':<22}{'pages':>12}{'time':>16}{'transfer':>12}{'disk':>12}   held by"]
    for row in told["scenarios"]:
        lines.append(
            f"{row['scenario']:<22}{row['pages']:>12,}{duration(row['seconds']):>16}{size(row['bytes_wire']):>12}"
            f"{size(row['bytes_disk']):>12}   {row['bound']}"
        )
    lines.append(f"free on that disk: {size(told['disk_free'])}")
    lines += ["", "what this rests on:"]
    lines += [f"  {a['name']}: {a['value']:,.6g} {a['unit']} ({a['source']})" for a in told["assumptions"]]
    return "\n".join(lines)
