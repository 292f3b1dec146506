"""`corpus takedown add|list|apply`: taking back what a rights holder asks for, with proof."""

from __future__ import annotations

from typing import Any, Literal

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config


@click.group(name="takedown")
def command() -> None:
    """Forget a domain, a URL or a document, everywhere, and prove it.

    An order is in force at once: no view shows the page, no crawl asks for it, no release before it is pushed. `apply` then
    removes it from every file there is and looks at everything again.
    """


@command.command(name="add")
@click.argument("name", metavar="DOMAIN|URL|ID")
@click.option("--reason", required=True, help="Why; for example the number of the request. It is published with the tombstone.")
@click.option(
    "--scope", type=click.Choice(["copy", "cluster"]), default="copy", show_default=True,
    help="copy: this page alone, and an allowed copy may take its place. cluster: every near-duplicate of it too.",
)  # fmt: skip
@with_config()
@as_json
def add(config: Config, name: str, reason: str, scope: Literal["copy", "cluster"], as_json: bool) -> int:
    """Order a takedown. It is final."""
    from corpus.app.project import open_project
    from corpus.app.takedown_orders import add as order

    told = order(open_project(config, create=False), name, reason, scope=scope)
    if as_json:
        emit(told.document())
        return 0
    if not told.n:
        click.echo(clean(f"already ordered: order {told.earlier} covers {name}"))
    else:
        click.echo(clean(f"order {told.n}: {name} is taken down, in force from now on"))
    if told.known:
        click.echo(f"{told.known} URLs known here are covered; corpus takedown apply removes what is stored of them")
    else:
        click.echo("nothing here is known under this name; the order stands, should it ever appear")
    return 0


@command.command(name="list")
@with_config()
@as_json
def listing(config: Config, as_json: bool) -> int:
    """Every order, its cause and its state; and what sites said by themselves that the next apply will carry out."""
    import time

    from corpus.app.project import open_project
    from corpus.app.takedown_auto import found
    from corpus.app.takedown_orders import listed

    project = open_project(config, create=False)
    orders, automatic = listed(project), [item.document() for item in found(project, time.time())]
    if as_json:
        emit({"orders": orders, "automatic": automatic})
        return 0
    lines = [_order(item) for item in orders] or ["no orders"]
    for item in automatic:
        effect = "apply will remove it" if item["effect"] == "removal" else "left out of the next release"
        lines.append(f"by itself  {item['cause']}  {item['domain']}: {item['urls']} URLs; {effect}")
    click.echo(clean("\n".join(lines)))
    return 0


def _order(item: dict[str, Any]) -> str:
    more = f" and {item['members']} more URLs" if item["members"] else ""
    state = f"applied, {item['proof']}" if item["proof"] else "pending: run corpus takedown apply"
    return f"{item['n']:>6}  {item['at']}  {item['action']} {item['kind']} {item['value']}{more} ({item['cause']}: {_one_line(item['reason'])}); {state}"


def _one_line(text: str) -> str:
    """Text of a person with line breaks and control characters spelled out: an order is one line."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


@command.command(name="apply")
@with_config()
@as_json
def applying(config: Config, as_json: bool) -> int:
    """Remove what the orders cover from archives, families, releases, indexes and frontier, and write the proof.

    Releases that held it are superseded as NAME.1 and share every shard that is not touched. Interrupted, run it again.
    Exit 1 when something cannot be read, so that no proof can be given.
    """
    from corpus.app.project import open_project
    from corpus.app.takedown_apply import apply
    from corpus.engine.local import LocalPool
    from corpus.observe.runlog import Terminal

    told = apply(open_project(config, create=False), LocalPool(config.engine.workers), Terminal())
    if as_json:
        emit(told.document())
        return 0
    if not told.orders:
        click.echo("nothing to remove: every order is carried out" + (f", see {told.proof}" if told.proof else ""))
        return 0
    for item in told.releases:
        if item.into:
            click.echo(
                clean(
                    f"{item.name} is withdrawn; {item.into} takes its place ({item.removed} rows went, {item.promoted} copies came)"
                )
            )
    counts = ", ".join(f"{n} {place.replace('_', ' ')}" for place, n in told.removed.items() if n)
    click.echo(f"{told.orders} orders carried out; removed: {counts or 'nothing was stored'}")
    click.echo(f"{told.remaining} remain; {told.shards_rewritten} shards rewritten; proof: {told.proof}")
    return 0
