"""What processing found of hosts, on its way back to the crawl that chooses among them.

After documents were measured, and again after a release was decided, one line per host is written beside the frontier:
documents, those kept, those that are nobody's copy, those in a wanted language. A fetch process reads the file when it
starts and with every segment that it seals; `crawl.priority` makes one number of a line. Derived: it can be deleted.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from corpus.app.project import Project
from corpus.crawl.priority import host_quality
from corpus.errors import StoreError
from corpus.store.layout import Layout
from corpus.store.local_objects import sealed

QUERY = """
SELECT d.host, count(*) AS documents,
    count(*) FILTER (WHERE CASE WHEN e.id IS NULL THEN d.outcome IN ('ok', 'near-copy')
        ELSE coalesce(e.reason, '') IN ('', 'near-duplicate', 'exact-duplicate') END) AS kept,
    count(*) FILTER (WHERE CASE WHEN e.id IS NULL THEN d.outcome = 'ok' AND coalesce(d.near_original, '') = ''
        ELSE coalesce(e.reason, '') = '' END) AS uniques,
    count(*) FILTER (WHERE {wanted}) AS wanted
FROM measured_documents d
LEFT JOIN document_decisions e ON e.id = d.id AND e.file_path = d.file_path AND e.warc_offset = d.warc_offset
WHERE d.origin = 'crawl' GROUP BY d.host ORDER BY d.host
"""
"""Where nothing was decided yet, what the measurement alone says."""


def quality_path(layout: Layout) -> Path:
    """Where the lines lie: beside the frontier, because they are made from the corpus and may be made again."""
    return layout.local / "host-quality.jsonl"


def write_host_quality(project: Project) -> int:
    """Write a line for every host with documents; returns how many. Hosts that are only in archives of others are left out."""
    from corpus.app.views import Views
    from corpus.filter.language import normalise_language

    codes = sorted(normalise_language(language) for language in project.config.corpus.languages)
    wanted = f"d.language IN ({', '.join(repr(code) for code in codes)})" if codes else "true"
    with Views(project) as views:
        rows = views.query(QUERY.format(wanted=wanted)).to_pylist()
    path = quality_path(project.layout)
    path.parent.mkdir(parents=True, exist_ok=True)
    with sealed(path) as part, part.open("w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=True) + "\n")
    return len(rows)


@dataclass(slots=True)
class QualityFeed:
    """The fetch process' side. Calling it gives hosts whose quality is another than it said before; nothing when the file
    has not changed."""

    layout: Layout
    _stamp: tuple[int, int] = (0, 0)

    def __call__(self) -> dict[str, float]:
        path = quality_path(self.layout)
        try:
            state = path.stat()
            stamp = (state.st_mtime_ns, state.st_ino)
            if stamp == self._stamp:
                return {}
            lines = path.read_text("utf-8").splitlines()
        except FileNotFoundError:
            return {}
        try:
            rows = [json.loads(line) for line in lines]
            found = {str(r["host"]): host_quality(r["documents"], r["kept"], r["uniques"], r["wanted"]) for r in rows}
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"cannot be read: {error}", str(path), "delete it; corpus process writes it again") from None
        self._stamp = stamp
        return found
