"""`corpus optout check URL | cases FILE`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corpus.cli.options import as_json, clean, emit, load
from corpus.errors import UsageError

if TYPE_CHECKING:
    from corpus.config.tree import Config
    from corpus.model import Consent


@click.group(name="optout")
def command() -> None:
    """What a site says about access and training."""


def _file(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(f"--{what}", type=click.Path(exists=True, dir_okay=False), default=None, help=f"A {what} file.")


@command.command()
@click.argument("url")
@_file("robots")
@_file("html")
@_file("tdmrep")
@_file("ai-txt")
@_file("rsl")
@click.option("--header", "headers", multiple=True, metavar="'K: V'", help="A response header; repeatable.")
@click.option("--status", type=int, default=None, help="The response's status (200).")
@click.option("--robots-status", type=int, default=None, help="The status robots.txt came with (200).")
@click.option("--live", is_flag=True, help="Ask the site, politely, as a crawl would. The default when nothing is given.")
@click.option("-c", "--config", "config_file", default=None, metavar="FILE", help="Configuration (corpus.toml, if there is one).")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one key; repeatable.")
@as_json
def check(
    url: str, headers: tuple[str, ...], status: int | None, robots_status: int | None, live: bool, config_file: str | None,
    overrides: tuple[str, ...], as_json: bool, **files: str | None,
) -> int:  # fmt: skip
    """Decide one URL from the files and headers given, or from what its site says now; Protego's opinion stands beside ours."""
    given = {name: Path(path).read_bytes() for name, path in files.items() if path}
    offline = bool(given or headers or status or robots_status)
    if live and offline:
        raise click.UsageError("--live asks the site itself: give no files, headers or status with it")
    config = _config(config_file, overrides, needed=not offline)
    waits, asked = "", list[tuple[str, str]]()
    if offline:
        decided, opinion = _offline(url, given, headers, status or 200, robots_status or 200, config)
    else:
        import asyncio

        from corpus.app.optout_live import look

        assert config is not None, "a live check has loaded its configuration"
        found = asyncio.run(look(url, config))
        decided, opinion, waits, asked = found.consent, found.protego, found.waits, found.asked
    if as_json:
        from corpus.app.why import consent_document

        emit(consent_document(decided))
    else:
        click.echo(clean("\n".join(render(decided, opinion, waits, asked))))
    return 0


def _config(config_file: str | None, overrides: tuple[str, ...], *, needed: bool) -> Config | None:
    if config_file is None and not overrides and not needed and not Path("corpus.toml").is_file():
        return None  # the defaults decide
    return load(config_file or "corpus.toml", overrides, fetching=False)


def _offline(
    url: str, given: dict[str, bytes], headers: tuple[str, ...], status: int, robots_status: int, config: Config | None
) -> tuple[Consent, bool | None]:
    from corpus.optout.consent import OUR_TOKEN, consent
    from corpus.optout.protego_opinion import second_opinion
    from corpus.optout.settings import OptoutSettings
    from corpus.url.canonical import canonical_url

    if canonical_url(url) is None:
        raise UsageError("not an http(s) URL", repr(url)[:200], "write it with its scheme")
    bare = [header for header in headers if ":" not in header]
    if bare:
        raise UsageError("a header needs a name, a colon and a value", repr(bare[0])[:200], "write --header 'X-Robots-Tag: noai'")
    pairs = [(name.strip(), value.strip()) for name, _, value in (header.partition(":") for header in headers)]
    token = config.crawl.robots_token if config else OUR_TOKEN
    robots = given.get("robots")
    decided = consent(
        url, robots=robots, robots_status=robots_status, status=status, headers=pairs, html=given.get("html"), tdmrep=given.get("tdmrep"),
        ai_txt=given.get("ai_txt"), rsl=given.get("rsl"), settings=config.optout if config else OptoutSettings(), token=token,
    )  # fmt: skip
    return decided, second_opinion(robots, token, url) if robots is not None else None


def render(decided: Consent, opinion: bool | None, waits: str, asked: list[tuple[str, str]]) -> list[str]:
    """The verdicts for a person, every statement under them."""
    lines = [f"access {decided.access}, use {decided.use}: {decided.gate}"]
    lines += [f"  not known now: {waits}"] * bool(waits)
    for item in decided.evidence:
        where = item.source + (f" line {item.line_no}" if item.line_no else "")
        lines.append(f"  {item.axis} {item.verdict}: {item.protocol} {where} \u201c{item.raw.strip()[:200]}\u201d")
    if opinion is not None:
        lines.append(f"  protego would {'allow' if opinion else 'refuse'} it")
    return lines + [f"  asked {url}: {status}" for url, status in asked]


@command.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@as_json
def cases(file: str, as_json: bool) -> int:
    """Evaluate a file of consent cases; exit 1 when any fails."""
    from corpus.optout.cases import run_cases

    told = run_cases(file)
    if as_json:
        emit(told)
    else:
        for failure in told["failed"]:
            click.echo(clean(f"{failure['id']}: expected {failure['expected']}, got {failure['got']}"))
        click.echo(f"{told['total'] - len(told['failed'])} of {told['total']} cases hold")
    return 1 if told["failed"] else 0
