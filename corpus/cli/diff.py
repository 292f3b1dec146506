"""`corpus diff A B`: what changed between two releases, and why."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config

SHOWN = 10


@click.command(name="diff")
@click.argument("a")
@click.argument("b")
@with_config()
@click.option(
    "-n",
    "limit",
    type=click.IntRange(0),
    default=None,
    metavar="N",
    help=f"Changes shown of each kind; default {SHOWN}, all with --json.",
)
@as_json
def command(config: Config, a: str, b: str, limit: int | None, as_json: bool) -> int:
    """Pages added, removed (opted out, taken down, gone, dropped) and changed from release A to release B, with the reasons."""
    from corpus.app.diff import diff
    from corpus.app.project import open_project

    told = diff(open_project(config, create=False), a, b, limit=limit if limit is not None or as_json else SHOWN)
    if as_json:
        emit(told.document())
        return 0
    because = ", ".join(f"{told.counts[group]} {group}" for group in ("opted-out", "taken-down", "gone") if told.counts[group])
    lines = [
        f"{a}: {told.rows_a} rows; {b}: {told.rows_b} rows",
        (
            f"{told.counts['added']} added, {told.counts['removed']} removed{f' ({because})' if because else ''}, "
            f"{told.counts['changed']} changed, {told.unchanged} unchanged"
        ),
    ]
    for kind, counted in told.reasons.items():
        lines += [f"  {kind:8} {n:8}  {reason}" for reason, n in sorted(counted.items(), key=lambda item: (-item[1], item[0]))]
    for change in told.changes:
        lines.append(f"{'+' if change.change == 'added' else '-' if change.change == 'removed' else '~'} {change.url}")
        line = change.evidence
        said = (
            f": {line['source']} line {line['line_no']}: {line['raw']}"
            if line and line["line_no"]
            else f": {line['raw']}"
            if line
            else ""
        )
        lines.append(f"    {change.sentence} ({change.reason}){said}" + (f"; see {change.other}" if change.other else ""))
    click.echo(clean("\n".join(lines)))
    return 0
