"""For the owner of a site: which releases hold pages of it, what was decided for the others, and what was taken down.

Reads the releases' own shards and decisions as they stand; never a text.
"""

from __future__ import annotations

import json
from typing import Any

import duckdb

from corpus.app.project import Project
from corpus.app.query import plain
from corpus.app.release import DECISIONS, manifest_text, release_records, shard_files
from corpus.app.takedown_orders import listed
from corpus.app.takedown_targets import suffixes
from corpus.app.views import Views
from corpus.errors import StoreError

_ROWS = "SELECT count(*), count(DISTINCT url) FROM read_parquet($files, hive_partitioning = false) WHERE {where}"
_DECIDED = """
SELECT CASE WHEN coalesce(reason, '') = '' THEN 'exported' ELSE stage END, nullif(reason, ''), count(*), max(checked_at)
FROM read_parquet($file) WHERE latest AND {where} GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2
"""


def holdings(project: Project, name: str, column: str) -> dict[str, Any]:
    """`releases` and `takedowns` of a domain or host (`column` says which), for `corpus lookup`."""
    where = f"{column} = $name"
    found = []
    with duckdb.connect(":memory:") as con:
        for record in release_records(project):
            text = manifest_text(project, record.key)
            if not text:
                continue
            facts = json.loads(text)
            files = shard_files(project, record.key, facts)
            rows = con.execute(_ROWS.format(where=where), {"files": files, "name": name}).fetchall()[0] if files else (0, 0)
            found.append(
                {
                    "release": record.key, "rows": rows[0], "urls": rows[1], "withdrawn": bool(facts["withdrawn"]),
                    "superseded_by": facts.get("superseded_by"), "decided": _decided(project, con, record.info, where, name),
                }
            )  # fmt: skip
    return {"releases": found, "takedowns": _takedowns(project, name, where)}


def _decided(project: Project, con: duckdb.DuckDBPyConnection, info: Any, where: str, name: str) -> list[dict[str, Any]]:
    """What a release decided for URLs of the site, and when their statements were last read before."""
    folder = project.layout.snapshot_dir(str(info["snapshot"]))
    try:
        file = project.file(project.layout.relative(folder / DECISIONS))
    except StoreError:
        return []
    if not file.is_file():
        return []
    rows = con.execute(_DECIDED.format(where=where), {"file": str(file), "name": name}).fetchall()
    return [
        {"stage": stage, "reason": reason, "urls": n, "checked_at": plain(at) if at else None} for stage, reason, n, at in rows
    ]


def _takedowns(project: Project, name: str, where: str) -> list[dict[str, Any]]:
    """Orders about the site: about a name it lies under, about one below it, and about single URLs of it."""
    orders = listed(project)
    if not orders:
        return []
    with Views(project) as views:
        views.make("all_pages")
        urls = {
            row[0] for row in views.connection.execute(f"SELECT url_id FROM all_pages WHERE {where}", {"name": name}).fetchall()
        }
    above = set(suffixes(name))
    members = {entry.n: {entry.value, entry.url_id, *entry.members} for entry in project.control.read()}
    return [
        item
        for item in orders
        if (item["kind"] == "domain" and (item["value"] in above or item["value"].endswith(f".{name}")))
        or members[item["n"]] & urls
    ]
