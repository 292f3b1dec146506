"""TDMRep: the well-known JSON file, the response header and the meta element (W3C CG final report, 2024-05-10).

Inside the file the first matching rule wins, not the longest. Later steps supersede (file < header < meta, done in
`decide.superseded`); absence never resets. Only 1 and 0 are values; the wild spellings `"1"` and `true` are read as 1,
because they can mean nothing else. A file that mentions the key and does not parse holds its authority.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from corpus.model import Evidence
from corpus.optout.evidence import Origin, stated
from corpus.optout.lines import CAP_BYTES, decode, printable
from corpus.optout.match import Pattern, Target, compile_pattern

KEY, POLICY = "tdm-reservation", "tdm-policy"
_POLICY_URL = re.compile(POLICY + r"\"?\s*:\s*\"?([^\s\",}]+)", re.IGNORECASE)
RULES_MAX = 10_000


class TdmRule(NamedTuple):
    """`location` is a robots pattern; `reserved` None where the value is neither 1 nor 0."""

    location: str
    reserved: bool | None
    raw: str


class TdmFile(NamedTuple):
    """`unreadable`: the body mentions a reservation in a form nobody can read."""

    rules: tuple[TdmRule, ...]
    unreadable: bool


def parse_tdmrep(body: bytes) -> TdmFile:
    """The rules in file order. What is no JSON, and does not mention the key either, states nothing."""
    text = decode(body[:CAP_BYTES]).lstrip("\ufeff")
    mentions = KEY in text.lower().replace("_", "-")
    if len(body) > CAP_BYTES:
        return TdmFile((), mentions)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return TdmFile((), mentions)
    entries = [data] if isinstance(data, dict) else data
    if not isinstance(entries, list) or len(entries) > RULES_MAX:
        return TdmFile((), mentions)
    rules = [rule for entry in entries if isinstance(entry, dict) and (rule := _rule(entry)) is not None]
    return TdmFile(tuple(rules), mentions and not rules)


def _rule(entry: dict[str, Any]) -> TdmRule | None:
    fields = {str(name).strip().lower().replace("_", "-"): value for name, value in entry.items()}
    if KEY not in fields:
        return None
    reserved = reservation(fields[KEY])
    location = fields.get("location")
    if not isinstance(location, str) or not location:
        if not reserved:
            return None
        location = "/"  # a reservation without a place reserves the place it stands at
    location = _path(location)
    return TdmRule(location, reserved, printable(json.dumps(entry, separators=(",", ":"))))


def _path(location: str) -> str:
    location = location.strip()
    _, scheme, rest = location.partition("://")
    if scheme:
        slash = rest.find("/")
        location = rest[slash:] if slash >= 0 else "/"
    return location if location.startswith(("/", "*")) else "/" + location


def reservation(value: object) -> bool | None:
    """1 or 0 in any spelling that can mean nothing else; None for everything else (then it is unset)."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return bool(value) if value in {0, 1} else None
    if isinstance(value, str):
        word = value.strip().strip("\"'").lower()
        return {"1": True, "true": True, "1.0": True, "0": False, "false": False}.get(word)
    return None


class TdmRules:
    """A parsed file, compiled: `at` gives the first matching rule's statement."""

    __slots__ = ("_rules", "_unreadable")

    def __init__(self, file: TdmFile, origin: Origin) -> None:
        self._unreadable = (stated("tdmrep", "unreadable", origin),) if file.unreadable else ()
        self._rules: list[tuple[Pattern, bool | None, tuple[Evidence, ...]]] = []
        for rule in file.rules:
            if (pattern := compile_pattern(rule.location)) is not None:
                said = () if rule.reserved is None else (stated("tdmrep", "1" if rule.reserved else "0", origin, raw=rule.raw),)
                self._rules.append((pattern, rule.reserved, said))

    def at(self, target: Target) -> tuple[Evidence, ...]:
        for pattern, reserved, said in self._rules:
            if pattern.under(target, both=not reserved):
                return said
        return self._unreadable


def stated_by(values: Sequence[str], policies: Sequence[str], source: str, at: float | None) -> tuple[Evidence, ...]:
    """The statement of a repeated header or meta element: reserved when any member says 1, open when one says 0.

    `policies` are `tdm-policy` values; they are kept in the evidence of a reservation, and ignored beside a 0.
    """
    members = [reservation(member) for value in values for member in value.split(",")]
    if not any(member is not None for member in members):
        return ()
    value = "1" if True in members else "0"
    raw = f"{KEY}: {', '.join(v.strip() for v in values)}"
    if value == "1" and policies:
        raw += f"; {POLICY}: {policies[-1].strip()}"
    return (stated("tdmrep", value, Origin(source, read_at=at), raw=raw),)


def effective(evidence: Iterable[Evidence]) -> int | None:
    """1, 0 or None: what TDMRep alone says, given the statements that count (`decide.superseded`)."""
    verdicts = {item.verdict for item in evidence if item.protocol == "tdmrep"}
    return 1 if "no" in verdicts else 0 if "yes" in verdicts else None


def policy_of(evidence: Iterable[Evidence]) -> str | None:
    """The policy URL that goes with a reservation, if one is stated."""
    found = (_POLICY_URL.search(item.raw) for item in evidence if item.protocol == "tdmrep" and item.verdict == "no")
    return next((match[1] for match in found if match), None)
