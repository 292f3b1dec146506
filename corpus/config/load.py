"""TOML, environment and `--set` become one frozen tree, or every mistake at once, each with its place.

Precedence: defaults < file < `CORPUS__CRAWL__DELAY` < `--set crawl.delay=2s`. Nothing here touches the network.
"""

from __future__ import annotations

import difflib
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from corpus.config.lines import key_lines
from corpus.config.tree import Config, leaves, place
from corpus.errors import UsageError

ENVIRONMENT_PREFIX = "CORPUS__"


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it stands, what is wrong, what to write instead. `line` is 0 when it stands in no line."""

    file: str
    line: int
    key: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        text = f"{where}: {self.key}: {self.message}" if self.key else f"{where}: {self.message}"
        return f"{text} — {self.hint}" if self.hint else text


class ConfigError(UsageError):
    """The configuration has mistakes; `problems` lists all of them.

    `rest` is the configuration without the values that are wrong in themselves, so that what contradicts can be found too.
    """

    def __init__(self, problems: Sequence[Problem], rest: Config | None = None) -> None:
        lines = "\n".join(f"  {problem}" for problem in problems)
        noun = "problem" if len(problems) == 1 else "problems"
        super().__init__(f"{len(problems)} {noun}, nothing was fetched\n{lines}")
        self.problems = tuple(problems)
        self.rest = rest

    @property
    def left_out(self) -> frozenset[str]:
        """Keys that `rest` is without: what is wrong with them was said."""
        return frozenset(
            ".".join(takewhile(lambda part: not part.isdigit(), problem.key.split("."))) for problem in self.problems
        )

    def __reduce__(self) -> tuple[type[ConfigError], tuple[tuple[Problem, ...]]]:
        return (ConfigError, (self.problems,))


def load_config(
    path: str | os.PathLike[str] = "corpus.toml",
    *,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Config:
    """Read one file and resolve it. `overrides` are `key=value` strings; raises ConfigError with every problem."""
    file = Path(path)
    tree, lines = _read(file)
    origins = {key: f"{file}:{lines.get(key, 0)}" for key in leaves(tree)}
    given: list[Problem] = []
    for name, text in sorted((os.environ if environment is None else environment).items()):
        if name.startswith(ENVIRONMENT_PREFIX):
            key = name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
            given += _put(tree, key, text, origins, name)
    for override in overrides:
        key, sep, text = override.partition("=")
        if not sep or not key.strip():
            given.append(Problem("--set", 0, override, "not a setting", "write --set crawl.delay=2s"))
        else:
            given += _put(tree, key.strip(), text.strip(), origins, "--set")
    try:
        config = place(Config.model_validate(tree), file.resolve().parent, origins)
    except ValidationError as error:
        raise ConfigError([*given, *_explain(error, str(file), lines, origins)], _rest(tree, error, file, origins)) from None
    if given:
        raise ConfigError(given, config)
    return config


def _rest(tree: dict[str, Any], error: ValidationError, file: Path, origins: dict[str, str]) -> Config | None:
    """The tree without its wrong values, and with a stand-in for the name that it lacks; None where even that is no configuration."""
    for fault in error.errors(include_url=False):
        branch: Any = tree
        *parents, last = _up_to_list(fault["loc"])
        for part in parents:
            branch = branch.get(part) if isinstance(branch, dict) else None
        if isinstance(branch, dict):
            branch.pop(last, None)
    if isinstance(tree.setdefault("corpus", {}), dict):
        tree["corpus"].setdefault("name", "unnamed")
    try:
        return place(Config.model_validate(tree), file.resolve().parent, origins)
    except ValidationError:
        return None


def _up_to_list(loc: Sequence[int | str]) -> Sequence[int | str]:
    """The part of a place that names a key: a wrong item of a list takes its whole list along."""
    return loc[: next((n for n, part in enumerate(loc) if isinstance(part, int)), len(loc))]


def _read(file: Path) -> tuple[dict[str, Any], dict[str, int]]:
    try:
        text = file.read_text("utf-8-sig")  # an editor's byte order mark is no mistake
    except FileNotFoundError:
        hint = "name one with -c FILE, or make one with corpus init DIR"
        raise ConfigError([Problem(str(file), 0, "", "no such configuration file", hint)]) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError([Problem(str(file), 0, "", f"cannot be read: {error}")]) from None
    try:
        return tomllib.loads(text), key_lines(text)
    except tomllib.TOMLDecodeError as error:
        line = getattr(error, "lineno", None) or _line_in(str(error))
        raise ConfigError([Problem(str(file), line, "", f"not valid TOML: {error}")]) from None


def _line_in(message: str) -> int:
    words = message.replace(",", " ").replace(")", " ").split()
    return int(words[words.index("line") + 1]) if "line" in words[:-1] else 0


def _put(tree: dict[str, Any], key: str, text: str, origins: dict[str, str], origin: str) -> list[Problem]:
    """Set a dotted key; what is wrong with that. The text is a TOML value where it parses as one, else a plain string."""
    try:
        value: Any = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *parents, last = key.split(".")
    branch = tree
    for part in parents:
        branch = branch.setdefault(part, {})
        if not isinstance(branch, dict):
            return [Problem(origin, 0, key, f"{part} is a value, not a table")]
    branch[last] = value
    origins[key] = origin
    return []


def _explain(error: ValidationError, file: str, lines: dict[str, int], origins: dict[str, str]) -> list[Problem]:
    problems = []
    for fault in error.errors(include_url=False):
        loc = [str(part) for part in fault["loc"]]
        key = ".".join(loc)
        origin = next((o for k, o in origins.items() if (k == key or k.startswith(key + ".")) and ":" not in o), "")
        line = next((lines[".".join(loc[:n])] for n in range(len(loc), 0, -1) if ".".join(loc[:n]) in lines), 0)
        message, hint = _words(fault["type"], str(fault["msg"]), loc)
        problems.append(Problem(origin or file, 0 if origin else line, key, message, hint))
    return sorted(problems, key=lambda p: (p.file, p.line, p.key))


def _words(kind: str, message: str, loc: list[str]) -> tuple[str, str]:
    if kind == "extra_forbidden":
        elsewhere = [key for key in _all_keys(Config) if key.rpartition(".")[2] == loc[-1]]
        if elsewhere:  # the right name in the wrong table
            return "not a known key", f"did you mean {elsewhere[0]!r}?"
        near = difflib.get_close_matches(loc[-1], _siblings(loc[:-1]), n=1, cutoff=0.5)
        return "not a known key", f"did you mean {near[0]!r}?" if near else "see corpus config schema"
    if kind == "missing":
        return "required", "add it"
    return message.removeprefix("Value error, "), ""


def _all_keys(model: type[BaseModel], prefix: str = "") -> list[str]:
    keys = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        nested = isinstance(inner, type) and issubclass(inner, BaseModel)
        keys += _all_keys(inner, f"{prefix}{name}.") if nested else [prefix + name]  # type: ignore[arg-type]
    return keys


def _siblings(parents: list[str]) -> list[str]:
    model: type[BaseModel] = Config
    for part in parents:
        field = model.model_fields.get(part)
        inner = field.annotation if field else None
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            return []
        model = inner
    return list(model.model_fields)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of `corpus.toml`, with every key's documentation."""
    schema = Config.model_json_schema(mode="validation")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    return schema


def show(config: Config, *, origin: bool = False) -> str:
    """The resolved tree as `key = value` lines, with where each came from when asked."""
    rows = []
    for key, value in leaves(config.model_dump(mode="json")).items():
        text = f"{key} = {json.dumps(value, ensure_ascii=False)}"
        rows.append(f"{text:<60} # {config.origins.get(key, 'default')}" if origin else text)
    return "\n".join(rows)
