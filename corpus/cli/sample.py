"""`corpus sample`: look at kept or dropped documents."""

from __future__ import annotations

from typing import Any

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config

TEXT_SHOWN = 600


@click.command(name="sample")
@with_config()
@click.option("--dropped", is_flag=True, help="Dropped documents in place of kept ones.")
@click.option("--rule", default=None, help="Only those that this policy rule dropped.")
@click.option(
    "--flips",
    "against",
    multiple=True,
    metavar="RULE.LIMIT=N|POLICY",
    help="Documents that would flip under another limit or policy.",
)
@click.option("-n", "count", type=click.IntRange(1, 1000), default=5, show_default=True)
@as_json
def command(config: Config, dropped: bool, rule: str | None, against: tuple[str, ...], count: int, as_json: bool) -> int:
    """Show documents with what was measured. The choice is by id, so the same folder shows the same ones."""
    from corpus.app.project import open_project
    from corpus.app.sample import flip_table, sample

    if against:
        _show_flips(flip_table(open_project(config, create=False), against, count=count), as_json=as_json)
        return 0
    rows = sample(open_project(config, create=False), dropped=dropped or rule is not None, rule=rule, count=count)
    if as_json:
        emit({"rows": rows, "row_count": len(rows)})
        return 0
    for row in rows:
        head = f"{row['url']}  [{row['language']}]"
        if row["reason"]:
            head += f"  {row['reason']}"
        if row["drop_rule"]:
            head += f": {row['drop_rule']} measured {row['measured']:g}, kept is {row['keep']}"
        text = str(row["text"] or "")
        click.echo(clean(f"{head}\n{text[:TEXT_SHOWN]}{'…' if len(text) > TEXT_SHOWN else ''}\n"))
    if not rows:
        click.echo("nothing to show")
    return 0


def _show_flips(table: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        emit(table)
        return
    click.echo(
        f"{table['documents']} documents: {table['policy']} keeps {table['kept_before']}, with {' '.join(table['against'])} it keeps {table['kept_after']}"
    )
    for word, counts in (("newly dropped", table["newly_dropped"]), ("newly kept", table["newly_kept"])):
        for rule, number in counts.items():
            click.echo(f"  {word} {number}: {rule}")
    for row in table["rows"]:
        click.echo(
            clean(
                f"{row['url']}  {row['becomes']} by {row['rule']}: measured {row['measured']:g}, limit {row['limit']:g}, kept is {row['keep']}"
            )
        )
