"""Flip tables: what a changed policy would decide differently, document by document, without measuring anything again.

Both policies run as one SELECT each over the same signals; a document flips where one keeps it and the other does not. The
counts are those of a full run, because it runs the same SELECTs over the same rows.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa

from corpus.errors import UsageError
from corpus.filter.policy import LIMITS, Policy, Range

_JOINED = """
CREATE OR REPLACE TEMP TABLE flipped AS
SELECT a.id, a.drop_rule AS was, b.drop_rule AS now, coalesce(b.drop_rule, a.drop_rule) AS rule,
    CASE WHEN b.drop_rule IS NULL THEN a.measured ELSE b.measured END AS measured,
    CASE WHEN b.drop_rule IS NULL THEN a."limit" ELSE b."limit" END AS "limit",
    CASE WHEN b.drop_rule IS NULL THEN a.keep ELSE b.keep END AS keep
FROM before a JOIN after b USING (id) WHERE (a.drop_rule IS NULL) <> (b.drop_rule IS NULL)
"""
_ROWS = "SELECT id, CASE WHEN now IS NULL THEN 'kept' ELSE 'dropped' END AS becomes, rule, measured, \"limit\", keep FROM flipped ORDER BY md5(id), id LIMIT ?"


@dataclass(frozen=True, slots=True)
class Flips:
    """`rows`: id, becomes (kept | dropped), the rule that decides (or decided), measured, limit, keep; in an order that the
    ids alone give. `newly_dropped` and `newly_kept` count by that rule."""

    documents: int
    kept_before: int
    kept_after: int
    newly_dropped: dict[str, int]
    newly_kept: dict[str, int]
    rows: pa.Table

    def document(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "documents": self.documents,
            "kept_before": self.kept_before,
            "kept_after": self.kept_after,
            "newly_dropped": self.newly_dropped,
            "newly_kept": self.newly_kept,
            "rows": self.rows.to_pylist(),
        }


def edited(policy: Policy, edit: str) -> Policy:
    """The policy with one limit changed: `RULE.LIMIT=NUMBER`, or `RULE=off`. Exceptions by language keep their own limits.

    Raises UsageError for an unknown rule, an unknown limit, or a value that is no number.
    """
    target, _, value = edit.partition("=")
    name, _, side = target.strip().partition(".")
    rule = next((rule for rule in policy.rules if rule.name == name), None)
    if rule is None:
        near = difflib.get_close_matches(name, [rule.name for rule in policy.rules], n=1)
        raise UsageError(f"policy {policy.name} has no rule {name!r}", edit, f"did you mean {near[0]!r}?" if near else "")
    if not side and value.strip() == "off":
        return replace(policy, rules=tuple(other for other in policy.rules if other.name != name))
    if side not in LIMITS:
        raise UsageError(
            f"{side!r} is no limit", edit, f"write {name}.LIMIT=NUMBER with one of {', '.join(LIMITS)}, or {name}=off"
        )
    try:
        number = float(value)
    except ValueError:
        raise UsageError(f"{value!r} is no number", edit) from None
    return replace(
        policy, rules=tuple(replace(r, range=_moved(r.range, side, number, edit)) if r is rule else r for r in policy.rules)
    )


def _moved(kept: Range, side: str, number: float, edit: str) -> Range:
    if side in ("min", "above"):
        moved = replace(kept, low=number, low_open=side == "above")
    else:
        moved = replace(kept, high=number, high_open=side == "below")
    if not -1e308 < number < 1e308 or (moved.low is not None and moved.high is not None and moved.low > moved.high):
        raise UsageError("the rule would keep nothing", edit, f"it keeps {kept.words('values')}")
    return moved


def flips(con: duckdb.DuckDBPyConnection, relation: str, before: Policy, after: Policy, *, count: int = 20) -> Flips:
    """Decide every row of `relation` (a view or table with the signals family's columns, one row an id) by both policies."""
    for name, policy in (("before", before), ("after", after)):
        con.execute(
            f'CREATE OR REPLACE TEMP TABLE {name} AS SELECT id, drop_rule, measured, "limit", keep FROM ({policy.sql(relation)})'
        )
    con.execute(_JOINED)
    documents, kept_before = con.execute("SELECT count(*), count(*) FILTER (drop_rule IS NULL) FROM before").fetchall()[0]
    kept_after = con.execute("SELECT count(*) FILTER (drop_rule IS NULL) FROM after").fetchall()[0][0]
    by_rule = "SELECT rule, count(*) FROM flipped WHERE (now IS NULL) = ? GROUP BY 1 ORDER BY 2 DESC, 1"
    newly = [dict(con.execute(by_rule, [kept]).fetchall()) for kept in (False, True)]
    rows = con.sql(_ROWS, params=[count]).to_arrow_table()
    for name in ("before", "after", "flipped"):
        con.execute(f"DROP TABLE {name}")
    return Flips(int(documents), int(kept_before), int(kept_after), newly[0], newly[1], rows)
