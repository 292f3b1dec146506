"""`corpus push`: publish the newest release on the hub."""

from __future__ import annotations

from typing import Any

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config


@click.command(name="push")
@with_config()
@click.option("--dry-run", is_flag=True, help="Say what would be sent and deleted; change nothing.")
@click.option(
    "--purge-history", is_flag=True, help="Then make the hub forget every earlier revision, and prove it. Cannot be undone."
)
@as_json
def command(config: Config, dry_run: bool, purge_history: bool, as_json: bool) -> int:
    """Send the newest release to publish.repo: only files that differ, then read back and compare digests.

    Shards that are gone are deleted there. The token comes from HF_TOKEN or from hf auth login. Exit 1 with the reasons
    while a takedown is newer than the release, the card waits for a person, or files and manifest disagree. After an
    interruption run it again.

    --purge-history squashes the repository into one revision, deletes its other branches, tags and pull request refs and
    every large file that the newest release does not hold, then asks for each old revision: all must be gone (404). The
    proof stands under proofs/. Exit 1 when the hub still serves any of it.
    """
    import time

    from corpus.app.project import open_project
    from corpus.app.push import push

    told = push(open_project(config, create=False), dry_run=dry_run, purge_at=time.time() if purge_history else None)
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
    if told.purge is not None:
        lines.append(_purged(told.purge, dry_run=dry_run))
    click.echo(clean("\n".join(lines)))
    return 1 if told.blocked else 0


def _purged(purge: dict[str, Any], *, dry_run: bool) -> str:
    refs = f", {len(purge['refs'])} refs ({', '.join(purge['refs'])})" if purge["refs"] else ""
    what = f"{len(purge['revisions'])} earlier revisions, {len(purge['large'])} large files{refs}"
    if dry_run:
        return f"would purge {what}"
    now = purge["now"]
    done = (
        f"{now['revisions']} earlier revisions, {now['large']} large files, {now['refs']} refs"
        if any(now.values())
        else "nothing new"
    )
    return f"purged {done}; of all purges of this repository, {what}: asked for, and gone; proof {purge['proof']}"
