"""A policy as one DuckDB SELECT: a fail bit per rule, the first failing rule, what was measured and the limit it broke.

Bit i of `fail_bits` belongs to rule i of the policy. Nothing is read but the signals relation, so a threshold changes in
seconds. Names were checked when the policy was read: only identifiers and numbers reach the statement.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from corpus.filter.policy import Policy, Range, Rule

MAX_RULES = 62
"""Bits of a BIGINT that stay positive."""


def compile_policy(policy: Policy, relation: str) -> str:
    """The SELECT: id, language, fail_bits BIGINT, drop_rule, measured DOUBLE, limit DOUBLE, keep VARCHAR.

    `drop_rule` is NULL for kept rows, and with it `measured`, `"limit"` and `keep`. `relation` is a table name or a
    parenthesised query with the columns of the signals family; rows come in its order.
    """
    rules = policy.rules
    assert len(rules) <= MAX_RULES, "more rules than fail bits"
    if not rules:
        return (
            f"SELECT id, language, 0::BIGINT AS fail_bits, NULL::VARCHAR AS drop_rule, NULL::DOUBLE AS measured, "
            f'NULL::DOUBLE AS "limit", NULL::VARCHAR AS keep FROM {relation}'
        )
    fails = ",\n".join(f"  {_fails(rule)} AS f{i}" for i, rule in enumerate(rules))
    bits = " + ".join(f"(CASE WHEN f{i} THEN {1 << i}::BIGINT ELSE 0 END)" for i in range(len(rules)))
    columns = ", ".join(policy.signals)
    return (
        f"SELECT id, language, {bits} AS fail_bits,\n"
        f"{_first(rules, lambda r: _text(r.name), 'VARCHAR')} AS drop_rule,\n"
        f"{_first(rules, lambda r: f'{r.signal}::DOUBLE', 'DOUBLE')} AS measured,\n"
        f'{_first(rules, _broken_limit, "DOUBLE")} AS "limit",\n'
        f"{_first(rules, _kept_range, 'VARCHAR')} AS keep\n"
        f"FROM (SELECT id, language, {columns},\n{fails}\nFROM {relation}) AS judged"
    )


def _first(rules: tuple[Rule, ...], value: Callable[[Rule], str], kind: str) -> str:
    cases = " ".join(f"WHEN f{i} THEN {value(rule)}" for i, rule in enumerate(rules))
    return f"CASE {cases} ELSE NULL::{kind} END"


def _fails(rule: Rule) -> str:
    """Boolean, never NULL: a NULL signal compares to NULL and passes."""
    return f"coalesce({_by_language(rule, lambda kept: _outside(rule.signal, kept), 'false')}, false)"


def _outside(signal: str, kept: Range) -> str:
    tests = []
    if kept.low is not None and not kept.off:
        tests.append(f"{signal} {'<=' if kept.low_open else '<'} {_number(kept.low)}")
    if kept.high is not None and not kept.off:
        tests.append(f"{signal} {'>=' if kept.high_open else '>'} {_number(kept.high)}")
    return f"({' OR '.join(tests)})" if tests else "false"


def _broken_limit(rule: Rule) -> str:
    def limit(kept: Range) -> str:
        if kept.low is None or kept.high is None:
            only = kept.low if kept.high is None else kept.high
            return "NULL::DOUBLE" if only is None else _number(only)
        return f"CASE WHEN {rule.signal} {'<=' if kept.low_open else '<'} {_number(kept.low)} THEN {_number(kept.low)} ELSE {_number(kept.high)} END"

    return _by_language(rule, limit, "NULL::DOUBLE")


def _kept_range(rule: Rule) -> str:
    return _by_language(rule, lambda kept: _text(kept.words(rule.signal)), "NULL::VARCHAR")


def _by_language(rule: Rule, value: Callable[[Range], str], nothing: str) -> str:
    default = value(rule.range)
    if rule.only:
        listed = ", ".join(_text(code) for code in rule.only)
        default = f"CASE WHEN language IN ({listed}) THEN {default} ELSE {nothing} END"
    if not rule.by_language:
        return default
    same: dict[str, list[str]] = {}
    for code, kept in rule.by_language.items():
        same.setdefault(value(kept), []).append(code)
    cases = " ".join(
        f"WHEN language IN ({', '.join(_text(c) for c in codes)}) THEN {expression}" for expression, codes in same.items()
    )
    return f"CASE {cases} ELSE {default} END"


def _number(value: float) -> str:
    assert math.isfinite(value), "a limit is a finite number"
    return f"{value!r}::DOUBLE"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
