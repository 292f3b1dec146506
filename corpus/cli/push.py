"""`corpus push`: publish the newest release on the hub."""

from __future__ import annotations

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config


@click.command(name="push")
@with_config()
@click.option("--dry-run", is_flag=True, help="Say what would be sent and deleted; change nothing.")
@as_json
def command(config: Config, dry_run: bool, as_json: bool) -> int:
    """Send the newest release to publish.repo: only files that differ, then read back and compare digests.

    Shards that are gone are deleted there. The token comes from HF_TOKEN or from hf auth login. Exit 1 with the reasons
    while a takedown is newer than the release, the card waits for a person, or files and manifest disagree. After an
    interruption run it again.
    """
    from corpus.app.project import open_project
    from corpus.app.push import push

    told = push(open_project(config, create=False), dry_run=dry_run)
    if as_json:
        emit(told.document(dry_run=dry_run))
        return 1 if told.blocked else 0
    verb = ("would send", "would delete") if dry_run else ("sent", "deleted")
    lines = [f"{verb[0]} {path} ({size:,} bytes)" for path, size in told.upload] + [f"{verb[1]} {path}" for path in told.delete]
    lines += [f"note: {note}" for note in told.notes] + [f"blocked: {reason}" for reason in told.blocked]
    if dry_run or not told.blocked:
        total = (
            f"{len(told.upload)} files, {told.bytes:,} bytes to send, {len(told.delete)} to delete, {told.unchanged} unchanged"
        )
        lines.append(f"{told.release} to {told.repo}: {total}")
    if told.commit:
        lines.append(f"commit {told.commit}: {told.verified} files read back, every digest is the same")
    click.echo(clean("\n".join(lines)))
    return 1 if told.blocked else 0
