"""`corpus report …`: what this corpus holds and why, for a person, a site or an authority."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.cli.report_run import command as run
from corpus.config.tree import Config

SHOWN = 20


@click.group(name="report")
def command() -> None:
    """Reports over what this corpus holds and why."""


command.add_command(run)


@command.command()
@with_config()
@as_json
def consent(config: Config, as_json: bool) -> int:
    """What sites said no to, by signal, host and day (UTC)."""
    from corpus.app.project import open_project
    from corpus.app.report_consent import consent_report

    told = consent_report(open_project(config, create=False))
    if as_json:
        emit(told)
    else:
        click.echo(clean(render(told)))
    return 0


@command.command()
@with_config()
@click.option("--release", "name", default="", metavar="NAME", help="A release; the newest without it.")
@click.option("--sme", is_flag=True, help="Name the domains that a small or medium-sized provider must: top 5 %, at most 1,000.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "json", "csv"]),
    default="markdown",
    show_default=True,
    help="CSV: all domains.",
)
@click.option("-o", "--output", metavar="FILE", help="Write a file instead of printing.")
@as_json
def eu(config: Config, name: str, sme: bool, form: str, output: str | None, as_json: bool) -> int:
    """The summary of training content of the AI Act, Art. 53(1)(d), from what is known of a release.

    What only the provider of a model can say is marked TO BE PROVIDED BY PROVIDER. The rule which domains to name is
    applied in both of its readings.
    """
    from corpus.app.project import open_project
    from corpus.app.report_eu import eu_summary
    from corpus.app.report_eu_text import markdown_lines

    with eu_summary(open_project(config, create=False), name, sme=sme) as summary:
        if as_json or form == "json":
            _write(output, [json.dumps(summary.as_json(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"])
        elif form == "csv":
            _write(output, summary.table.csv())
        else:
            _write(output, (line + "\n" for line in markdown_lines(summary)))
    return 0


def _write(output: str | None, parts: Iterable[str]) -> None:
    """To stdout, or into a file that appears whole or not at all."""
    from corpus.store.local_objects import named_output, sealed

    if output is None:
        for part in parts:
            click.echo(part, nl=False)
        return
    with sealed(named_output(output)) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(parts)


def render(told: dict[str, Any]) -> str:
    """The report for a person; of hosts and days only the first."""
    lines = [f"{told['refused']} URLs are left out because of what their sites say."]
    lines += [f"  {row['urls']:>8}  {row['signal']}: {row['meaning']} ({row['hosts']} hosts)" for row in told["by_signal"]]
    uses = ", ".join(f"{use} {n}" for use, n in told["exported_by_use"].items()) or "no release yet"
    lines += [f"In the newest release: {uses}.", "", "By host:"]
    for row in told["by_host"][:SHOWN]:
        lines.append(f"  {row['urls']:>8}  {row['host']}: " + ", ".join(f"{code} {n}" for code, n in row["signals"].items()))
    lines += ["", "By day (readings of files, changed, URLs refused):"]
    lines += [f"  {row['day']}  {row['readings']} {row['changes']} {row['refused']}" for row in told["by_day"][-SHOWN:]]
    lines += ["", "By signal and day (newly refused URLs, their hosts, URLs so far):"]
    for row in told["by_signal"]:
        mine = [item for item in told["trend"] if item["signal"] == row["signal"]]
        lines += [
            f"  {item['day'] or 'undated   '}  {item['urls']:>8} {item['hosts']:>6} {item['urls_so_far']:>8}  {row['signal']}"
            for item in mine[-SHOWN:]
        ]
    return "\n".join(lines)
