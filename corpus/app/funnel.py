"""Law C over the whole folder: every known URL, by its latest visit, from `known` to `exported`.

The first two steps come from the frontier and the documents, the rest from the newest release's decisions. No count is
made to fit: a sum that does not close is a defect, and `verify` says so.
"""

from __future__ import annotations

from typing import Any

from corpus.app.frontier_view import host_states, tally
from corpus.app.project import Project
from corpus.model import FUNNEL_STAGES, FunnelStep, UrlState

_STORED = frozenset({UrlState.FETCHED.value, UrlState.NOT_MODIFIED.value})
_PENDING = frozenset({UrlState.QUEUED.value, UrlState.PARKED.value})

_LATE = """
SELECT f.state, f.reason, count(*) FROM frontier_urls f
WHERE f.kind = 'page' AND f.state NOT IN ('fetched', 'not-modified') AND f.url_id IN (SELECT url_id FROM measured_documents) GROUP BY 1, 2
"""
"""URLs whose page is stored although their latest visit stored nothing (gone by now, refused by now): later steps decide."""
_TAKEN_IN = """
SELECT count(DISTINCT url_id) FROM measured_documents WHERE url_id NOT IN (SELECT url_id FROM frontier_urls)
"""
_SKIPPED = """
SELECT count(*) FROM urls
WHERE kind = 'page' AND state IN ('fetched', 'not-modified') AND coalesce(near_original, '') <> '' AND coalesce(warc_file, '') = ''
"""
"""Copies of which nothing was stored (`crawl.near_copies = "skip"`): no later step will see them."""
_MEASURED = "SELECT count(DISTINCT url_id) FROM measured_documents"


def whole_funnel(project: Project) -> list[FunnelStep]:
    """All eight steps; what no release has decided about yet waits in `fetched`, so that the steps add up at any moment."""
    made = _releases(project)
    later = [FunnelStep(s["stage"], s["in"], s["out"], dict(s["dropped"])) for s in made[-1][1]["funnel"]] if made else []
    first = _fetch_steps(project, later[0].n_in if later else 0)
    missing = FUNNEL_STAGES[len(first) :] if not later else ()
    return [*first, *later, *(FunnelStep(stage, 0, 0) for stage in missing)]


def told_funnel(project: Project) -> list[FunnelStep]:
    """The eight steps, and where the newest release holds older versions, their one separate line: those are no URLs."""
    made = _releases(project)
    versions = made[-1][1].get("versions") if made else None
    line = [FunnelStep(versions["stage"], versions["in"], versions["out"], dict(versions["dropped"]))] if versions else []
    return [*whole_funnel(project), *line]


def _fetch_steps(project: Project, decided: int) -> list[FunnelStep]:
    """The two steps before decisions. `decided`: URLs that the newest release decided about."""
    known = tally(project)
    late, taken_in, measured = _measured(project)
    dropped: dict[str, int] = {}
    pending = 0
    for (state, reason), n in known.items():
        lost = n - late.get((state, reason), 0)
        if state in _PENDING:
            pending += lost
        elif state not in _STORED and lost:
            dropped[reason or state] = dropped.get(reason or state, 0) + lost
    for code, n in _waits(project, pending).items():
        dropped[code] = dropped.get(code, 0) + n
    total = sum(known.values()) + taken_in
    stored = total - sum(dropped.values())
    out = min(measured, decided)
    skipped = _skipped(project) if stored > measured else 0
    waiting = {"near-copy": skipped, "unprocessed": stored - measured - skipped, "undecided": measured - out}
    return [
        FunnelStep("known", total, stored, dropped),
        FunnelStep("fetched", stored, out, {k: n for k, n in waiting.items() if n}),
    ]


def _skipped(project: Project) -> int:
    from corpus.app.frontier_files import read_all

    return sum(int(n) for (n,) in read_all(project.layout, _SKIPPED))


def _releases(project: Project) -> list[tuple[str, dict[str, Any]]]:
    """Every release with its manifest, oldest first; a folder without any loads nothing to find that out."""
    if not project.commits.keys("release"):
        return []
    from corpus.app.release import releases

    return releases(project)


def _measured(project: Project) -> tuple[dict[tuple[str, str], int], int, int]:
    """(measured URLs by the state and reason of a later visit that stored nothing; those not from a crawl; all)."""
    if not project.commits.keys("map"):
        return {}, 0, 0
    from corpus.app.views import Views

    with Views(project) as views:
        views.make("frontier_urls", "measured_documents")
        late = {(state, reason): n for state, reason, n in views.connection.execute(_LATE).fetchall()}
        taken_in, measured = (int(views.connection.execute(q).fetchall()[0][0]) for q in (_TAKEN_IN, _MEASURED))
    return late, taken_in, measured


def _waits(project: Project, total: int) -> dict[str, int]:
    """What is waited for: queued URLs of a parked host under the host's reason, the rest as `queued`.

    A host's queue also holds its statement files and stored pages that are due again: those are no part of `total`.
    """
    found: dict[str, int] = {}
    rest = total
    for _, state, reason, queued in host_states(project):
        here = min(queued, rest) if state == "parked" else 0
        if here:
            found[reason or "backing-off"] = found.get(reason or "backing-off", 0) + here
            rest -= here
    if rest:
        found["queued"] = rest
    return found
