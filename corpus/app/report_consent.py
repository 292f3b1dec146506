"""`corpus report consent` and `corpus lookup DOMAIN`: what sites said about us, counted, and what was decided because of it.

Everything is read from the views and the consent log as they stand; nothing is fetched and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corpus.app.consent_views import current_judge, decision_batches
from corpus.app.lookup_releases import holdings
from corpus.app.project import Project
from corpus.app.query import plain
from corpus.app.release import releases
from corpus.app.views import Views
from corpus.errors import UsageError
from corpus.optout.policy import policy_version
from corpus.reasons import REASONS
from corpus.url.canonical import canonical_url
from corpus.url.host import host_of, registered_domain

_CONSENT_STEPS = sorted(code for code, row in REASONS.items() if row.step in ("consent", "robots"))

_REFUSED = """
CREATE TEMP TABLE refused AS
WITH late AS (SELECT DISTINCT ON (url) url, host, reason, checked_at FROM document_decisions WHERE list_contains($codes, reason) AND latest ORDER BY url, checked_at DESC),
early AS (
    SELECT f.url, f.host, f.reason, coalesce(make_timestamp(CAST(f.fetched_at * 1000000 AS BIGINT)), r.read_at) AS decided_at
    FROM frontier_urls f LEFT JOIN (SELECT digest, min(read_at) AS read_at FROM consent_entries WHERE kind = 'authority' AND digest <> '' GROUP BY 1) r ON r.digest = f.authority_digest
    WHERE f.kind = 'page' AND f.state IN ('refused', 'parked') AND list_contains($codes, f.reason)
)
SELECT url, host, reason, decided_at, 'asked' AS stage FROM early
UNION ALL SELECT url, host, reason, checked_at, 'export' FROM late WHERE url NOT IN (SELECT url FROM early)
"""
_BY_SIGNAL = """
SELECT reason, count(*), count(DISTINCT host), count(*) FILTER (stage = 'export'), count(*) FILTER (stage = 'asked')
FROM refused GROUP BY 1 ORDER BY 2 DESC, 1
"""
_TREND = """
SELECT reason, day, urls, hosts, sum(urls) OVER (PARTITION BY reason ORDER BY day NULLS LAST ROWS UNBOUNDED PRECEDING)::BIGINT FROM (
    SELECT reason, strftime(decided_at, '%Y-%m-%d') AS day, count(*) AS urls, count(DISTINCT host) AS hosts FROM refused GROUP BY 1, 2
) ORDER BY reason, day NULLS LAST
"""
_FILES_BY_DAY = """
SELECT strftime(read_at, '%Y-%m-%d') AS day, file, count(*), count(*) FILTER (read_at = valid_from), count(*) FILTER (outcome = 'ok') FROM consent
WHERE kind = 'authority' GROUP BY 1, 2 ORDER BY 1, 2
"""
_BY_HOST = "SELECT host, reason, count(*) FROM refused GROUP BY ALL ORDER BY host, 3 DESC, reason"
_BY_DAY = """
SELECT day, sum(readings)::BIGINT, sum(changes)::BIGINT, sum(refused)::BIGINT FROM (
    SELECT strftime(read_at, '%Y-%m-%d') AS day, count(*) AS readings, count(*) FILTER (read_at = valid_from) AS changes, 0 AS refused FROM consent
    WHERE kind = 'authority' GROUP BY 1
    UNION ALL SELECT strftime(decided_at, '%Y-%m-%d'), 0, 0, count(*) FROM refused WHERE decided_at IS NOT NULL GROUP BY 1
) GROUP BY 1 ORDER BY 1
"""


def consent_report(project: Project) -> dict[str, Any]:
    """Refusals by signal, host and day (UTC), and what the pages of the newest release rest on.

    `urls` counts a URL once: `when_asked` (not fetched, or its answer dropped) or `at_export` (stored, and only then left out).
    `when_exported` is every stored page left out of the newest release, also where it was refused again when asked for.
    `trend` has a row for each signal and day on which URLs were newly refused; a `day` of null: nobody wrote down when.
    """
    with Views(project) as views:
        views.make("frontier_urls", "document_decisions", "consent_entries", "consent")
        con = views.connection
        con.execute(_REFUSED, {"codes": _CONSENT_STEPS})
        signals = con.execute(_BY_SIGNAL).fetchall()
        trend = con.execute(_TREND).fetchall()
        files = con.execute(_FILES_BY_DAY).fetchall()
        hosts: dict[str, dict[str, int]] = {}
        for host, reason, n in con.execute(_BY_HOST).fetchall():
            hosts.setdefault(host, {})[reason] = n
        days = con.execute(_BY_DAY).fetchall()
    made = releases(project)
    exported: dict[str, int] = (
        next((step["dropped"] for step in made[-1][1]["funnel"] if step["stage"] == "allowed"), {}) if made else {}
    )
    return {
        "policy_version": policy_version(project.config.optout, project.config.crawl.robots_token),
        "refused": sum(row[1] for row in signals),
        "exported_by_use": dict(sorted(made[-1][1]["consent"].items())) if made else {},
        "by_signal": [
            {"signal": code, "meaning": REASONS[code].sentence, "urls": n, "hosts": h, "at_export": late, "when_asked": asked, "when_exported": exported.get(code, 0)}
            for code, n, h, late, asked in signals
        ],
        "by_host": [
            {"host": host, "urls": sum(found.values()), "signals": found}
            for host, found in sorted(hosts.items(), key=lambda item: (-sum(item[1].values()), item[0]))
        ],
        "by_day": [{"day": day, "readings": reads, "changes": changes, "refused": n} for day, reads, changes, n in days],
        "trend": [
            {"signal": code, "day": day, "urls": n, "hosts": hosts, "urls_so_far": total} for code, day, n, hosts, total in trend
        ],
        "files_by_day": [
            {"day": day, "file": file, "readings": reads, "changes": changes, "found": found} for day, file, reads, changes, found in files
        ],
    }  # fmt: skip


_PAGES = "SELECT host, state, coalesce(reason, ''), count(*) FROM pages WHERE {where} GROUP BY ALL ORDER BY ALL"
_FILES = """
SELECT authority, file, url, outcome, status, digest, detail, valid_from, valid_to, max(read_at) AS read_at FROM consent
WHERE kind = 'authority' AND {where} GROUP BY ALL ORDER BY authority, file, url, valid_from
"""
_DROPPED = "SELECT host, stage, reason, count(*) FROM document_decisions WHERE latest AND {where} GROUP BY ALL ORDER BY ALL"


def lookup(project: Project, name: str) -> dict[str, Any]:
    """What was decided for a domain (or one host) and why, for its owner. Raises UsageError for something that is no domain."""
    host = host_of(canonical_url(name if "://" in name else f"http://{name}/") or "")
    if not host:
        raise UsageError("not a domain, host or URL", name[:200], "for example corpus lookup example.org")
    column = "domain" if registered_domain(host) == host else "host"
    where = f"{column} = $name"
    with Views(project) as views:
        views.make("pages", "document_decisions", "consent")
        con = views.connection
        pages = con.execute(_PAGES.format(where=where), {"name": host}).fetchall()
        dropped = con.execute(_DROPPED.format(where=where), {"name": host}).fetchall()
        urls = [row[0] for row in con.execute(f"SELECT url FROM pages WHERE {where} ORDER BY url", {"name": host}).fetchall()]
        of = "regexp_extract(authority, '^[a-z]+://(.*?)(:[0-9]+)?$', 1)"
        mine = f"({of} = $name OR ends_with({of}, '.' || $name))" if column == "domain" else f"{of} = $name"
        cursor = con.execute(_FILES.format(where=mine), {"name": host})
        names = [item[0] for item in cursor.description or ()]
        files = [{key: plain(value) for key, value in zip(names, row, strict=True)} for row in cursor.fetchall()]
    hosts = sorted({row[0] for row in pages})
    return {
        "domain": host,
        "known": bool(pages or files),
        "policy_version": current_judge(project).policy_version,
        "hosts": [
            {
                "host": each,
                "pages": [{"state": state, "reason": reason or None, "urls": n} for h, state, reason, n in pages if h == each],
                "release": [{"stage": stage, "reason": reason or None, "urls": n} for h, stage, reason, n in dropped if h == each],
            }
            for each in hosts
        ],
        "files": files,
        "statements": _statements(project, urls),
        **holdings(project, host, column),
        "object": _how_to_object(project, host),
    }  # fmt: skip


def _statements(project: Project, urls: Iterable[str]) -> list[dict[str, Any]]:
    """Every line of today's files that bears on a known URL, with how many it bears on."""
    counted: dict[tuple[Any, ...], int] = {}
    for batch in decision_batches(project, urls):
        for _, axis, verdict, protocol, raw, line_no, digest, _, source, agent, _ in batch:
            key = (axis, verdict, protocol, source, line_no, raw, agent, digest)
            counted[key] = counted.get(key, 0) + 1
    names = ("axis", "verdict", "protocol", "source", "line_no", "raw", "agent", "file_digest")
    return [
        dict(zip(names, key, strict=True)) | {"urls": n}
        for key, n in sorted(counted.items(), key=lambda item: (-item[1], str(item[0])))
    ]


def _how_to_object(project: Project, host: str) -> dict[str, str]:
    token = project.config.crawl.robots_token
    return {
        "contact": project.config.crawl.contact,
        "robots_txt": f"User-agent: {token}\nDisallow: /\n",
        "effect": f"from the next release on nothing of {host} is in, however long ago it was fetched; files are asked again at least every "
        f"{project.config.optout.recheck_after / 86_400:g} days",
        "takedown": f"ask for a takedown of {host} or of single URLs: it is in force at once, removes what is stored from every file and "
        "release, and leaves a proof",
    }
