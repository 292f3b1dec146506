"""The options every verb shares, and how results are printed."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from corpus.config.tree import Config

_RELEASE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def with_config(*, fetching: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `-c` and `--set`; the verb receives a checked `config` as its first argument."""

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        @click.option(
            "-c", "--config", "config_file", default="corpus.toml", metavar="FILE", show_default=True, help="Configuration."
        )
        @click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one key; repeatable.")
        @functools.wraps(verb)
        def wrapper(config_file: str, overrides: tuple[str, ...], **arguments: Any) -> Any:
            return verb(load(config_file, overrides, fetching=fetching), **arguments)

        return wrapper

    return decorate


def load(config_file: str, overrides: tuple[str, ...], *, fetching: bool) -> Config:
    """The checked configuration, or ConfigError with every problem."""
    from corpus.config.check import load_checked

    return load_checked(config_file, overrides, fetching=fetching)


def with_share(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--rank` and `--world`, under `with_config`; the verb receives the `share` of the stage that it is to do."""

    @click.option("--rank", type=int, default=None, metavar="R", help="Do the share of rank R (from 0) of a batch job.")
    @click.option("--world", type=int, default=None, metavar="N", help="How many ranks share the work.")
    @functools.wraps(verb)
    def wrapper(config: Config, *, rank: int | None, world: int | None, **arguments: Any) -> Any:
        from corpus.app.ranks import share_of

        return verb(config, share=share_of(config, rank, world), **arguments)

    return wrapper


as_json = click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document.")


def emit(value: Any) -> None:
    """One JSON document on stdout. Times must already be text; anything else unknown is an error of ours."""
    click.echo(document(value))


def document(value: Any) -> str:
    """A value as every `--json` prints it."""
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=False, allow_nan=False)


def release_name(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Refuses, before anything is done, a name that no release can have."""
    if value is not None and not _RELEASE_NAME.fullmatch(value):
        raise click.BadParameter(f"{value[:100]!r} is no name of a release: letters, digits, '.', '_' and '-', at most 100")
    return value


def clean(text: str) -> str:
    """Crawled text made safe for a terminal: control characters (escape sequences too) become visible."""
    return "".join(ch if ch.isprintable() or ch in "\n\t" else f"\\x{ord(ch):02x}" if ord(ch) < 256 else "\ufffd" for ch in text)
