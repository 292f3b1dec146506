"""`corpus why URL|ID`: what became of it, and on what evidence."""

from __future__ import annotations

from typing import Any

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config


@click.command(name="why")
@click.argument("name", metavar="URL|ID")
@with_config()
@as_json
def command(config: Config, name: str, as_json: bool) -> int:
    """Tell the whole chain of one URL or id: discovery, consent, fetches, text, rules, cluster, releases."""
    from corpus.app.project import open_project
    from corpus.app.why import why

    told = why(open_project(config, create=False), name)
    if as_json:
        emit(told)
    else:
        click.echo(clean(render(told)))
    return 0


def render(told: dict[str, Any]) -> str:
    """The document for a person, verdict first."""
    lines = [f"{told['verdict'].upper()}  {told['sentence']}"]
    lines.append(f"  step {told['step']}" + (f", reason {told['reason']}" if told["reason"] else "") + f", state {told['state']}")
    if told["next_at"]:
        lines.append(f"  next contact not before {told['next_at']}")
    discovery = told["discovery"]
    if discovery["seed"]:
        lines.append(f"  found at depth {discovery['depth']}, from seed {discovery['seed']}")
        lines += [f"    via {url}" for url in discovery["via"]]
    consent = told["consent"]
    lines.append(f"  consent: access {consent['access']}, use {consent['use']}")
    for item in consent["evidence"]:
        where = f"{item['source']}" + (f" line {item['line_no']}" if item["line_no"] else "")
        lines.append(
            f"    {item['axis']} {item['verdict']}: {item['protocol']} {where} \u201c{item['raw'].strip()[:200]}\u201d read {item['read_at']}"
        )
    for fetch in told["fetches"]:
        warc = f"{fetch['warc']['file']} @ {fetch['warc']['offset']}" if fetch["warc"] else "not stored"
        lines.append(f"  fetched {fetch['at']}: HTTP {fetch['status']}, {fetch['outcome']}, {warc}")
    for link in told["versions"]:
        what = link["change"] or "first version"
        lines.append(f"  {what}: seen from {link['first_at']} to {link['last_at']}")
    if told["document"]:
        d = told["document"]
        lines.append(
            f"  document {d['id']}: language {d['language']} ({d['language_score']}), charset {d['charset']} by {d['charset_source']}"
        )
    lines += [f"  rule {rule['rule']}: measured {rule['measured']:g}, kept is {rule['keep']}" for rule in told["rules"]]
    if told["cluster"]:
        c = told["cluster"]
        lines.append(f"  cluster {c['id']} of {c['size']}, kept: {c['keep_url'] or c['keep_id']}")
    if told["releases"]:
        lines.append(f"  in releases: {', '.join(told['releases'])}")
    return "\n".join(lines)
