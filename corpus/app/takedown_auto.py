"""What sites and the operator's list said by themselves, as orders: HTTP 451 and 410, `unavailable_after`, `optout.domains_file`.

These ask for what was stored to be removed, so `takedown apply` writes a purge for each and carries it out. Every other
refusal (robots.txt, headers, TDMRep …) takes a page out of the next release and is shown here with that effect: it may be
withdrawn, and it does not ask for older copies to be destroyed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from corpus.app.consent_judge import operator_list
from corpus.app.project import Project
from corpus.app.views import Views
from corpus.model import Evidence
from corpus.optout.robots_tag import expired_by

REMOVAL, EXCLUSION = "removal", "exclusion"
MEMBERS_MAX = 5_000
"""URLs of one order: a larger host takes several."""
_GONE = ("http-451", "http-410")
_ANSWERED = """
SELECT d.domain, f.reason, d.url_id, max(f.fetched_at) FROM measured_documents d JOIN frontier_urls f USING (url_id)
WHERE f.kind = 'page' AND f.state IN ('refused', 'gone') AND list_contains($codes, f.reason) AND epoch_us(d.fetched_at) / 1e6 <= f.fetched_at
GROUP BY ALL ORDER BY ALL
"""
_DATED = """
SELECT domain, url_id, evidence FROM measured_documents
WHERE outcome IN ('ok', 'near-copy') AND len(list_filter(evidence, lambda e: regexp_matches(lower(e.raw), 'unavailable[_-]after'))) > 0
QUALIFY row_number() OVER (PARTITION BY url_id ORDER BY fetched_at DESC) = 1 ORDER BY domain, url_id
"""
_HOSTS = "SELECT host, domain, count(DISTINCT url_id) FROM measured_documents GROUP BY ALL ORDER BY ALL"
_URLS = "SELECT DISTINCT domain, url, url_id FROM measured_documents WHERE list_contains($urls, url) ORDER BY ALL"
_LATER = """
SELECT d.domain, f.reason, count(DISTINCT d.url_id) FROM measured_documents d JOIN frontier_urls f USING (url_id)
WHERE f.kind = 'page' AND f.state = 'refused' AND f.reason NOT IN ('http-451', 'operator-list') GROUP BY ALL ORDER BY ALL
"""


@dataclass(frozen=True, slots=True)
class Automatic:
    """One cause and domain. `members` are `url_id`s; none for a whole domain. `effect`: `removal` or `exclusion`."""

    cause: str
    effect: str
    domain: str
    urls: int
    members: tuple[str, ...] = ()

    def document(self) -> dict[str, Any]:
        return {"cause": self.cause, "effect": self.effect, "domain": self.domain, "urls": self.urls}


def found(project: Project, now: float) -> list[Automatic]:
    """What is stored although its site, or the operator's list, said no since. `now`: epoch seconds."""
    with Views(project) as views:
        views.make("measured_documents", "frontier_urls")
        groups: dict[tuple[str, str], list[str]] = {}
        for domain, cause, url_id, _ in views.connection.execute(_ANSWERED, {"codes": list(_GONE)}).fetchall():
            groups.setdefault((cause, domain), []).append(url_id)
        for domain, url_id in _expired(views, now):
            groups.setdefault(("unavailable-after", domain), []).append(url_id)
        listed = list(_listed(project, views, groups))
        later = views.connection.execute(_LATER).fetchall()
    removals = [
        Automatic(cause, REMOVAL, domain, len(ids), tuple(sorted(set(ids)))) for (cause, domain), ids in sorted(groups.items())
    ]
    return [*removals, *listed, *(Automatic(cause, EXCLUSION, domain, n) for domain, cause, n in later)]


def order(project: Project, automatic: list[Automatic], now: float) -> int:
    """Write the purges for what is to be removed; returns how many orders that were."""
    written = 0
    for item in automatic:
        if item.effect != REMOVAL:
            continue
        parts = [item.members[at : at + MEMBERS_MAX] for at in range(0, len(item.members), MEMBERS_MAX)]
        for part in parts or [()]:
            detail: dict[str, Any] = {"cause": item.cause, **({"members": list(part)} if part else {})}
            kind, value = ("url", part[0]) if part else ("domain", item.domain)
            project.control.append("purge", at=now, kind=kind, value=value, reason=f"{item.cause} ({item.domain})", detail=detail)
            written += 1
    return written


def _expired(views: Views, now: float) -> Iterator[tuple[str, str]]:
    for domain, url_id, evidence in views.connection.execute(_DATED).fetchall():
        if any(_past(row, now) for row in evidence):
            yield domain, url_id


def _past(row: dict[str, Any], now: float) -> bool:
    item = Evidence(
        row["protocol"], row["source"], raw=row["raw"] or "", agent=row["agent"] or "", axis=row["axis"], verdict=row["verdict"]
    )
    return expired_by(item, now)


def _listed(project: Project, views: Views, groups: dict[tuple[str, str], list[str]]) -> Iterator[Automatic]:
    """Hosts on the operator's list, whole; single URLs go into `groups`."""
    file = project.config.optout.domains_file
    if not file:
        return
    entries = operator_list((project.config.base / file).read_text("utf-8"))
    for host, _, n in views.connection.execute(_HOSTS).fetchall():
        if any(host == name or host.endswith(f".{name}") for name in entries.domains):
            yield Automatic("operator-list", REMOVAL, host, n)
    for domain, _, url_id in views.connection.execute(_URLS, {"urls": list(entries.urls)}).fetchall() if entries.urls else ():
        groups.setdefault(("operator-list", domain), []).append(url_id)
