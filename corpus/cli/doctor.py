"""`corpus doctor`: is this machine fit for what the configuration asks."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config

MARKS = {"ok": "ok   ", "warn": "warn ", "fault": "FAULT"}


@click.command(name="doctor")
@with_config()
@as_json
def command(config: Config, as_json: bool) -> int:
    """Look at the machine and the install: Python, packages, file handles, disks, clock, name servers, services. Exit 1 on faults."""
    from corpus.app.doctor import doctor, document

    findings = doctor(config)
    faults = sum(found.state == "fault" for found in findings)
    if as_json:
        emit(document(findings))
    else:
        for found in findings:
            hint = f"\n        {found.hint}" if found.hint and found.state != "ok" else ""
            click.echo(clean(f"{MARKS[found.state]} {found.name}: {found.said}{hint}"))
        click.echo(f"{faults} {'fault' if faults == 1 else 'faults'}" if faults else "no faults")
    return 1 if faults else 0
