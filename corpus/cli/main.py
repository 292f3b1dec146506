"""The command line: one table of verbs, each loaded only when it is called. No logic lives here.

Facts go to stdout, progress to stderr. Exit codes are CONTRACT's: 0 done, 1 stopped or faults found, 2 usage or
configuration, 3 finished with nothing stored, 130 interrupted and resumable.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import click

VERBS: dict[str, str] = {
    "demo": "run the whole job offline on a bundled little web",
    "init": "write a commented corpus.toml into a new folder",
    "check": "every problem of the configuration at once; fetches nothing",
    "plan": "hosts, time, bytes and disk of a crawl, before any request",
    "doctor": "is this machine fit for what the configuration asks",
    "run": "crawl, process, dedup and export; again = resume",
    "crawl": "fetch politely into WARC segments; again = resume",
    "worker": "join a crawl that many machines share",
    "ingest": "take in WARC, WET or ARC files crawled by others",
    "process": "extract text, detect language, measure signals",
    "dedup": "cluster near-duplicates",
    "export": "refresh consent and write a release",
    "sql": "query pages, documents, decisions and the funnel",
    "why": "what became of a URL or id, and on what evidence",
    "sample": "look at kept or dropped documents",
    "status": "what the crawl holds and what it waits for",
    "ctl": "steer a crawl that is under way: pause, slow, block, budget",
    "verify": "check every digest, length and sum",
    "push": "publish the newest release on the hub: only what differs",
    "audit": "check a crawler's manners in a server's access log",
    "simulate": "our pacing, recrawl and fleet in a modelled world",
    "diff": "what changed between two releases, and why",
    "replay": "build a release again and compare every byte",
    "optout": "what a site says about access and training",
    "takedown": "forget a domain, a URL or a document, with proof",
    "lookup": "what was decided for a domain, at which lines, and how to object",
    "report": "reports: the EU summary of training content, consent by signal and day, a run",
    "quality": "train a text classifier whose score is a signal",
    "config": "show the resolved configuration, or its schema",
    "bench": "measure each stage over fixed inputs",
}
"""A verb that does not work yet is not listed."""


class _Verbs(click.Group):
    """Lists verbs from the table; imports a verb's module when it is called or asked for help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(f"corpus.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            near = difflib.get_close_matches(args[0], VERBS, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from None


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="corpus", prog_name="corpus")
def cli() -> None:
    """Turn the web into training data, and prove row by row that it was polite and allowed."""


def main() -> None:
    """Entry point of the `corpus` command and of `python -m corpus`."""
    from corpus.cli.options import clean
    from corpus.engine.lean import lean
    from corpus.errors import CorpusError

    try:
        with lean():
            code = cli.main(standalone_mode=False, prog_name="corpus")
    except click.ClickException as error:
        error.show()
        code = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; run the same command again to resume", err=True)
        code = 130
    except CorpusError as error:
        click.echo(clean(f"error: {error}"), err=True)  # errors name what was asked for, and that may be crawled text
        code = error.exit_code
    except BrokenPipeError:  # the reader of our output went away, e.g. `| head`
        sys.stderr.close()
        code = 0
    sys.exit(code if isinstance(code, int) else 0)
