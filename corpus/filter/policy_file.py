"""Reading policy files: TOML, inheritance, and every mistake named with its line.

name, about, inherit = "gopher" (or a list, or a path beside the file), cut = ["email", "c4-line"]
[rules.NAME]           signal, min | above, max | below, only = ["en"], off = true (drops an inherited rule), about
[rules.NAME.language.CODE]   another range for a language, or off = true
"""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from corpus.errors import UsageError
from corpus.filter.languages import normalise_language
from corpus.filter.policy import EXTRA_SIGNALS, LIMITS, Policy, Range, Rule
from corpus.filter.policy_sql import MAX_RULES
from corpus.filter.signals import SIGNALS
from corpus.filter.signals_reduced import HOST_LINES_KEY, REDUCED, REDUCED_KINDS
from corpus.filter.signals_sourced import SOURCED
from corpus.filter.spans import GROUPS, KINDS

_TOP = ("name", "about", "inherit", "cut", "rules")
_RULE = ("signal", *LIMITS, "only", "off", "about", "language")
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")
_DEPTH = 8


def shipped() -> tuple[str, ...]:
    """Names of the policies that come with the package."""
    return tuple(
        sorted(
            p.name.removesuffix(".toml")
            for p in files("corpus.filter").joinpath("policies").iterdir()
            if p.name.endswith(".toml")
        )
    )


@dataclass(frozen=True, slots=True)
class Known:
    """What a rule may name beside the measured signals: the operator's own (with types), and sources by configuration key."""

    own: Mapping[str, str] = field(default_factory=dict)
    keys: frozenset[str] | None = None
    """None: nothing is known of the configuration, and sourced signals may be named."""

    def fault(self, name: str) -> tuple[str, str] | None:
        """(what is wrong, hint) of a signal's name; None when a rule may speak of it."""
        kinds = {**{n: s.type for n, s in SIGNALS.items()}, **{n: s.signal.type for n, s in SOURCED.items()}, **self.own}
        kinds |= {name: signal.type for name, signal in REDUCED.items()}
        if name not in kinds and name not in EXTRA_SIGNALS:
            near = difflib.get_close_matches(name, [*kinds, *EXTRA_SIGNALS], n=1)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else "your own signals need filter.rules; the measured ones stand in corpus.filter.signals"
            )
            return f"unknown signal {name!r}", hint
        if kinds.get(name) == "string":
            return f"the signal {name!r} is text, and a rule compares numbers", "use the count beside it"
        key = HOST_LINES_KEY if name in REDUCED else SOURCED[name].key if name in SOURCED else None
        if key is not None and self.keys is not None and key not in self.keys:
            return f"the signal {name!r} is not measured, so the rule would keep everything", f"set {key}"
        return None

    def unmeasured(self, kind: str) -> bool:
        """Whether spans of this kind are known not to be measured."""
        return kind in REDUCED_KINDS and self.keys is not None and HOST_LINES_KEY not in self.keys


def read_policy(name_or_path: str, known: Known) -> Policy:
    """Resolve one policy with its parents. Raises UsageError: the mistake, or all of them where there are several."""
    faults: list[UsageError] = []
    policy = _read(name_or_path, known, faults)
    if policy is None or len(faults) == 1:
        raise faults[0]
    if faults:
        raise UsageError(f"{len(faults)} mistakes in the policy" + "".join(f"\n  {fault}" for fault in faults), faults[0].where)
    return policy


def policy_faults(name_or_path: str, known: Known) -> list[UsageError]:
    """Every mistake of a policy and its parents, each with file and line."""
    faults: list[UsageError] = []
    _read(name_or_path, known, faults)
    return faults


def _read(name_or_path: str, known: Known, faults: list[UsageError], beside: Path | None = None, depth: int = 0) -> Policy | None:
    """The policy, of which nothing may be believed once `faults` holds something."""
    try:
        where, text, folder = _source(name_or_path, beside)
        if depth > _DEPTH:
            raise UsageError(
                "policies inherit from each other in a circle", where, "end the chain with a policy that has no `inherit`"
            )
        data = tomllib.loads(text)
    except UsageError as error:
        faults.append(error)
    except tomllib.TOMLDecodeError as error:
        faults.append(UsageError(f"not valid TOML: {error}", where))
    else:
        return _Reader(where, text, folder, depth, known, faults).policy(data)
    return None


def _source(name_or_path: str, beside: Path | None) -> tuple[str, str, Path | None]:
    if name_or_path in shipped():
        return f"{name_or_path}.toml", files("corpus.filter").joinpath(f"policies/{name_or_path}.toml").read_text("utf-8"), None
    path = Path(name_or_path) if beside is None else beside / name_or_path
    if not path.is_file():
        near = difflib.get_close_matches(name_or_path, shipped(), n=1)
        raise UsageError(
            f"no policy {name_or_path!r}",
            "filter.policy",
            f"did you mean {near[0]!r}?" if near else f"shipped: {', '.join(shipped())}; or give a TOML file",
        )
    try:
        return str(path), path.read_text("utf-8"), path.parent
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", str(path)) from error


class _Reader:
    """One file being read; it knows where it is, to say so, and goes on after a mistake to find the next."""

    def __init__(self, where: str, text: str, folder: Path | None, depth: int, known: Known, faults: list[UsageError]) -> None:
        self._where, self._lines, self._folder, self._depth = where, text.splitlines(), folder, depth
        self._signals, self._faults = known, faults

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except UsageError as error:
            self._faults.append(error)

    def _fail(self, what: str, table: str = "", key: str = "", hint: str = "") -> NoReturn:
        raise UsageError(what, f"{self._where}:{self._line(table, key)}", hint)

    def _line(self, table: str, key: str) -> int:
        """The line of a key (or of its table), counted from 1; 1 where the file writes it in a way we do not follow."""
        inside = table == ""
        header = 1
        for number, line in enumerate(self._lines, 1):
            bare = line.strip()
            if bare.startswith("["):
                inside = bare.split("#")[0].strip().strip("[]").replace('"', "").replace(" ", "") == table
                header = number if inside else header
            elif inside and key and re.match(rf'"?{re.escape(key)}"?\s*[=.]', bare):
                return number
        return header

    def _known(self, keys: Iterable[str], allowed: tuple[str, ...], table: str) -> bool:
        """Note every unknown key; whether there was none."""
        before = len(self._faults)
        for key in keys:
            if key not in allowed:
                near = difflib.get_close_matches(key, allowed, n=1)
                with self._noting():
                    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(allowed)}"
                    self._fail(f"unknown key {key!r}", table, key, hint)
        return len(self._faults) == before

    def policy(self, data: dict[str, Any]) -> Policy:
        self._known(data, _TOP, "")
        parents = data.get("inherit", [])
        parents = [parents] if isinstance(parents, str) else parents
        rules: dict[str, Rule] = {}
        cut: list[str] = []
        for parent in parents:
            inherited = _read(str(parent), self._signals, self._faults, self._folder, self._depth + 1)
            if inherited is not None:
                rules.update({rule.name: rule for rule in inherited.rules})
                cut += inherited.cut
        with self._noting():
            self._rules(data.get("rules", {}), rules)
        kinds = list(cut)
        with self._noting():
            kinds += self._cut(data.get("cut", []))
        name = data.get("name", Path(self._where).stem)
        return Policy(str(name), tuple(rules.values()), tuple(dict.fromkeys(kinds)), str(data.get("about", "")))

    def _rules(self, tables: Any, rules: dict[str, Rule]) -> None:
        """Lay the file's own rules over the inherited ones."""
        if not isinstance(tables, dict):
            self._fail("`rules` is not a table", "", "rules", "write [rules.NAME]")
        for name, table in tables.items():
            with self._noting():
                rule = self._rule(name, table, rules.get(name))
                if rule is None:
                    rules.pop(name, None)
                else:
                    rules[name] = rule
        if len(rules) > MAX_RULES:
            self._fail(f"{len(rules)} rules; at most {MAX_RULES} fit one decision", "", "rules")

    def _cut(self, names: Any) -> list[str]:
        if not isinstance(names, list):
            self._fail("`cut` is not a list of span kinds", "", "cut")
        kinds: list[str] = []
        for name in names:
            with self._noting():
                kinds += self._kinds(name)
        return kinds

    def _kinds(self, name: Any) -> Sequence[str]:
        if name in GROUPS:
            return GROUPS[name]
        if self._signals.unmeasured(name):
            self._fail(f"spans of kind {name!r} are not measured, so nothing would be cut", "", "cut", f"set {HOST_LINES_KEY}")
        if name not in KINDS:
            near = difflib.get_close_matches(str(name), [*KINDS, *GROUPS], n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join([*KINDS, *GROUPS])}"
            self._fail(f"unknown span kind {name!r}", "", "cut", hint)
        return (name,)

    def _rule(self, name: str, table: Any, inherited: Rule | None) -> Rule | None:
        here = f"rules.{name}"
        if not isinstance(table, dict):
            self._fail(f"rule {name!r} is not a table", "rules", name, f"write [rules.{name}]")
        if not _NAME.fullmatch(name):
            self._fail(f"rule name {name!r}", here, "", "use lower-case letters, digits, - and _")
        clean = self._known(table, _RULE, here)
        if table.get("off") is True:
            return None
        if inherited is None and "signal" not in table:
            self._fail(f"rule {name!r} names no signal", here)
        signal, kept = (inherited.signal, inherited.range) if inherited else ("", Range(off=True))
        with self._noting():
            signal = self._signal(table["signal"], here) if "signal" in table else signal
        own = {key: table[key] for key in LIMITS if key in table}
        with self._noting():
            kept = self._range(own, here) if own or (inherited is None and clean) else kept
        by_language = dict(inherited.by_language) if inherited else {}
        if own and inherited is not None:
            by_language = {}  # a new default replaces the old one whole: its exceptions were exceptions to another number
        for code, values in self._languages(table, here):
            by_language[code] = values
        only = (
            tuple(self._code(code, here, "only") for code in table["only"])
            if "only" in table
            else inherited.only
            if inherited
            else ()
        )
        rule = Rule(name, signal, kept, by_language, only, str(table.get("about", inherited.about if inherited else "")))
        return replace(rule)

    def _signal(self, name: Any, here: str) -> str:
        fault = self._signals.fault(str(name))
        if fault is not None:
            self._fail(fault[0], here, "signal", fault[1])
        return str(name)

    def _languages(self, table: dict[str, Any], here: str) -> list[tuple[str, Range]]:
        result = []
        for spelling, values in table.get("language", {}).items():
            with self._noting():
                result.append(self._language(spelling, values, here))
        return result

    def _language(self, spelling: str, values: Any, here: str) -> tuple[str, Range]:
        there = f"{here}.language.{spelling}"
        code = self._code(spelling, there, "")
        if not isinstance(values, dict):
            self._fail(f"language {spelling!r} is not a table", here, "language")
        clean = self._known(values, (*LIMITS, "off"), there)
        own = {key: value for key, value in values.items() if key in LIMITS}
        if values.get("off") is True or not (own or clean):
            return code, Range(off=True)
        return code, self._range(own, there)

    def _code(self, spelling: str, table: str, key: str) -> str:
        try:
            return normalise_language(spelling)
        except ValueError as error:
            self._fail(str(error), table, key)

    def _range(self, values: dict[str, Any], here: str) -> Range:
        if not values:
            self._fail("a rule without limits keeps everything", here, "", f"give one of {', '.join(LIMITS)}, or off = true")
        for key, value in values.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                self._fail(f"{key} = {value!r} is not a number", here, key)
        if {"min", "above"} <= values.keys() or {"max", "below"} <= values.keys():
            self._fail(
                "two limits on one side", here, "", "min and max include the limit, above and below do not: use one a side"
            )
        low, high = values.get("min", values.get("above")), values.get("max", values.get("below"))
        if low is not None and high is not None and low > high:
            self._fail(f"keeps nothing: {low:g} is above {high:g}", here, "min" if "min" in values else "above")
        return Range(
            None if low is None else float(low), "above" in values, None if high is None else float(high), "below" in values
        )
