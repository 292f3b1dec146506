"""`corpus plan`: what a crawl will take, before it makes a request; with `--pages` and `--days`, what a fleet would take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.cli.plan_fleet import Count, Price, Quantity
from corpus.config.tree import Config

if TYPE_CHECKING:
    from corpus.app.project import Project


@click.command(name="plan")
@with_config()
@click.option("--pages-per-host", type=click.IntRange(1), default=None, help="Also estimate for so many pages of each host.")
@click.option(
    "--pages",
    type=Count(),
    default=None,
    metavar="N",
    help="Plan a fleet for so many pages (1e10), whatever the seeds; needs --days.",
)
@click.option("--days", type=click.FloatRange(0, min_open=True), default=None, help="… in so many days.")
@click.option("--page-bytes", type=Quantity("size"), default="100kB", show_default=True, help="A page before any compression.")
@click.option("--gap", type=Quantity("duration"), default=None, help="Time between two contacts of a host; default: crawl.delay.")
@click.option("--regions", type=click.IntRange(1), default=1, show_default=True, help="Divide the fleet into so many regions.")
@click.option(
    "--machine",
    type=(click.IntRange(1), click.FloatRange(0, min_open=True)),
    default=(16, 10.0),
    show_default=True,
    metavar="CORES GBIT",
    help="A machine.",
)
@click.option(
    "--price",
    "prices",
    type=Price(),
    multiple=True,
    metavar="NAME=AMOUNT",
    help="core-hour, tb-month, tb-in, million-puts; repeatable.",
)
@as_json
def command(config: Config, pages_per_host: int | None, as_json: bool, **fleet: Any) -> int:
    """Hosts, time by the bound that holds, bytes, disk, and how many hosts say nothing about training. Nothing is fetched.

    With --pages and --days: machines, line, memory, bytes and money of a fleet, by arithmetic from stated costs.
    """
    from corpus.app.plan import plan
    from corpus.app.project import open_project

    project = open_project(config, create=False) if (config.root / "corpus.json").exists() else None
    if fleet["pages"] is not None or fleet["days"] is not None:
        return _fleet(config, project, as_json=as_json, **fleet)
    told = plan(config, project, pages_per_host=pages_per_host)
    if as_json:
        emit(told)
    else:
        click.echo(clean(render(told)))
    return 0


def _fleet(
    config: Config, project: Project | None, *, as_json: bool, pages: int | None, days: float | None, page_bytes: int, gap: float | None, regions: int,
    machine: tuple[int, float], prices: tuple[tuple[str, float], ...],
) -> int:  # fmt: skip
    from corpus.app.plan_fleet import Target, plan_fleet
    from corpus.cli.plan_fleet import render as render_fleet

    if pages is None or days is None:
        raise click.UsageError("--pages and --days belong together")
    told = plan_fleet(config, project, Target(pages, days, page_bytes, gap, regions, *machine, dict(prices)))
    if as_json:
        emit(told)
    else:
        click.echo(clean(render_fleet(told)))
    return 0


def render(told: dict[str, Any]) -> str:
    """The estimate for a person."""
    from corpus.observe.words import duration, size

    hosts, quiet = told["hosts"], told["silent"]
    lines = [f"{hosts['known']} hosts of {hosts['domains']} domains; statements of {hosts['read']} were read"]
    if quiet["judged"]:
        lines.append(
            f"  say nothing about training: {quiet['nothing']['hosts']} hosts ({quiet['nothing']['pages']} pages) · refuse it: "
            f"{quiet['no']['hosts']} ({quiet['no']['pages']}), for some paths: {quiet['no_in_part']['hosts']} "
            f"({quiet['no_in_part']['pages']}) · refuse us: {quiet['no_access']['hosts']} ({quiet['no_access']['pages']})"
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
