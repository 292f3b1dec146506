"""`corpus ctl`: steer a crawl that is under way."""

from __future__ import annotations

from typing import Any

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config

_WHEN = {
    True: "the run under way obeys before its next take",
    False: "no run is under way: it holds from the next one on",
    None: "it is recorded; the database server does not answer, so who is at work is not known, and workers find it when they next"
    " look at the log",
}
reason = click.option("--reason", default="", help="Why; kept in the control log.")


@click.group(name="ctl")
def command() -> None:
    """Steer a crawl that is under way, without a restart. Every order is recorded in the control log."""


@command.command()
@with_config()
@reason
@as_json
def pause(config: Config, reason: str, as_json: bool) -> int:
    """Contact nobody until `corpus ctl resume`."""
    return _order(config, "pause", as_json, reason=reason)


@command.command()
@with_config()
@reason
@as_json
def resume(config: Config, reason: str, as_json: bool) -> int:
    """Lift a pause."""
    return _order(config, "resume", as_json, reason=reason)


@command.command()
@with_config()
@reason
@as_json
def drain(config: Config, reason: str, as_json: bool) -> int:
    """End the run under way in order; `corpus run` resumes it."""
    return _order(config, "drain", as_json, reason=reason)


@command.command()
@click.argument("target", metavar="HOST|all")
@click.argument("factor", type=float)
@with_config()
@reason
@as_json
def slow(config: Config, target: str, factor: float, reason: str, as_json: bool) -> int:
    """Stretch the gap of a host and every host below it, or of all. 1 lifts an earlier order."""
    return _order(config, "slow", as_json, target=target, factor=factor, reason=reason)


@command.command()
@click.argument("target", metavar="DOMAIN|URL")
@with_config()
@click.option("--lift", is_flag=True, help="Take an earlier block of the same target back.")
@reason
@as_json
def block(config: Config, target: str, lift: bool, reason: str, as_json: bool) -> int:
    """Never ask for a domain or a URL."""
    return _order(config, "block", as_json, target=target, lift=lift, reason=reason)


@command.command()
@click.argument("kind", type=click.Choice(["pages", "bytes", "time"]))
@click.argument("limit", metavar="LIMIT|config")
@with_config()
@reason
@as_json
def budget(config: Config, kind: str, limit: str, reason: str, as_json: bool) -> int:
    """Another limit in place of the configuration's: 5000, 80GB, 36h; `config` goes back to it."""
    return _order(config, "budget", as_json, kind=kind, limit=limit, reason=reason)


def _order(config: Config, verb: str, as_json: bool, **arguments: Any) -> int:
    from corpus.app import ctl
    from corpus.app.project import open_project

    given = getattr(ctl, verb)(open_project(config, create=False), **arguments)
    if as_json:
        emit(given.document())
        return 0
    words = " ".join(
        [given.action, given.value, *(f"{key} {value:g}" for key, value in given.detail.items() if value is not None)]
    )
    click.echo(clean(f"order {given.n}: {' '.join(words.split())}; {_WHEN[given.running]}"))
    return 0
