"""What a new release leaves out that the one before it held, row by row with the reason; and whom refusals took along.

Written beside the run (`runs/<run>/removals.csv`), never into the release: its bytes depend on the snapshot alone.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from corpus.app.project import Project
from corpus.app.release import DECISIONS, release_files, snapshot_judge
from corpus.app.snapshot import Snapshot
from corpus.export.refusals import WARN_ABOVE
from corpus.observe.runlog import Reporter
from corpus.optout.decide import deciding
from corpus.store.local_objects import sealed

COLUMNS = ("url", "id", "reason", "protocol", "source", "line_no", "raw", "file_digest", "read_at", "refusing_domain")
_ASK = {"consent", "robots"}

_GONE = """
SELECT o.url, o.id, coalesce(d.stage, ''), coalesce(d.reason, ''), coalesce(d.refusing_domain, ''), coalesce(d.keep_url, '')
FROM (SELECT DISTINCT url, id FROM read_parquet($old, hive_partitioning = false)) o
ANTI JOIN (SELECT url FROM read_parquet($new, hive_partitioning = false)) n ON n.url = o.url
LEFT JOIN (SELECT DISTINCT ON (url) * FROM read_parquet($decisions, hive_partitioning = false) ORDER BY url, latest DESC) d ON d.url = o.url
ORDER BY o.url
"""


def report_release(
    project: Project, snapshot: Snapshot, manifest: dict[str, Any], previous: str, folder: Path, report: Reporter
) -> None:
    """Write what is no longer in, and say aloud when refusals took many rows of other domains along."""
    if previous:
        reasons = _write(project, snapshot, str(manifest["name"]), previous, folder / "removals.csv")
        if reasons:
            report(
                "removed since the last release",
                release=previous,
                rows=sum(reasons.values()),
                **{k.replace("-", "_"): n for k, n in sorted(reasons.items())},
            )
    for row in manifest["losses"]:
        if row["other_domains"] > WARN_ABOVE:
            hint = "look at it before publishing: a mirror may be refusing for an original (optout.cluster)"
            report(
                "warning",
                what="one domain's refusals took rows of others along",
                domain=row["domain"],
                other_domains=row["other_domains"],
                hint=hint,
            )


def _write(project: Project, snapshot: Snapshot, name: str, previous: str, path: Path) -> Counter[str]:
    """The file, and how many rows went for which reason."""
    old, new = release_files(project, previous), release_files(project, name)
    reasons: Counter[str] = Counter()
    if not old:
        return reasons
    with sealed(path) as part, part.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in removed_rows(project, snapshot, old, new):
            reasons[str(row[2])] += 1
            writer.writerow(["" if cell is None else cell for cell in row])
    return reasons


def removed_rows(project: Project, snapshot: Snapshot, old: list[str], new: list[str]) -> Iterator[tuple[Any, ...]]:
    """`COLUMNS` of every URL in the shards `old` and not in `new`, by URL; the reason is what `snapshot` decided."""
    from corpus.reasons import REASONS

    judge = snapshot_judge(project, snapshot)
    with duckdb.connect(":memory:") as con:
        asked = (
            _GONE
            if new
            else _GONE.replace("ANTI JOIN (SELECT url FROM read_parquet($new, hive_partitioning = false)) n ON n.url = o.url", "")
        )
        values: dict[str, Any] = {"old": old, "decisions": str(project.file(f"snapshots/{snapshot.digest}/{DECISIONS}"))} | (
            {"new": new} if new else {}
        )
        said = con.cursor()
        documents = [
            str(project.file(path))  # as it is now: a takedown may have rewritten it since the snapshot
            for path in snapshot.family("documents")
        ]
        query = "SELECT evidence, epoch_us(fetched_at) FROM read_parquet($files, hive_partitioning = false) WHERE url = $url ORDER BY fetched_at DESC LIMIT 1"
        for url, id_, _, reason, refusing, keep_url in con.execute(asked, values).fetchall():
            found: tuple[Any, ...] = (None,) * 6
            code = reason or "unprocessed"
            if code in REASONS and REASONS[code].step in _ASK and code not in ("cluster-refused", "stale"):
                page = said.execute(query, {"files": documents, "url": url}).fetchone() if documents else None
                evidence, at = (page[0] or [], (page[1] or 0) / 1e6) if page else ([], 0.0)
                item = deciding(judge.consent(url, evidence, at)[0])
                if item is not None:
                    found = (item.protocol, item.source, item.line_no, item.raw.strip(), item.file_digest, item.read_at)
            yield (url, id_, code, *found, refusing or keep_url)
