"""`corpus lookup DOMAIN`: for a rights holder, what was decided about a site, by which of its own lines."""

from __future__ import annotations

from typing import Any

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config

SHOWN = 30


@click.command(name="lookup")
@click.argument("domain")
@with_config()
@as_json
def command(config: Config, domain: str, as_json: bool) -> int:
    """What was decided for a domain's hosts, at which lines, and how to object. Exit 3 when nothing of it is known."""
    from corpus.app.project import open_project
    from corpus.app.report_consent import lookup

    told = lookup(open_project(config, create=False), domain)
    if as_json:
        emit(told)
    else:
        click.echo(clean(render(told)))
    return 0 if told["known"] else 3


def render(told: dict[str, Any]) -> str:
    """The document for a person."""
    if not told["known"]:
        lines = [f"Nothing of {told['domain']} was ever seen here."]
    else:
        lines = [f"{told['domain']}: {len(told['hosts'])} hosts"]
    for host in told["hosts"]:
        lines.append(f"  {host['host']}")
        lines += [
            f"    {row['urls']:>8}  {row['state']}" + (f" ({row['reason']})" if row["reason"] else "") for row in host["pages"]
        ]
        lines += [f"    {row['urls']:>8}  in the newest release" for row in host["release"] if not row["reason"]]
        lines += [f"    {row['urls']:>8}  left out of it: {row['reason']}" for row in host["release"] if row["reason"]]
    lines += _releases(told["releases"]) + _takedowns(told["takedowns"])
    lines += ["Files read:"] * bool(told["files"])
    for file in told["files"][-SHOWN:]:
        until = f"until {file['valid_to']}" if file["valid_to"] else f"still so at {file['read_at']}"
        lines.append(
            f"  {file['url']}: {file['outcome']} (HTTP {file['status']}), from {file['valid_from']} {until}, sha256 {file['digest'] or '-'}"
        )
    lines += ["Statements:"] * bool(told["statements"])
    for item in told["statements"][:SHOWN]:
        where = item["source"] + (f" line {item['line_no']}" if item["line_no"] else "")
        lines.append(
            f"  {item['axis']} {item['verdict']}: {item['protocol']} {where} \u201c{item['raw'].strip()[:200]}\u201d ({item['urls']} URLs)"
        )
    lines += [
        "To object:",
        f"  write to {told['object']['contact'] or 'the operator of this corpus'}, or put this into robots.txt:",
    ]
    lines += [f"    {line}" for line in told["object"]["robots_txt"].splitlines()]
    return "\n".join([*lines, f"  {told['object']['effect']}", f"  {told['object']['takedown']}"])


def _releases(releases: list[dict[str, Any]]) -> list[str]:
    """Which releases hold rows of the site, and why others of its URLs are not in them."""
    lines = ["Releases:"] * bool(releases)
    for item in releases:
        state = f", withdrawn: {item['superseded_by']} stands in its place" if item["withdrawn"] else ""
        lines.append(f"  {item['release']}: {item['rows']} rows{state}")
        lines += [
            f"    {row['urls']:>8}  {row['reason']}, statements read {row['checked_at'] or 'never'}"
            for row in item["decided"]
            if row["reason"]
        ]
    return lines


def _takedowns(orders: list[dict[str, Any]]) -> list[str]:
    lines = ["Takedowns:"] * bool(orders)
    for item in orders:
        state = f"carried out, {item['proof']}" if item["proof"] else "in force, not yet removed from files"
        lines.append(
            f"  order {item['n']} of {item['at']}: {item['action']} of a {item['kind']} ({item['cause']}: {item['reason']}); {state}"
        )
    return lines
