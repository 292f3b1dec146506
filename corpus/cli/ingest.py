"""`corpus ingest PATH…`: take in archives crawled by others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from corpus.cli.options import as_json, clean, emit, with_config
from corpus.config.tree import Config

if TYPE_CHECKING:
    from corpus.app.ingest import FileEnd

FAULTS_SHOWN = 20


@click.command(name="ingest")
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option(
    "--robots",
    "robots",
    multiple=True,
    metavar="PATH",
    help="An archive of robots.txt answers, with the dates they were read; repeatable.",
)
@with_config()
@as_json
def command(config: Config, paths: tuple[str, ...], robots: tuple[str, ...], as_json: bool) -> int:
    """Copy the pages of WARC, WET or ARC files (gzip, lz4, zstd or plain; folders and globs too) into this corpus.

    The same file twice adds nothing. Before an export every host is asked for its statements now, unless --robots gave a
    reading of its robots.txt no older than optout.recheck_after. Exit 3 when no file held a readable record.
    """
    if not paths and not robots:
        raise click.UsageError("name at least one archive")
    from corpus.app.ingest import ingest
    from corpus.app.ingest_robots import ingest_robots
    from corpus.app.project import open_project
    from corpus.observe.runlog import Terminal

    project = open_project(config)
    heard = ingest_robots(project, robots, Terminal())
    ends = ingest(project, paths, Terminal())
    if as_json:
        emit(document(ends))
    else:
        for end in ends:
            click.echo(clean(render(end)))
        for told in heard:
            click.echo(
                clean(
                    f"{told.file}: {told.answers} answers to robots.txt, {told.authorities} authorities read, {told.unresolved} lead elsewhere"
                )
            )
        click.echo(f"{sum(end.pages for end in ends)} pages of {len(ends)} files; next: corpus process")
    return 0 if any(end.records for end in ends) or any(told.answers for told in heard) else 3


def document(ends: list[FileEnd]) -> dict[str, Any]:
    """CONTRACT's document. Of a file with more than 1000 faults the rest is only counted (`faults_total`)."""
    files = [
        {
            "file": end.file, "crawl_id": end.crawl_id, "records": end.records, "pages": end.pages, "revisits": end.revisits, "known": end.known,
            "faults": [{"offset": fault.offset, "reason": fault.reason} for fault in end.faults], "faults_total": end.faults_total,
        }
        for end in ends
    ]  # fmt: skip
    return {"files": files, "pages": sum(end.pages for end in ends)}


def render(end: FileEnd) -> str:
    """One file for a person."""
    where = f" into crawl_id={end.crawl_id}" if end.pages else ""
    known = "; taken in before, nothing added" if end.known else ""
    lines = [f"{end.file}: {end.records} records, {end.pages} pages{where}, {end.faults_total} faults{known}"]
    lines += [f"  fault at {fault.offset}: {fault.reason}" for fault in end.faults[:FAULTS_SHOWN]]
    if end.faults_total > FAULTS_SHOWN:
        lines.append(f"  and {end.faults_total - FAULTS_SHOWN} more faults")
    return "\n".join(lines)
