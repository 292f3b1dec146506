"""`corpus report consent`: refusals by signal, host and day."""

from __future__ import annotations

from typing import Any

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config

SHOWN = 20


@click.group(name="report")
def command() -> None:
    """Reports over what this corpus holds and why."""


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
    return "\n".join(lines)
