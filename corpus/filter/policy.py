"""Policies: versioned TOML files of rules over signals, with per-language limits and the span kinds that an export cuts.

A rule names a signal and the range it keeps (`min`, `max` inclusive; `above`, `below` exclusive). A NULL signal passes: the
rule does not apply to the text. Files inherit from shipped or neighbouring ones. Whatever could silently drop everything —
an unknown signal, language, kind or key, a limit that is no number — is a `UsageError` that names file and line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

SCHEME: Final = 1
"""Version of the meaning of these files; part of every digest."""
LIMITS: Final = ("min", "above", "max", "below")
"""The keys that bound a kept range; `min`/`above` exclude each other, and so do `max`/`below`."""
EXTRA_SIGNALS: Final = ("language_score",)
"""Columns of the signals family that are no measured signals, but may be spoken about."""


@dataclass(frozen=True, slots=True)
class Range:
    """What a rule keeps; None: no limit on that side. `off`: the rule does not apply."""

    low: float | None = None
    low_open: bool = False
    high: float | None = None
    high_open: bool = False
    off: bool = False

    def words(self, signal: str) -> str:
        """The range in the policy file's own words, for people: `words min 50, max 100000`."""
        parts = []
        if self.low is not None:
            parts.append(f"{'above' if self.low_open else 'min'} {self.low:g}")
        if self.high is not None:
            parts.append(f"{'below' if self.high_open else 'max'} {self.high:g}")
        return f"{signal} {', '.join(parts)}"


@dataclass(frozen=True, slots=True)
class Rule:
    """One named rule. `by_language` replaces the whole range for a language; `only` limits the rule to some languages."""

    name: str
    signal: str
    range: Range
    by_language: Mapping[str, Range] = field(default_factory=dict)
    only: tuple[str, ...] = ()
    about: str = ""


@dataclass(frozen=True, slots=True)
class Policy:
    """A resolved policy: inheritance applied, names checked, rules in the order in which the first failing one is reported."""

    name: str
    rules: tuple[Rule, ...]
    cut: tuple[str, ...] = ()
    """Span kinds (groups resolved) that an export removes."""
    about: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of what the policy decides; names, comments and descriptions do not change it, limits and order do."""
        facts = {
            "scheme": SCHEME,
            "cut": list(self.cut),
            "rules": [
                [r.name, r.signal, _facts(r.range), {c: _facts(v) for c, v in sorted(r.by_language.items())}, sorted(r.only)]
                for r in self.rules
            ],
        }
        return hashlib.sha256(json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    @property
    def signals(self) -> tuple[str, ...]:
        """Columns the rules read, sorted."""
        return tuple(sorted({rule.signal for rule in self.rules}))

    def sql(self, signals: str = "signals") -> str:
        """One DuckDB SELECT over a relation with the signals family's columns; see `policy_sql.compile_policy`."""
        from corpus.filter.policy_sql import compile_policy

        return compile_policy(self, signals)


def _facts(kept: Range) -> list[object]:
    return [kept.low, kept.low_open, kept.high, kept.high_open, kept.off]


def load_policy(name_or_path: str, *, keys: Collection[str] | None = None, own: Mapping[str, str] | None = None) -> Policy:
    """A shipped policy by name, or any TOML file. Raises UsageError with file and line for everything that cannot be meant.

    `own`: the operator's own signals with their types. `keys`: the configuration keys of signal sources that are set; with
    it a rule over a signal whose source is missing is refused too.
    """
    from corpus.filter.policy_file import Known, read_policy

    return read_policy(name_or_path, Known(own or {}, None if keys is None else frozenset(keys)))
