"""Signals of the operator's own: a Python function named in `filter.rules`, whose columns stand beside the measured ones.

    @signals(rhymes="int64")
    def rhymes(texts, languages):
        return {"rhymes": [count_rhymes(text) for text in texts]}

`module:function` is looked for beside the configuration file and then among the installed packages; a plain name is an
entry point of the group `corpus.signals`. Names and types are checked at the start, values as they come; the digest of the
module's source is part of the stage key. A function must depend on its arguments alone: the batch is no part of its answer.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, get_args

from corpus.errors import CorpusError, UsageError
from corpus.filter.signals import SIGNALS, SignalType
from corpus.filter.signals_reduced import REDUCED
from corpus.filter.signals_sourced import SOURCED

if TYPE_CHECKING:
    import pyarrow as pa

KEY: Final = "filter.rules"
GROUP: Final = "corpus.signals"
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_TAKEN = frozenset({"id", "language", "language_score", *SIGNALS, *SOURCED, *REDUCED})
_PYTHON: dict[str, tuple[type, ...]] = {"int64": (int,), "double": (int, float), "string": (str,)}

Measure = Callable[[Sequence[str], Sequence[str]], Mapping[str, Sequence[Any]]]


def signals(**types: SignalType) -> Callable[[Measure], Measure]:
    """Declare the columns a function gives: name to `int64`, `double` or `string`."""

    def declare(function: Measure) -> Measure:
        function.signals = types  # type: ignore[attr-defined]
        return function

    return declare


@dataclass(frozen=True, slots=True)
class UserSignals:
    """One function: the rule that names it, its columns, and the SHA-256 (hex) of its module's source."""

    rule: str
    columns: Mapping[str, SignalType]
    digest: str
    function: Measure

    def measure(self, texts: Sequence[str], languages: Sequence[str]) -> dict[str, pa.Array]:
        """Its columns for a batch. Raises CorpusError when it gives other columns, lengths or types than it declared."""
        given = self.function(texts, languages)
        if not isinstance(given, Mapping) or given.keys() != self.columns.keys():
            raise CorpusError(f"gave the columns {sorted(given)}, declared {sorted(self.columns)}", f"{KEY}: {self.rule}")
        return {name: self._column(name, list(given[name]), len(texts)) for name in sorted(self.columns)}

    def _column(self, name: str, values: list[Any], rows: int) -> pa.Array:
        import pyarrow as pa

        kind = self.columns[name]
        if len(values) != rows:
            raise CorpusError(f"{len(values)} values of {name} for {rows} texts", f"{KEY}: {self.rule}")
        plain = [value.item() if hasattr(value, "item") else value for value in values]  # numpy scalars
        for value in plain:
            sound = (
                isinstance(value, _PYTHON[kind])
                and not isinstance(value, bool)
                and not (isinstance(value, float) and not math.isfinite(value))
            )
            if value is not None and not sound:
                raise CorpusError(f"{name} = {value!r} is no {kind}", f"{KEY}: {self.rule}", "None stands for: does not apply")
        return pa.array(plain, pa.type_for_alias(kind))


@functools.cache
def load_user_signals(rules: tuple[str, ...], base: str) -> tuple[UserSignals, ...]:
    """All functions of `filter.rules`. Raises UsageError for what is missing, undeclared, badly named or named twice."""
    loaded = tuple(_load(rule, base) for rule in rules)
    taken = set(_TAKEN)
    for user in loaded:
        for name, kind in user.columns.items():
            if not _NAME.fullmatch(name):
                raise UsageError(
                    f"signal name {name!r}", f"{KEY}: {user.rule}", "lower-case letters, digits and _, a letter first"
                )
            if name in taken:
                raise UsageError(f"the signal {name!r} is there already", f"{KEY}: {user.rule}", "choose another name")
            if kind not in get_args(SignalType):
                raise UsageError(f"{name} has type {kind!r}", f"{KEY}: {user.rule}", f"one of {', '.join(get_args(SignalType))}")
            taken.add(name)
    return loaded


def _load(rule: str, base: str) -> UserSignals:
    if ":" in rule:
        module_name, _, attribute = rule.partition(":")
        module = _module(module_name, rule, base)
        function: Any = module
        for part in attribute.split("."):
            function = getattr(function, part, None)
    else:
        points = entry_points(group=GROUP, name=rule)
        if not points:
            known = ", ".join(sorted(point.name for point in entry_points(group=GROUP))) or "none is installed"
            raise UsageError(f"no entry point {rule!r} in {GROUP}", KEY, f"write module:function, or one of: {known}")
        function = next(iter(points)).load()
    if not callable(function):
        raise UsageError("no such function", f"{KEY}: {rule}")
    columns = getattr(function, "signals", None)
    if not isinstance(columns, dict) or not columns:
        raise UsageError(
            "does not say which columns it gives",
            f"{KEY}: {rule}",
            'put @corpus.filter.user_signals.signals(name="double") above it',
        )
    return UserSignals(rule, columns, _source_digest(function, rule), function)


def _module(name: str, rule: str, base: str) -> ModuleType:
    """A file beside the configuration, or an installed module."""
    beside = Path(base, *name.split(".")).with_suffix(".py")
    try:
        if not beside.is_file():
            return importlib.import_module(name)
        spec = importlib.util.spec_from_file_location(name, beside)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except Exception as error:  # (the operator's code may raise anything: it is named, and the run stops)
        raise UsageError(
            f"cannot be loaded: {error!r}", f"{KEY}: {rule}", f"looked for {beside}, then for an installed module"
        ) from error
    return module


def _source_digest(function: Any, rule: str) -> str:
    """SHA-256 of the file that defines the function: another text is another stage key."""
    module = sys.modules.get(getattr(function, "__module__", ""))
    code = getattr(inspect.unwrap(function), "__code__", None)
    source = Path(code.co_filename) if code is not None else Path(getattr(module, "__file__", None) or "")
    try:
        return hashlib.sha256(source.read_bytes()).hexdigest()
    except OSError as error:
        raise UsageError("its source cannot be read, so a change of it would go unnoticed", f"{KEY}: {rule}") from error
