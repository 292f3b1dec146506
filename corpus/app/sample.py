"""Documents to look at: a sample that is the same for everybody who looks at the same folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corpus.app.host_lines import FILE as HOST_LINES
from corpus.app.project import Project
from corpus.app.query import as_document
from corpus.app.release import DECISIONS
from corpus.app.snapshot import latest_snapshot
from corpus.app.views import Views
from corpus.config.check import configured_policy
from corpus.errors import UsageError
from corpus.filter.flips import edited, flips
from corpus.filter.signals_reduced import REDUCED

_QUERY = """
SELECT url, id, language, title, stage, reason, drop_rule, measured, "limit", keep, keep_id, text FROM documents
WHERE {which} ORDER BY drop_rule IS NULL, md5(id), id LIMIT {count}
"""


def sample(project: Project, *, dropped: bool, rule: str | None, count: int) -> list[dict[str, Any]]:
    """Rows of `documents` with their decision. Raises UsageError for a rule the policy does not have."""
    which = "reason = ''" if not dropped else "reason IS NOT NULL AND reason <> ''"
    with Views(project) as views:
        if rule is not None:
            views.make("documents")
            known = {
                r[0]
                for r in views.connection.execute(
                    "SELECT DISTINCT drop_rule FROM documents WHERE drop_rule IS NOT NULL"
                ).fetchall()
            }
            if rule not in known:
                hint = f"these did: {', '.join(sorted(known))}" if known else "no document was dropped by a rule"
                raise UsageError("no document was dropped by this rule", rule, hint)
            which = f"drop_rule = '{rule.replace(chr(39), chr(39) * 2)}'"
        document = as_document(views.query(_QUERY.format(which=which, count=count)))
    return [dict(zip(document["columns"], row, strict=True)) for row in document["rows"]]


_JUDGED = "CREATE OR REPLACE TEMP TABLE judged AS SELECT DISTINCT ON (s.id) {columns} FROM measured_signals s {only}"
_LATEST = "JOIN document_decisions e ON e.id = s.id AND e.latest AND e.stage NOT IN ('extracted', 'language')"


def flip_table(project: Project, against: Sequence[str], *, count: int) -> dict[str, Any]:
    """What another policy would decide differently. `against`: edits (`RULE.LIMIT=NUMBER`, `RULE=off`), or one policy's name or file.

    Judged are the rows that reached the policy in the newest export (all measured ones before the first), so the counts are
    those of a full run. Raises UsageError for an unknown rule, limit or policy.
    """
    before = configured_policy(project.config)
    after = before
    for change in against:
        after = edited(after, change) if "=" in change else configured_policy(project.config, change)
    if {*before.signals, *after.signals} & REDUCED.keys() and latest_snapshot(project, HOST_LINES) is None:
        raise UsageError("the policy speaks of host lines, which an export compares", "sample", "run corpus export first")
    with Views(project) as views:
        views.make("measured_signals", "document_decisions", "measured_documents")
        decided = latest_snapshot(project, DECISIONS) is not None
        named = sorted({"id", "language", *before.signals, *after.signals})
        columns = ", ".join(f's."{name}"' for name in named)
        views.connection.execute(_JUDGED.format(columns=columns, only=_LATEST if decided else ""))
        table = flips(views.connection, "judged", before, after, count=count).document()
        urls = dict(
            views.connection.execute(
                "SELECT id, min(url) FROM measured_documents WHERE id = ANY($1) GROUP BY 1", [[r["id"] for r in table["rows"]]]
            ).fetchall()
        )
    table["rows"] = [{"url": urls[row["id"]], **row} for row in table["rows"]]
    return {"policy": before.name, "against": list(against), **table}
