"""What the first member of a run makes ready, and what is done with what dead members left on a shared disk.

Pages are acknowledged in a fleet only when their segment is sealed and recorded, so an open segment of a member holds nothing
that counts: it is removed. One of a single machine's run does, and is cut to what was acknowledged before anybody joins.
"""

from __future__ import annotations

from collections.abc import Collection

from corpus.app.fleet_budget import stored_pages
from corpus.app.frontier_files import open_file
from corpus.app.prepare import fingerprints, recover
from corpus.app.project import Project
from corpus.app.segments import forget_unpublished, open_files, record_unrecorded, sealed_files, segment_of
from corpus.observe.runlog import Reporter
from corpus.store.fleet_near import PostgresNearIndex
from corpus.store.fleet_schema import FIRST_MEMBER
from corpus.store.layout import parse_segment


def first_in(project: Project, report: Reporter) -> int:
    """Nobody else crawls: tables, what a single machine's run left, the near-copy index. Returns the pages stored so far."""
    for number in range(project.layout.spread):
        open_file(project.layout, number).close(clean=False)
    for worker in sorted(_writers(project)):
        if worker < FIRST_MEMBER:
            recover(project, worker)
    sweep(project, {worker for worker in _writers(project) if worker >= FIRST_MEMBER})
    record_unrecorded(project)
    pages = stored_pages(project)
    index = PostgresNearIndex(project.layout.server, project.config.crawl.near_k)
    try:
        known = index.rebuild(fingerprints(project) if pages else ())
    finally:
        index.close()
    report("first", pages=pages, originals=known)
    return pages


def sweep(project: Project, dead: Collection[int]) -> None:
    """What members left that are known to be dead: open segments go, sealed ones that a crash kept from being recorded are recorded
    (or, for a bucket, go: they were never whole there). A number that is dead never lives again, so this may come late."""
    if project.remote:
        for worker in sorted(dead):
            forget_unpublished(project, worker)
        return
    for _, path in open_files(project):
        parsed = parse_segment(segment_of(path.name))
        if parsed is not None and parsed[0] in dead:
            path.unlink(missing_ok=True)
    record_unrecorded(project, dead)


def _writers(project: Project) -> set[int]:
    """Numbers of those who left segments here that are open, or (sealed) not recorded yet."""
    found = [path for _, path in open_files(project)]
    if project.remote:
        found += [path for _, path in sealed_files(project)]
    return {parsed[0] for path in found if (parsed := parse_segment(segment_of(path.name))) is not None}
