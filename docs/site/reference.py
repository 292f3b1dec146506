"""The reference, made from the code that it describes: one Markdown page per topic, never written into the tree.

`pages()` is called whenever the site is built and by the tests, so the reference cannot be out of date.
`python -m docs.site.reference DIR` writes the pages into a folder, for a look without a site.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from corpus.app.hub import HubError
from corpus.app.verify_faults import NEXT, Kind
from corpus.cli.main import VERBS, cli
from corpus.config.load import ConfigError
from corpus.config.tree import Config, CorpusSettings, leaves
from corpus.errors import CorpusError
from corpus.export.schema import CONSENT_STRUCT, DESCRIPTIONS, release_schema
from corpus.filter.policy import Policy, Rule, load_policy
from corpus.filter.schema import ARROW_TYPES
from corpus.filter.signals import SIGNALS, Signal
from corpus.filter.signals_reduced import REDUCED
from corpus.filter.signals_sourced import SOURCED
from corpus.filter.spans import GROUPS, KINDS
from corpus.observe.metrics import METRICS
from corpus.reasons import REASONS
from corpus.settings import seconds, size_bytes

MADE = "*Made from the code when this site was built.*"
SHOWN_LANGUAGES = 4
"""Of a rule's languages with a range of their own, so many are spelt out."""


def pages() -> dict[str, str]:
    """Path below `docs/` → Markdown."""
    makers: dict[str, Callable[[], str]] = {
        "verbs": verbs,
        "configuration": configuration,
        "columns": columns,
        "signals": signals,
        "policies": policies,
        "reasons": reasons,
        "metrics": metrics,
    }
    return {f"reference/{name}.md": make() for name, make in makers.items()}


def verbs() -> str:
    """Every verb with its own help, subcommands included."""
    parts = [
        "# Verbs",
        MADE,
        table(("verb", "what it does"), ((f"[`{verb}`](#corpus-{verb})", what) for verb, what in VERBS.items())),
    ]
    parts += [
        (
            "Exit codes: 0 done (a used-up budget is done, too); 1 stopped on an error, or a check found faults; 2 wrong use or configuration;"
            " 3 finished with nothing stored, exported or readable; 130 interrupted, and resumable. `--json` prints one document on stdout."
        )
    ]
    context = click.Context(cli, info_name="corpus")
    for verb in VERBS:
        command = cli.get_command(context, verb)
        assert command is not None, verb
        parts += list(_help(command, context, verb, 2))
    return _joined(parts)


def _help(command: click.Command, parent: click.Context, name: str, depth: int) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent, terminal_width=100, max_content_width=100)
    yield f"{'#' * depth} {context.command_path}"
    yield f"```text\n{command.get_help(context)}\n```"
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None, inner
            yield from _help(found, context, inner, depth + 1)


def configuration() -> str:
    """Every key of `corpus.toml`: type, default, meaning."""
    defaults = leaves(Config(corpus=CorpusSettings(name="x")).model_dump(mode="json"))
    parts = [
        "# Configuration",
        MADE,
        (
            "One TOML file. A value comes from the defaults, then the file, then the environment (`CORPUS__CRAWL__DELAY`), then `--set"
            " crawl.delay=3s`; `corpus config show --origin` says which. Unknown keys are refused. An absent key is no limit, and 0 is"
            ' refused. A duration is `"500ms"`, `"2s"`, `"36h"`, `"30d"`; a size is `"300MiB"`, `"80GB"`.'
        ),
    ]
    for branch, field in Config.model_fields.items():
        model = field.annotation
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        rows = list(_keys(model, f"{branch}.", defaults))
        parts += [f"## {branch}", table(("key", "type", "default", "meaning"), rows)]
    return _joined(parts)


def _keys(model: type[BaseModel], prefix: str, defaults: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        key, inner = prefix + name, field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from _keys(inner, f"{key}.", defaults)
            continue
        value = "**required**" if field.is_required() else _default(defaults.get(key), _type(field))
        yield f"`{key}`", _type(field), value, " ".join((field.description or "").split())
        for item in get_args(inner):
            if isinstance(item, type) and issubclass(item, BaseModel):  # a list of tables
                for part, of in item.model_fields.items():
                    value = "**required**" if of.is_required() else _default(of.default, _type(of))
                    yield f"`{key}[].{part}`", _type(of), value, " ".join((of.description or "").split())


UNITS = (("s", 86_400, "d"), ("s", 3_600, "h"), ("s", 60, "min"), ("B", 10**9, "GB"), ("B", 2**20, "MiB"))
"""(unit of the resolved tree, how many of it, unit that people write)"""


def _default(value: Any, kind: str) -> str:
    """A default as one would write it: `10MiB`, not `10485760B`."""
    if value is None:
        return "absent"
    for unit, factor, name in UNITS if kind in ("duration", "size") else ():
        number = str(value).removesuffix(unit)
        if number.isdigit() and int(number) % factor == 0:
            value = f"{int(number) // factor}{name}"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _type(field: FieldInfo) -> str:
    parsers = [getattr(item, "func", None) for item in (*field.metadata, *_inner_metadata(field.annotation))]
    if seconds in parsers:
        return "duration"
    if size_bytes in parsers:
        return "size"
    return _words(field.annotation)


def _inner_metadata(kind: Any) -> Iterator[Any]:
    for item in get_args(kind):
        yield from getattr(item, "__metadata__", ())


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(f"`{choice}`" for choice in get_args(kind))
    inner = [item for item in get_args(kind) if item not in (type(None), ...)]
    if get_origin(kind) is tuple:
        return f"list of {_words(inner[0])}"
    if inner:  # `int | None`, `Annotated[int, …]`
        return _words(inner[0])
    names = {str: "text", int: "whole number", float: "number", bool: "true or false"}
    return names.get(kind, "table")


def columns() -> str:
    """The columns of a release, in order."""
    fields = [(name, ARROW_TYPES[signal.type]) for name, signal in _all_signals().items()]
    schema = release_schema(fields)

    def kind(name: str) -> str:
        return "struct, see [signals](signals.md)" if name == "signals" else f"`{schema.field(name).type}`"

    parts = [
        "# Columns of a release",
        MADE,
        (
            "The same in every shard, empty ones too. `records` in SQL has them for the newest release; `documents` has them for every"
            " page, kept or not, with `drop_rule`, `measured`, `limit` and `keep` behind them."
        ),
        table(("column", "type", "what"), ((f"`{name}`", kind(name), what) for name, what in DESCRIPTIONS.items())),
        "`consent` holds " + ", ".join(f"`{field.name}` (`{field.type}`)" for field in CONSENT_STRUCT) + ".",
    ]
    return _joined(parts)


def _all_signals() -> dict[str, Signal]:
    return {**SIGNALS, **{name: sourced.signal for name, sourced in SOURCED.items()}, **REDUCED}


def signals() -> str:
    """Every signal and every kind of span."""

    def rows(found: dict[str, Signal]) -> Iterator[tuple[str, ...]]:
        return ((f"`{name}`", signal.type, signal.doc, signal.source, signal.differs) for name, signal in found.items())

    head = ("signal", "type", "what", "source", "where tools differ")
    sourced = (
        (f"`{name}`", item.signal.type, item.signal.doc, f"`{item.key}`", item.signal.source, item.signal.differs)
        for name, item in SOURCED.items()
    )
    parts = [
        "# Signals and spans",
        MADE,
        (
            "What is measured on every text. A [policy](policies.md) names the range that it keeps. NULL means that the question does not"
            " apply to the text, and a rule over NULL lets it pass."
        ),
        "## Measured on every text",
        table(head, rows(SIGNALS)),
        "## With a source of yours",
        "NULL while the key is not set; a policy that needs it is then refused.",
        table(("signal", "type", "what", "key", "source", "where tools differ"), sourced),
        "## Over a whole snapshot",
        table(head, rows(REDUCED)),
        "Signals of your own: `filter.rules`.",
        "## Spans",
        'Places in a text that a policy may cut (`cut = ["email"]`). The family `spans` has one row a place.',
        table(("kind", "what"), ((f"`{kind}`", what) for kind, what in KINDS.items())),
        "A group stands for several kinds:",
        table(("group", "kinds"), ((f"`{group}`", ", ".join(f"`{kind}`" for kind in kinds)) for group, kinds in GROUPS.items())),
    ]
    return _joined(parts)


def policies() -> str:
    """The shipped policies with their rules, inheritance applied."""
    import corpus.filter

    folder = Path(corpus.filter.__path__[0], "policies")
    found = [load_policy(path.stem) for path in sorted(folder.glob("*.toml"))]
    parts = [
        "# Policies",
        MADE,
        (
            "`filter.policy` is one of these names, or a file that may inherit from one. The first rule that fails is the one that is"
            " reported. Try another one before you export: [tuning a policy](../policy.md)."
        ),
        table(
            ("policy", "rules", "cuts", "what"),
            ((f"[`{p.name}`](#{p.name})", str(len(p.rules)), _cuts(p), p.about) for p in found),
        ),
    ]
    for policy in found:
        rows = ((f"`{rule.name}`", f"`{rule.range.words(rule.signal)}`", _exceptions(rule), rule.about) for rule in policy.rules)
        parts += [f"## {policy.name}", table(("rule", "keeps", "languages", "note"), rows)]
    return _joined(parts)


def _cuts(policy: Policy) -> str:
    return ", ".join(f"`{kind}`" for kind in policy.cut) or "nothing"


def _exceptions(rule: Rule) -> str:
    only = "only " + ", ".join(rule.only) if rule.only else ""
    own = [
        f"{language}: " + ("off" if kept.off else f"`{kept.words('').strip()}`")
        for language, kept in sorted(rule.by_language.items())
    ]
    more = f" and {len(own) - SHOWN_LANGUAGES} more languages" if len(own) > SHOWN_LANGUAGES else ""
    return "; ".join(filter(None, [only, "; ".join(own[:SHOWN_LANGUAGES]) + more]))


def reasons() -> str:
    """Reasons of URLs, errors of commands, faults of `verify`: each with what to do about it."""
    of_urls = ((f"`{row.code}`", row.verdict, row.step, row.sentence, row.next) for row in REASONS.values())
    of_commands = ((f"`{kind.__name__}`", str(kind.exit_code), _first(kind), kind.next) for kind in errors())
    of_verify = ((f"`{kind.value}`", NEXT[kind]) for kind in Kind)
    parts = [
        "# Reasons and errors",
        MADE,
        "## Why a URL or document is not in a release",
        (
            "Every known URL has one state, and whatever is not released has one of these reasons: in the funnel, in `corpus why`, in"
            " `corpus status`, in reports and in metrics."
        ),
        table(("reason", "verdict", "step", "what it means", "what you can do"), of_urls),
        "## Errors of commands",
        "An error says what, where, and a hint for the case at hand. Nothing that a web site does is an error: it is a reason.",
        table(("error", "exit code", "what it means", "what you can do"), of_commands),
        "## Faults that verify finds",
        table(("fault", "what you can do"), of_verify),
    ]
    return _joined(parts)


def errors() -> list[type[CorpusError]]:
    """The whole exception family, parents first. A class that some module adds has to be imported here to be in it."""
    assert issubclass(ConfigError, CorpusError)
    assert issubclass(HubError, CorpusError)
    found: list[type[CorpusError]] = [CorpusError]
    for kind in found:
        found += [child for child in kind.__subclasses__() if child.__module__.startswith("corpus.") and child not in found]
    return found


def _first(kind: type[CorpusError]) -> str:
    return " ".join((kind.__doc__ or "").split("\n\n", maxsplit=1)[0].split())


def metrics() -> str:
    """The families of `/metrics`."""

    def labels(of: tuple[tuple[str, tuple[str, ...]], ...]) -> str:
        return "; ".join(f"`{name}`: {', '.join(values) if len(values) <= 9 else f'{len(values)} values'}" for name, values in of)

    parts = [
        "# Metrics",
        MADE,
        (
            "`corpus status --serve` answers at `/metrics` in Prometheus' text format. Labels come from closed sets, and `other` completes"
            " each; long ones are the [reasons](reasons.md). `deploy/` has a scrape, alert rules and a dashboard."
        ),
        table(
            ("metric", "kind", "what", "labels"), ((f"`{m.name}`", m.kind, m.help, labels(m.labels)) for m in METRICS.values())
        ),
    ]
    return _joined(parts)


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A Markdown table. A bar inside a cell is escaped, a line end is a space."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(" ".join(cell.replace("|", "\\|").split()) for cell in line) + " |" for line in lines)


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(parts) + "\n"


def main(folder: str) -> None:
    """Write all pages below a folder."""
    for name, text in pages().items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
