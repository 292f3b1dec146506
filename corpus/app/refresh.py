"""Consent refresh: before a release, authorities whose statements are too old are asked again, politely.

They are asked by the same frontier and the same fetch processes as pages are, as URLs of kind `robots`: such a URL is
settled once all of its authority's files are fresh. What cannot be read stays stale, and its rows are held back.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from corpus.app.consent_views import current_judge
from corpus.app.fleet_status import workers_there
from corpus.app.frontier_files import open_file
from corpus.app.orders import Orders
from corpus.app.period import crawl_label
from corpus.app.project import Project
from corpus.app.views import Views
from corpus.crawl.ports import Ack, Judged, Settled
from corpus.errors import UsageError
from corpus.model import Kind, Sighting, UrlState
from corpus.observe.runlog import Reporter
from corpus.store.locks import stage_lock
from corpus.url.host import authority_of, host_of, registered_domain, robots_url
from corpus.url.partition import partition_file

_ORIGINS = "SELECT DISTINCT regexp_extract(url, '^https?://[^/?#]+') FROM measured_documents WHERE outcome IN ('ok', 'near-copy')"


def refresh(project: Project, report: Reporter, stopping: Callable[[], int]) -> frozenset[str]:
    """Ask stale authorities again. Returns those that are still stale (`scheme://host:port`)."""
    needed = authorities_of_documents(project)
    stale = stale_authorities(project, needed)
    if not stale or project.config.optout.stale == "block":
        return frozenset(stale)
    if not project.config.crawl.contact:
        hint = 'set crawl.contact, or optout.stale = "block" to hold their pages back'
        raise UsageError(
            f"{len(stale)} authorities must be asked for their consent again, and nobody is named as asking",
            "crawl.contact",
            hint,
        )
    if Orders(project).paused():
        report(
            "paused", what="nobody is asked again while the crawl is paused; stale pages are held back", authorities=len(stale)
        )
        return frozenset(stale)
    if workers_there(project):
        report(
            "workers crawl", what="they read these files on their own clock; stale pages are held back", authorities=len(stale)
        )
        return frozenset(stale)
    from corpus.app.crawl import crawl  # what fetching loads is wanted where somebody is asked, which is seldom

    report("consent refresh", authorities=len(stale))
    _enqueue(project, stale)
    now = time.time()
    crawl(project, crawl_label(project.config, now), "refresh", report, stopping, only=Kind.ROBOTS)
    return frozenset(stale_authorities(project, needed))


def authorities_of_documents(project: Project) -> set[str]:
    """Authorities of every page that has a text or copies one."""
    with Views(project) as views:
        views.make("measured_documents")
        return {authority_of(origin + "/") for (origin,) in views.connection.execute(_ORIGINS).fetchall() if origin}


def stale_authorities(project: Project, needed: set[str]) -> list[str]:
    """Those whose statement files were never read, could not be read, or were read longer ago than `optout.recheck_after`."""
    judge = current_judge(project)
    limit = time.time() - project.config.optout.recheck_after
    return [authority for authority in sorted(needed) if judge.older(authority, limit)]


def _enqueue(project: Project, authorities: list[str]) -> None:
    """One URL of kind `robots` for each, queued (again) in the partition file that owns its domain."""
    by_file: dict[int, list[str]] = {}
    for authority in authorities:
        by_file.setdefault(partition_file(registered_domain(host_of(authority)), project.layout.spread), []).append(
            robots_url(authority)
        )
    with stage_lock(project.layout.locks, "crawl"):
        for file, urls in sorted(by_file.items()):
            store = open_file(project.layout, file)
            try:
                store.claim("refresh")
                clean = store.was_clean()
                store.commit([Ack(own=(_judged(url),)) for url in urls])
                again = [url for url in urls if (store.lookup(url) or {}).get("state") != UrlState.QUEUED.value]
                store.commit([Ack(settled=(Settled(url, UrlState.QUEUED),)) for url in again])
            finally:
                store.close(clean=clean)


def _judged(url: str) -> Judged:
    host = host_of(url)
    return Judged(Sighting(url, url, depth=0, kind=Kind.ROBOTS), host, registered_domain(host))
