"""`corpus verify`: a file system check of the whole folder."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config


@click.command(name="verify")
@with_config()
@click.option("--repair", is_flag=True, help="Mend what can be made again from what is whole, and say what was done.")
@click.option("--rebuild", is_flag=True, help="Make the catalog of ids again from releases; losing it loses nothing.")
@as_json
def command(config: Config, repair: bool, rebuild: bool, as_json: bool) -> int:
    """Check every digest, length, reference and sum, from archive to release. Exit 1 when faults remain.

    A repair cuts torn tails of open segments to what was acknowledged and seals them, removes temporary files, records sealed
    segments again, and removes damaged measurements so that corpus process makes them again. It never changes a release.
    """
    from corpus.app.project import open_project
    from corpus.app.verify import verify
    from corpus.observe.runlog import Terminal

    verdict = verify(open_project(config, create=False), Terminal(), repair=repair, rebuild=rebuild)
    if as_json:
        emit(verdict.document())
        return 0 if verdict.ok else 1
    for fault in verdict.faults:
        where = fault.file + (f" at {fault.offset}" if fault.offset is not None else "")
        click.echo(clean(f"{'repaired' if fault.repaired else 'fault'}: {fault.kind.value}: {where}: {fault.message}"))
    counts = ", ".join(f"{n} {what.replace('_', ' ')}" for what, n in verdict.checked.items() if n)
    click.echo(f"checked {counts}")
    if verdict.running:
        click.echo(f"a run holds the folder ({verdict.running}), so what it may be writing was left alone")
    remaining = sum(not fault.repaired for fault in verdict.faults)
    click.echo(f"{remaining} faults remain" if remaining else "no faults" if not verdict.faults else "every fault was repaired")
    return 0 if verdict.ok else 1
