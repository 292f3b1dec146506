"""`corpus audit`: check a crawler's manners in a server's own access log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from corpus.cli.options import as_json, clean, emit, load

if TYPE_CHECKING:
    from corpus.app.audit import Audit

SHOWN = 50


@click.command(name="audit")
@click.argument("access_log", metavar="ACCESS_LOG")
@click.option(
    "-c", "--config", "config_file", default=None, metavar="FILE", help="Take --agent and --gap from this configuration."
)
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one key of it; repeatable.")
@click.option("--agent", default=None, help="Lines whose User-Agent contains this.  [default: CorpusBot]")
@click.option("--gap", default=None, metavar="DURATION", help="The gap that is due: yours, or a Crawl-delay.  [default: 2s]")
@click.option(
    "--group", type=click.Choice(["host", "domain", "server"]), default="host", show_default=True, help="What shares a clock."
)
@click.option("--host", default="", help="What the log is about, where its lines do not say.")
@click.option(
    "--robots",
    type=click.Path(exists=True, dir_okay=False),
    default=None,
    help="A robots.txt: requests that it refuses are named.",
)
@click.option(
    "--took-in",
    type=click.Choice(["s", "ms", "us"]),
    default="us",
    show_default=True,
    help="Unit of whole-number durations (Apache %D: us).",
)
@click.option(
    "--time-is",
    type=click.Choice(["end", "start"]),
    default="end",
    show_default=True,
    help="What a line's time means, if it has a duration (nginx: end; Apache: start).",
)
@click.option(
    "--pattern",
    default="",
    metavar="REGEX",
    help="A line format of your own, with groups time, agent and any of took host server target request status.",
)
@as_json
def command(
    access_log: str,
    config_file: str | None,
    overrides: tuple[str, ...],
    agent: str | None,
    gap: str | None,
    group: str,
    host: str,
    robots: str | None,
    took_in: str,
    time_is: str,
    pattern: str,
    as_json: bool,
) -> int:
    """Check a crawler's manners in a web server's access log: every gap that was too short is named, and (with --robots)
    every request that was refused. Reads nginx and Apache combined, with a duration at the end or without, the same after
    a virtual host, and JSON lines; .gz and - (standard input) too. Exit code 1 when there are violations."""
    from corpus.app.access_log import Spelling
    from corpus.app.audit import audit
    from corpus.errors import UsageError
    from corpus.settings import seconds

    config = load(config_file or "corpus.toml", overrides, fetching=False) if config_file or overrides else None
    try:
        gap_s = seconds(gap) if gap is not None else config.crawl.delay if config is not None else 2.0
    except ValueError as error:
        raise UsageError(str(error), "--gap") from None
    token = agent or (config.crawl.robots_token if config is not None else "CorpusBot")
    body = Path(robots).read_bytes() if robots is not None else None
    spelling = Spelling({"s": 1.0, "ms": 1e-3, "us": 1e-6}[took_in], starts=time_is == "start")
    found = audit(access_log, agent=token, gap_s=gap_s, group=group, host=host, robots=body, pattern=pattern, spelling=spelling)
    if as_json:
        emit(found.document())
    else:
        click.echo(clean(_render(found)))
    return 0 if found.ok else 1


def _render(found: Audit) -> str:
    lines = [
        f"{found.contacts} contacts of {found.agent} in {found.lines} lines ({found.unread} not readable), in {found.groups} groups by {found.group}",
        *(f"  {n:>8}  {operator}" for operator, n in sorted(found.operators.items(), key=lambda item: -item[1])[:10]),
    ]
    if found.closest_s is not None:
        lines.append(f"shortest gap: {found.closest_s:.3f} s, due: {found.gap_s:g} s")
    lines += [
        f"line {v.line}: {v.host or v.group or 'host'}: {v.gap_s:.3f} s after line {v.after_line}, due {v.due_s:g} s: {v.target}"
        for v in found.violations[:SHOWN]
    ]
    lines += [
        f"line {r.line}: {r.host}: {r.target} is refused by line {r.rule_line} of robots.txt: {r.rule}"
        for r in found.refused[:SHOWN]
    ]
    lines.append("no violation" if found.ok else f"{found.too_soon} gaps too short, {found.forbidden} refused requests")
    return "\n".join([*lines, "", "What this log cannot show:", *(f"- {limit}" for limit in found.limits)])
