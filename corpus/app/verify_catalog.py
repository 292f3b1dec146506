"""The catalog under audit: where it claims to know a release as it is, every id must stand where it says.

A missing catalog, or one of an older state, is no fault: nobody believes it. `verify --rebuild` makes it again.
"""

from __future__ import annotations

from contextlib import suppress

from corpus.app.catalog import contradicts, rebuild, stale_releases
from corpus.app.project import Project
from corpus.app.release import RELEASE_STAGE
from corpus.app.verify_faults import Findings, Kind
from corpus.app.verify_records import Records
from corpus.errors import StoreError
from corpus.observe.runlog import Reporter
from corpus.store.locks import stage_lock


def check_catalog(project: Project, records: Records, findings: Findings) -> None:
    """Compare each release that the catalog knows with its shards."""
    if not project.layout.catalog.exists():
        return
    made = records.of(RELEASE_STAGE)
    stale = stale_releases(project, made)
    findings.count("catalog_stale_releases", len(stale))
    for name in (record.key for record in made if record.key not in stale):
        findings.count("catalog_releases")
        with suppress(StoreError, ValueError, KeyError, TypeError):  # a manifest or shard is damaged, which has been said already
            if told := contradicts(project, name):
                findings.add(Kind.CATALOG, project.layout.catalog.name, told, mend=lambda: _mended(project))


def rebuild_catalog(project: Project, report: Reporter) -> int:
    """Make the catalog again, while no export is on; returns its rows."""
    with stage_lock(project.layout.locks, "export"):
        rows = rebuild(project)
    report("catalog", releases=len(rows), rows=sum(rows.values()))
    return sum(rows.values())


def _mended(project: Project) -> str:
    return f"the catalog was made again: {sum(rebuild(project).values())} rows"
